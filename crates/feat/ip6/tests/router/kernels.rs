//! Frame kernels and per-packet functions agree at every instruction set level.

use crate::router;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::net::Ipv6Addr;
use thalweg_buffer::simd::{self, Level};
use thalweg_device::testing::ip6::{framed, ip, link, udp};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_device::{SwIfIndex, interface};
use thalweg_feat_neighbor as neighbor;
use thalweg_wire::MacAddr;

/// Routes with every outcome that needs no neighbour to be found, one of them by a sub-interface.
const SETUP: &str = "set interface mtu packet 1280 test2
    set interface state test1.10 up
    set interface ip address test1.10 2001:db8:0:9::1/64
    ip route add 2001:db8:100::/40 via 2001:db8:0:1::2 test1
    ip route add 2001:db8:101::/48 via 2001:db8:0:1::3 test1
    ip route add 2001:db8:101:8000::/49 via 2001:db8:0:2::2 test2
    ip route add 2001:db8:102::/48 via 2001:db8:0:2::2 test2
    ip route add 2001:db8:103::/48 via 2001:db8:0:1::2 test1 via 2001:db8:0:2::2 test2
    ip route add 2001:db8:104::/48 prohibit
    ip route add 2001:db8:105::/48 drop
    ip route add 2001:db8:106::/48 via 2001:db8:103::1
    ip route add 2001:db8:107::/48 via 2001:db8:100::1
    ip route add 2001:db8:108::/48 via 2001:db8:0:9::2 test1.10
    ip route add 2001:db8:108::7/128 via 2001:db8:0:1::4 test1
    ip route add ::ffff:0:0/96 via 2001:db8::2 test0
    ip route add fec0::/10 via 2001:db8::2 test0";

fn destination() -> impl Strategy<Value = Ipv6Addr> {
    let routed = (0x100u16..0x10a, any::<[u16; 2]>())
        .prop_map(|(net, [a, b])| Ipv6Addr::new(0x2001, 0xdb8, net, a, 0, 0, 0, b % 16));
    let odd = prop_oneof![
        Just(ip(1, 2)),
        Just(ip(0, 1)),
        Just(link(7)),
        Just(Ipv6Addr::LOCALHOST),
        Just(Ipv6Addr::UNSPECIFIED),
        Just(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
        Just(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 9)),
        Just(Ipv6Addr::new(0x2a00, 0, 0, 0, 0, 0, 0, 1)),
    ];
    prop_oneof![9 => routed, 1 => odd]
}

fn source() -> impl Strategy<Value = Ipv6Addr> {
    prop_oneof![
        14 => Just(ip(0, 2)),
        1 => prop_oneof![Just(link(2)), Just(Ipv6Addr::LOCALHOST), Just(Ipv6Addr::UNSPECIFIED),
            Just(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
            Just(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, 1)),
            Just(Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 1))],
    ]
}

/// A packet, most often one that is simply forwarded.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let hops = prop_oneof![8 => 2u8..=255, 1 => 0u8..=2];
    let len = prop_oneof![8 => 0usize..60, 1 => 1200usize..1400, 1 => 1900usize..2300];
    (source(), destination(), hops, len, 0u8..24, any::<u8>()).prop_map(
        |(src, dst, hops, len, kind, noise)| {
            let mut p = udp(src, dst, len).ttl(hops).build();
            match kind {
                0 => p[0] = noise,
                1 => p.truncate(usize::from(noise)),
                2..=6 => p.extend(vec![0; usize::from(noise) % 40]),
                7 => p[5] = noise,
                // Other transports and extension headers, and flow labels.
                8 => p[6] = [0, 6, 43, 44, 50, 58, 59, 60][usize::from(noise) % 8],
                // Nothing behind the header, or so it says; and headers whose lengths may lie.
                9 => {
                    p[4..6].fill(0);
                    p[6] = [0, 17, 58, 59][usize::from(noise) % 4];
                }
                10 => p[4] = noise,
                11 | 12 => {
                    let next =
                        std::mem::replace(&mut p[6], [0, 43, 44, 60][usize::from(noise) % 4]);
                    let more = if kind == 11 { 0 } else { noise / 4 };
                    p.splice(40..40, [next, more, 0, noise / 64, 1, 2, 0, 0]);
                    p[5] = p[5].wrapping_add(8);
                }
                13.. => p[3] = noise,
            }
            p
        },
    )
}

/// Frames of every size: all alike, with one that is not, or mixed.
fn arrivals() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let arrival = || {
        (packet(), 0u8..40).prop_map(|(packet, kind)| {
            let mut frame = framed(0, 2, &packet);
            match kind {
                0 => frame[5] ^= 1,
                1 => frame[0] |= 1,
                2 => frame.truncate(packet.len() % 16),
                _ => {}
            }
            frame
        })
    };
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

/// Frames sent, by interface, and counters.
type Outcome = (Vec<(SwIfIndex, Vec<u8>)>, Vec<(String, u64)>);

fn outcome(lab: &mut Lab, level: Level, frames: Vec<Vec<u8>>) -> Outcome {
    simd::set_level(level);
    let before = lab.counters(&["ip6-icmp-error"]);
    lab.deliver(0, frames);
    lab.settle();
    // ICMP errors depend on the clock.
    let is_error =
        |frame: &[u8]| frame.get(20) == Some(&58) && frame.get(54).is_some_and(|kind| *kind < 128);
    let mut sent: Vec<_> = lab.sent().into_iter().filter(|(_, f)| !is_error(f)).collect();
    // Packets of different interfaces and verdicts may pass each other.
    sent.sort();
    let after = lab.counters(&["ip6-icmp-error"]).into_iter().zip(before);
    let grown = after.map(|((name, now), (_, then))| (name, now - then)).filter(|(_, n)| *n > 0);
    (sent, grown.collect())
}

#[test]
fn every_level_forwards_alike() {
    let levels = Level::ALL.into_iter().filter(|level| *level <= Level::best());
    let labs = levels.map(|level| {
        let mut lab = router();
        lab.cli("create sub-interfaces test1 10");
        lab.ok(SETUP);
        let sub = interface::find(&lab.c, "test1.10").expect("a sub-interface");
        let flags = neighbor::NeighborFlags { is_static: true, ..Default::default() };
        let (host, mac) = (ip(9, 2), MacAddr([2, 0, 0, 0, 9, 2]));
        neighbor::set(&mut lab.c, sub, host.into(), mac, flags).expect("a neighbour");
        // Nothing waits for an answer, which would depend on the clock.
        for host in [2, 7] {
            lab.neighbor(0, link(host), host_mac(0, host));
        }
        lab.settle();
        lab.sent();
        (level, RefCell::new(lab))
    });
    let labs: Vec<_> = labs.collect();
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&arrivals(), |frames| {
        let mut model: Option<Outcome> = None;
        for (level, lab) in &labs {
            let found = outcome(&mut lab.borrow_mut(), *level, frames.clone());
            let model = model.get_or_insert_with(|| found.clone());
            prop_assert_eq!(&model.1, &found.1, "counted, {:?}", level);
            prop_assert_eq!(model.0.len(), found.0.len(), "sent, {:?}", level);
            for (want, sent) in model.0.iter().zip(&found.0) {
                prop_assert_eq!(want, sent, "{:?}", level);
            }
        }
        Ok(())
    });
    simd::set_level(Level::best());
    run.unwrap_or_else(|e| panic!("{e}"));
    labs.into_iter().for_each(|(_, lab)| lab.into_inner().close());
}
