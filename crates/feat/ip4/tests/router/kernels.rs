//! Frame kernels and per-packet functions do the same, whatever instructions there are.

use crate::lab::{Lab, framed, host_mac, ip, our_mac, udp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use thalweg_buffer::simd::{self, Level};
use thalweg_device::SwIfIndex;
use thalweg_wire::build::Packet;
use thalweg_wire::{MacAddr, checksum};

const SETUP: &str = "set interface mtu packet 576 test2
    ip route add 48.0.0.0/8 via 10.0.1.2 test1
    ip route add 223.0.0.0/8 via 10.0.1.2 test1
    ip route add 48.1.0.0/16 via 10.0.1.3 test1
    ip route add 48.2.0.0/16 via 10.0.2.2 test2
    ip route add 48.2.3.128/25 via 10.0.2.3 test2
    ip route add 48.3.0.0/16 via 10.0.1.2 test1 via 10.0.2.2 test2
    ip route add 48.4.0.0/16 prohibit
    ip route add 48.5.0.0/16 drop";

/// Destinations that end in every way there is without a neighbour to be asked for.
fn destination() -> impl Strategy<Value = Ipv4Addr> {
    let routed = (0u8..7, any::<[u8; 2]>()).prop_map(|(a, [b, c])| Ipv4Addr::new(48, a, b, c));
    let odd = prop_oneof![
        Just(ip(1, 2)),
        Just(ip(0, 1)),
        Just(Ipv4Addr::new(0, 1, 2, 3)),
        Just(Ipv4Addr::new(127, 0, 0, 1)),
        Just(Ipv4Addr::new(224, 0, 0, 9)),
        Just(Ipv4Addr::new(99, 0, 0, 1)),
        Just(Ipv4Addr::BROADCAST),
    ];
    prop_oneof![8 => routed, 1 => odd]
}

/// Sources, most of them possible ones, which there are routes back to: whether an ICMP error is
/// sent goes by the clock, and must not show in the counters.
fn source() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        12 => Just(ip(0, 2)),
        1 => prop_oneof![Just(0u8), Just(127), Just(223), Just(224), Just(240), Just(255)]
            .prop_map(|a| Ipv4Addr::new(a, 0, 0, 1)),
    ]
}

/// An IPv4 packet, most often one that is simply sent on.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let ttl = prop_oneof![8 => 2u8..=255, 1 => 0u8..=2];
    let len = prop_oneof![8 => 0usize..60, 1 => 500usize..700, 1 => 1900usize..2300];
    (source(), destination(), ttl, len, 0u8..20, any::<(u8, bool)>()).prop_map(
        |(src, dst, ttl, len, kind, (noise, dont_fragment))| {
            let plain = udp(src, dst, len).ttl(ttl);
            let plain = if dont_fragment { plain.dont_fragment() } else { plain };
            let mut p = match kind {
                0 => Packet::new()
                    .ipv4(src, dst)
                    .ip_options(&[7, 7, 4, 0, 0, 0, 0])
                    .udp(1, 2)
                    .payload_len(len)
                    .build(),
                _ => plain.build(),
            };
            match kind {
                1 => p[10] ^= noise,
                2 => p[0] = noise,
                3 => p.truncate(usize::from(noise)),
                4..=8 => p.extend(vec![0; usize::from(noise) % 40]),
                9 => {
                    // A wrong length under a good checksum.
                    p[2..4].copy_from_slice(&[0, noise]);
                    p[10..12].fill(0);
                    let sum = checksum::checksum(&p[..20]);
                    p[10..12].copy_from_slice(&sum.to_be_bytes());
                }
                _ => {}
            }
            p
        },
    )
}

/// What arrives: most often a frame for us, sometimes for others, or of another kind.
fn arrival() -> impl Strategy<Value = Vec<u8>> {
    (packet(), 0u8..40).prop_map(|(packet, kind)| {
        let mut frame = framed(0, 2, &packet);
        match kind {
            0 => frame[..6].copy_from_slice(&host_mac(1, 7).0),
            1 => frame[..6].copy_from_slice(&MacAddr::BROADCAST.0),
            2 => frame[0] |= 1,
            3 => frame[12..14].copy_from_slice(&[0x86, 0xdd]),
            4 => frame[12..14].copy_from_slice(&[0, 40]),
            5 => frame.truncate(packet.len() % 16),
            _ => assert_eq!(frame[..6], our_mac(0).0),
        }
        frame
    })
}

/// Frames of every size, alike and mixed.
fn arrivals() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let mixed = prop::collection::vec(arrival(), 1..=256);
    let alike = (arrival(), 1usize..=256).prop_map(|(f, n)| vec![f; n]);
    let almost =
        (arrival(), arrival(), 1usize..=256, any::<usize>()).prop_map(|(f, odd, n, at)| {
            let mut all = vec![f; n];
            all[at % n] = odd;
            all
        });
    prop_oneof![mixed, alike, almost]
}

/// What a router did: what it sent, by interface, and what it counted.
type Outcome = (Vec<(SwIfIndex, Vec<u8>)>, Vec<(String, u64)>);

fn outcome(lab: &mut Lab, level: Level, frames: Vec<Vec<u8>>) -> Outcome {
    simd::set_level(level);
    let before = lab.counters();
    lab.receive(0, frames);
    let mut sent = lab.sent();
    // ICMP errors are sent at a limited rate, by the clock.
    sent.retain(|(_, frame)| {
        frame.get(26..28) != Some(&[10, 0]) || frame[28] != 0 || frame[29] != 1
    });
    // The order between interfaces is nobody's promise; that within one is.
    sent.sort_by_key(|(sw_if, _)| *sw_if);
    let after = lab.counters().into_iter().zip(before);
    let grown = after.map(|((name, now), (_, then))| (name, now - then)).filter(|(_, n)| *n > 0);
    (sent, grown.collect())
}

#[test]
fn every_level_forwards_alike() {
    let levels = Level::ALL.into_iter().filter(|l| *l <= Level::best());
    let labs: Vec<(Level, RefCell<Lab>)> = levels
        .map(|level| {
            let mut lab = Lab::new();
            lab.ok(SETUP);
            (level, RefCell::new(lab))
        })
        .collect();
    let mut runner =
        TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    let run = runner.run(&arrivals(), |frames| {
        let mut model: Option<Outcome> = None;
        for (level, lab) in &labs {
            let found = outcome(&mut lab.borrow_mut(), *level, frames.clone());
            match &model {
                None => model = Some(found),
                Some(model) => {
                    prop_assert_eq!(&model.1, &found.1, "counted, {:?}", level);
                    prop_assert_eq!(model.0.len(), found.0.len(), "sent, {:?}", level);
                    for (model, found) in model.0.iter().zip(&found.0) {
                        prop_assert_eq!(model, found, "{:?}", level);
                    }
                }
            }
        }
        Ok(())
    });
    simd::set_level(Level::best());
    run.unwrap_or_else(|e| panic!("{e}"));
    for (_, lab) in labs {
        lab.into_inner().close();
    }
}
