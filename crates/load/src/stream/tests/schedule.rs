//! Times when packets are sent.

use super::super::*;
use super::fields::udp;
use crate::Sink;

/// Keeps packets, as long as there is room.
#[derive(Default)]
struct Room {
    packets: Vec<Vec<u8>>,
    room: Option<usize>,
}

impl Sink for Room {
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.room == Some(0) {
            return None;
        }
        self.room = self.room.map(|room| room - 1);
        self.packets.frame(length)
    }
}

fn senders(streams: Vec<Stream>) -> Senders {
    let mut senders = Senders::new(&Plan::of(streams), Side::A, 1, 0).unwrap();
    senders.set_load(Load::Times(1.0), 0);
    senders
}

fn at(rate: f64, mode: Mode) -> Stream {
    Stream { rate: Rate::Packets(rate), mode, ..udp(64) }
}

/// The times at which packets are sent, in microseconds, if polled each.
fn times(senders: &mut Senders, until: u64) -> Vec<(u64, usize)> {
    let mut all = Vec::new();
    for micros in 0..until {
        let mut out = Room::default();
        senders.poll(micros * 1000, 100, &mut out);
        all.extend(out.packets.iter().map(|packet| (micros, packet.len() + 4)));
    }
    all
}

#[test]
fn rates_are_exact_for_hours() {
    let plan = Plan { late: u64::MAX, ..Plan::of(vec![at(3.0, Mode::Continuous)]) };
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    senders.set_load(Load::Times(1.0), 0);
    let mut out = Room::default();
    senders.poll(36_000_000_000_000, usize::MAX, &mut out);
    assert_eq!(out.packets.len(), 108_001);
    assert_eq!(senders.due(0, 108_000).unwrap() / 1000, 36_000_000_000 - 1);
}

#[test]
fn bursts_rounds_and_followers() {
    let burst = Mode::Burst { packets: 3 };
    let first = Stream { start: Start::After(10_000), times: 2, ..at(1e6, burst) };
    let bursts = Mode::Bursts { packets: 2, every: 5_000, count: 3 };
    let start = Start::Behind { stream: 0, pause: 7_000 };
    let second = Stream { start, size: Size::One(100), ..at(1e6, bursts) };
    let got = times(&mut senders(vec![first, second]), 100);
    let small = [10, 11, 12, 23, 24, 25].map(|at| (at, 64));
    let large = [32, 33, 37, 38, 42, 43].map(|at| (at, 100));
    assert_eq!(got, [small, large].concat());
}

#[test]
fn a_burst_longer_than_its_period_is_followed_at_once() {
    let bursts = Mode::Bursts { packets: 10, every: 5_000, count: 2 };
    let got = times(&mut senders(vec![at(1e6, bursts)]), 100);
    assert_eq!(got.len(), 20);
    assert!(got[10].0 <= 10, "{got:?}");
}

#[test]
fn late_packets_are_not_sent_but_counted() {
    let mut senders = senders(vec![at(1e6, Mode::Continuous)]);
    senders.set_judging(true, 5_000_000);
    senders.set_judging(false, 7_000_000);
    let mut out = Room::default();
    // 20 ms late, of which 10 are allowed: 10,000 packets are not sent, 2000 of them judged.
    senders.poll(20_000_000, 1, &mut out);
    let (all, judged) = senders.totals();
    assert_eq!((all.late, judged.late), (10_000, 2_000));
    assert_eq!((all.sent, all.intended), (1, 10_001));
    assert!(all.balances() && judged.balances());
    assert_eq!(senders.due(0, 0), Some(10_000_000));
}

#[test]
fn packets_without_room_are_sent_later_or_counted_as_refused() {
    let mut senders = senders(vec![at(1e6, Mode::Continuous)]);
    let mut out = Room { room: Some(2), ..Room::default() };
    assert_eq!(senders.poll(9_000, 100, &mut out), 2);
    out.room = Some(100);
    assert_eq!(senders.poll(9_000, 100, &mut out), 8);
    out.room = Some(0);
    assert_eq!(senders.poll(10_000, 100, &mut out), 0);
    out.room = None;
    senders.poll(12_000_000, 1, &mut out);
    let (all, _) = senders.totals();
    assert_eq!((all.refused, all.late, all.sent), (1990, 0, 11));
    assert!(all.balances());
}

#[test]
fn loads_scale_all_but_fixed_rates() {
    let fixed = Stream { fixed_rate: true, ..at(1000.0, Mode::Continuous) };
    let plan = Plan::of(vec![at(3.0, Mode::Continuous), at(1.0, Mode::Continuous), fixed]);
    let per_second = |load: Load| {
        let plan = Plan { late: u64::MAX, ..plan.clone() };
        let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
        senders.set_load(load, 0);
        senders.poll(999_990_000, usize::MAX, &mut Room::default());
        [0, 1, 2].map(|stream| senders.counts(stream).sent)
    };
    assert_eq!(per_second(Load::Times(2.0)), [6, 2, 1000]);
    assert_eq!(per_second(Load::Total(Rate::Packets(5000.0))), [3000, 1000, 1000]);
    // 64 bytes take 84 on the wire.
    assert_eq!(per_second(Load::Total(Rate::WireBits(5000.0 * 84.0 * 8.0))), [3000, 1000, 1000]);
    assert_eq!(per_second(Load::Total(Rate::Bits(5000.0 * 64.0 * 8.0))), [3000, 1000, 1000]);
    assert_eq!(per_second(Load::Times(0.0)), [0, 0, 1000]);
    assert_eq!(per_second(Load::Times(f64::NAN)), [0, 0, 1000]);
    let percent = plan.factor(Load::Total(Rate::Percent(100.0)), Side::A);
    assert_eq!((percent * 4.0 + 1000.0).round(), (10e9f64 / (84.0 * 8.0)).round());
}

/// Packets of each stream in ten seconds.
fn in_ten_seconds(plan: &Plan, load: Load) -> Vec<u64> {
    let plan = Plan { late: u64::MAX, ..plan.clone() };
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    senders.set_load(load, 0);
    senders.poll(9_999_990_000, usize::MAX, &mut Room::default());
    (0..plan.streams.len()).map(|stream| senders.counts(stream).sent).collect()
}

#[test]
fn repeated_bursts_count_by_their_mean_rate() {
    let bursts = Mode::Bursts { packets: 50, every: 100_000_000, count: 0 };
    let plan = Plan::of(vec![at(500.0, Mode::Continuous), at(10e3, bursts)]);
    assert_eq!(plan.totals(Side::A).0.packets, 1000.0);
    assert_eq!(in_ten_seconds(&plan, Load::Times(1.0)), [5_000, 5_000]);
    assert_eq!(in_ten_seconds(&plan, Load::Times(4.0)), [20_000, 20_000]);
    assert_eq!(in_ten_seconds(&plan, Load::Total(Rate::Packets(2000.0))), [10_000, 10_000]);
    assert_eq!(in_ten_seconds(&plan, Load::Total(Rate::Packets(100.0))), [500, 500]);
    // Streams of fixed rate keep their pauses.
    let fixed = Stream { fixed_rate: true, ..at(10e3, bursts) };
    let plan = Plan::of(vec![at(1.0, Mode::Continuous), fixed]);
    assert_eq!(in_ten_seconds(&plan, Load::Total(Rate::Packets(2000.0))), [15_000, 5_000]);
    // A burst that is longer than its period is followed at once.
    let bursts = Mode::Bursts { packets: 50, every: 1_000, count: 0 };
    let plan = Plan::of(vec![at(1000.0, bursts)]);
    assert_eq!(plan.totals(Side::A).0.packets, 1000.0);
    assert_eq!(in_ten_seconds(&plan, Load::Total(Rate::Packets(3000.0))), [30_000]);
}

#[test]
fn bursts_that_end_are_no_part_of_a_total() {
    let several = Mode::Bursts { packets: 5, every: 1_000_000, count: 2 };
    let ends = vec![at(1e4, Mode::Burst { packets: 5 }), at(1e4, several)];
    let plan = Plan::of(ends.clone());
    assert_eq!(plan.totals(Side::A), Default::default());
    assert_eq!(in_ten_seconds(&plan, Load::Total(Rate::Packets(7.0))), [5, 10]);
    let plan = Plan::of([ends, vec![at(1.0, Mode::Continuous)]].concat());
    assert_eq!(in_ten_seconds(&plan, Load::Total(Rate::Packets(7.0))), [5, 10, 70]);
}

#[test]
fn bursts_to_come_follow_a_change_of_load() {
    let bursts = Mode::Bursts { packets: 2, every: 1_000_000_000, count: 0 };
    let plan = Plan::of(vec![at(1e6, bursts)]);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    senders.set_load(Load::Times(0.01), 0);
    senders.poll(100_000, 10, &mut Room::default());
    // The next one was due after a hundred seconds.
    assert_eq!(senders.next_due().map(|due| due.div_ceil(1000)), Some(100_000_000));
    senders.set_load(Load::Times(1.0), 50_000_000_000);
    assert_eq!(senders.next_due().map(|due| due.div_ceil(1000)), Some(50_500_000));
}

#[test]
fn rates_change_under_way() {
    let plan = Plan::of(vec![at(1.0, Mode::Continuous)]);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    let mut out = Room::default();
    senders.set_load(Load::Times(1.0), 0);
    senders.poll(0, 10, &mut out);
    // The next packet was due after a second; at a million per second it is due at once.
    senders.set_load(Load::Times(1e6), 1000);
    assert_eq!(senders.poll(10_000, 100, &mut out), 9);
    // A pause does not count.
    senders.set_load(Load::Times(0.0), 10_000);
    assert_eq!((senders.poll(1_000_000, 100, &mut out), senders.next_due()), (0, None));
    senders.set_load(Load::Times(1e6), 5_000_000);
    assert_eq!(senders.poll(5_003_000, 100, &mut out), 4);
    assert_eq!(senders.due(0, 12), Some(5_002_000));
    assert_eq!(senders.due(0, 3), Some(4_000));
    assert_eq!(senders.due(0, 14), None);
}

#[test]
fn a_trial_begins_with_the_first_packet() {
    let plan = Plan::of(vec![Stream {
        layers: vec![Layer::ipv4(Field::count(1u8, 200u8), Field::one(1u8))],
        caching: Caching::Off,
        ..at(1e6, Mode::Continuous)
    }]);
    let mut senders = Senders::new(&plan, Side::A, 1, 0).unwrap();
    let mut trial = |number, now| {
        let mut out = Room::default();
        senders.begin(number, now);
        senders.set_load(Load::Times(1.0), now);
        senders.poll(now + 50_000, 1000, &mut out);
        out.packets.into_iter().map(|packet| packet[14..34].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(trial(1, 1_000), trial(2, 77_000_000));
}

/// Found by random bytes: the window that ends was never begun.
#[test]
fn a_window_that_never_began_judges_nothing() {
    let mut senders = senders(vec![at(1e6, Mode::Continuous)]);
    senders.set_judging(false, 1_000_000);
    senders.poll(20_000_000, 1, &mut Room::default());
    assert_eq!(senders.totals().1, Sent::default());
}
