//! Connection tracking: any packets in any order never panic, no connection is forgotten in the
//! books, and all of them end.
//!
//! Input: for each packet, how it is made (an operation, ports, flags, numbers) or raw bytes.
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_conntrack::{Batch, Checks, Commit, Filter, Policy, State, Tracker, WhenFull};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::Icmp6Repr;

const ROOM: u32 = 8;

fn segment(b: &[u8; 8], six: bool) -> Vec<u8> {
    let (src, dst) = if b[0] & 1 == 0 { (1, 2) } else { (2, 1) };
    let ports = (u16::from(b[0] >> 1 & 3) + 1, u16::from(b[0] >> 3 & 3) + 1);
    let (v4, v6) = (|n: u8| Ipv4Addr::new(10, 0, 0, n), |n: u8| Ipv6Addr::from_bits(n.into()));
    let ip = match six {
        false => Packet::new().ipv4(v4(src), v4(dst)),
        true => Packet::new().ipv6(v6(src), v6(dst)),
    };
    match b[0] >> 5 {
        1 if six => ip.icmp6_echo_request(ports.0, 1).build(),
        2 if six => {
            ip.icmp6(Icmp6Repr { kind: 129, code: 0, rest: u32::from(ports.0) << 16 }).build()
        }
        0 => ip.udp(ports.0, ports.1).build(),
        1 => ip.icmp_echo_request(ports.0, 1).build(),
        2 => ip.icmp_echo_reply(ports.0, 1).build(),
        _ => {
            let number = |n: u8| u32::from(n).wrapping_mul(1 << (n & 15));
            let tcp = ip.tcp(ports.0, ports.1).flags(b[1]).seq(number(b[2])).ack(number(b[3]));
            let tcp = tcp.window(u16::from(b[4]) << (b[5] & 8)).payload_len(b[6].into());
            if b[7] & 1 == 1 { tcp.tcp_options(&[3, 3, b[7] >> 1, 0]).build() } else { tcp.build() }
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut tracker = Tracker::new(ROOM, 0).expect("room for eight");
    let policy = Policy::parse("udp_first=1 tcp_syn_sent=2 tcp_established=9");
    tracker.set_policy(None, policy.ok().map(Box::new));
    let mut batch = Batch::default();
    let mut batch6 = Batch::default();
    let mut now = 0;
    let mut states = [State::NONE; 16];
    for bytes in data.chunks(16) {
        let Some((how, rest)) = bytes.split_first_chunk::<8>() else { break };
        batch.clear();
        batch6.clear();
        let six = how[5] & 64 != 0;
        let made = segment(how, six);
        let mut add = |zone, l3: &[u8], checks| match six {
            false => batch.add_ipv4(zone, l3, l3.len(), checks),
            true => batch6.add_ipv6(zone, l3, l3.len(), checks),
        };
        add(u16::from(how[5] & 1), &made, Checks::NONE);
        add(0, bytes, Checks::ALL);
        // The same with something else in it.
        let mut broken = made.clone();
        if let (Some(at), [value, ..]) = (broken.get_mut(usize::from(how[4])), rest) {
            *at = *value;
        }
        add(0, &broken, Checks::NONE);
        let tuple = if six { batch6.tuple(0) } else { batch.tuple(0) };
        let commit = Commit {
            force: how[5] & 2 != 0,
            mark: (how[5] & 4 != 0).then_some((how[6].into(), 0xff)),
            label: (how[5] & 16 != 0).then_some((how[6].into(), !0)),
            reply: tuple.filter(|_| how[5] & 32 != 0).map(|mut tuple| {
                tuple = tuple.reversed();
                tuple.dst = match six {
                    false => Ipv4Addr::new(192, 0, 2, how[7] & 3).into(),
                    true => Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(how[7] & 3)).into(),
                };
                tuple
            }),
        };
        tracker.set_when_full(if how[7] & 64 != 0 { WhenFull::Recycle } else { WhenFull::Refuse });
        tracker.set_check_windows(how[7] & 128 == 0);
        match six {
            false => tracker.track_all(&mut batch, Some(&commit), now, &mut states),
            true => tracker.track_all(&mut batch6, Some(&commit), now, &mut states),
        }
        for state in &states[..3] {
            assert!(state.contains(State::TRACKED));
            let invalid = state.contains(State::INVALID);
            assert!(!invalid || *state == State::TRACKED | State::INVALID);
        }
        now += u32::from(how[7] >> 2 & 7) * 300;
        tracker.expire(now, usize::from(how[6] & 3));
        if how[6] == 255 {
            let filter = Filter { zone: Some(1), ..Filter::default() };
            tracker.flush(&mut 0, u32::MAX, &filter, now);
            assert_eq!(tracker.zone_len(1), 0);
        }
        let counts = tracker.counts();
        let ended = counts.expired + counts.recycled + counts.flushed + counts.replaced;
        assert_eq!(counts.created, ended + u64::from(tracker.len()));
        assert_eq!(tracker.live().total(), tracker.len());
        assert_eq!(tracker.zone_len(0) + tracker.zone_len(1), tracker.len());
        for connection in tracker.list(&mut 0, u32::MAX, now) {
            let _ = connection.line(Default::default()).to_string();
        }
    }
    now += 100_000_000;
    while tracker.expire(now, 100) {}
    assert!(tracker.is_empty(), "{} connections do not end", tracker.len());
});
