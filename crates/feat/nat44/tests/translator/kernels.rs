//! The fast way and the slow one do the same.

use crate::lab::ip;
use crate::nat::{FAR, Nat, Out, SHARED, echo, tcp, udp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::sync::Mutex;
use thalweg_buffer::simd::{self, Level};
use thalweg_wire::build::Packet;

/// The level of kernels is the whole process's.
static ONE: Mutex<()> = Mutex::new(());

/// Packets from the inside: of few flows, so that many are of one.
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

/// Answers to what left: every so many, with flags if it is TCP.
fn answers(out: &[Out], pick: &[usize]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for at in pick {
        let Some(o) = out.get(at % out.len().max(1)) else { continue };
        let (v, (sport, dport)) = (o.view(), o.ports());
        let (from, to) = ((o.dst(), dport), (o.src(), sport));
        all.push(match v.protocol() {
            6 => tcp(from, to, [0x12, 0x10, 0x18][at % 3]).build(),
            17 => udp(from, to).build(),
            _ => Packet::new().ipv4(from.0, to.0).icmp_echo_reply(sport, 1).build(),
        });
    }
    all
}

type Round = (Vec<Packet>, Vec<usize>);

/// What leaves, ports outside replaced by the order in which they were seen.
fn outcome(level: Level, rounds: &[Round]) -> Result<(Vec<String>, String), TestCaseError> {
    simd::set_level(level);
    let mut n = Nat::new();
    let mut names: Vec<(u8, u16)> = Vec::new();
    let mut all = Vec::new();
    let mut name = |o: &Out| {
        let (v, (a, b)) = (o.view(), o.ports());
        if o.port == 0 && v.protocol() == 1 && o.src() == ip(0, 1) {
            return format!("error {} {:02x?}", o.dst(), &v.payload()[..8]);
        }
        let (own, other) = if o.src() == SHARED { (a, b) } else { (b, a) };
        let key = (v.protocol(), own);
        let at = names.iter().position(|n| *n == key).unwrap_or_else(|| {
            names.push(key);
            names.len() - 1
        });
        let own = if o.port == 1 { at } else { usize::from(own) };
        let other = if v.protocol() == 1 { 0 } else { other };
        format!("{} {} {} {own} {other} {}", o.port, o.src(), o.dst(), v.payload().len())
    };
    for (packets, pick) in rounds {
        let out = n.pass_all(0, packets.iter().map(Packet::build).collect());
        let left: Vec<Out> = out.iter().filter(|o| o.port == 1).cloned().collect();
        all.extend(out.iter().map(&mut name));
        let back = n.pass_all(1, answers(&left, pick));
        all.extend(back.iter().map(&mut name));
    }
    // Frames are split by way, and their order with that.
    all.sort();
    let sessions: Vec<_> =
        n.sessions().iter().map(|s| (s.packets, s.bytes, s.state, s.class)).collect();
    let text = format!("{sessions:?} {:?}", n.lab.dropped());
    n.close();
    Ok((all, text))
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
        let slow = outcome(Level::PerPacket, &rounds)?;
        for level in [Level::Scalar, Level::best()] {
            let fast = outcome(level, &rounds)?;
            let pairs = fast.0.iter().zip(&slow.0).find(|(a, b)| a != b);
            prop_assert!(fast == slow, "{} and {} packets, {pairs:?}", fast.0.len(), slow.0.len());
        }
        Ok(())
    });
    simd::set_level(before);
    done.unwrap();
}
