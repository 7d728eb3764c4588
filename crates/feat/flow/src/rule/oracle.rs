//! Comparison with Open vSwitch: both read the same fields from generated packets, with fragments,
//! options, extension headers and trailers, whole and truncated. Only the version in the IP header
//! is not compared: Open vSwitch ignores it.
//!
//! `tests/data/ovs.txt` has what Open vSwitch 3.1.0 (`ovs-ofctl parse-pcap`) reads from some.
//! If that program is installed, the test asks it about others as well; `UPDATE_GOLDEN=1` then
//! writes the file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use thalweg_device::SwIfIndex;
use thalweg_peers::Peer;

use super::key::{self, ARP_SHA, ARP_THA, Place, WORDS, Words};
use super::{Names, Rule};

const KNOWN: &str = include_str!("../../tests/data/ovs.txt");
/// Frames in the file, and others that are tried.
const FRAMES: usize = 400;
const OTHERS: usize = 4000;

/// Correctness of a length field.
#[derive(Clone, Copy, Debug)]
enum Length {
    Right,
    Less(u8),
    More(u8),
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        8 => Just(Length::Right),
        1 => (1u8..60).prop_map(Length::Less),
        1 => (1u8..60).prop_map(Length::More),
    ]
}

impl Length {
    fn of(self, right: usize) -> [u8; 2] {
        let said = match self {
            Length::Right => right,
            Length::Less(n) => right.saturating_sub(n.into()),
            Length::More(n) => right + usize::from(n),
        };
        (said as u16).to_be_bytes()
    }
}

fn protocol() -> impl Strategy<Value = u8> {
    let known = prop::sample::select(&[1u8, 2, 6, 17, 132, 33, 136, 47, 50, 58][..]);
    prop_oneof![9 => known, 1 => any::<u8>()]
}

/// A transport header with data, or the beginning of one.
fn transport() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 40), prop_oneof![Just(40usize), 0usize..40]).prop_map(
        |(mut bytes, length)| {
            bytes.truncate(length);
            bytes
        },
    )
}

fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    // Open vSwitch takes fragments of longer datagrams than there are.
    let any_part = any::<u16>().prop_map(|word| word & 0xefff);
    let part = prop_oneof![5 => Just(0u16), 2 => Just(0x2000), 1 => Just(0x4000), 2 => any_part];
    let words = prop_oneof![6 => Just(5u8), 3 => 6u8..9, 1 => 0u8..16];
    let head = (words, any::<[u8; 10]>(), part, length());
    (head, protocol(), transport(), prop::collection::vec(any::<u8>(), 0..12)).prop_map(
        |((words, any, part, length), number, l4, trailer)| {
            let options = vec![1; usize::from(words.max(5)) * 4 - 20];
            let total = 20 + options.len() + l4.len();
            let mut l3 = vec![0x40 | words, any[0]];
            l3.extend(length.of(total));
            l3.extend([0, 7]);
            l3.extend(part.to_be_bytes());
            l3.extend([any[1], number, 0, 0]);
            l3.extend(&any[2..]);
            [l3, options, l4, trailer].concat()
        },
    )
}

/// An extension header: its type, words of eight bytes besides the first, and a fragment's word.
fn extension() -> impl Strategy<Value = (u8, u8, u16)> {
    let kind = prop::sample::select(&[0u8, 43, 60, 51, 135, 44, 44][..]);
    let any_part = any::<u16>().prop_map(|word| word & 0x7fff);
    let part = prop_oneof![Just(0u16), Just(1), Just(8), any_part];
    (kind, prop_oneof![5 => 0u8..3, 1 => any::<u8>()], part)
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let chain = prop::collection::vec(extension(), 0..4);
    let head = (any::<[u8; 3]>(), any::<[[u8; 16]; 2]>(), length());
    (head, chain, protocol(), transport(), prop::collection::vec(any::<u8>(), 0..12)).prop_map(
        |((any, addresses, length), chain, number, l4, trailer)| {
            let kinds: Vec<u8> = chain.iter().map(|(kind, ..)| *kind).chain([number]).collect();
            let mut payload = Vec::new();
            for ((kind, words, part), next) in chain.iter().zip(&kinds[1..]) {
                let [high, low] = part.to_be_bytes();
                match kind {
                    44 => payload.extend([*next, 0, high, low, 0, 0, 0, 7]),
                    // Counts words of four bytes, less two.
                    51 => {
                        payload.extend([*next, words % 4]);
                        payload.resize(payload.len() + (usize::from(words % 4) + 2) * 4 - 2, 1);
                    }
                    _ => {
                        payload.extend([*next, *words]);
                        payload.resize(payload.len() + 6 + 8 * usize::from(words % 4), 1);
                    }
                }
            }
            payload.extend(l4);
            let mut l3 = vec![0x60 | any[0] >> 4, any[0] << 4 | any[1] >> 4, 0, 0];
            l3.extend(length.of(payload.len()));
            l3.extend([kinds[0], any[2]]);
            [l3, addresses.concat(), payload, trailer].concat()
        },
    )
}

fn arp() -> impl Strategy<Value = Vec<u8>> {
    (any::<[u8; 20]>(), prop_oneof![Just(1u8), Just(2), any::<u8>()])
        .prop_map(|(any, operation)| [&[0, 1, 8, 0, 6, 4, 0, operation][..], &any].concat())
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let l3 = prop_oneof![
        6 => ipv4().prop_map(|l3| (0x0800u16, l3)),
        6 => ipv6().prop_map(|l3| (0x86dd, l3)),
        1 => arp().prop_map(|l3| (0x0806, l3)),
        1 => prop::collection::vec(any::<u8>(), 40).prop_map(|l3| (0x1234, l3)),
    ];
    let tag = prop::option::weighted(0.3, (any::<bool>(), any::<u16>()));
    let cut = prop_oneof![4 => Just(usize::MAX), 1 => 14usize..120];
    (any::<[u8; 12]>(), tag, l3, cut).prop_map(|(ends, tag, (kind, l3), cut)| {
        let mut frame = ends.to_vec();
        if let Some((service, tci)) = tag {
            frame.extend(if service { [0x88, 0xa8] } else { [0x81, 0] });
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(l3);
        frame.truncate(cut);
        frame
    })
}

fn frames(seed: u8, count: usize) -> Vec<Vec<u8>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = frame();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// The fields by their names in Open vSwitch; those that are zero are left out.
type Fields = BTreeMap<&'static str, u64>;

fn ours(frame: &[u8]) -> Fields {
    let mut words = [0; WORDS];
    key::read(0, frame, frame.len(), true, &mut words);
    let kind = key::DL_TYPE.get(&words);
    let named = |places: &[(&'static str, Place)], words: &Words| -> Fields {
        places.iter().map(|(name, place)| (*name, place.get(words))).collect()
    };
    let mut fields = named(
        &[
            ("dl_type", key::DL_TYPE),
            ("vlan", key::VLAN),
            ("dl_src", key::DL_SRC),
            ("dl_dst", key::DL_DST),
            ("nw_proto", key::NW_PROTO),
        ],
        &words,
    );
    let more: &[(&str, Place)] = match kind {
        0x0806 | 0x8035 => &[("nw_src", key::NW_SRC), ("nw_dst", key::NW_DST)],
        _ => &[
            ("nw_src", key::NW_SRC),
            ("nw_dst", key::NW_DST),
            ("nw_tos", key::NW_TOS),
            ("nw_ttl", key::NW_TTL),
            ("nw_frag", key::NW_FRAG),
            ("tp_src", key::TP_SRC),
            ("tp_dst", key::TP_DST),
            ("tcp_flags", key::TCP_FLAGS),
        ],
    };
    if kind == 0x86dd {
        let [src, dst, target] = [key::IPV6_SRC, key::IPV6_DST, key::ND_TARGET];
        let more = [
            ("ipv6_label", key::IPV6_LABEL),
            ("ipv6_src", src[0]),
            ("ipv6_src_low", src[1]),
            ("ipv6_dst", dst[0]),
            ("ipv6_dst_low", dst[1]),
            ("nd_target", target[0]),
            ("nd_target_low", target[1]),
            ("nd_sll", key::ND_SLL),
            ("nd_tll", key::ND_TLL),
        ];
        fields.extend(named(&more, &words));
        // The label stands in the place of an IPv4 address.
        fields.extend([("nw_src", 0), ("nw_dst", 0)]);
    }
    fields.extend(
        named(more, &words)
            .into_iter()
            .filter(|(name, _)| kind != 0x86dd || !matches!(*name, "nw_src" | "nw_dst")),
    );
    if matches!(kind, 0x0806 | 0x8035) {
        let all = |places: &[Place]| {
            places.iter().fold(0, |sum, place| sum << place.bits() | place.get(&words))
        };
        fields.extend([("arp_sha", all(&ARP_SHA)), ("arp_tha", all(&ARP_THA))]);
    }
    fields.retain(|_, value| *value != 0);
    fields
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

fn flags(text: &str) -> u64 {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text);
    }
    const NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    let bit = |name: &str| NAMES.iter().position(|n| *n == name).map_or(0, |bit| 1 << bit);
    text.split('|').map(bit).sum()
}

/// Sets both halves of an address.
fn both(set: &mut impl FnMut(&'static str, u64), [high, low]: [&'static str; 2], value: &str) {
    let bits = value.parse::<Ipv6Addr>().unwrap().to_bits();
    set(high, (bits >> 64) as u64);
    set(low, bits as u64);
}

/// The same from a line of Open vSwitch.
fn theirs(line: &str) -> Fields {
    let mut fields = Fields::new();
    let mut set = |name, value: u64| *fields.entry(name).or_insert(0) |= value;
    for word in line.split(',') {
        let Some((name, value)) = word.split_once('=') else {
            let (kind, number) = match word {
                "ip" => (0x0800, 0),
                "icmp" => (0x0800, 1),
                "tcp" => (0x0800, 6),
                "udp" => (0x0800, 17),
                "sctp" => (0x0800, 132),
                "ipv6" => (0x86dd, 0),
                "icmp6" => (0x86dd, 58),
                "tcp6" => (0x86dd, 6),
                "udp6" => (0x86dd, 17),
                "sctp6" => (0x86dd, 132),
                "arp" => (0x0806, 0),
                "rarp" => (0x8035, 0),
                other => panic!("{other}: {line}"),
            };
            set("dl_type", kind);
            set("nw_proto", number);
            continue;
        };
        let ip = |text: &str| u64::from(text.parse::<Ipv4Addr>().unwrap().to_bits());
        let mac = |text: &str| u64::from_str_radix(&text.replace(':', ""), 16).unwrap();
        match name {
            "dl_vlan" => set("vlan", 0x1000 | number(value)),
            "dl_vlan_pcp" => set("vlan", number(value) << 13),
            "dl_src" => set("dl_src", mac(value)),
            "dl_dst" => set("dl_dst", mac(value)),
            "dl_type" => set("dl_type", number(value)),
            "nw_src" | "arp_spa" => set("nw_src", ip(value)),
            "nw_dst" | "arp_tpa" => set("nw_dst", ip(value)),
            "nw_proto" | "arp_op" => set("nw_proto", number(value)),
            "nw_tos" | "nw_ecn" => set("nw_tos", number(value)),
            "nw_ttl" => set("nw_ttl", number(value)),
            "nw_frag" => set(
                "nw_frag",
                ["no", "first", "", "later"].map(|w| w == value).iter().position(|is| *is).unwrap()
                    as u64,
            ),
            "tp_src" | "icmp_type" => set("tp_src", number(value)),
            "tp_dst" | "icmp_code" => set("tp_dst", number(value)),
            "tcp_flags" => set("tcp_flags", flags(value) & 0xff),
            "arp_sha" => set("arp_sha", mac(value)),
            "arp_tha" => set("arp_tha", mac(value)),
            "ipv6_label" => set("ipv6_label", number(value)),
            "nd_sll" => set("nd_sll", mac(value)),
            "nd_tll" => set("nd_tll", mac(value)),
            "ipv6_src" => both(&mut set, ["ipv6_src", "ipv6_src_low"], value),
            "ipv6_dst" => both(&mut set, ["ipv6_dst", "ipv6_dst_low"], value),
            "nd_target" => both(&mut set, ["nd_target", "nd_target_low"], value),
            _ => {}
        }
    }
    fields.retain(|_, value| *value != 0);
    fields
}

/// Its program, unpacked in the build directory or installed.
const OFCTL: &str = "usr/bin/ovs-ofctl";

/// Returns Open vSwitch if it is installed. An installed one must run.
fn ovs() -> Option<Peer> {
    let peer = Peer::find("openvswitch", &[OFCTL]).ok()?;
    peer.command(None, OFCTL).arg("--version").output().expect("it runs");
    Some(peer)
}

/// Returns the keys that Open vSwitch reads; `None` if it is not installed.
fn ask(frames: &[Vec<u8>]) -> Option<Vec<String>> {
    let ovs = ovs()?;
    let dir = std::env::temp_dir().join(format!("thalweg-ovs-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("frames.pcap");
    // A capture file: its header, and each frame after one of its own.
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        capture.extend(word.to_le_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(frame);
    }
    std::fs::write(&file, capture).unwrap();
    let text = ovs.command(None, OFCTL).arg("parse-pcap").arg(&file).output();
    std::fs::remove_dir_all(&dir).unwrap();
    Some(text.unwrap().lines().map(str::to_owned).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn compare<'a>(mut pairs: impl Iterator<Item = (Vec<u8>, &'a str)>) {
    let differ = |(frame, line): &(Vec<u8>, &str)| ours(frame) != theirs(line);
    if let Some((frame, line)) = pairs.find(differ) {
        let (we, they) = (ours(&frame), theirs(line));
        panic!("{}\n{line}\nwe: {we:x?}\nthey: {they:x?}", hex(&frame));
    }
}

#[test]
fn open_vswitch_reads_the_same() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let frames = frames(1, FRAMES);
        let lines = ask(&frames).expect("ovs-ofctl");
        assert_eq!(lines.len(), frames.len());
        let all = frames.iter().zip(lines).fold(String::new(), |mut all, (frame, line)| {
            let _ = writeln!(all, "{} {line}", hex(frame));
            all
        });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ovs.txt");
        std::fs::write(path, all).unwrap();
        return;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let pairs = KNOWN.lines().map(|line| {
        let (frame, line) = line.split_once(' ').unwrap();
        (frame.as_bytes().chunks(2).map(byte).collect(), line)
    });
    assert_eq!(pairs.clone().count(), FRAMES);
    compare(pairs);
    let others = frames(2, OTHERS);
    if let Some(lines) = ask(&others) {
        assert_eq!(lines.len(), others.len());
        compare(others.into_iter().zip(lines.iter().map(String::as_str)));
    }
}

/// Open vSwitch takes a match on the original direction of connections behind the same fields. One
/// that it reads and then leaves out is refused here.
#[test]
fn open_vswitch_takes_the_same_original_directions() {
    struct NoNames;
    impl Names for NoNames {
        fn number(&self, _name: &str) -> Option<SwIfIndex> {
            None
        }
    }
    let Some(ovs) = ovs() else { return };
    let kinds = ["", "ip,", "ipv6,", "arp,", "icmp6,"];
    let states = ["", "+trk", "+trk-inv", "-inv", "+new", "+trk+est", "+rel", "+rpl", "-trk+snat"];
    let fields = [
        "ct_nw_src=10.0.0.0/8",
        "ct_nw_dst=10.0.0.1/255.0.0.255",
        "ct_ipv6_src=2001:db8::/32",
        "ct_ipv6_dst=::1/::ff",
        "ct_nw_proto=6",
        "ct_nw_proto=6/7",
        "ct_tp_src=80",
        "ct_nw_proto=6,ct_tp_dst=80/0xf0",
        "ct_nw_proto=58,ct_tp_src=128",
        "ct_nw_proto=47,ct_tp_src=1",
        "ct_nw_proto=256",
    ];
    for (kind, state, field) in kinds
        .iter()
        .flat_map(|kind| states.iter().map(move |state| (kind, state)))
        .flat_map(|(kind, state)| fields.iter().map(move |field| (kind, state, field)))
    {
        let state = if state.is_empty() { String::new() } else { format!("ct_state={state},") };
        let text = format!("{kind}{state}{field},actions=drop");
        // The command fails for rules that it refuses.
        let asked = ovs.command(None, OFCTL).args(["-O", "OpenFlow15", "parse-flow", &text]);
        let theirs = asked.output().unwrap_or_default();
        let is_kept = |field: &str| theirs.contains(field.split('=').next().unwrap_or(field));
        let theirs = theirs.contains(": ADD ") && field.split(',').all(is_kept);
        assert_eq!(Rule::parse(&text, &NoNames).is_ok(), theirs, "{text}");
    }
}
