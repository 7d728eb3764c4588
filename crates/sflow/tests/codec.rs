//! The codec against real datagrams and against random bytes.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use proptest::prelude::*;
use thalweg_sflow::decode::Datagram;
use thalweg_sflow::encode::{DatagramEncoder, DiscardSampleOut, FlowSampleOut, Push};
use thalweg_sflow::fuzz::{fuzz_capture, fuzz_decode};
use thalweg_sflow::pcapfile::PcapReader;
use thalweg_sflow::xdr::{Reader, Writer};
use thalweg_sflow::{CounterRecord, FlowRecord, SFLOW_PORT, Sample, Tag};

fn datagrams(capture: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(capture);
    let mut reader = PcapReader::open(path, SFLOW_PORT).unwrap();
    let mut datagrams = Vec::new();
    while let Some(datagram) = reader.next_datagram().unwrap() {
        datagrams.push(datagram.payload.to_vec());
    }
    datagrams
}

fn all_datagrams() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    // Captures of real agents have the expected output next to them.
    let texts = names.iter().filter_map(|n| n.to_str().unwrap().strip_suffix(".line.csv"));
    texts.flat_map(|name| datagrams(&format!("{name}.pcap"))).collect()
}

/// Encodes what was decoded. Records are handed over in reverse, as the encoder reverses them.
fn encode_again(datagram: &Datagram<'_>, encoder: &mut DatagramEncoder) {
    for sample in datagram.samples() {
        let push = match sample.unwrap() {
            Sample::Flow(s) => {
                let mut records: Vec<_> = s.records.clone().map(Result::unwrap).collect();
                records.reverse();
                let out = FlowSampleOut {
                    sequence: s.sequence,
                    source: s.source,
                    rate: s.rate,
                    pool: s.pool,
                    drops: s.drops,
                    input: s.input,
                    output: s.output,
                };
                encoder.flow_sample(&out, None, &records)
            }
            Sample::Discard(s) => {
                let mut records: Vec<_> = s.records.clone().map(Result::unwrap).collect();
                records.reverse();
                let out = DiscardSampleOut {
                    sequence: s.sequence,
                    source: s.source,
                    drops: s.drops,
                    input: s.input,
                    output: s.output,
                    reason: s.reason,
                };
                encoder.discard_sample(&out, None, &records)
            }
            Sample::Counters(s) => {
                let mut records: Vec<_> = s.records.clone().map(Result::unwrap).collect();
                records.reverse();
                encoder.counter_sample(s.sequence, s.source, &records)
            }
            other => panic!("sample {}", other.tag()),
        };
        assert_eq!(push.unwrap(), Push::Added);
    }
}

/// Everything that a datagram says, without its padding.
fn meaning(payload: &[u8]) -> Vec<String> {
    let datagram = Datagram::parse(payload).unwrap();
    let mut out = vec![format!("{:?} {}", datagram.agent, datagram.uptime_ms)];
    for sample in datagram.samples() {
        match sample.unwrap() {
            Sample::Flow(s) => {
                out.push(format!("{} {} {} {:?}", s.sequence, s.source, s.pool, s.output));
                out.extend(s.records.map(|r| format!("{:?}", r.unwrap())));
            }
            Sample::Discard(s) => {
                out.push(format!("{} {} {} {}", s.sequence, s.source, s.input, s.reason));
                out.extend(s.records.map(|r| format!("{:?}", r.unwrap())));
            }
            Sample::Counters(s) => {
                out.push(format!("{} {}", s.sequence, s.source));
                out.extend(s.records.map(|r| format!("{:?}", r.unwrap())));
            }
            other => panic!("sample {}", other.tag()),
        }
    }
    out
}

/// Every datagram that hsflowd sent comes out of the encoder byte for byte, except that hsflowd
/// leaves whatever was there in padding, where the standard wants zeros.
#[test]
fn real_datagrams_are_encoded_as_they_were() {
    let mut compared = 0;
    for payload in all_datagrams() {
        let datagram = Datagram::parse(&payload).unwrap();
        let expanded = |s: &Sample<'_>| s.tag() >= Tag::FLOW_SAMPLE_EXPANDED;
        if !datagram.samples().all(|s| expanded(&s.unwrap())) {
            continue;
        }
        let agent = datagram.agent.unwrap();
        let mut encoder = DatagramEncoder::new(agent, datagram.sub_agent, 1400);
        encode_again(&datagram, &mut encoder);
        let mut encoded = encoder.finish(datagram.uptime_ms).unwrap().to_vec();
        // Number of the datagram: the encoder begins with 1.
        let at = if agent.is_ipv4() { 16 } else { 28 };
        encoded[at..at + 4].copy_from_slice(&datagram.sequence.to_be_bytes());
        assert_eq!(meaning(&encoded), meaning(&payload));
        assert_eq!(encoded.len(), payload.len());
        for (at, (ours, theirs)) in encoded.iter().zip(&payload).enumerate() {
            let padding = at % 4 != 0 && *ours == 0;
            assert!(ours == theirs || padding, "byte {at}: {theirs} became {ours}");
        }
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
}

/// The rest of a truncated datagram is an error with a place, or shorter by whole samples that are
/// missed.
#[test]
fn a_cut_anywhere_is_an_error() {
    for payload in [
        &datagrams("hsflowd_veth_flows.pcap")[3],
        &datagrams("psample_kernel_dropmon.pcap")[20],
        &datagrams("ovs_compact_switch.pcap")[4],
        &datagrams("host_counters_30s.pcap")[0],
    ] {
        let whole = Datagram::parse(payload).unwrap().samples().count();
        for n in 0..payload.len() {
            let cut = &payload[..n];
            fuzz_decode(cut);
            let datagram = match Datagram::parse(cut) {
                Ok(datagram) => datagram,
                Err(error) => {
                    assert!(error.offset <= n, "{error}");
                    continue;
                }
            };
            let samples: Vec<_> = datagram.samples().collect();
            let errors: Vec<_> = samples.iter().filter_map(|s| s.as_ref().err()).collect();
            assert_eq!(errors.len(), 1, "cut at {n}");
            assert!(errors[0].offset <= n && errors[0].to_string().contains("needs"));
            assert!(samples.len() <= whole);
        }
    }
}

/// A record that makes no sense does not take the others with it.
#[test]
fn one_bad_record_is_one_error() {
    let mut payload = datagrams("vppmsgs_osindex_off.pcap")
        .into_iter()
        .find(|p| matches!(Datagram::parse(p).unwrap().samples().next(), Some(Ok(Sample::Flow(_)))))
        .unwrap();
    let before = Datagram::parse(&payload).unwrap();
    let samples = before.samples().count();
    // The length of the first sampled header, which the record's own length contradicts then.
    let at = payload.windows(4).position(|w| w == [0, 0, 0, 118]).unwrap();
    payload[at..at + 4].copy_from_slice(&[0, 0, 1, 0]);
    let datagram = Datagram::parse(&payload).unwrap();
    let mut errors = Vec::new();
    let mut records = 0;
    for sample in datagram.samples() {
        let Ok(Sample::Flow(flow)) = sample else { panic!("{sample:?}") };
        for record in flow.records {
            match record {
                Ok(_) => records += 1,
                Err(error) => errors.push(error),
            }
        }
    }
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].to_string(),
        format!("byte {}: sampled header needs 256 bytes, but 120 are left", at + 4)
    );
    assert_eq!(records, samples - 1);
}

/// Agents that do not know their address write none, or four bytes.
#[test]
fn an_unknown_agent_is_understood_either_way() {
    let payload = &datagrams("host_counters_30s.pcap")[0];
    for padding in [0, 4] {
        let mut unknown = vec![0, 0, 0, 5, 0, 0, 0, 0];
        unknown.resize(8 + padding, 0);
        unknown.extend(&payload[12..]);
        let datagram = Datagram::parse(&unknown).unwrap();
        assert_eq!((datagram.agent, datagram.sub_agent), (None, 100_001));
        assert_eq!(datagram.samples().filter(Result::is_ok).count(), 1);
        assert!(datagram.check_end().is_ok());
    }
    for padding in [0, 4] {
        let mut router = vec![0; 4 + padding];
        router.extend([0, 0, 0, 24, 0, 0, 0, 16]);
        let record = FlowRecord::decode(Tag::new(0, 1002), &mut Reader::new(&router)).unwrap();
        let FlowRecord::Router(router) = record else { panic!("{record:?}") };
        assert_eq!((router.source_mask, router.destination_mask), (24, 16));
    }
}

#[test]
fn other_versions_are_named() {
    let error = Datagram::parse(&[0, 0, 0, 4, 0, 0, 0, 1]).unwrap_err();
    assert_eq!(error.to_string(), "byte 0: sFlow version is 4, but only version 5 is decoded");
}

/// The encoder's buffer is as long as a datagram from the start, and never moves.
#[test]
fn a_warm_encoder_keeps_its_buffer() {
    let payload = &datagrams("hsflowd_veth_flows.pcap")[3];
    let datagram = Datagram::parse(payload).unwrap();
    let mut encoder = DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400);
    let mut places = std::collections::HashSet::new();
    for _ in 0..10 {
        encode_again(&datagram, &mut encoder);
        places.insert(encoder.finish(0).unwrap().as_ptr().addr());
    }
    assert_eq!(places.len(), 1);
}

const FLOW_FORMATS: [u32; 59] = [
    1, 2, 3, 4, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
    1015, 1020, 1021, 1022, 1023, 1024, 1025, 1026, 1027, 1029, 1036, 1037, 1038, 1039, 1040, 1041,
    1042, 1043, 2100, 2101, 2102, 2103, 2200, 2202, 2206, 2209, 2210, 1017, 1018, 1019, 1031, 1032,
    1033, 1034, 1035, 2000, 2001, 2002, 2003, 2207, 2208,
];

const COUNTER_FORMATS: [u32; 45] = [
    1, 2, 3, 4, 5, 6, 7, 10, 11, 1001, 1002, 1004, 1005, 2000, 2001, 2002, 2003, 2004, 2005, 2006,
    2007, 2008, 2009, 2010, 2100, 2101, 2102, 2103, 2104, 2105, 2106, 2200, 2201, 2202, 2203, 2204,
    2206, 2207, 8, 9, 1003, 3000, 3001, 3002, 3003,
];

/// A body of words, most of them small, so that lengths and counts are often possible.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![4 => 0_u32..6, 1 => any::<u32>()];
    prop::collection::vec(word, 0..60)
        .prop_map(|words| words.into_iter().flat_map(u32::to_be_bytes).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_are_survived(data in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz_decode(&data);
        fuzz_capture(&data);
    }

    #[test]
    fn a_changed_datagram_is_survived(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let captures = ["hsflowd_veth_flows", "psample_kernel_dropmon", "ovs_compact_switch"];
        let all: Vec<_> = captures.iter().flat_map(|c| datagrams(&format!("{c}.pcap"))).collect();
        let mut payload = all[pick.index(all.len())].clone();
        for (at, value) in changes {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        fuzz_decode(&payload);
    }

    #[test]
    fn a_changed_capture_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let mut file = std::fs::read(path.join("vppmsgs_osindex_on_noattr.pcap")).unwrap();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        fuzz_capture(&file);
        fuzz_capture(&file[..cut.index(file.len())]);
    }

    /// A decoded body stays the same when it is encoded and decoded again.
    #[test]
    fn records_survive_the_round_trip(
        flow in prop::sample::select(&FLOW_FORMATS[..]),
        counter in prop::sample::select(&COUNTER_FORMATS[..]),
        body in body(),
    ) {
        if let Ok(record) = FlowRecord::decode(Tag::new(0, flow), &mut Reader::new(&body)) {
            let mut first = Vec::new();
            record.encode(&mut Writer::new(&mut first));
            let again = FlowRecord::decode(record.tag(), &mut Reader::new(&first[8..])).unwrap();
            let mut second = Vec::new();
            again.encode(&mut Writer::new(&mut second));
            prop_assert_eq!(first, second);
        }
        if let Ok(record) = CounterRecord::decode(Tag::new(0, counter), &mut Reader::new(&body)) {
            let mut first = Vec::new();
            record.encode(&mut Writer::new(&mut first));
            let again = CounterRecord::decode(record.tag(), &mut Reader::new(&first[8..])).unwrap();
            let mut second = Vec::new();
            again.encode(&mut Writer::new(&mut second));
            prop_assert_eq!(first, second);
        }
    }
}

/// Records about labels, written by hand from sFlow's definitions of structures 1006, 1008, 1009
/// and 1010 (sflow.org, sFlow Version 5 and its MPLS structures).
#[test]
fn records_of_labels_are_as_defined() {
    use thalweg_sflow::model::{ExtendedMpls, MplsFtn, MplsTunnel, MplsVc};
    use thalweg_sflow::value::{Address, Text};
    use thalweg_sflow::{DataSource, Interface};
    let text = |s: &'static str| Text::from(s);
    let mpls = ExtendedMpls {
        next_hop: Address(Some([10, 0, 1, 2].into())),
        // Labels 16 and 17 with TTL 64, the second one at the bottom with class 5.
        input: vec![0x0001_0040, 0x0001_1b40],
        output: vec![0x0006_3b3f],
    };
    #[rustfmt::skip]
    let cases: [(FlowRecord<'_>, &[u32]); 4] = [
        (FlowRecord::Mpls(mpls), &[
            1006, 28,
            // Next hop: type 1, IPv4.
            1, 0x0a00_0102,
            // Stacks in and out, each with its number of entries.
            2, 0x0001_0040, 0x0001_1b40, 1, 0x0006_3b3f,
        ]),
        (FlowRecord::MplsTunnel(MplsTunnel { name: text("lsp-7"), id: 7, cos: 3 }), &[
            1008, 20, 5, u32::from_be_bytes(*b"lsp-"), u32::from_be_bytes(*b"7\0\0\0"), 7, 3,
        ]),
        (FlowRecord::MplsVc(MplsVc { name: text("acme"), id: 9, cos: 0 }), &[
            1009, 16, 4, u32::from_be_bytes(*b"acme"), 9, 0,
        ]),
        (FlowRecord::MplsFtn(MplsFtn { description: text("10.0.0.0/8"), mask: 8 }), &[
            1010, 20, 10, u32::from_be_bytes(*b"10.0"), u32::from_be_bytes(*b".0.0"),
            u32::from_be_bytes(*b"/8\0\0"), 8,
        ]),
    ];
    for (record, words) in cases {
        let expected: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        let mut encoder = DatagramEncoder::new([192, 0, 2, 1].into(), 0, 1400);
        let out = FlowSampleOut {
            sequence: 1,
            source: DataSource::interface(1),
            rate: 1,
            pool: 1,
            drops: 0,
            input: Interface::Index(1),
            output: Interface::Index(2),
        };
        assert_eq!(
            encoder.flow_sample(&out, None, std::slice::from_ref(&record)).unwrap(),
            Push::Added
        );
        let datagram = encoder.finish(0).unwrap().to_vec();
        assert!(datagram.ends_with(&expected), "{record:?}: {datagram:02x?}");
        let parsed = Datagram::parse(&datagram).unwrap();
        let Sample::Flow(sample) = parsed.samples().next().unwrap().unwrap() else {
            panic!("no flow sample");
        };
        assert_eq!(sample.records.map(Result::unwrap).collect::<Vec<_>>(), [record]);
    }
}
