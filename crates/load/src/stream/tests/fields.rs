//! Fields and checksums against a naive model.

use proptest::prelude::*;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::tcp::TcpView;
use thalweg_wire::udp::UdpView;

use super::super::*;

/// Sends a stream's first packets from a side.
pub(super) fn packets(stream: Stream, side: Side, count: usize) -> Vec<Vec<u8>> {
    let plan = Plan { late: u64::MAX, ..Plan::of(vec![stream]) };
    let mut senders = Senders::new(&plan, side, 7, 0).unwrap();
    senders.set_load(Load::Times(1.0), 0);
    let mut all: Vec<Vec<u8>> = Vec::new();
    senders.poll(u64::MAX / 4, count, &mut all);
    all
}

/// The fields that the model varies: path, bits, and where they are behind the Ethernet header of a
/// packet with a VLAN tag and a label.
const FIELDS: [(&str, u32, usize); 8] = [
    ("vlan.id", 12, 4),
    ("mpls.label", 20, 32),
    ("ipv4.ttl", 8, 64 + 64),
    ("ipv4.id", 16, 64 + 32),
    ("ipv4.source", 32, 64 + 96),
    ("ipv4.destination", 32, 64 + 128),
    ("udp.source", 16, 64 + 160),
    ("udp.destination", 16, 64 + 176),
];

fn bits_at(frame: &[u8], at: usize, bits: u32) -> u128 {
    let bit = |n: usize| u128::from(frame[n / 8] >> (7 - n % 8) & 1);
    (at..at + bits as usize).fold(0, |all, n| all << 1 | bit(n))
}

/// All values of a field in their order, and the place of the first.
fn values(field: &Field) -> (Vec<u128>, usize) {
    match &field.values {
        Values::One(value) => (vec![*value], 0),
        Values::List(list) => (list.clone(), 0),
        Values::Count { first, last, step, start } => {
            let mut all = vec![*first];
            loop {
                let at = all[all.len() - 1];
                let next =
                    if first <= last { at.checked_add(*step) } else { at.checked_sub(*step) };
                match next {
                    Some(next) if (*first.min(last)..=*first.max(last)).contains(&next) => {
                        all.push(next);
                    }
                    _ => break,
                }
            }
            let at = all.iter().position(|value| value == start).unwrap();
            (all, at)
        }
        Values::Random { .. } => unreachable!("random values have no order"),
    }
}

/// The model: index and period of a field.
fn index(fields: &[Field], at: usize, n: u64) -> (u64, u64) {
    let (all, start) = values(&fields[at]);
    let count = all.len() as u64;
    let other = |path: &str| FIELDS.iter().position(|(name, ..)| *name == path).unwrap();
    match &fields[at].steps {
        Steps::Packet => ((start as u64 + n) % count, count),
        Steps::With(path) => {
            let (with, period) = index(fields, other(path), n);
            (with % count, period)
        }
        Steps::After(path) => {
            let (_, every) = index(fields, other(path), n);
            ((start as u64 + n / every) % count, every * count)
        }
    }
}

fn stream(fields: &[Field]) -> Stream {
    let [vlan, label, ttl, id, source, destination, from, to] = fields else { unreachable!() };
    let mut ip = Layer::ipv4(source.clone(), destination.clone());
    if let Layer::Ipv4 { ttl: t, id: i, .. } = &mut ip {
        (*t, *i) = (ttl.clone(), id.clone());
    }
    let layers = vec![
        Layer::vlan(vlan.clone()),
        Layer::mpls(label.clone()),
        ip,
        Layer::udp(from.clone(), to.clone()),
    ];
    Stream { layers, ..Stream::udp("model", Field::one(0u8), Field::one(0u8), Default::default()) }
}

prop_compose! {
    fn field(at: usize)(
        kind in 0..4, low: u32, more in 1..200u32, step in 1..5u32, start: prop::sample::Index,
        down: bool, list in prop::collection::vec(any::<u32>(), 1..6), how in 0..4,
        other in 0..at.max(1),
    ) -> Field {
        let most = if FIELDS[at].1 == 32 { u32::MAX } else { (1 << FIELDS[at].1) - 1 };
        let low = low & most;
        let high = low.saturating_add(more).min(most);
        let (first, last) = if down { (high, low) } else { (low, high) };
        let at_start = start.index(((high - low) / step + 1) as usize) as u32 * step;
        let start = if down { high - at_start } else { low + at_start };
        let values = match kind {
            0 => Values::One(low.into()),
            1 => Values::List(list.into_iter().map(|value| u128::from(value & most)).collect()),
            _ => Values::Count {
                first: first.into(), last: last.into(), step: step.into(), start: start.into(),
            },
        };
        let path = FIELDS[other].0.to_owned();
        let steps = match how {
            2 if at > 0 => Steps::With(path),
            3 if at > 0 => Steps::After(path),
            _ => Steps::Packet,
        };
        Field { values, steps }
    }
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    let all: Vec<_> = (0..FIELDS.len()).map(|at| field(at).boxed()).collect();
    all.prop_map(|mut fields| {
        // Nothing steps with or after a constant.
        for at in 0..fields.len() {
            let (Steps::With(path) | Steps::After(path)) = &fields[at].steps else { continue };
            let other = FIELDS.iter().position(|(name, ..)| name == path).unwrap();
            if matches!(fields[other].values, Values::One(_)) {
                fields[at].steps = Steps::Packet;
            }
        }
        fields
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every field of every packet is what a naive model says, and checksums are right, whether
    /// packets are rendered beforehand or not.
    #[test]
    fn fields_are_those_of_the_model(
        fields in fields(),
        caching in prop_oneof![Just(Caching::Auto), Just(Caching::Off)],
        size in prop_oneof![
            (68..300u16).prop_map(Size::One),
            (68..80u16, 0..40u16, any::<bool>()).prop_map(|(least, more, random)| Size::Range {
                least, most: least + more, random
            }),
            Just(Size::Shares(vec![(68, 7), (594, 4), (1518, 1)])),
        ],
        fill in prop_oneof![any::<u8>().prop_map(Fill::Byte), Just(Fill::Count)],
    ) {
        let mut stream = stream(&fields);
        stream.layers.push(Layer::Payload { bytes: Vec::new(), fill });
        let stream = Stream { caching, size: size.clone(), ..stream };
        for (n, frame) in packets(stream, Side::A, 700).iter().enumerate() {
            for (at, (path, bits, place)) in FIELDS.into_iter().enumerate() {
                let (index, _) = index(&fields, at, n as u64);
                let wanted = values(&fields[at]).0[index as usize];
                prop_assert_eq!(bits_at(frame, 14 * 8 + place, bits), wanted, "{} of {}", path, n);
            }
            let ip = Ipv4View::parse(&frame[22..]).unwrap();
            prop_assert!(ip.checksum_ok());
            prop_assert_eq!(ip.payload().len() + 42, frame.len());
            let udp = UdpView::parse(ip.payload()).unwrap();
            prop_assert!(udp.checksum_ok(ip.pseudo_header()));
            prop_assert_eq!(udp.payload().len() + 50, frame.len());
            let fits = match &size {
                Size::One(bytes) => frame.len() + 4 == usize::from(*bytes),
                Size::Range { least, most, .. } => {
                    (usize::from(*least)..=usize::from(*most)).contains(&(frame.len() + 4))
                }
                Size::Shares(list) => {
                    list.iter().any(|(bytes, _)| frame.len() + 4 == usize::from(*bytes))
                }
            };
            prop_assert!(fits, "{}", frame.len());
        }
    }
}

#[test]
fn imix_has_its_shares() {
    let stream = Stream { size: Size::imix(), ..udp(64) };
    let all = packets(stream, Side::A, 4800);
    let of = |len: usize| all.iter().filter(|frame| frame.len() + 4 == len).count();
    assert_eq!((of(64), of(594), of(1518)), (2800, 1600, 400));
}

pub(super) fn udp(size: u16) -> Stream {
    let ports = (Field::one(1025u16), Field::one(12u16));
    let (a, b) = (Field::one(0x1000_0001u32), Field::one(0x3000_0001u32));
    Stream { size: Size::One(size), ..Stream::udp("udp", a, b, ports) }
}

#[test]
fn random_values_stay_in_their_range_and_differ() {
    let ports = (Field::random(1000u16, 1099u16, 1), Field::one(12u16));
    let lists =
        Field { values: Values::List((0..100).collect()), steps: Steps::With("udp.source".into()) };
    let mut stream = Stream::udp("r", Field::one(1u8), lists, ports);
    let all = packets(stream.clone(), Side::A, 5000);
    let mut seen = [0; 100];
    for frame in &all {
        let port = bits_at(frame, 34 * 8, 16);
        seen[port as usize - 1000] += 1;
        // The list steps with the port.
        assert_eq!(bits_at(frame, 30 * 8, 32), port - 1000);
    }
    assert!(seen.iter().all(|count| (20..100).contains(count)), "{seen:?}");
    // Fields take that number of different values, in the same order again and again.
    for (least, most, distinct) in [(1000u16, 1099u16, 90u32), (1, 60_000, 50)] {
        let values = Values::Random {
            least: least.into(),
            most: most.into(),
            seed: 5,
            distinct: Some(distinct),
        };
        stream.layers[1] = Layer::udp(Field { values, steps: Steps::Packet }, Field::one(1u8));
        stream.layers[0] = Layer::ipv4(Field::one(1u8), Field::one(2u8));
        let all = packets(stream.clone(), Side::A, 2 * distinct as usize);
        let ports: Vec<u128> = all.iter().map(|frame| bits_at(frame, 34 * 8, 16)).collect();
        let (first, second) = ports.split_at(distinct as usize);
        assert_eq!(first, second);
        let different: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(different.len(), distinct as usize);
        assert!(first.iter().all(|port| (u128::from(least)..=u128::from(most)).contains(port)));
    }
}

#[test]
fn the_other_side_sends_with_addresses_exchanged() {
    let a = Field::count(0x1000_0001u32, 0x1000_00feu32);
    let with = Steps::With("ipv4.source".into());
    let b = Field::count(0x3000_0001u32, 0x3000_00feu32).stepping(with);
    let ports = (Field::one(1025u16), Field::one(12u16));
    let stream = Stream { direction: Direction::Both, ..Stream::udp("both", a, b, ports) };
    let there = packets(stream.clone(), Side::A, 300);
    let back = packets(stream, Side::B, 300);
    for (there, back) in there.iter().zip(&back) {
        assert_eq!((&there[..6], &there[6..12]), (&back[6..12], &back[..6]));
        assert_eq!((&there[26..30], &there[30..34]), (&back[30..34], &back[26..30]));
        assert_eq!(there[34..38], back[34..38], "ports stay");
    }
}

#[test]
fn every_layer_has_the_form_of_its_rfc() {
    let one = |value: u32| Field::one(value);
    let v6 = |last: u16| Field::one(0x2001_0db8u128 << 96 | u128::from(last));
    let cases: Vec<(Vec<Layer>, &str)> = vec![
        (vec![Layer::ipv6(v6(1), v6(2)), Layer::udp(one(53), one(54))], "v6 udp"),
        (vec![Layer::ipv6(v6(1), v6(2)), Layer::tcp(one(53), one(54))], "v6 tcp"),
        (vec![Layer::ipv6(v6(1), v6(2)), Layer::icmp()], "v6 icmp"),
        (vec![Layer::ipv4(one(1), one(2)), Layer::tcp(one(53), one(54))], "tcp"),
        (vec![Layer::ipv4(one(1), one(2)), Layer::icmp()], "icmp"),
        (
            vec![
                Layer::mpls(one(16)),
                Layer::mpls(one(17)),
                Layer::ipv4(one(1), one(2)),
                Layer::udp(one(1), one(2)),
            ],
            "mpls",
        ),
        (
            vec![
                Layer::ipv6(v6(1), v6(2)),
                Layer::ipv4(one(1), one(2)),
                Layer::udp(one(1), one(2)),
            ],
            "4in6",
        ),
        (vec![Layer::mpls(one(16)), Layer::ethernet(), Layer::ipv4(one(1), one(2))], "pseudowire"),
    ];
    for (layers, what) in cases {
        for size in [128, 129] {
            let plain = Stream { layers: layers.clone(), tagged: false, ..udp(size) };
            let stream = Stream { layers: layers.clone(), ..udp(size) };
            for stream in [plain, stream] {
                let frame = &packets(stream.clone(), Side::A, 1)[0];
                let sliced = etherparse::PacketHeaders::from_ethernet_slice(frame);
                assert!(sliced.is_ok(), "{what}: {sliced:?}");
                let intact = super::super::receiver::intact_for_tests(frame);
                assert!(intact, "{what} of {size}, tagged {}: {frame:02x?}", stream.tagged);
            }
        }
    }
    let arp = Layer::Arp {
        operation: one(1),
        sender_mac: None,
        sender: one(0x0a00_0001),
        target_mac: one(0),
        target: one(0x0a00_0002),
    };
    let frame = &packets(Stream { layers: vec![arp], ..udp(64) }, Side::A, 1)[0];
    let arp = thalweg_wire::arp::ArpView::parse(&frame[14..]).unwrap();
    assert_eq!(arp.sender_ip(), "10.0.0.1".parse::<std::net::Ipv4Addr>().unwrap());
    assert_eq!(frame[6..12], frame[22..28], "the sender's hardware address is the port's");
}

#[test]
fn checksums_are_as_asked_for() {
    let with = |sum: Sum| {
        let source = Field::count(0u8, 200u8);
        let layers = vec![
            Layer::ipv4(Field::one(1u8), Field::one(2u8)),
            Layer::Udp { source, destination: Field::one(9u8), sum },
        ];
        packets(Stream { layers, ..udp(64) }, Side::A, 100)
    };
    let sum = |frame: &Vec<u8>| u16::from_be_bytes([frame[40], frame[41]]);
    let right: Vec<u16> = with(Sum::Right).iter().map(sum).collect();
    assert!(with(Sum::Zero).iter().all(|frame| sum(frame) == 0));
    assert!(with(Sum::Keep).iter().all(|frame| sum(frame) == right[0]));
    for (frame, right) in with(Sum::Wrong).iter().zip(&right) {
        let ip = Ipv4View::parse(&frame[14..]).unwrap();
        assert!(!UdpView::parse(ip.payload()).unwrap().checksum_ok(ip.pseudo_header()));
        assert_ne!(sum(frame), *right);
    }
    let layers = vec![
        Layer::ipv4(Field::one(1u8), Field::one(2u8)),
        Layer::tcp(Field::count(1u8, 9u8), Field::one(9u8)),
    ];
    for frame in packets(Stream { layers, ..udp(64) }, Side::A, 20) {
        let ip = Ipv4View::parse(&frame[14..]).unwrap();
        assert!(TcpView::parse(ip.payload()).unwrap().checksum_ok(ip.pseudo_header()));
    }
}

#[test]
fn wrong_streams_say_what_would_be_right() {
    let says = |stream: Stream| {
        let plan = Plan::of(vec![stream]);
        Senders::new(&plan, Side::A, 1, 0).unwrap_err().to_string()
    };
    let ports = |source| (source, Field::one(1u8));
    let with = |source| Stream::udp("s", Field::one(1u8), Field::one(2u8), ports(source));
    let v6 = Layer::ipv6(Field::one(1u8), Field::one(2u8));
    let cases = [
        (udp(63), "stream udp: size: 63 bytes with FCS; it must be 64 to 9216"),
        (
            Stream { layers: vec![v6, Layer::udp(Field::one(1u8), Field::one(1u8))], ..udp(64) },
            "stream udp: size: 64 bytes are too few: headers and payload take 62 bytes, and the \
             FCS 4; use at least 66",
        ),
        (with(Field::one(70_000u32)), "stream s: udp.source: 70000 is too large: at most 65535"),
        (with(Field::random(9u8, 3u8, 0)), "stream s: udp.source: 9-3 runs backwards; use 3-9"),
        (
            with(Field::count(1u8, 9u8).stepping(Steps::With("ipv4.sauce".into()))),
            "stream s: udp.source: no field ipv4.sauce; fields that vary: udp.source",
        ),
        (
            with(Field::count(1u8, 9u8).stepping(Steps::With("udp.source".into()))),
            "stream s: udp.source: it steps with udp.source, which is constant, or steps with it",
        ),
        (
            Stream { layers: vec![Layer::icmp(), Layer::vlan(Field::one(1u8))], ..udp(64) },
            "stream udp: ethernet: icmp cannot follow it; vlan, mpls, arp, ipv4, ipv6, raw or \
             payload can",
        ),
        (
            Stream { rate: Rate::Packets(0.0), ..udp(64) },
            "stream udp: rate: 0 packets/s; it must be above 0 and at most 10000000000",
        ),
        (
            Stream { start: Start::Behind { stream: 0, pause: 0 }, ..udp(64) },
            "stream udp: start: stream udp never ends; give it a burst",
        ),
        (
            Stream {
                start: Start::Behind { stream: 0, pause: 0 },
                mode: Mode::Burst { packets: 1 },
                ..udp(64)
            },
            "stream udp: start: it waits for itself: streams start behind each other in a circle",
        ),
    ];
    for (stream, wanted) in cases {
        assert_eq!(says(stream), wanted);
    }
}

#[test]
fn any_pieces_compile_or_say_why() {
    // Extremes of all kinds must not panic.
    let most = [0, 1, 63, u128::from(u64::MAX), u128::MAX];
    for first in most {
        for last in most {
            for step in [0, 1, u128::MAX] {
                let count = Values::Count { first, last, step, start: last };
                let random =
                    Values::Random { least: first, most: last, seed: 0, distinct: Some(3) };
                for values in [count, random] {
                    let field = Field { values, steps: Steps::Packet };
                    let v6 = Layer::ipv6(field.clone(), Field::one(1u8));
                    let plan = Plan::of(vec![Stream { layers: vec![v6], ..udp(128) }]);
                    if let Ok(mut senders) = Senders::new(&plan, Side::A, 1, 0) {
                        senders.set_load(Load::Times(1.0), 0);
                        senders.poll(1 << 40, 10, &mut Vec::<Vec<u8>>::new());
                    }
                }
            }
        }
    }
}
