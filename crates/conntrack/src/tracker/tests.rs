use std::collections::VecDeque;

use super::model::{self, Class, Model};
use super::*;
use crate::batch::Checks;
use crate::connection::Detail;
use crate::filter::Filter;
use crate::timeout::Policy;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};
use thalweg_wire::build;
use thalweg_wire::icmpv6::{self, Icmp6Repr};
use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);

/// Packets one after the other, each committed if it is new.
struct Lab {
    tracker: Tracker,
    batch: Batch<2>,
    batch6: Batch<5>,
    now: Millis,
}

impl Lab {
    fn new(capacity: u32) -> Lab {
        let now = 1000;
        let tracker = Tracker::new(capacity, now).unwrap();
        Lab { tracker, batch: Batch::default(), batch6: Batch::default(), now }
    }

    fn look(&mut self, zone: u16, l3: &[u8], commit: Option<&Commit>) -> Tracked {
        if l3[0] >> 4 == 6 {
            self.batch6.clear();
            self.batch6.add_ipv6(zone, l3, l3.len(), Checks::ALL);
            self.tracker.look_up(&mut self.batch6);
            let tracked = self.tracker.track(&mut self.batch6, 0, self.now);
            return match commit {
                Some(how) => self.tracker.commit(&self.batch6, 0, tracked, how, self.now),
                None => tracked,
            };
        }
        self.batch.clear();
        self.batch.add_ipv4(zone, l3, l3.len(), Checks::ALL);
        self.tracker.look_up(&mut self.batch);
        let tracked = self.tracker.track(&mut self.batch, 0, self.now);
        match commit {
            Some(how) => self.tracker.commit(&self.batch, 0, tracked, how, self.now),
            None => tracked,
        }
    }

    fn see(&mut self, l3: &[u8]) -> String {
        self.look(0, l3, None).state.to_string()
    }

    fn commit(&mut self, l3: &[u8]) -> String {
        self.look(0, l3, Some(&Commit::default())).state.to_string()
    }

    fn list(&self, detail: Detail) -> Vec<String> {
        let mut from = 0;
        let all = self.tracker.list(&mut from, u32::MAX, self.now);
        all.map(|c| c.line(detail).to_string()).collect()
    }

    /// Seconds until the only connection expires.
    fn timeout(&self) -> u32 {
        let left = self.tracker.list(&mut 0, u32::MAX, self.now).next().map(|c| c.left);
        left.unwrap_or(0) / 1000
    }

    fn later(&mut self, seconds: u32) {
        self.now += seconds * 1000;
        while self.tracker.expire(self.now, 100) {}
    }
}

fn to(port: u16, flags: u8, seq: u32, ack: u32, data: usize) -> Vec<u8> {
    let p = build::Packet::new().ipv4(CLIENT, SERVER).tcp(port, 80);
    p.flags(flags).seq(seq).ack(ack).window(1000).payload_len(data).build()
}

fn back(port: u16, flags: u8, seq: u32, ack: u32, data: usize) -> Vec<u8> {
    let p = build::Packet::new().ipv4(SERVER, CLIENT).tcp(80, port);
    p.flags(flags).seq(seq).ack(ack).window(1000).payload_len(data).build()
}

#[test]
fn the_life_of_a_connection() {
    let mut lab = Lab::new(10);
    assert_eq!(lab.see(&back(1, SYN | ACK, 500, 101, 0)), "inv|trk", "an answer to nothing");
    assert_eq!(lab.see(&to(1, SYN, 100, 0, 0)), "new|trk");
    assert!(lab.tracker.is_empty(), "nothing is remembered unasked");
    assert_eq!((lab.commit(&to(1, SYN, 100, 0, 0)), lab.timeout()), ("new|trk".into(), 30));
    assert_eq!(lab.see(&to(1, SYN, 100, 0, 0)), "new|trk", "the same again");
    assert_eq!(lab.see(&back(1, SYN | ACK, 500, 101, 0)), "est|rpl|trk");
    let line = "tcp,orig=(src=10.1.0.2,dst=10.1.0.3,sport=1,dport=80),\
                reply=(src=10.1.0.3,dst=10.1.0.2,sport=80,dport=1),protoinfo=(state=ESTABLISHED)";
    assert_eq!(lab.list(Detail::default()), [line]);
    assert_eq!(lab.timeout(), 30, "the answer was not acknowledged yet");
    assert_eq!(lab.see(&to(1, ACK, 101, 501, 0)), "est|trk");
    assert_eq!(lab.timeout(), 86400);
    assert_eq!(lab.see(&to(1, ACK | PSH, 101, 501, 40)), "est|trk");
    assert_eq!(lab.see(&back(1, ACK, 501, 141, 40)), "est|rpl|trk");
    assert_eq!(lab.see(&to(1, ACK, 50_000, 541, 10)), "inv|trk", "beyond the window");
    assert_eq!(
        lab.see(&to(1, ACK, 141, 500_000, 10)),
        "inv|trk",
        "acknowledges data that was not sent"
    );
    assert_eq!(lab.see(&to(1, RST, 130, 0, 0)), "inv|trk", "a reset has to hit");
    assert_eq!(lab.see(&to(1, SYN | FIN, 141, 541, 0)), "inv|trk");
    assert_eq!(lab.see(&to(1, FIN | ACK, 141, 541, 0)), "est|trk");
    assert_eq!(lab.timeout(), 900);
    assert_eq!(lab.see(&back(1, FIN | ACK, 541, 142, 0)), "est|rpl|trk");
    assert_eq!(lab.timeout(), 45);
    assert_eq!(lab.see(&to(1, ACK, 142, 542, 0)), "est|trk");
    assert_eq!(lab.timeout(), 30);
    let counts = lab.tracker.counts();
    assert_eq!((counts.out_of_window, counts.invalid_flags), (3, 1));
    let more = Detail { more: true, statistics: true };
    let line = lab.list(more).remove(0);
    assert!(line.contains("state_orig=FIN_WAIT_2,state_reply=FIN_WAIT_2"), "{line}");
    assert!(line.contains("packets=6/3,bytes=280/160"), "{line}");
    // The ports are reused at once.
    assert_eq!(lab.commit(&to(1, SYN, 9000, 0, 0)), "new|trk");
    let counts = lab.tracker.counts();
    assert_eq!((lab.tracker.len(), counts.replaced, counts.created), (1, 1, 2));
    lab.later(31);
    assert!(lab.tracker.is_empty());
    assert_eq!(lab.tracker.live(), Live::default());
}

/// The opener has given up and sent another SYN, or was picked up while the other side was far
/// ahead: what the answer acknowledges was not seen.
#[test]
fn the_first_answer_is_not_judged_by_what_was_not_seen() {
    let mut lab = Lab::new(64);
    for (port, second) in [(1, 0x5000_0000), (2, 0x6fff_0000), (3, 0xb000_0000)] {
        assert_eq!(lab.commit(&to(port, SYN, 1000, 0, 0)), "new|trk");
        assert_eq!(lab.commit(&to(port, SYN, second, 0, 0)), "new|trk");
        let answer = back(port, SYN | ACK, 77, second + 1, 0);
        assert_eq!(lab.see(&answer), "est|rpl|trk", "{second:#x}");
        assert_eq!(lab.see(&to(port, ACK, second + 1, 78, 10)), "est|trk");
        assert_eq!(lab.see(&back(port, ACK, 78, second + 11, 10)), "est|rpl|trk");
        // Answers are judged from now on.
        assert_eq!(lab.see(&back(port, ACK, 88, second + 1_000_000, 10)), "inv|trk");
        assert_eq!(lab.see(&to(port, ACK, second + 2_000_000, 88, 10)), "inv|trk");
    }
    assert_eq!(lab.commit(&to(4, ACK, 5000, 100, 10)), "new|trk");
    assert_eq!(lab.see(&back(4, ACK, 900_000_000, 800_000, 10)), "est|rpl|trk");
    assert_eq!(lab.see(&back(4, ACK, 900_000_010, 800_000, 10)), "est|rpl|trk");
}

#[test]
fn without_checks_all_is_in_the_window() {
    let mut lab = Lab::new(10);
    lab.tracker.set_check_windows(false);
    lab.commit(&to(1, SYN, 100, 0, 0));
    lab.see(&back(1, SYN | ACK, 500, 101, 0));
    lab.see(&to(1, ACK, 101, 501, 0));
    assert_eq!(lab.see(&to(1, ACK, 5_000_000, 541, 10)), "est|trk");
    assert_eq!(lab.tracker.counts().unchecked, 1);
    assert_eq!(lab.see(&to(1, RST, 77, 0, 0)), "est|trk");
    assert_eq!(lab.timeout(), 30);
}

#[test]
fn datagrams_and_queries_wait_for_an_answer() {
    let mut lab = Lab::new(10);
    let udp = |there: bool| match there {
        true => build::Packet::new().ipv4(CLIENT, SERVER).udp(5303, 53).build(),
        false => build::Packet::new().ipv4(SERVER, CLIENT).udp(53, 5303).build(),
    };
    assert_eq!((lab.commit(&udp(true)), lab.timeout()), ("new|trk".into(), 60));
    assert_eq!(lab.see(&udp(true)), "new|trk");
    assert_eq!(lab.see(&udp(false)), "est|rpl|trk");
    assert_eq!((lab.see(&udp(true)), lab.timeout()), ("est|trk".into(), 30));
    lab.later(31);
    let ask = build::Packet::new().ipv4(SERVER, CLIENT).icmp_echo_request(7, 1).build();
    let answer = build::Packet::new().ipv4(CLIENT, SERVER).icmp_echo_reply(7, 1).build();
    assert_eq!(lab.see(&answer), "inv|trk");
    assert_eq!((lab.commit(&ask), lab.timeout()), ("new|trk".into(), 60));
    assert_eq!(lab.see(&ask), "new|trk");
    assert_eq!((lab.see(&answer), lab.timeout()), ("est|rpl|trk".into(), 30));
    assert_eq!(lab.see(&ask), "est|trk");
    let other = build::Packet::new().ipv4(CLIENT, SERVER).icmp_echo_request(7, 1).build();
    assert_eq!(lab.see(&other), "new|trk", "the other side asks with the same number");
}

/// A router's ICMP error about a packet from the client.
fn error_about(packet: &[u8]) -> Vec<u8> {
    let message = [&[3, 1, 0, 0, 0, 0, 0, 0], &packet[..28]].concat();
    let router = Ipv4Addr::new(10, 1, 0, 99);
    let mut l3 = build::Packet::new().ipv4(router, CLIENT).protocol(1).payload(&message).build();
    let at = l3.len() - message.len();
    let sum = thalweg_wire::checksum::checksum(&l3[at..]);
    l3[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    l3
}

#[test]
fn errors_are_related_to_what_they_quote() {
    let mut lab = Lab::new(10);
    let udp = build::Packet::new().ipv4(CLIENT, SERVER).udp(5303, 53).build();
    assert_eq!(lab.see(&error_about(&udp)), "inv|trk");
    lab.commit(&udp);
    lab.later(20);
    assert_eq!(lab.commit(&error_about(&udp)), "rel|rpl|trk");
    assert_eq!((lab.tracker.len(), lab.timeout()), (1, 40), "it keeps nothing alive");
    let ping = build::Packet::new().ipv4(CLIENT, SERVER).icmp_echo_request(7, 1).build();
    lab.commit(&ping);
    assert_eq!(lab.see(&error_about(&ping)), "rel|rpl|trk");
}

#[test]
fn zones_are_apart() {
    let mut lab = Lab::new(10);
    lab.tracker.set_zone_limit(Some(5), Some(1));
    lab.tracker.set_policy(Some(5), Policy::parse("tcp_syn_sent=7").ok().map(Box::new));
    let how = Commit { mark: Some((0x105, 0xff)), label: Some((9, !0)), ..Commit::default() };
    let first = lab.look(5, &to(1, SYN, 1, 0, 0), Some(&how));
    assert_eq!(lab.timeout(), 7);
    let flow = first.flow.unwrap();
    assert_eq!((lab.tracker.mark::<IPV4>(flow), lab.tracker.label::<IPV4>(flow)), (5, 9));
    let second = lab.look(5, &to(2, SYN, 1, 0, 0), Some(&how));
    assert_eq!((second.flow, second.state), (None, State::TRACKED | State::NEW));
    assert_eq!(lab.look(6, &to(1, SYN, 1, 0, 0), None).flow, None);
    assert!(lab.look(6, &to(2, SYN, 1, 0, 0), Some(&Commit::default())).flow.is_some());
    assert_eq!((lab.tracker.zone_len(5), lab.tracker.counts().zone_full), (1, 1));
    let filter = Filter::parse(["zone=5"]).unwrap();
    assert_eq!(lab.tracker.flush(&mut 0, 100, &filter, lab.now), 1);
    assert_eq!((lab.tracker.len(), lab.tracker.zone_len(5)), (1, 0));
    // The place had belonged to a connection with a label.
    let again = lab.look(7, &to(2, SYN, 1, 0, 0), Some(&Commit::default())).flow.unwrap();
    assert_eq!((lab.tracker.mark::<IPV4>(again), lab.tracker.label::<IPV4>(again)), (0, 0));
}

/// Only connections with labels wait for label memory.
#[test]
fn connections_come_while_labels_have_no_memory_yet() {
    let mut lab = Lab::new(4_000_000);
    lab.tracker.prepare(false).unwrap();
    let mut packets = (1..u16::MAX).map(|port| to(port, SYN, 1, 0, 0));
    let how = Commit { label: Some((9, !0)), ..Commit::default() };
    let labelled = packets.next().unwrap();
    let (mut plain, mut refused, began) = (0, 0, Instant::now());
    let flow = loop {
        // Requests label memory, which takes the thread some milliseconds.
        if let Some(flow) = lab.look(0, &labelled, Some(&how)).flow {
            break flow;
        }
        refused += 1;
        if let Some(packet) = packets.next() {
            let one = lab.look(0, &packet, Some(&Commit::default())).flow.unwrap();
            assert_eq!(lab.tracker.label::<IPV4>(one), 0);
            plain += 1;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no memory for labels");
        std::thread::yield_now();
    };
    assert!(lab.tracker.has_room_for_labels());
    assert_eq!((lab.tracker.label::<IPV4>(flow), lab.tracker.len()), (9, plain + 1));
    assert_eq!(lab.tracker.counts().unready, refused);
    let next = lab.look(0, &to(u16::MAX, SYN, 1, 0, 0), Some(&Commit::default())).flow.unwrap();
    assert_eq!(lab.tracker.label::<IPV4>(next), 0);
}

#[test]
fn a_full_table_refuses_or_recycles() {
    let mut lab = Lab::new(3);
    lab.commit(&to(1, SYN, 100, 0, 0));
    lab.see(&back(1, SYN | ACK, 500, 101, 0));
    lab.see(&to(1, ACK, 101, 501, 0));
    lab.commit(&to(2, SYN, 100, 0, 0));
    lab.commit(&to(3, SYN, 100, 0, 0));
    lab.commit(&to(4, SYN, 100, 0, 0));
    assert_eq!((lab.tracker.len(), lab.tracker.counts().full), (3, 1));
    lab.tracker.set_when_full(WhenFull::Recycle);
    lab.tracker.set_events(true);
    for port in 4..20 {
        lab.commit(&to(port, SYN, 100, 0, 0));
    }
    assert_eq!((lab.tracker.len(), lab.tracker.counts().recycled), (3, 16));
    assert_eq!(lab.see(&to(1, ACK | PSH, 101, 501, 10)), "est|trk", "an answered connection stays");
    let events = lab.tracker.take_events(VecDeque::new());
    let (first, next) = (&events[0], &events[1]);
    assert_eq!(
        (first.kind, first.connection.original.sport),
        (EventKind::Ended(EndReason::Recycled), 2)
    );
    assert_eq!((next.kind, events.len()), (EventKind::New, 32));
    assert!(lab.tracker.take_events(events).is_empty());
    lab.tracker.set_limit(0);
    lab.tracker.set_when_full(WhenFull::Refuse);
    assert_eq!(lab.commit(&to(30, SYN, 100, 0, 0)), "new|trk");
    assert_eq!(lab.tracker.len(), 3);
}

/// Each has two keys, for which a tracker sized for single keys has no room.
#[test]
fn translated_connections_are_recycled_as_others_are() {
    for (made_for_them, most) in [(true, 64), (false, 40)] {
        let mut lab = Lab::new(64);
        if made_for_them {
            lab.tracker = Tracker::for_translated(64, lab.now).unwrap();
        }
        assert_eq!(lab.tracker.capacity_translated(), most);
        let open = |lab: &mut Lab, port: u16| {
            let (src, dst) = (SERVER.into(), Ipv4Addr::new(192, 0, 2, 1).into());
            let reply = Tuple { src, dst, protocol: 6, sport: 80, dport: port };
            let how = Commit { reply: Some(reply), ..Commit::default() };
            lab.look(0, &to(port, SYN, 100, 0, 0), Some(&how)).flow.is_some()
        };
        let came = (1..=200).filter(|port| open(&mut lab, *port)).count() as u32;
        assert_eq!((came, lab.tracker.counts().full), (most, u64::from(200 - most)));
        lab.tracker.set_when_full(WhenFull::Recycle);
        assert!((201..=400).all(|port| open(&mut lab, port)));
        assert_eq!((lab.tracker.len(), lab.tracker.counts().recycled), (most, 200));
        // Connections without a second key need one place.
        assert_eq!(lab.commit(&to(500, SYN, 100, 0, 0)), "new|trk");
        assert_eq!((lab.tracker.len(), lab.tracker.counts().recycled), (most, 201));
    }
}

/// The documented memory per connection holds.
#[test]
fn a_connection_takes_no_more_than_it_may() {
    const COUNT: u32 = 1 << 20;
    let each = |t: &Tracker| t.bytes().map(|bytes| bytes / COUNT as usize);
    assert_eq!(each(&Tracker::new(COUNT, 0).unwrap()), [128, 176]);
    assert_eq!(each(&Tracker::for_translated(COUNT, 0).unwrap()), [136, 184]);
}

#[test]
fn force_reverses_the_direction() {
    let mut lab = Lab::new(3);
    lab.commit(&to(1, SYN, 100, 0, 0));
    lab.see(&back(1, SYN | ACK, 500, 101, 0));
    let how = Commit { force: true, ..Commit::default() };
    let forced = lab.look(0, &back(1, ACK, 501, 101, 10), Some(&how));
    assert_eq!(forced.state, State::TRACKED | State::NEW);
    assert_eq!(lab.tracker.original::<IPV4>(forced.flow.unwrap()).src, SERVER);
    assert_eq!(lab.tracker.len(), 1);
    assert_eq!(lab.see(&to(1, ACK, 101, 511, 0)), "est|rpl|trk");
}

#[test]
fn translated_replies_have_a_key_of_their_own() {
    let mut lab = Lab::new(3);
    let outside = Ipv4Addr::new(192, 0, 2, 1);
    let reply =
        Tuple { src: SERVER.into(), dst: outside.into(), protocol: 6, sport: 80, dport: 4000 };
    let how = Commit { reply: Some(reply), ..Commit::default() };
    let flow = lab.look(0, &to(1, SYN, 100, 0, 0), Some(&how)).flow.unwrap();
    assert_eq!(lab.tracker.translation::<IPV4>(flow, false), Some(reply.reversed()));
    assert_eq!(lab.tracker.translated::<IPV4>(flow, false), State::SNAT);
    assert_eq!(lab.tracker.translated::<IPV4>(flow, true), State::DNAT);
    assert!(lab.tracker.is_taken::<IPV4>(&reply, 0));
    let answer = build::Packet::new().ipv4(SERVER, outside).tcp(80, 4000);
    let answer = answer.flags(SYN | ACK).seq(500).ack(101).window(1000).build();
    assert_eq!(lab.see(&answer), "est|rpl|trk");
    let client = lab.tracker.translation::<IPV4>(flow, true).unwrap();
    assert_eq!((client.dst, client.dport), (CLIENT.into(), 1));
    // A packet that already looks translated does not belong to the connection.
    let packet = build::Packet::new().ipv4(outside, SERVER).tcp(4000, 80);
    assert_eq!(lab.see(&packet.flags(SYN).seq(100).window(1000).build()), "new|trk");
    assert_eq!(lab.see(&back(1, ACK, 501, 101, 0)), "new|trk");
    let taken = lab.look(0, &to(2, SYN, 100, 0, 0), Some(&how));
    assert_eq!((taken.flow, lab.tracker.counts().taken), (None, 1));
}

/// A frame with a whole connection in it: later packets see the effects of earlier ones.
#[test]
fn a_batch_is_in_order() {
    let mut lab = Lab::new(3);
    let packets = [
        to(1, SYN, 100, 0, 0),
        back(1, SYN | ACK, 500, 101, 0),
        to(1, ACK, 101, 501, 0),
        to(1, RST, 101, 0, 0),
        back(1, RST, 501, 0, 0),
        to(1, SYN, 9000, 0, 0),
        back(1, SYN | ACK, 700, 9001, 0),
    ];
    for packet in &packets {
        lab.batch.add_ipv4(0, packet, packet.len(), Checks::ALL);
    }
    let mut states = [State::NONE; 7];
    let how = Commit::default();
    lab.tracker.track_all(&mut lab.batch, Some(&how), lab.now, &mut states);
    let texts = states.map(|state| state.to_string());
    let (new, est, reply) = ("new|trk", "est|trk", "est|rpl|trk");
    assert_eq!(texts, [new, reply, est, est, reply, new, reply]);
    assert_eq!(lab.tracker.len(), 1);
}

const CLIENT6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 3);

fn tcp6(there: bool, port: u16, flags: u8, seq: u32, ack: u32) -> Vec<u8> {
    let p = build::Packet::new();
    let p = match there {
        true => p.ipv6(CLIENT6, SERVER6).tcp(port, 80),
        false => p.ipv6(SERVER6, CLIENT6).tcp(80, port),
    };
    p.flags(flags).seq(seq).ack(ack).window(1000).build()
}

/// Both families are in one list, with one limit.
#[test]
fn connections_of_both_families_share_a_tracker() {
    let mut lab = Lab::new(3);
    assert_eq!(lab.commit(&to(1, SYN, 100, 0, 0)), "new|trk");
    assert_eq!(lab.commit(&tcp6(true, 1, SYN, 100, 0)), "new|trk");
    assert_eq!(lab.see(&tcp6(false, 1, SYN | ACK, 500, 101)), "est|rpl|trk");
    assert_eq!(lab.see(&tcp6(true, 1, ACK, 101, 501)), "est|trk");
    let ask = build::Packet::new().ipv6(CLIENT6, SERVER6).icmp6_echo_request(7, 1).build();
    assert_eq!((lab.commit(&ask), lab.see(&ask)), ("new|trk".into(), "new|trk".into()));
    assert_eq!(
        lab.list(Detail::default())[1..],
        [
            "tcp,orig=(src=2001:db8:1::2,dst=2001:db8:1::3,sport=1,dport=80),\
             reply=(src=2001:db8:1::3,dst=2001:db8:1::2,sport=80,dport=1),\
             protoinfo=(state=ESTABLISHED)",
            "icmpv6,orig=(src=2001:db8:1::2,dst=2001:db8:1::3,id=7,type=128,code=0),\
             reply=(src=2001:db8:1::3,dst=2001:db8:1::2,id=7,type=129,code=0)",
        ]
    );
    assert_eq!((lab.tracker.live().total(), lab.tracker.live().ipv6), (3, 2));
    // The limit is that of both: the oldest unanswered of either makes room.
    assert_eq!(lab.look(0, &tcp6(true, 2, SYN, 1, 0), Some(&Commit::default())).flow, None);
    assert_eq!(lab.tracker.counts().full, 1);
    lab.tracker.set_when_full(WhenFull::Recycle);
    for port in 2..9 {
        assert!(lab.look(0, &to(port, SYN, 1, 0, 0), Some(&Commit::default())).flow.is_some());
    }
    assert!(lab.look(0, &tcp6(true, 3, SYN, 1, 0), Some(&Commit::default())).flow.is_some());
    lab.tracker.set_limit(1);
    assert!(lab.look(0, &tcp6(true, 4, SYN, 1, 0), Some(&Commit::default())).flow.is_some());
    // A walk in small steps visits each once.
    let (mut from, mut found) = (0, 0);
    while from < lab.tracker.places() {
        found += lab.tracker.list(&mut from, 1, lab.now).count();
    }
    assert_eq!(found, lab.tracker.len() as usize);
    let filter = Filter::parse(["ct_ipv6_src=2001:db8:1::2,ct_nw_proto=6,ct_tp_src=1"]).unwrap();
    assert_eq!(lab.tracker.flush(&mut 0, u32::MAX, &filter, lab.now), 1);
    let rest = lab.tracker.len() as usize;
    assert_eq!(lab.tracker.flush(&mut 0, u32::MAX, &Filter::default(), lab.now), rest);
    assert!(lab.tracker.is_empty());
    assert_eq!(lab.tracker.live(), Live::default());
}

#[test]
fn zones_count_connections_of_both_families() {
    let mut lab = Lab::new(10);
    lab.tracker.set_zone_limit(Some(5), Some(2));
    let how = Commit { label: Some((9, !0)), ..Commit::default() };
    let four = lab.look(5, &to(1, SYN, 1, 0, 0), Some(&how)).flow.unwrap();
    let six = lab.look(5, &tcp6(true, 1, SYN, 1, 0), Some(&how)).flow.unwrap();
    assert_eq!((lab.tracker.label::<IPV4>(four), lab.tracker.label::<IPV6>(six)), (9, 9));
    for packet in [to(2, SYN, 1, 0, 0), tcp6(true, 2, SYN, 1, 0)] {
        assert_eq!(lab.look(5, &packet, Some(&how)).flow, None);
    }
    assert_eq!((lab.tracker.zone_len(5), lab.tracker.counts().zone_full), (2, 2));
    lab.later(31);
    assert_eq!((lab.tracker.zone_len(5), lab.tracker.counts().expired), (0, 2));
}

#[test]
fn icmpv6_errors_are_related_to_what_they_quote() {
    let mut lab = Lab::new(10);
    let router = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9);
    let error = |repr: Icmp6Repr, original: &[u8]| {
        let mut buf = [0; 1280];
        let length = icmpv6::emit_error(repr, router, original, &mut buf).unwrap();
        buf[..length].to_vec()
    };
    let udp = build::Packet::new().ipv6(CLIENT6, SERVER6).udp(5303, 53).payload_len(40).build();
    let errors = [1, 2, 3, 4].map(|kind| Icmp6Repr { kind, code: 0, rest: 1280 });
    assert_eq!(lab.see(&error(errors[0], &udp)), "inv|trk");
    lab.commit(&udp);
    for repr in errors {
        assert_eq!(lab.commit(&error(repr, &udp)), "rel|rpl|trk");
        // The first eight bytes behind the header suffice.
        assert_eq!(lab.see(&error(repr, &udp[..48])), "rel|rpl|trk");
        assert_eq!(lab.see(&error(repr, &udp[..43])), "inv|trk");
    }
    let other = Icmp6Repr { kind: 100, code: 0, rest: 0 };
    assert_eq!(lab.see(&error(other, &udp)), "inv|trk", "an error of no known type");
    let mut wrong = error(errors[1], &udp);
    wrong[44] ^= 1;
    assert_eq!(lab.see(&wrong), "inv|trk", "its checksum");
    assert_eq!(lab.tracker.len(), 1);
    let ping = build::Packet::new().ipv6(CLIENT6, SERVER6).icmp6_echo_request(7, 1).build();
    lab.commit(&ping);
    assert_eq!(lab.see(&error(Icmp6Repr::hop_limit_exceeded(), &ping)), "rel|rpl|trk");
    // Neighbour discovery is not tracked.
    let solicitation = Icmp6Repr { kind: 135, code: 0, rest: 0 };
    let packet = build::Packet::new().ipv6(CLIENT6, SERVER6).icmp6(solicitation);
    assert_eq!(lab.commit(&packet.payload_len(16).build()), "inv|trk");
}

#[test]
fn translated_connections_of_ipv6_have_two_keys() {
    let mut lab = Lab::new(3);
    let outside = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
    let (src, dst) = (SERVER6.into(), outside.into());
    let reply = Tuple { src, dst, protocol: 6, sport: 80, dport: 4000 };
    let how = Commit { reply: Some(reply), ..Commit::default() };
    let flow = lab.look(0, &tcp6(true, 1, SYN, 100, 0), Some(&how)).flow.unwrap();
    assert_eq!(lab.tracker.translation::<IPV6>(flow, false), Some(reply.reversed()));
    assert!(lab.tracker.is_taken::<IPV6>(&reply, 0));
    let answer = build::Packet::new().ipv6(SERVER6, outside).tcp(80, 4000);
    let answer = answer.flags(SYN | ACK).seq(500).ack(101).window(1000).build();
    assert_eq!(lab.see(&answer), "est|rpl|trk");
    let line = lab.list(Detail::default()).remove(0);
    assert!(line.contains("reply=(src=2001:db8:1::3,dst=2001:db8:2::1,sport=80,dport=4000)"));
}

/// Room for IPv6 may be provided later, as long as no connection is there.
#[test]
fn room_for_ipv6_is_exchanged() {
    let mut lab = Lab::new(2);
    let mut larger = Tracker::new(8, lab.now).unwrap();
    larger.prepare_ipv6(false).unwrap();
    assert!(!lab.tracker.is_prepared_for_ipv6());
    lab.commit(&to(1, SYN, 1, 0, 0));
    lab.tracker.take_ipv6(&mut larger);
    assert!(lab.tracker.is_prepared_for_ipv6());
    assert_eq!((lab.tracker.capacity_ipv6(false), lab.tracker.limit()), (8, 2));
    lab.commit(&tcp6(true, 1, SYN, 1, 0));
    let mut other = Tracker::new(9, lab.now).unwrap();
    lab.tracker.take_ipv6(&mut other);
    assert_eq!((lab.tracker.capacity_ipv6(false), lab.tracker.len()), (8, 2));
}

/// Packets of one family.
fn packets(six: bool) -> impl Strategy<Value = (model::Packet, u32)> {
    let flags = prop_oneof![
        3 => Just(SYN), 3 => Just(SYN | ACK), 6 => Just(ACK), 3 => Just(FIN | ACK),
        1 => Just(RST), 1 => Just(RST | ACK), 1 => 0u8..64,
    ];
    let icmp = if six { 58u8 } else { 1 };
    let protocol = prop_oneof![5 => Just(6u8), 1 => Just(17), 1 => Just(icmp), 1 => Just(47)];
    let kinds = if six { [128, 129, 128, 129, 128, 77] } else { [8, 0, 13, 14, 8, 77] };
    let near = || prop_oneof![6 => 0u32..4, 2 => 0u32..3000, 1 => 0u32..200_000];
    let ends = (0u16..2, 0u32..2, 0u32..2, 0u16..3, 0u16..2);
    let scale = prop_oneof![Just(None), (0u8..15).prop_map(Some)];
    let numbers = (near(), near(), prop_oneof![Just(65535u16), any::<u16>()], scale);
    let rest = (
        prop_oneof![Just(0u16), 1u16..1400],
        0usize..6,
        prop_oneof![
            8 => 0u32..3, 1 => 0u32..40, 1 => 0u32..1000
        ],
    );
    (ends, protocol, flags, numbers, rest).prop_map(
        move |(ends, protocol, flags, numbers, rest)| {
            let (zone, src, dst, sport, dport) = ends;
            let (seq, ack, window, scale) = numbers;
            let (payload, kind, pause) = rest;
            let portless = !matches!(protocol, 6 | 17);
            let id = if protocol == icmp { sport } else { 0 };
            let (sport, dport) = if portless { (id, id) } else { (sport, dport) };
            let packet = model::Packet {
                six,
                zone,
                src: (src, sport),
                dst: (dst, dport),
                protocol,
                icmp_type: kinds[kind],
                seq,
                ack,
                flags,
                window,
                scale: scale.filter(|_| flags & SYN != 0),
                payload,
            };
            (packet, pause)
        },
    )
}

fn bytes(p: &model::Packet) -> Vec<u8> {
    let ip = match (model::host(p.six, p.src.0), model::host(p.six, p.dst.0)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => build::Packet::new().ipv4(src, dst),
        (IpAddr::V6(src), IpAddr::V6(dst)) => build::Packet::new().ipv6(src, dst),
        _ => unreachable!(),
    };
    match p.protocol {
        6 => {
            let tcp = ip.tcp(p.src.1, p.dst.1).flags(p.flags).seq(p.seq).ack(p.ack);
            let tcp = tcp.window(p.window).payload_len(p.payload.into());
            match p.scale {
                Some(scale) => tcp.tcp_options(&[3, 3, scale, 0]).build(),
                None => tcp.build(),
            }
        }
        17 => ip.udp(p.src.1, p.dst.1).payload_len(p.payload.into()).build(),
        1 => {
            let mut message = [p.icmp_type, 0, 0, 0, 0, 0, 0, 1];
            message[4..6].copy_from_slice(&p.src.1.to_be_bytes());
            let sum = thalweg_wire::checksum::checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            ip.protocol(1).payload(&message).build()
        }
        58 => {
            let rest = u32::from(p.src.1) << 16 | 1;
            ip.icmp6(Icmp6Repr { kind: p.icmp_type, code: 0, rest }).build()
        }
        other => ip.protocol(other).payload_len(p.payload.into()).build(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Tracker and model agree on states and connections for any input of both families, which
    /// share the limit.
    #[test]
    fn the_tracker_agrees_with_its_model(
        frames in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(packets(false), 1..12),
                prop::collection::vec(packets(true), 1..12),
            ],
            1..40,
        ),
        check: bool, limit in prop_oneof![Just(1000usize), 2usize..5],
    ) {
        let mut lab = Lab::new(1000);
        lab.tracker.set_limit(limit as u32);
        lab.tracker.set_check_windows(check);
        let mut model = Model::new(limit);
        model.check = check;
        let how = Commit::default();
        for frame in frames {
            // Expired connections count until they are swept, up to 128 ms later.
            lab.later(if limit == 1000 { frame[0].1 } else { 0 });
            model.expire(u64::from(lab.now));
            lab.batch.clear();
            lab.batch6.clear();
            for (p, _) in &frame {
                let l3 = bytes(p);
                match p.six {
                    false => lab.batch.add_ipv4(p.zone, &l3, l3.len(), Checks::ALL),
                    true => lab.batch6.add_ipv6(p.zone, &l3, l3.len(), Checks::ALL),
                }
            }
            let mut states = vec![State::NONE; frame.len()];
            match frame[0].0.six {
                false => lab.tracker.track_all(&mut lab.batch, Some(&how), lab.now, &mut states),
                true => lab.tracker.track_all(&mut lab.batch6, Some(&how), lab.now, &mut states),
            }
            for ((p, _), state) in frame.iter().zip(states) {
                let want = match model.packet(p, u64::from(lab.now)) {
                    Class::New => State::TRACKED | State::NEW,
                    Class::Established { reply: false } => State::TRACKED | State::ESTABLISHED,
                    Class::Established { reply: true } => {
                        State::TRACKED | State::ESTABLISHED | State::REPLY
                    }
                    Class::Invalid => State::TRACKED | State::INVALID,
                };
                prop_assert_eq!(state, want, "{:?} of {:?}", p, lab.list(Detail { more: true, statistics: true }));
            }
            let mut all: Vec<_> = lab.tracker.list(&mut 0, u32::MAX, lab.now)
                .map(|c| (c.zone, c.original.src, c.original.sport, c.original.dst, c.packets))
                .collect();
            all.sort();
            prop_assert_eq!(all, model.packets(u64::from(lab.now)));
        }
        let counts = lab.tracker.counts();
        let ended = counts.expired + counts.recycled + counts.flushed + counts.replaced;
        prop_assert_eq!(counts.created, ended + u64::from(lab.tracker.len()));
        prop_assert_eq!(lab.tracker.live().total(), lab.tracker.len());
        let six = lab.tracker.list(&mut 0, u32::MAX, 0).filter(|c| c.original.src.is_ipv6());
        prop_assert_eq!(lab.tracker.live().ipv6 as usize, six.count());
        lab.later(100_000);
        prop_assert!(lab.tracker.is_empty());
        prop_assert_eq!(lab.tracker.zone_len(0) + lab.tracker.zone_len(1), 0);
    }
}
