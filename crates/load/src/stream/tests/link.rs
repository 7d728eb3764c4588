//! Streams over a link that loses, delays, repeats, reorders and damages packets by a seed: the
//! books balance, and each packet lost is named.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::field::mix;
use super::super::*;
use super::fields::udp;

/// Faults of a link, to one packet in N; 0: never.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lose: u64,
    repeat: u64,
    delay: u64,
    /// Maximum number of nanoseconds.
    by: u64,
    damage: u64,
    seed: u64,
}

/// Record of a link's faults: packets by stream and number.
#[derive(Debug, Default)]
struct Done {
    lost: BTreeSet<(u16, u32)>,
    damaged: BTreeSet<(u16, u32)>,
    repeated: u64,
}

struct Link {
    faults: Faults,
    count: u64,
    /// Packets under way: when they arrive, and in which order they were sent.
    way: std::collections::BTreeMap<(Nanos, u64), Vec<u8>>,
    done: Done,
}

/// Reads the tag at a packet's end, as the link's own record of it.
fn tag(seed: u64, frame: &[u8]) -> Option<(u16, u32)> {
    let mark = super::super::senders::mark(seed);
    let long = frame.last_chunk().and_then(|tag| Tag::long(mark, tag));
    let tag = long.or_else(|| Tag::short(mark, frame.last_chunk()?))?;
    Some((tag.stream, tag.sequence))
}

impl Link {
    fn new(faults: Faults) -> Link {
        Link { faults, count: 0, way: Default::default(), done: Done::default() }
    }

    fn send(&mut self, now: Nanos, mut frame: Vec<u8>, lose: impl Fn(&[u8]) -> bool) {
        self.count += 1;
        let Faults { seed, by, .. } = self.faults;
        let draw = |what: u64, one_in: u64| {
            one_in > 0 && mix(seed ^ mix(self.count * 8 + what)).is_multiple_of(one_in)
        };
        let name = tag(1, &frame).unwrap();
        if lose(&frame) || draw(0, self.faults.lose) {
            self.done.lost.insert(name);
            return;
        }
        let late = if draw(1, self.faults.delay) { mix(self.count) % by.max(1) } else { 0 };
        if draw(2, self.faults.repeat) {
            self.done.repeated += 1;
            self.way
                .insert((now + mix(self.count + 7) % by.max(1), self.count << 1), frame.clone());
        }
        if draw(3, self.faults.damage) {
            // Any byte but those that nothing covers (Ethernet and labels), and those of the tag,
            // without which it is not known whose packet it is.
            let at = 18 + (mix(self.count + 3) as usize) % (frame.len() - 18 - 18);
            frame[at] ^= 1 << (mix(self.count + 5) % 8);
            self.done.damaged.insert(name);
        }
        self.way.insert((now + late, self.count << 1 | 1), frame);
    }

    fn arrive(&mut self, now: Nanos, receiver: &mut Receiver) {
        while let Some(first) = self.way.first_entry() {
            if first.key().0 > now {
                break;
            }
            let at = first.key().0;
            receiver.receive(at, &first.remove());
        }
    }
}

/// Sends streams over a link for a time in milliseconds, judging what is due in the middle half.
fn run(
    streams: Vec<Stream>,
    faults: Faults,
    millis: u64,
    lose: impl Fn(Nanos, &[u8]) -> bool,
) -> (Senders, Receiver, Done) {
    let plan = Plan::of(streams);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    let mut receiver = Receiver::new(&plan, Side::B, 1).unwrap();
    let mut link = Link::new(faults);
    senders.set_load(Load::Times(1.0), 0);
    senders.set_judging(true, millis * 250_000);
    for step in 0..millis * 10 {
        let now = step * 100_000;
        if now == millis * 750_000 {
            senders.set_judging(false, now);
        }
        let mut out: Vec<Vec<u8>> = Vec::new();
        senders.poll(now, 10_000, &mut out);
        for frame in out {
            link.send(now, frame, |frame| lose(now, frame));
        }
        link.arrive(now, &mut receiver);
    }
    link.arrive(Nanos::MAX, &mut receiver);
    (senders, receiver, link.done)
}

/// Checks the books of all streams against what the link did.
fn check(senders: &Senders, receiver: &Receiver, done: &Done) {
    let mut missing = BTreeSet::new();
    let mut complete = true;
    for stream in 0..senders.len() {
        for judged in [false, true] {
            let books = Books::of(senders, receiver, stream, judged);
            assert!(books.balances(), "{:?} {:?}", books.sent, books.received);
            complete &= books.complete;
            let named = books.missing.iter().cloned().flatten();
            if judged {
                let window = senders.judged_numbers(stream);
                assert!(named.clone().all(|n| window.iter().any(|range| range.contains(&n))));
                if let Some((first, due)) = books.first {
                    assert_eq!((Some(first), due), (named.min(), senders.due(stream, first)));
                }
            } else {
                missing.extend(named.map(|n| (stream as u16, n as u32)));
            }
        }
    }
    let wanted: BTreeSet<_> = done.lost.union(&done.damaged).copied().collect();
    let differ: Vec<_> = missing.symmetric_difference(&wanted).take(9).collect();
    // More ranges than are kept need many losses.
    assert!(differ.is_empty() || (!complete && wanted.len() > 4096), "{differ:?}");
    let (all, _) = receiver.totals();
    assert_eq!(all.damaged, done.damaged.len() as u64);
    assert!(all.ancient == 0 || !complete);
    assert_eq!(all.duplicates + all.ancient, done.repeated, "{:?}", receiver.port());
    assert_eq!(receiver.port(), Port::default());
}

fn at(rate: f64, size: u16) -> Stream {
    Stream { rate: Rate::Packets(rate), ..udp(size) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn books_balance_whatever_the_link_does(
        lose in prop_oneof![Just(0), Just(2), 3..500u64],
        repeat in prop_oneof![Just(0), 5..500u64],
        delay in prop_oneof![Just(0), Just(1), 2..100u64],
        by in prop_oneof![Just(100_000u64), Just(10_000_000), Just(100_000_000)],
        damage in prop_oneof![Just(0), 20..500u64],
        seed: u64,
    ) {
        // A packet that is both repeated and damaged would arrive intact once.
        let damage = if repeat > 0 { 0 } else { damage };
        let faults = Faults { lose, repeat, delay, by, damage, seed };
        let mpls = Stream {
            layers: vec![
                Layer::mpls(Field::one(16u8)),
                Layer::ipv4(Field::count(1u8, 99u8), Field::one(1u8)),
                Layer::udp(Field::random(1u16, 9999u16, 1), Field::one(1u8)),
            ],
            ..at(100_000.0, 100)
        };
        let sizes = Stream {
            size: Size::Range { least: 90, most: 190, random: true },
            ..at(50_000.0, 64)
        };
        let streams = vec![at(200_000.0, 128), mpls, sizes];
        let (senders, receiver, done) = run(streams, faults, 200, |_, _| false);
        check(&senders, &receiver, &done);
    }
}

/// One packet in 10^5, each of which is named.
#[test]
fn one_packet_in_a_hundred_thousand_is_named() {
    let faults = Faults { lose: 100_000, seed: 3, ..Faults::default() };
    let (senders, receiver, done) = run(vec![at(1e6, 64)], faults, 1000, |_, _| false);
    assert!((3..40).contains(&done.lost.len()), "{}", done.lost.len());
    check(&senders, &receiver, &done);
}

/// Packets above a size, those of one flow, and all of the first second.
#[test]
fn losses_by_size_by_flow_and_at_the_start_are_named() {
    let imix = Stream { size: Size::imix(), ..at(100_000.0, 64) };
    let flows = Stream {
        layers: vec![
            Layer::ipv4(Field::count(1u8, 64u8), Field::one(9u8)),
            Layer::udp(Field::one(1u8), Field::one(2u8)),
        ],
        ..at(100_000.0, 64)
    };
    let of = |lose: fn(Nanos, &[u8]) -> bool| {
        let streams = vec![imix.clone(), flows.clone()];
        let (senders, receiver, done) = run(streams, Faults::default(), 2000, lose);
        check(&senders, &receiver, &done);
        (senders, receiver, done)
    };
    let (_, receiver, done) = of(|_, frame| frame.len() > 1500);
    assert!(done.lost.iter().all(|(stream, _)| *stream == 0));
    assert!(!done.lost.is_empty() && receiver.counts(0).packets > 0);
    let (.., done) = of(|_, frame| frame[26..30] == [0, 0, 0, 33]);
    assert!(done.lost.iter().all(|(stream, number)| *stream == 1 && number % 64 == 32));
    let (senders, receiver, _) = of(|now, _| now < 1_000_000_000);
    for stream in [0, 1] {
        let books = Books::of(&senders, &receiver, stream, false);
        assert_eq!(books.missing, vec![0..books.lost]);
        assert_eq!(books.first, Some((0, Some(0))));
    }
}

/// A device that stands still for a second loses more packets than a short tag counts in one
/// direction; then one arrives late.
#[test]
fn long_gaps_and_delays_are_not_mistaken() {
    for bits in [24, 32] {
        let mut seen = super::super::order::Seen::default();
        let low = |number: u64| number as u32 & (u32::MAX >> (32 - bits));
        for number in [0, 1, 15_000_000, 15_000_001, 14_900_000, 30_000_000] {
            assert_eq!(seen.full(low(number), bits), Some(number), "{bits}");
            seen.arrived(number);
        }
        let (missing, complete) = seen.missing(30_000_002);
        let wanted = [2..14_900_000, 14_900_001..15_000_000, 15_000_002..30_000_000];
        assert_eq!(missing[..3], wanted);
        assert_eq!((missing.len(), complete), (4, true));
    }
    // Nothing has arrived before the first one.
    let seen = super::super::order::Seen::default();
    assert_eq!(seen.full(0xff_ffff, 24), None);
}

#[test]
fn packets_of_others_are_foreign() {
    let plan = Plan::of(vec![at(1000.0, 64)]);
    let mut receiver = Receiver::new(&plan, Side::B, 1).unwrap();
    let send = |seed, side, trial| {
        let plan = Plan::of(vec![Stream { direction: Direction::Both, ..at(1000.0, 64) }]);
        let mut senders = Senders::new(&plan, side, seed, 0).unwrap();
        senders.begin(trial, 0);
        senders.set_load(Load::Times(1.0), 0);
        let mut out: Vec<Vec<u8>> = Vec::new();
        senders.poll(0, 1, &mut out);
        out.remove(0)
    };
    for frame in [vec![], vec![0; 13], vec![0; 60], vec![0xff; 1514], send(2, Side::A, 0)] {
        receiver.receive(0, &frame);
    }
    assert_eq!(receiver.port().foreign, 5);
    receiver.receive(0, &send(1, Side::B, 0));
    receiver.receive(0, &send(1, Side::A, 9));
    assert_eq!((receiver.port().returned, receiver.port().stale), (1, 1));
    assert_eq!(receiver.totals().0, Received::default());
    receiver.receive(5000, &send(1, Side::A, 0));
    assert_eq!(receiver.totals().0.packets, 1);
    // A tag at the end of something else.
    let frame = send(1, Side::A, 0);
    receiver.receive(0, &frame[frame.len() - 18..]);
    assert_eq!(receiver.totals().0.damaged, 1);
}

/// A device that takes a label away makes a packet shorter, and may fill it up again.
#[test]
fn headers_may_change_on_the_way() {
    let layers = vec![
        Layer::mpls(Field::one(16u8)),
        Layer::ipv4(Field::one(1u8), Field::one(2u8)),
        Layer::udp(Field::one(1u8), Field::one(2u8)),
    ];
    let plan = Plan::of(vec![Stream { layers, ..at(1e6, 64) }]);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    assert!(senders.tagged(0), "the short form fits");
    senders.set_load(Load::Times(1.0), 0);
    senders.set_judging(true, 0);
    let mut out: Vec<Vec<u8>> = Vec::new();
    senders.poll(3_000, 10, &mut out);
    let mut receiver = Receiver::new(&plan, Side::B, 1).unwrap();
    for frame in &out {
        let mut popped = [&frame[..12], &[8, 0], &frame[18..]].concat();
        // The router decrements the TTL, too.
        popped[22] -= 1;
        let sum =
            thalweg_wire::checksum::ttl_decrement(u16::from_be_bytes([popped[24], popped[25]]));
        popped[24..26].copy_from_slice(&sum.to_be_bytes());
        receiver.receive(9_000, &popped);
        popped.resize(60, 0);
        receiver.receive(9_500, &popped);
    }
    let counts = receiver.counts(0);
    assert_eq!((counts.packets, counts.duplicates, counts.damaged), (4, 4, 0));
    let latency = receiver.latency(0).unwrap();
    assert_eq!((latency.count(), latency.least().unwrap() / 1000), (4, 6));
    assert!(latency.quantile(0.5).is_none(), "four samples are too few");
}

#[test]
fn latency_counts_from_when_packets_were_due() {
    let plan = Plan::of(vec![at(1e6, 64)]);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    let mut receiver = Receiver::new(&plan, Side::B, 1).unwrap();
    senders.set_load(Load::Times(1.0), 0);
    senders.set_judging(true, 0);
    let mut out: Vec<Vec<u8>> = Vec::new();
    // The tester stood still for 5 ms.
    senders.poll(5_000_000, usize::MAX, &mut out);
    out.iter().for_each(|frame| receiver.receive(5_000_000, frame));
    let latency = receiver.latency(0).unwrap();
    assert_eq!(latency.count(), 5001);
    let half = latency.quantile(0.5).unwrap();
    assert!(half.abs_diff(2_500_000) < 5_000, "{half}");
    assert!(latency.quantile(0.999).is_none() && latency.quantile(0.99).is_some());
    assert_eq!(latency.mean().unwrap().round(), 2_500_000.0);
    assert!(latency.jitter().unwrap().abs_diff(1000) < 20, "{:?}", latency.jitter());
    let beyond = latency.beyond();
    assert!(beyond.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 >= two[1].1));
    assert_eq!(beyond.last().unwrap().1, 0.0);
    let mut both = latency.clone();
    both.add(latency);
    assert_eq!(both.count(), 10_002);
}

#[test]
fn short_packets_are_counted_by_port() {
    let layers = vec![
        Layer::ipv4(Field::one(1u8), Field::one(2u8)),
        Layer::tcp(Field::one(1u8), Field::one(2u8)),
    ];
    let plan = Plan::of(vec![Stream { layers, ..at(1e6, 64) }]);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    assert!(!senders.tagged(0));
    senders.set_load(Load::Times(1.0), 0);
    let mut out: Vec<Vec<u8>> = Vec::new();
    senders.poll(9_000, 100, &mut out);
    let mut receiver = Receiver::new(&plan, Side::B, 1).unwrap();
    out.iter().for_each(|frame| receiver.receive(0, frame));
    receiver.receive(0, &[0; 60]);
    let port = receiver.port();
    assert_eq!((port.untagged, port.untagged_bytes, port.foreign), (10, 600, 1));
}

proptest! {
    #[test]
    fn any_link_keeps_the_books(data in prop::collection::vec(any::<u8>(), 0..4000)) {
        fuzz_frames(&data);
    }
}
