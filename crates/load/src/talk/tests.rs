//! Clients and servers over a link that loses, delays, repeats and damages frames by a seed.

use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

/// A link: frames on their way in both directions, by the time of arrival.
struct Link {
    frames: BTreeMap<(Micros, u64), (bool, Vec<u8>)>,
    number: u64,
    state: u64,
    faults: Faults,
}

/// Faults of a link: shares of 1,000 frames.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost: u64,
    repeated: u64,
    damaged: u64,
    /// Greatest extra delay, in microseconds.
    late: u64,
}

impl Link {
    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % below.max(1)
    }

    fn carry(&mut self, now: Micros, to_server: bool, sent: Vec<Vec<u8>>) {
        for mut frame in sent {
            if self.random(1000) < self.faults.lost {
                continue;
            }
            if self.random(1000) < self.faults.damaged {
                let at = self.random(frame.len() as u64) as usize;
                frame[at] ^= 1 << self.random(8);
            }
            let copies = 1 + usize::from(self.random(1000) < self.faults.repeated);
            for _ in 0..copies {
                let at = now + 20 + self.random(self.faults.late + 1);
                self.number += 1;
                self.frames.insert((at, self.number), (to_server, frame.clone()));
            }
        }
    }
}

/// Runs a plan for a time, then lets what is open end.
fn run(
    plan: &Plan,
    opening: Opening,
    time: Micros,
    faults: Faults,
    seed: u64,
) -> (Clients, Servers) {
    run_by(500, plan, opening, time, faults, seed)
}

/// Like [`run`], with polls at most this many microseconds apart.
fn run_by(
    step: Micros,
    plan: &Plan,
    opening: Opening,
    time: Micros,
    faults: Faults,
    seed: u64,
) -> (Clients, Servers) {
    let start = seed << 8;
    let mut clients = Clients::new(plan, seed, start).unwrap();
    let mut servers = Servers::new(plan, seed, start).unwrap();
    let mut link = Link { frames: BTreeMap::new(), number: 0, state: seed, faults };
    clients.set_opening(opening, start);
    let mut now = start;
    let end = start + time;
    loop {
        if now >= end && clients.open().0 + servers.open().0 == 0 && link.frames.is_empty() {
            break;
        }
        if now >= end {
            clients.set_opening(Opening { rate: 0.0, hold: None, total: None }, now);
        }
        assert!(
            now < end + (3 * plan.patience).max(300_000_000),
            "open: {:?} {:?}",
            clients.open(),
            servers.open()
        );
        let mut sent = Vec::new();
        clients.poll(now, 64, &mut sent);
        link.carry(now, true, sent);
        let mut sent = Vec::new();
        servers.poll(now, 64, &mut sent);
        link.carry(now, false, sent);
        while let Some(entry) = link.frames.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_server, frame) = entry.remove();
            let mut sent = Vec::new();
            match to_server {
                true => servers.receive(now, &frame, &mut sent),
                false => clients.receive(now, &frame, &mut sent),
            }
            link.carry(now, !to_server, sent);
        }
        // Nothing happens before the next frame or millisecond.
        let next = link.frames.keys().next().map_or(Micros::MAX, |(at, _)| *at);
        now = next.clamp(now + 1, now + step);
    }
    for (counts, open) in [(clients.counts(), clients.open()), (servers.counts(), servers.open())] {
        assert!(counts.balances(open.0.into()), "{counts:?}");
    }
    assert_eq!((clients.half_open(), servers.half_open()), (0, 0));
    (clients, servers)
}

fn small(protocol: Protocol, exchange: Exchange) -> Plan {
    let mut plan = Plan::of(Talk::exchange("test", protocol, 8080, &exchange));
    (plan.clients.count, plan.servers.count, plan.room) = (16, 3, 64 * 1024);
    plan
}

const RATE: Opening = Opening { rate: 2000.0, hold: None, total: None };

#[test]
fn short_connection_is_seven_packets() {
    let plan = small(Protocol::Tcp, Exchange::default());
    let (clients, servers) = run(&plan, RATE, 1_000_000, Faults::default(), 1);
    let (client, server) = (clients.counts(), servers.counts());
    assert_eq!((client.begun, client.clean, server.clean), (2000, 2000, 2000), "{client:?}");
    // SYN; SYN, ACK; request; answer; FIN; FIN; ACK.
    assert_eq!((client.sent, server.sent), (4 * 2000, 3 * 2000));
    assert_eq!((client.said, server.heard), (20 * 2000, 20 * 2000));
    assert_eq!((client.received, server.received), (server.sent, client.sent));
    let wrong = [client.unexpected, client.unknown, client.foreign, client.duplicates];
    assert_eq!(wrong, [0; 4]);
}

#[test]
fn a_rate_that_changes_often_opens_no_more_than_its_mean() {
    let plan = small(Protocol::Tcp, Exchange::default());
    let mut clients = Clients::new(&plan, 1, 0).unwrap();
    let mut out: Vec<Vec<u8>> = Vec::new();
    // The rate grows from 0.1 to 2 a second within ten seconds, in a hundred steps: about ten.
    for step in 0..100u32 {
        let rate = 0.1 + 1.9 * f64::from(step) / 100.0;
        clients.set_opening(Opening { rate, ..RATE }, u64::from(step) * 100_000);
        clients.poll(u64::from(step) * 100_000, 10, &mut out);
    }
    assert!((9..=12).contains(&clients.counts().begun), "{}", clients.counts().begun);
    // The first one comes at once after a pause.
    clients.set_opening(Opening { rate: 0.0, ..RATE }, 10_000_000);
    clients.set_opening(Opening { rate: 0.001, ..RATE }, 20_000_000);
    let before = clients.counts().begun;
    clients.poll(20_000_000, 10, &mut out);
    assert_eq!(clients.counts().begun, before + 1);
}

#[test]
fn each_way_of_closing_completes() {
    use CloseBy::{Both, Client, Reset, Server};
    for (close, packets) in [(Client, 7), (Server, 7), (Both, 7), (Reset, 5)] {
        let plan = small(Protocol::Tcp, Exchange { close, ..Exchange::default() });
        let (clients, servers) = run(&plan, RATE, 100_000, Faults::default(), 2);
        let (client, server) = (clients.counts(), servers.counts());
        let sent = client.sent + server.sent;
        let expected = packets * client.begun..=(packets + 1) * client.begun;
        assert!(expected.contains(&sent), "{close:?}: {sent} {client:?} {server:?}");
        match close {
            Reset => assert_eq!((client.aborted, server.reset), (client.begun, client.begun)),
            _ => {
                assert_eq!((client.clean, server.clean), (client.begun, client.begun), "{close:?}")
            }
        }
    }
}

#[test]
fn long_messages_take_many_segments() {
    let exchange =
        Exchange { messages: 3, request: 100_000, answer: 250_001, ..Exchange::default() };
    let plan = small(Protocol::Tcp, exchange);
    let opening = Opening { rate: 20.0, hold: None, total: None };
    let (clients, servers) = run(&plan, opening, 500_000, Faults::default(), 3);
    let (client, server) = (clients.counts(), servers.counts());
    assert_eq!(client.clean, client.begun, "{client:?}");
    assert_eq!(client.heard, client.begun * 3 * 250_001);
    assert_eq!(server.heard, client.begun * 300_000);
    assert_eq!(client.data_retries + server.data_retries + server.fast_retries, 0);
}

/// The handshake does not open the window, and a lost SYN, ACK closes it (RFC 5681, RFC 6928).
#[test]
fn first_flights_have_ten_segments_or_one() {
    for (lost, segments) in [(false, 10), (true, 1)] {
        let exchange = Exchange { request: 100, answer: 60_000, ..Exchange::default() };
        let plan = small(Protocol::Tcp, exchange);
        let (mut clients, mut servers) =
            (Clients::new(&plan, 1, 0).unwrap(), Servers::new(&plan, 1, 0).unwrap());
        clients.set_opening(Opening { rate: 1e6, hold: None, total: Some(1) }, 0);
        let mut now = 100;
        let [mut syn, mut answer, mut request, mut flight, mut again] = [const { Vec::new() }; 5];
        clients.poll(now, 64, &mut syn);
        servers.receive(now, &syn[0], &mut answer);
        if lost {
            answer.clear();
            while answer.is_empty() {
                now += 10_000;
                servers.poll(now, 64, &mut answer);
            }
        }
        clients.receive(now, &answer[0], &mut request);
        request.iter().for_each(|frame: &Vec<u8>| servers.receive(now, frame, &mut flight));
        let long = |frames: &[Vec<u8>]| frames.iter().filter(|frame| frame.len() > 1000).count();
        assert_eq!(long(&flight), segments, "lost: {lost}");
        // Nothing of it is acknowledged.
        while again.is_empty() {
            now += 10_000;
            servers.poll(now, 64, &mut again);
        }
        assert_eq!(long(&again), 1, "after a timeout");
    }
}

#[test]
fn waits_and_repetitions_take_their_time() {
    let exchange = Exchange { messages: 5, wait: 50_000, ..Exchange::default() };
    let plan = small(Protocol::Tcp, exchange);
    let (clients, servers) = run(&plan, RATE, 400_000, Faults::default(), 4);
    let (client, server) = (clients.counts(), servers.counts());
    assert_eq!(client.clean, client.begun);
    assert_eq!((client.heard, server.heard), (client.begun * 100, client.begun * 100));
    // Answers carry the acknowledgements: 3 + 2 × 5 + 3 packets, less the ACK of SYN, and at times
    // an acknowledgement of its own.
    let sent = client.sent + server.sent;
    assert!((15 * client.begun..=16 * client.begun).contains(&sent), "{}", sent / client.begun);
}

/// The number open over time is what all lives sum up to (Little's law).
#[test]
fn lives_are_as_long_as_conversations_are_open() {
    let exchange = Exchange { messages: 2, wait: 30_000, ..Exchange::default() };
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let opening = Opening { rate: 300.0, hold: None, total: None };
        let plan = small(protocol, exchange);
        let (clients, servers) = run(&plan, opening, 2_000_000, Faults::default(), 11);
        let counts = clients.counts();
        assert_eq!(counts.ended, counts.begun);
        // Two waits of 30 ms each.
        let life = counts.lived / counts.ended;
        assert!((60..=70).contains(&life), "{life} ms");
        let (lived, held) = (counts.lived as f64 * 1000.0, counts.held as f64);
        assert!((lived / held - 1.0).abs() < 0.02, "{lived} us lived, {held} us held");
        assert_eq!(servers.counts().ended, 0, "only clients know");
    }
}

/// The clock of connections wraps every 72 minutes, and some live for longer than half of that.
#[test]
fn eight_hours_pass() {
    const MINUTE: Micros = 60_000_000;
    let mut plan = small(Protocol::Tcp, Exchange { messages: 2, ..Exchange::default() });
    let [Step::Send { .. }, Step::Expect { .. }, Step::Repeat { .. }] = plan.talks[0].client[..]
    else {
        panic!("{:?}", plan.talks[0].client)
    };
    // A word, silence of up to 25 minutes, a word, and the same again.
    plan.talks[0].client.insert(2, Step::Wait { least: MINUTE, most: 25 * MINUTE });
    plan.patience = patience(&plan.talks[0].client, &plan.talks[0].server);
    assert_eq!(plan.patience, 25 * MINUTE + 30_000_000);
    plan.times.keepalive = Some(2 * MINUTE);
    let opening = Opening { rate: 20.0, hold: Some(100), total: None };
    let faults = Faults { lost: 5, late: 300, ..Faults::default() };
    let (clients, servers) = run_by(1000, &plan, opening, 480 * MINUTE, faults, 15);
    let (client, server) = (clients.counts(), servers.counts());
    assert_eq!(client.completed, client.begun, "{client:?}");
    assert_eq!(server.completed, server.begun, "{server:?}");
    // Each lives for 26 minutes on average.
    let expected = 100 * 480 / 26;
    assert!(client.begun.abs_diff(expected + 100) < expected / 10, "{}", client.begun);
    let mean = client.held as f64 / (480 * MINUTE) as f64;
    assert!((99.0..108.0).contains(&mean), "{mean} open");
    assert!(client.keepalives > 0);
}

#[test]
fn flows_are_named() {
    let plan = small(Protocol::Tcp, Exchange::default());
    let mut clients = Clients::new(&plan, 1, 0).unwrap();
    clients.set_opening(Opening { rate: 1000.0, hold: None, total: Some(1) }, 0);
    let mut sent: Vec<Vec<u8>> = Vec::new();
    clients.poll(1000, 8, &mut sent);
    let flow = Incoming::read(&sent[0]).flow().unwrap();
    assert!(plan.has(&flow));
    let text = flow.to_string();
    assert!(text.starts_with("TCP 16.0.0.0:") && text.ends_with(" SYN"), "{text}");
    let other = Flow { destination: flow.source, ..flow };
    assert!(!plan.has(&other));
    assert_eq!(Incoming::read(&[0; 60]).flow(), None);
}

#[test]
fn a_number_is_held() {
    let exchange = Exchange { close: CloseBy::Never, ..Exchange::default() };
    let plan = small(Protocol::Tcp, exchange);
    let mut clients = Clients::new(&plan, 5, 0).unwrap();
    let mut servers = Servers::new(&plan, 5, 0).unwrap();
    clients.set_opening(Opening { rate: 1e5, hold: Some(1000), total: None }, 0);
    for now in (0..120_000_000).step_by(1000) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        clients.poll(now, 64, &mut there);
        servers.poll(now, 64, &mut back);
        while !there.is_empty() || !back.is_empty() {
            for frame in std::mem::take(&mut there) {
                servers.receive(now, &frame, &mut back);
            }
            for frame in std::mem::take(&mut back) {
                clients.receive(now, &frame, &mut there);
            }
        }
    }
    assert_eq!((clients.open(), servers.open()), ((1000, 0), (1000, 0)), "{:?}", clients.counts());
    assert_eq!(clients.counts().begun, 1000);
    clients.abandon();
    servers.abandon();
    assert_eq!((clients.open(), servers.open()), ((0, 0), (0, 0)));
    assert!(clients.counts().balances(0) && servers.counts().balances(0));
}

/// Hands frames to and fro, without delay, each millisecond of a time; the servers hear nothing if
/// they are `deaf`.
fn pass(
    (clients, servers): (&mut Clients, &mut Servers),
    times: std::ops::Range<Micros>,
    deaf: bool,
) {
    for now in times.step_by(1000) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        clients.poll(now, 64, &mut there);
        servers.poll(now, 64, &mut back);
        while !there.is_empty() || !back.is_empty() {
            for frame in std::mem::take(&mut there) {
                if !deaf {
                    servers.receive(now, &frame, &mut back);
                }
            }
            for frame in std::mem::take(&mut back) {
                clients.receive(now, &frame, &mut there);
            }
        }
    }
}

#[test]
fn silent_servers_are_asked() {
    let mut plan = small(Protocol::Tcp, Exchange { close: CloseBy::Never, ..Exchange::default() });
    plan.times.keepalive = Some(1_000_000);
    let mut clients = Clients::new(&plan, 5, 0).unwrap();
    let mut servers = Servers::new(&plan, 5, 0).unwrap();
    clients.set_opening(Opening { rate: 1e4, hold: None, total: Some(100) }, 0);
    pass((&mut clients, &mut servers), 0..10_500_000, false);
    let (client, server) = (clients.counts(), servers.counts());
    assert_eq!((clients.open().0, servers.open().0), (100, 100));
    // The last time of all is when the answer came, with what a list of timers stands for.
    assert!((900..=1000).contains(&client.keepalives), "{client:?}");
    assert_eq!(client.received, 2 * 100 + client.keepalives, "{client:?}");
    assert_eq!((client.unexpected, server.unexpected, server.duplicates), (0, 0, 0));
    pass((&mut clients, &mut servers), 10_500_000..40_000_000, true);
    let after = clients.counts().since(&client);
    assert_eq!((after.lost.expected, clients.open().0), (100, 0), "{after:?}");
    assert_eq!(after.keepalives, 600, "six each");
}

#[test]
fn asking_keeps_patience() {
    let exchange = Exchange { wait: 5_000_000, ..Exchange::default() };
    for (keepalive, completed) in [(None, 0), (Some(500_000), 10)] {
        let mut plan = small(Protocol::Tcp, exchange);
        (plan.patience, plan.times.keepalive) = (2_000_000, keepalive);
        let opening = Opening { rate: 1000.0, hold: None, total: Some(10) };
        let (clients, _) = run(&plan, opening, 100_000, Faults::default(), 3);
        let counts = clients.counts();
        assert_eq!((counts.completed, counts.clean), (completed, completed), "{counts:?}");
    }
}

#[test]
fn exponential_times_have_their_mean() {
    let mut plan = small(Protocol::Tcp, Exchange::default());
    plan.talks[0].client.push(Step::Pause { mean: 100_000 });
    plan.gaps = Gaps::Exponential;
    let (clients, _) = run(&plan, RATE, 2_000_000, Faults::default(), 12);
    let counts = clients.counts();
    assert_eq!(counts.clean, counts.begun);
    // 4,000 expected: five times the deviation of their number.
    assert!((3684..=4316).contains(&counts.begun), "{}", counts.begun);
    let life = counts.lived as f64 / counts.ended as f64;
    assert!((92.0..=108.0).contains(&life), "{life} ms");
    // Evenly, no two come in the same half of a millisecond.
    let most = |gaps| {
        let mut clients = Clients::new(&Plan { gaps, ..plan.clone() }, 5, 0).unwrap();
        clients.set_opening(RATE, 0);
        let mut sent: Vec<Vec<u8>> = Vec::new();
        let at = |now| {
            let before = clients.counts().begun;
            clients.poll(now, 64, &mut sent);
            clients.counts().begun - before
        };
        (0..1_000_000).step_by(500).map(at).max()
    };
    assert_eq!(most(Gaps::Even), Some(1));
    assert!(most(Gaps::Exponential) >= Some(4));
}

#[test]
fn long_sleeps_are_made_up_for() {
    let plan = small(Protocol::Tcp, Exchange::default());
    let mut clients = Clients::new(&plan, 5, 0).unwrap();
    clients.set_opening(Opening { rate: 1e4, hold: None, total: Some(50) }, 0);
    let mut sent: Vec<Vec<u8>> = Vec::new();
    clients.poll(10_000, 64, &mut sent);
    assert_eq!((clients.open().0, clients.half_open()), (50, 50), "nobody answers");
    // Three days, and then a clock that goes back.
    let mut now = 3 * 24 * 3_600_000_000;
    for _ in 0..1000 {
        clients.poll(now, 64, &mut sent);
        now += 1000;
    }
    assert_eq!((clients.open(), clients.counts().lost.syn), ((0, 0), 50));
    assert_eq!(clients.half_open(), 0);
    clients.poll(5, 64, &mut sent);
    assert!(clients.counts().balances(0));
}

#[test]
fn limits_and_shares_are_kept() {
    let exchange = Exchange { wait: 100_000, ..Exchange::default() };
    let mut plan = small(Protocol::Tcp, exchange);
    plan.talks[0].share = 99;
    plan.talks[0].limit = Some(50);
    plan.talks.push(Talk::exchange("udp", Protocol::Udp, 5353, &Exchange::default()));
    let (clients, _) = run(&plan, RATE, 1_000_000, Faults::default(), 6);
    let counts = clients.counts();
    assert_eq!(counts.begun + counts.held_back, 2000, "{counts:?}");
    // 20 datagram conversations, and about 50 connections each tenth of a second.
    assert!((400..600).contains(&counts.begun), "{counts:?}");
    assert_eq!(counts.clean, counts.begun);
}

#[test]
fn lateness_is_not_caught_up() {
    let plan = Plan { late: 1000, ..small(Protocol::Tcp, Exchange::default()) };
    let mut clients = Clients::new(&plan, 7, 0).unwrap();
    clients.set_opening(Opening { rate: 1e5, hold: None, total: None }, 0);
    let mut sent = Vec::new();
    clients.poll(0, 1000, &mut sent);
    clients.poll(100_000, 1000, &mut sent);
    let counts = clients.counts();
    assert_eq!(counts.begun + counts.unsent, 10_001, "{counts:?}");
    assert!((100..=102).contains(&counts.begun), "{counts:?}");
}

#[test]
fn full_tables_are_counted() {
    let mut plan = small(Protocol::Tcp, Exchange { close: CloseBy::Never, ..Exchange::default() });
    (plan.clients.count, plan.ports, plan.room) = (1, (1024, 8), 8);
    let mut clients = Clients::new(&plan, 8, 0).unwrap();
    let mut servers = Servers::new(&Plan { room: 4, ..plan.clone() }, 8, 0).unwrap();
    clients.set_opening(Opening { rate: 1e4, hold: None, total: None }, 0);
    let mut sent = Vec::new();
    clients.poll(900, 10, &mut sent);
    assert_eq!((clients.counts().begun, clients.counts().no_tuple), (8, 2));
    let mut answers = Vec::new();
    sent.iter().for_each(|frame| servers.receive(900, frame, &mut answers));
    assert_eq!((servers.counts().begun, servers.counts().no_tuple), (4, 4));
    assert_eq!(answers.len(), 4);
}

#[test]
fn unanswered_connection_is_lost_after_its_retries() {
    let plan = small(Protocol::Tcp, Exchange::default());
    let all = Faults { lost: 1000, ..Faults::default() };
    let (clients, _) =
        run(&plan, Opening { rate: 100.0, hold: None, total: None }, 100_000, all, 9);
    let counts = clients.counts();
    assert_eq!((counts.lost.syn, counts.completed), (counts.begun, 0));
    assert_eq!((counts.sent, counts.syn_retries), (6 * counts.begun, 5 * counts.begun));
}

#[test]
fn ipv6_and_udp_work_alike() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let mut plan = small(protocol, Exchange { messages: 2, ..Exchange::default() });
        plan.clients.first = "2001:db8::10".parse().unwrap();
        plan.servers.first = "2001:db8:1::1".parse().unwrap();
        plan.mss = max_mss(false);
        let (clients, servers) = run(&plan, RATE, 300_000, Faults::default(), 10);
        let (client, server) = (clients.counts(), servers.counts());
        assert_eq!((client.clean, server.clean), (client.begun, client.begun), "{client:?}");
        assert_eq!(client.heard, 40 * client.begun);
        assert!(client.begun > 590);
    }
}

#[test]
fn plans_are_checked() {
    let good = small(Protocol::Tcp, Exchange::default());
    let text = |change: fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        Clients::new(&plan, 0, 0).unwrap_err().to_string()
    };
    let other = |plan: &mut Plan| plan.servers.first = "::1".parse().unwrap();
    assert_eq!(
        text(other),
        "clients 16.0.0.0-16.0.0.15 and servers ::1-::3: both must be IPv4, or both IPv6"
    );
    assert!(text(|plan| plan.ports = (65_000, 1000)).contains("between 1 and 65535"));
    assert!(text(|plan| plan.talks.clear()).contains("1 to 256"));
    assert!(text(|plan| plan.talks.push(plan.talks[0].clone())).contains("same protocol and port"));
    assert!(text(|plan| plan.talks[0].client.clear_and_send_nothing()).contains("0 bytes"));
    assert!(text(|plan| plan.room = 0).contains("room for 0"));
    let many = |plan: &mut Plan| plan.clients = Pool { count: u32::MAX, ..plan.clients };
    assert!(text(many).starts_with("4294967295 clients take 4294967295 slots"));
    assert!(text(|plan| plan.clients.count = 0).starts_with("0 clients"));
    assert!(text(|plan| plan.mss = 9000).contains("1 to 1460"));
    let six = |plan: &mut Plan| {
        (plan.clients.first, plan.servers.first) = ("::1".parse().unwrap(), "::1".parse().unwrap());
    };
    assert_eq!(text(six), "segments of 1460 bytes: they must have 1 to 1440");
    assert!(text(|plan| plan.patience = 0).contains("patience of 0"));
}

#[test]
fn datagrams_fit_into_packets_of_ethernet() {
    let plan = |answer, first: &str, mss| {
        let mut plan = small(Protocol::Udp, Exchange { answer, ..Exchange::default() });
        let first = first.parse().unwrap();
        (plan.clients.first, plan.servers.first, plan.mss) = (first, first, mss);
        plan
    };
    for (first, mss, most) in [("16.0.0.1", 1460, 1472), ("2001:db8::1", 1440, 1452)] {
        plan(most, first, mss).check().unwrap();
        let error = plan(most + 1, first, mss).check().unwrap_err().to_string();
        assert!(error.ends_with(&format!("it must have 1 to {most}")), "{error}");
        let (clients, _) = run(&plan(most, first, mss), RATE, 100_000, Faults::default(), 1);
        assert_eq!(clients.counts().clean, 200);
    }
}

trait Spoil {
    fn clear_and_send_nothing(&mut self);
}

impl Spoil for Program {
    fn clear_and_send_nothing(&mut self) {
        *self = vec![Step::Send { bytes: 0 }];
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// All connections end, the books balance, and a program receives its data once and in order,
    /// whatever a link does to frames.
    #[test]
    fn bad_links_lose_no_bookkeeping(
        lost in 0u64..150, repeated in 0u64..100, damaged in 0u64..50, late in 0u64..3000,
        messages in 0u16..4, request in 1u32..4000, answer in 1u32..9000, wait in 0u64..20_000,
        close in prop_oneof![Just(CloseBy::Client), Just(CloseBy::Server), Just(CloseBy::Both), Just(CloseBy::Reset)],
        seed in 1u64..u64::MAX >> 16,
    ) {
        let exchange = Exchange { messages, request, answer, wait, close };
        let plan = small(Protocol::Tcp, exchange);
        let faults = Faults { lost, repeated, damaged, late };
        let opening = Opening { rate: 300.0, hold: None, total: None };
        let (clients, servers) = run(&plan, opening, 200_000, faults, seed);
        let (client, server) = (clients.counts(), servers.counts());
        prop_assert_eq!((client.wrong, server.wrong), (0, 0), "{:?} {:?}", client, server);
        let each = u64::from(answer) * u64::from(messages);
        prop_assert!(client.heard >= each * client.completed);
        prop_assert!(client.heard <= each * client.begun);
        prop_assert!(client.completed <= client.begun);
        if lost + damaged == 0 && close != CloseBy::Reset {
            prop_assert_eq!(client.completed, client.begun);
        }
        // No frame is read that a link damaged.
        if damaged == 0 {
            prop_assert_eq!(client.bad_checksum + server.bad_checksum, 0);
        }
        prop_assert_eq!(clients.machine().open + servers.machine().open, 0);
    }

    /// Servers find what a set of tuples has, however full their table is: of the plan's clients
    /// and of others, as behind a device that translates addresses.
    #[test]
    fn connections_are_found_again(
        steps in prop::collection::vec((any::<bool>(), 0u32..48, 0u16..3, 0u16..3), 1..300),
        seed: u64,
    ) {
        let mut plan = small(Protocol::Tcp, Exchange::default());
        (plan.clients.count, plan.room) = (16, 24);
        let mut servers = Servers::new(&plan, seed, 0).unwrap();
        let template = packet::Template::new(plan.client_macs);
        let mut model = std::collections::HashSet::new();
        for (opens, client, port, server) in steps {
            let packet = packet::Packet {
                source: 0x1000_0000 + u128::from(client),
                destination: 0x3000_0000 + u128::from(server),
                is_v4: true,
                ports: (1024 + port, 8080),
                protocol: Protocol::Tcp,
                seq: if opens { 1000 } else { 1001 },
                ack: 0,
                flags: if opens { 2 } else { 4 },
                window: 65_535,
                mss: None,
                data: 0,
                fill: 0,
            };
            let mut frame = vec![0; packet.frame_len()];
            packet.write(&template, &mut frame);
            let (before, mut sent) = (servers.counts(), Vec::<Vec<u8>>::new());
            servers.receive(100, &frame, &mut sent);
            let counts = servers.counts().since(&before);
            let found = (counts.begun, counts.duplicates, counts.no_tuple, counts.reset, counts.unknown);
            let key = (client, port, server);
            let expected = match (opens, model.contains(&key)) {
                (true, false) if model.len() == 24 => (0, 0, 1, 0, 0),
                (true, false) => (1, 0, 0, 0, 0),
                (true, true) => (0, 1, 0, 0, 0),
                (false, true) => (0, 0, 0, 1, 0),
                (false, false) => (0, 0, 0, 0, 1),
            };
            prop_assert_eq!(found, expected);
            match expected {
                (1, ..) => drop(model.insert(key)),
                (.., 1, _) => drop(model.remove(&key)),
                _ => {}
            }
            prop_assert_eq!(servers.open().0 as usize, model.len());
            prop_assert!(servers.half_open() <= servers.open().0);
        }
    }

    /// Segments may come in any order: nothing is out of step, each is answered by little, and all
    /// connections end.
    #[test]
    fn hostile_segments_are_survived(
        close in prop_oneof![Just(CloseBy::Client), Just(CloseBy::Server), Just(CloseBy::Both)],
        keepalive: bool,
        steps in prop::collection::vec(
            (
                any::<bool>(),
                0u32..4,
                prop_oneof![-2i32..3, Just(i32::MIN), Just(i32::MAX), any::<i32>()],
                prop_oneof![-2i32..25, Just(i32::MIN), any::<i32>()],
                any::<u8>(),
                prop_oneof![Just(0u16), Just(1), Just(65_535), any::<u16>()],
                prop_oneof![Just(None), Just(Some(0u16)), any::<u16>().prop_map(Some)],
                0usize..30,
                prop_oneof![0u64..100, 0u64..2_000_000],
            ),
            1..60,
        ),
    ) {
        let mut plan = small(Protocol::Tcp, Exchange { close, request: 9000, ..Exchange::default() });
        (plan.clients.count, plan.ports, plan.room, plan.patience) = (4, (1024, 1), 4, 3_000_000);
        plan.times.keepalive = keepalive.then_some(300_000);
        let (mut clients, mut servers) =
            (Clients::new(&plan, 1, 0).unwrap(), Servers::new(&plan, 1, 0).unwrap());
        clients.set_opening(Opening { rate: 1e6, hold: None, total: Some(4) }, 0);
        let (mut now, mut there): (_, Vec<Vec<u8>>) = (100, Vec::new());
        clients.poll(now, 64, &mut there);
        prop_assert_eq!(there.len(), 4);
        for (to_client, which, seq, ack, flags, window, mss, data, passes) in steps {
            let slot = |machine: &machine::Machine| {
                let tcb = &machine.slots[which as usize];
                (tcb.rcv, tcb.una)
            };
            let (rcv, una) = match to_client {
                true => slot(clients.machine()),
                false => slot(servers.machine()),
            };
            let (client, server) = (0x1000_0000 + u128::from(which), 0x3000_0000 + u128::from(which % 3));
            let packet = packet::Packet {
                source: if to_client { server } else { client },
                destination: if to_client { client } else { server },
                is_v4: true,
                ports: if to_client { (8080, 1024) } else { (1024, 8080) },
                protocol: Protocol::Tcp,
                seq: rcv.wrapping_add_signed(seq),
                ack: una.wrapping_add_signed(ack),
                flags: flags & 0x1f,
                window,
                mss,
                data,
                fill: if to_client { b'y' } else { b'x' },
            };
            let mut frame = vec![0; packet.frame_len()];
            packet.write(&packet::Template::new((plan.client_macs.0, plan.client_macs.1)), &mut frame);
            let mut sent: Vec<Vec<u8>> = Vec::new();
            match to_client {
                true => clients.receive(now, &frame, &mut sent),
                false => servers.receive(now, &frame, &mut sent),
            }
            // 9,000 bytes in segments of at least 48, FIN and an acknowledgement.
            prop_assert!(sent.len() <= 190, "{} frames for one", sent.len());
            now += passes;
            clients.poll(now, 64, &mut sent);
            servers.poll(now, 64, &mut sent);
            for machine in [clients.machine(), servers.machine()] {
                for tcb in machine.slots.iter().filter(|tcb| tcb.state != tcb::State::Free) {
                    let most = tcb.end.wrapping_sub(tcb.una).wrapping_add(1);
                    prop_assert!(tcb.in_flight() <= most, "{tcb:?}");
                }
            }
        }
        for _ in 0..100_000 {
            now += 1000;
            let mut sent: Vec<Vec<u8>> = Vec::new();
            clients.poll(now, 64, &mut sent);
            servers.poll(now, 64, &mut sent);
        }
        prop_assert_eq!((clients.open(), servers.open()), ((0, 0), (0, 0)));
        prop_assert!(clients.counts().balances(0) && servers.counts().balances(0));
    }
}
