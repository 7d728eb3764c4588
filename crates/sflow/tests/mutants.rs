//! Datagrams of real agents, damaged in ways that matter to a decoder.
//!
//! `data/mutants.pcap` is a committed selection, one for each kind of damage and each complaint,
//! with the complaints in `data/mutants.errors.txt`; the fuzzer begins with the same datagrams.
//! `UPDATE_GOLDEN=1` regenerates all of them. Some thousands more are made on the fly.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use thalweg_sflow::fuzz::fuzz_decode;
use thalweg_sflow::pcapfile::PcapReader;
use thalweg_sflow::pcapout::{Packets, PcapOut};
use thalweg_sflow::text::{Arrival, Format, Moment, Printer, Zone};
use thalweg_sflow::{DecodeError, SFLOW_PORT};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn datagrams(capture: &str) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::open(data(capture), SFLOW_PORT).unwrap();
    let mut all = Vec::new();
    while let Some(datagram) = reader.next_datagram().unwrap() {
        all.push(datagram.payload.to_vec());
    }
    all
}

/// A few datagrams of every kind of sample.
fn originals() -> Vec<Vec<u8>> {
    let captures = [
        ("host_counters_30s.pcap", 0),
        ("hsflowd_veth_flows.pcap", 3),
        ("hsflowd_ipv6agent_tcpinfo.pcap", 5),
        ("ovs_compact_switch.pcap", 4),
        ("psample_kernel_dropmon.pcap", 20),
        ("vppmsgs_osindex_off.pcap", 9),
    ];
    captures.into_iter().map(|(capture, n)| datagrams(capture)[n].clone()).collect()
}

/// Draws that are always the same.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Values that lengths, counts and types go wrong with.
const ODD: [u32; 14] = [
    0,
    1,
    2,
    3,
    4,
    7,
    255,
    1400,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffc,
    0xffff_ffff,
    4300 << 12 | 1002,
    4300 << 12 | 1003,
];

fn set(datagram: &mut [u8], word: usize, value: u32) {
    if let Some(bytes) = datagram.get_mut(4 * word..4 * word + 4) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// Damages a datagram once, in the way `kind`.
fn damage(datagram: &mut Vec<u8>, kind: usize, draws: &mut Draws) {
    let words = datagram.len() / 4;
    let word = draws.below(words);
    match kind {
        0 => datagram.truncate(draws.below(datagram.len())),
        1 => set(datagram, word, ODD[draws.below(ODD.len())]),
        2 => set(datagram, draws.below(18), ODD[draws.below(ODD.len())]),
        3 => {
            let at = draws.below(datagram.len());
            if let Some(byte) = datagram.get_mut(at) {
                *byte ^= 1 << draws.below(8);
            }
        }
        4 => {
            // A record or a part of one twice.
            let end = (4 * (word + 1 + draws.below(24))).min(datagram.len());
            let piece = datagram[4 * word.min(end / 4)..end].to_vec();
            datagram.splice(4 * word..4 * word, piece);
        }
        5 => {
            let end = (4 * (word + 1 + draws.below(24))).min(datagram.len());
            datagram.drain(4 * word.min(end / 4)..end);
        }
        6 => datagram.extend(std::iter::repeat_n(0, 1 + draws.below(40))),
        _ => {
            // Every word of one value: only the first that matters is off by one.
            let value = datagram.get(4 * word..4 * word + 4).map(<[u8]>::to_vec);
            if let Some(value) = value {
                let n = u32::from_be_bytes([value[0], value[1], value[2], value[3]]);
                set(datagram, word, n.wrapping_add(1).wrapping_sub(2 * (draws.below(2) as u32)));
            }
        }
    }
}

const KINDS: usize = 8;

fn mutants(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let originals = originals();
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    (0..count).map(move |n| {
        let mut datagram = originals[n % originals.len()].clone();
        for _ in 0..1 + draws.below(3) {
            if !datagram.is_empty() {
                damage(&mut datagram, draws.below(KINDS), &mut draws);
            }
        }
        datagram
    })
}

fn complaints(datagram: &[u8], format: Format) -> (Vec<DecodeError>, usize) {
    let mut printer = Printer::new(format).with_zone(Zone::utc());
    let errors = printer.format(&Arrival::captured(Moment::default()), datagram);
    (errors, printer.text().len())
}

/// No place is beyond the datagram, and what is printed is bounded by what came: at most a name and
/// a value for each four bytes.
fn check(datagram: &[u8]) {
    for format in [Format::Text, Format::Grep, Format::Json, Format::JsonIndented, Format::Line] {
        let (errors, printed) = complaints(datagram, format);
        assert!(errors.len() <= 1 + datagram.len() / 8, "{} errors", errors.len());
        for error in errors {
            assert!(error.offset <= datagram.len(), "{error}, of {} bytes", datagram.len());
        }
        assert!(printed <= 2000 + 60 * datagram.len(), "{printed} of {}", datagram.len());
    }
    fuzz_decode(datagram);
}

#[test]
fn thousands_of_mutants_are_survived() {
    for datagram in mutants(3000) {
        check(&datagram);
    }
}

/// Returns the subject of a complaint, without numbers.
fn sort_of(error: &DecodeError) -> String {
    error.fault.to_string().chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The first mutant for each complaint.
fn select() -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    let mut selected = Vec::new();
    for datagram in mutants(20_000) {
        let (errors, _) = complaints(&datagram, Format::Text);
        // Without `|`, the first new complaint would hide the others.
        let new = errors.iter().fold(false, |new, error| new | seen.insert(sort_of(error)));
        if new {
            selected.push(datagram);
        }
    }
    selected
}

/// The selection as what the fuzzer begins with.
fn seeds() -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/sflow_decode");
    let all = datagrams("mutants.pcap").into_iter().enumerate();
    all.map(move |(n, datagram)| (folder.join(format!("mutant-{:02}", n + 1)), datagram))
}

#[test]
fn the_committed_mutants_are_reported_as_they_were() {
    let file = data("mutants.pcap");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        let mut out = PcapOut::new(Packets::Datagrams, SFLOW_PORT);
        let source = "192.0.2.7:50000".parse().unwrap();
        for datagram in select() {
            out.add(Moment::default(), Some(source), &datagram);
        }
        std::fs::write(&file, out.bytes()).unwrap();
        for (seed, datagram) in seeds() {
            std::fs::write(seed, datagram).unwrap();
        }
    }
    for (seed, datagram) in seeds() {
        assert_eq!(std::fs::read(&seed).ok(), Some(datagram), "{}", seed.display());
    }
    let mut report = String::new();
    for (n, datagram) in datagrams("mutants.pcap").iter().enumerate() {
        check(datagram);
        report += &format!("datagram {}, {} bytes\n", n + 1, datagram.len());
        for error in complaints(datagram, Format::Text).0 {
            report += &format!("  {error}\n");
        }
    }
    thalweg_testkit::golden!("tests/data/mutants.errors.txt", report);
}
