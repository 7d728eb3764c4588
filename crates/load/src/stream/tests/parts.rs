//! Streams that several workers share out: together they are as one.

use proptest::prelude::*;

use super::super::*;
use super::fields::udp;
use crate::Part;

fn plan(rates: &[f64]) -> Plan {
    let stream = |(at, rate): (usize, &f64)| Stream {
        rate: Rate::Packets(*rate),
        size: Size::Range { least: 68, most: 80, random: at % 2 == 0 },
        ..Stream::udp(
            &format!("stream {at}"),
            Field::count(0x1000_0000u32, 0x1000_0000 + at as u32),
            Field::one(0x3000_0001u32),
            (Field::one(1025u16), Field::one(12u16)),
        )
    };
    Plan { late: u64::MAX, ..Plan::of(rates.iter().enumerate().map(stream).collect()) }
}

/// Senders and receivers of all workers.
fn workers(plan: &Plan, of: u32) -> Vec<(Senders, Receiver)> {
    let worker = |part| {
        let senders = Senders::part(plan, Side::A, 1, part, 0).unwrap();
        (senders, Receiver::part(plan, Side::B, 1, part).unwrap())
    };
    Part::all(of).map(worker).collect()
}

/// Sends until a time, loses one packet in `lose`, and lets any worker receive the others.
fn exchange(all: &mut [(Senders, Receiver)], until: Nanos, lose: u64) -> u64 {
    let (mut count, mut lost) = (0u64, 0);
    for (senders, _) in all.iter_mut() {
        senders.set_load(Load::Times(1.0), 0);
        senders.set_judging(true, 0);
    }
    for now in (0..=until).step_by(100_000) {
        for at in 0..all.len() {
            let mut sent = Vec::new();
            all[at].0.poll(now, usize::MAX, &mut sent);
            for frame in sent {
                count += 1;
                if lose > 0 && count.is_multiple_of(lose) {
                    lost += 1;
                    continue;
                }
                let any = count as usize % all.len();
                match all[any].1.sort(now, &frame) {
                    Whose::Worker(owner) => {
                        assert_eq!(all[owner].1.sort(now, &frame), Whose::Mine);
                    }
                    whose => assert_eq!((whose, any), (Whose::Mine, at)),
                }
            }
        }
    }
    lost
}

fn books(all: &[(Senders, Receiver)], stream: usize) -> Books {
    let mut each = all.iter().filter(|(senders, _)| senders.sends(stream));
    let of = |(senders, receiver): &(Senders, Receiver)| Books::of(senders, receiver, stream, true);
    let mut sum = each.next().map(of).unwrap();
    each.for_each(|worker| sum.add(of(worker)));
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rates_and_books_are_those_of_one(
        rates in prop::collection::vec(1.0..2000.0f64, 1..5), of in 1u32..6, lose in 2u64..50,
    ) {
        let plan = plan(&rates);
        let mut all = workers(&plan, of);
        let lost = exchange(&mut all, 500_000_000, lose);
        let mut sum = 0;
        for (stream, rate) in rates.iter().enumerate() {
            let books = books(&all, stream);
            prop_assert!(books.balances() && books.complete, "{:?}", books);
            // The first packets are due at once, or a part of the time between two later.
            let expected = rate * 0.5;
            let sent = books.sent.sent as f64;
            prop_assert!((sent - expected).abs() <= 1.0 + 1e-6, "{} of {}", sent, expected);
            let named: u64 = books.missing.iter().map(|range| range.end - range.start).sum();
            prop_assert_eq!(named, books.lost);
            prop_assert_eq!(books.first.map(|(first, _)| first), books.missing.first().map(|r| r.start));
            sum += books.lost;
        }
        prop_assert_eq!(sum, lost);
    }
}

#[test]
fn a_hundred_streams_of_other_rates_and_sizes_have_their_rates() {
    let rates: Vec<f64> = (1..=100).map(|n| f64::from(n) * 10.0).collect();
    let plan = plan(&rates);
    for of in [1, 2] {
        let mut all = workers(&plan, of);
        exchange(&mut all, 1_000_000_000, 0);
        for (stream, rate) in rates.iter().enumerate() {
            let books = books(&all, stream);
            assert_eq!((books.lost, books.balances()), (0, true));
            assert!((books.sent.sent as f64 - rate).abs() <= 1.0, "{rate}: {:?}", books.sent);
        }
    }
}

#[test]
fn packets_of_the_parts_of_a_stream_come_in_turn() {
    let plan = plan(&[1000.0]);
    let mut all = workers(&plan, 2);
    let mut times = Vec::new();
    for (senders, _) in &mut all {
        // The rate grows, as in a trial.
        senders.set_load(Load::Times(0.5), 0);
        senders.set_load(Load::Times(1.0), 1);
    }
    for now in (0..10_000_000).step_by(100_000) {
        for (at, (senders, _)) in all.iter_mut().enumerate() {
            let mut sent = Vec::new();
            senders.poll(now, 100, &mut sent);
            times.extend(sent.iter().map(|_| (now / 100_000, at)));
        }
    }
    let gaps = times.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.clone().all(|gap| (9..=11).contains(&gap)), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[0].1 != pair[1].1), "{times:?}");
}

#[test]
fn bursts_and_their_followers_have_one_worker() {
    let burst = |packets| Stream { mode: Mode::Burst { packets }, ..udp(68) };
    let behind = Stream { start: Start::Behind { stream: 1, pause: 0 }, ..burst(7) };
    let streams = vec![udp(68), burst(5), behind];
    let plan = Plan { late: u64::MAX, ..Plan::of(streams) };
    let mut all = workers(&plan, 3);
    exchange(&mut all, 60_000_000_000, 0);
    let of = |stream| -> Vec<usize> {
        let sends = |at: &usize| all[*at].0.sends(stream);
        (0..3).filter(sends).collect()
    };
    assert_eq!((of(0).len(), of(1), of(2)), (3, vec![1], vec![1]));
    assert_eq!((books(&all, 1).sent.sent, books(&all, 2).sent.sent), (5, 7));
    assert!([0, 1, 2].iter().all(|stream| books(&all, *stream).balances()));
}

#[test]
fn a_tag_of_a_worker_that_is_not_there_is_foreign() {
    let plan = plan(&[1000.0]);
    let mut four = workers(&plan, 4);
    let mut sent = Vec::new();
    four[3].0.set_load(Load::Times(1.0), 0);
    four[3].0.poll(10_000_000, 1, &mut sent);
    // Three workers have numbers of two bits: one is nobody's.
    let mut three = workers(&plan, 3);
    assert_eq!(three[0].1.sort(0, &sent[0]), Whose::Mine);
    assert_eq!(three[0].1.port().foreign, 1);
    assert_eq!(three[0].1.sort(0, &[0; 60]), Whose::Untagged);
}

/// A frame of TCP over IPv4, as connections send it.
fn segment(ack: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 16, 0, 0, 1, 48, 0, 0, 1, 4, 1, 0, 80, 0, 0, 0, 1]);
    frame.extend(ack.to_be_bytes());
    frame.extend([0x50, 0x10, 0xff, 0xff, 0x12, 0x34, 0, 0]);
    frame.extend(payload);
    frame
}

/// A connection's numbers and data hold a run's mark by chance: it is heard by its hosts.
#[test]
fn only_tags_in_a_payload_whose_sum_is_zero_are_claimed() {
    let plan = plan(&[1000.0]);
    let mut all = workers(&plan, 1);
    let (senders, receiver) = &mut all[0];
    let claims = |frame: &[u8]| receiver.claims(frame);
    let mark = crate::stream::senders::mark(1);
    for ack in (0..=u16::MAX).map(|high| u32::from(high) << 16 | 0x1234) {
        let mut frame = segment(ack, &[]);
        assert!(!claims(&frame), "{ack:08x}");
        frame.resize(60, 0);
        assert!(!claims(&frame), "{ack:08x}, padded");
    }
    let mut imitated = [7; 18];
    imitated[..2].copy_from_slice(&mark.to_be_bytes());
    imitated[4] = 0x40;
    assert!(find_tag(1, &imitated).is_some() && !claims(&segment(5, &imitated)));
    // Frames of streams, as they were sent, and with padding.
    senders.set_load(Load::Times(1.0), 0);
    let mut sent = Vec::new();
    senders.poll(50_000_000, usize::MAX, &mut sent);
    assert!(sent.len() >= 50);
    for mut frame in sent {
        assert!(claims(&frame));
        frame.resize(frame.len() + 4, 0);
        assert!(claims(&frame), "padded");
        // A damaged one is not claimed before all others; its stream counts it if nobody does.
        frame[45] ^= 1;
        assert!(!claims(&frame));
    }
}
