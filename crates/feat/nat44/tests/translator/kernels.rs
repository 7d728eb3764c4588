//! The fast path and the slow path have the same results.

use crate::nat::{FAR, Nat, Out, SHARED, echo, tcp, udp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use thalweg_buffer::simd::{self, Level};
use thalweg_device::testing::ip4::ip;
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4;

/// The SIMD level applies to the whole process.
static ONE: Mutex<()> = Mutex::new(());

/// Packets from inside, of a few flows, so that many are of the same one.
fn inside() -> impl Strategy<Value = Packet> {
    let len = prop_oneof![Just(0usize), 1usize..60, 1400usize..1500];
    (2u8..5, 5000u16..5003, 0u8..9, len, 1u8..4, any::<bool>()).prop_map(
        |(host, port, kind, len, ttl, odd)| {
            let (from, to) = ((ip(0, host), port), (FAR, 80));
            let flags = [2, 0x10, 0x18, 0x11, 4][usize::from(kind) % 5];
            let p = match kind {
                0..=3 => udp(from, to).payload_len(len),
                4 => udp(from, to).payload_len(len).no_checksum(),
                5..=7 => tcp(from, to, flags).payload_len(len),
                _ => echo(from.0, to.0, port),
            };
            let p = if odd { p.ttl(ttl) } else { p };
            if odd && kind == 3 { p.ip_options(&[7, 7, 4, 0, 0, 0, 0]) } else { p }
        },
    )
}

/// Replies to a selection of the packets sent, with TCP flags where applicable.
fn answers(out: &[&Out], pick: &[usize]) -> Vec<Vec<u8>> {
    let answer = |(n, at): (usize, &usize)| {
        let o = out.get(at % out.len().max(1))?;
        let (v, (sport, dport)) = (o.view(), o.ports());
        let (from, to) = ((o.dst(), dport), (o.src(), sport));
        let packet = match v.protocol() {
            6 => tcp(from, to, [0x12, 0x10, 0x18][at % 3]),
            17 => udp(from, to),
            _ => Packet::new().ipv4(from.0, to.0).icmp_echo_reply(sport, 1),
        };
        Some(packet.id(n as u16).build())
    };
    pick.iter().enumerate().filter_map(answer).collect()
}

type Round = (Vec<Packet>, Vec<usize>);

/// External endpoints by inside endpoint: the port differs from one NAT to the next.
#[derive(Default)]
struct Ports(HashMap<(u8, u16), (Ipv4Addr, u16)>);

impl Ports {
    /// Describes a packet sent, where `source` maps the number of a packet to its inside endpoint.
    fn say(&mut self, o: &Out, source: impl Fn(u16) -> (Ipv4Addr, u16)) -> String {
        let (v, (a, b)) = (o.view(), o.ports());
        let p = v.payload();
        if o.port == 0 && v.protocol() == 1 && o.src() == ip(0, 1) {
            return format!("error {} {:02x?} of {}", o.dst(), &p[..8], number(&p[8..]));
        }
        let n = number(&o.bytes[14..]);
        let inside = if o.port == 1 { source(n) } else { (o.dst(), b) };
        if o.port == 1 {
            let known = self.0.entry((v.protocol(), a)).or_insert(inside);
            assert_eq!(*known, inside, "an external port shared by two");
            assert_eq!(o.src(), SHARED);
        }
        let far = if o.port == 1 { (o.dst(), b) } else { (o.src(), a) };
        let far = if v.protocol() == 1 { (far.0, 0) } else { far };
        format!("{} {n} {} {inside:?} {far:?} {}", o.port, v.protocol(), p.len())
    }
}

/// The identification field of an IPv4 header, which numbers the packets.
fn number(h: &[u8]) -> u16 {
    u16::from_be_bytes([h[4], h[5]])
}

/// The packets sent, with external ports replaced by the inside endpoints they stand for.
fn outcome(level: Level, rounds: &[Round]) -> (Vec<String>, String) {
    simd::set_level(level);
    let mut n = Nat::new();
    let mut ports = Ports::default();
    let mut all = Vec::new();
    for (packets, pick) in rounds {
        let packets = packets.iter().zip(0..).map(|(p, n)| p.clone().id(n).build());
        let packets: Vec<Vec<u8>> = packets.collect();
        let source = |n: u16| {
            let h = &packets[usize::from(n)];
            let l4 = usize::from(h[0] & 15) * 4 + if h[9] == 1 { 4 } else { 0 };
            (ipv4::check(h).expect("a header").src(), u16::from_be_bytes([h[l4], h[l4 + 1]]))
        };
        let out = n.pass_all(0, packets.clone());
        all.extend(out.iter().map(|o| ports.say(o, source)));
        // The fast path splits frames and reorders flows, which must not affect the replies.
        let mut left: Vec<&Out> = out.iter().filter(|o| o.port == 1).collect();
        left.sort_by_key(|o| number(&o.bytes[14..]));
        let back = n.pass_all(1, answers(&left, pick));
        all.extend(back.iter().map(|o| ports.say(o, source)));
    }
    all.sort();
    let mut sessions: Vec<_> = (n.sessions().iter())
        .map(|s| (s.inside, s.packets, s.bytes, s.state, s.class))
        .map(|s| format!("{s:?}"))
        .collect();
    sessions.sort();
    let text = format!("{sessions:?} {:?}", n.lab.dropped());
    n.close();
    (all, text)
}

#[test]
fn levels_agree() {
    let _one = ONE.lock();
    let before = simd::level();
    let rounds = prop::collection::vec(
        (prop::collection::vec(inside(), 1..90), prop::collection::vec(0usize..90, 0..60)),
        1..4,
    );
    let config = Config { cases: 24, ..Config::default() };
    let done = TestRunner::new(config).run(&rounds, |rounds| {
        let slow = outcome(Level::PerPacket, &rounds);
        for level in [Level::Scalar, Level::best()] {
            let fast = outcome(level, &rounds);
            let pairs = fast.0.iter().zip(&slow.0).find(|(a, b)| a != b);
            let (f, s) = (fast.0.len(), slow.0.len());
            prop_assert!(fast.0 == slow.0, "{f} and {s} packets, {pairs:?}");
            prop_assert!(fast.1 == slow.1, "{}\n{}", fast.1, slow.1);
        }
        Ok(())
    });
    simd::set_level(before);
    done.unwrap();
}
