//! Frame kernels and per-packet functions agree at every instruction set level.

use crate::{router, setup};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::sync::Mutex;
use thalweg_buffer::simd::{self, Level};
use thalweg_device::SwIfIndex;
use thalweg_device::testing::ip4::{framed, ip, udp};
use thalweg_device::testing::{Lab, host_mac, our_mac};
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
    ip route add 48.5.0.0/16 drop
    ip route add 48.7.0.0/16 via 10.0.1.2 test1 weight 3 via 10.0.1.3 test1 via 10.0.2.2 test2 \
     weight 2 via 10.0.2.3 test2
    ip route add 48.8.0.0/16 via 48.7.0.1
    ip route add 48.8.128.0/17 via 48.0.0.1";

/// Destinations with every outcome that needs no neighbour resolution.
fn destination() -> impl Strategy<Value = Ipv4Addr> {
    let routed = (0u8..9, any::<[u8; 2]>()).prop_map(|(a, [b, c])| Ipv4Addr::new(48, a, b, c));
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

/// Sources, mostly valid ones with routes back: whether an ICMP error is sent depends on the clock,
/// and must not show in the counters.
fn source() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        12 => Just(ip(0, 2)),
        1 => prop_oneof![Just(0u8), Just(127), Just(223), Just(224), Just(240), Just(255)]
            .prop_map(|a| Ipv4Addr::new(a, 0, 0, 1)),
    ]
}

/// An IPv4 packet, most often one that is simply forwarded.
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
                // A wrong length with a valid checksum.
                9 => change(&mut p, |h| h[2..4].copy_from_slice(&[0, noise])),
                // Packets whose flows have no ports, or other ones; fragments are not cut again.
                10 if len < 500 => change(&mut p, |h| {
                    h[6] |= noise & 0x3f;
                    h[7] = noise;
                }),
                12 if len < 500 => change(&mut p, |h| h[7] = noise),
                11 => change(&mut p, |h| h[9] = [1, 6, 47, 132][usize::from(noise) % 4]),
                13.. => p[20..24].iter_mut().for_each(|byte| *byte ^= noise.rotate_left(3)),
                _ => {}
            }
            p
        },
    )
}

/// Changes a packet's header, and its checksum accordingly.
fn change(packet: &mut [u8], how: impl FnOnce(&mut [u8])) {
    how(&mut packet[..20]);
    packet[10..12].fill(0);
    let sum = checksum::checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A received frame: most often one for us, sometimes for others, or of another kind.
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

/// Frames of every size, uniform and mixed.
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

/// Outcome of a run: packets sent, by interface and worker, and counters.
#[derive(Debug)]
struct Outcome {
    sent: Vec<(SwIfIndex, usize, Vec<u8>)>,
    counted: Vec<(String, u64)>,
    /// Packets accepted into buffers.
    accepted: Parts,
}

/// Two parts of the input: for two workers at the same time, or for one in turn.
type Parts = [Vec<Vec<u8>>; 2];

fn outcome(lab: &mut Lab, level: Level, parts: Parts) -> Outcome {
    simd::set_level(level);
    let before = lab.counters(&["ip4-icmp-error"]);
    let two = lab.c.workers() > 1;
    let mut accepted = Parts::default();
    for (part, frames) in parts.into_iter().enumerate() {
        lab.deliver_to(if two { part } else { 0 }, 0, frames);
        if !two {
            lab.settle();
            accepted[part] = lab.accepted().into_iter().map(|(_, frame)| frame).collect();
        }
    }
    lab.settle();
    for (worker, frame) in lab.accepted() {
        accepted[worker].push(frame);
    }
    lab.all_home();
    let mut sent = lab.sent_by_workers();
    // ICMP errors are rate limited by the clock.
    sent.retain(|(_, _, frame)| {
        frame.get(26..28) != Some(&[10, 0]) || frame[28] != 0 || frame[29] != 1
    });
    // Order between interfaces and workers is not guaranteed; order within one is.
    sent.sort_by_key(|(sw_if, worker, _)| (*sw_if, *worker));
    let after = lab.counters(&["ip4-icmp-error"]).into_iter().zip(before);
    let grown = after.map(|((name, now), (_, then))| (name, now - then)).filter(|(_, n)| *n > 0);
    Outcome { sent, counted: grown.collect(), accepted }
}

/// Input in two parts.
fn parts() -> impl Strategy<Value = Parts> {
    (arrivals(), any::<prop::sample::Index>()).prop_map(|(mut frames, at)| {
        let rest = frames.split_off(at.index(frames.len() + 1));
        [frames, rest]
    })
}

/// The kernel level is process-wide: one test at a time sets it.
static LEVELS: Mutex<()> = Mutex::new(());

/// Routers with `buffers` buffers for each level and for one and two workers.
fn labs(buffers: usize) -> Vec<(Level, RefCell<Lab>)> {
    let levels = Level::ALL.into_iter().filter(|l| *l <= Level::best());
    let ways = levels.flat_map(|level| [(level, 1), (level, 2)]);
    ways.map(|(level, workers)| {
        let mut lab = setup().workers(workers).buffers(buffers).start();
        lab.ok(SETUP);
        (level, RefCell::new(lab))
    })
    .collect()
}

fn check(cases: u32, test: impl Fn(Parts) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&parts(), test);
    simd::set_level(Level::best());
    run.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_level_forwards_alike() {
    let _alone = LEVELS.lock();
    let labs = labs(2048);
    check(400, |parts| {
        let mut model: Option<Outcome> = None;
        for (level, lab) in &labs {
            let mut lab = lab.borrow_mut();
            let found = outcome(&mut lab, *level, parts.clone());
            prop_assert_eq!(lab.refused(), 0);
            let Some(model) = &model else {
                model = Some(found);
                continue;
            };
            let how = format!("{level:?}, {} workers", lab.c.workers());
            prop_assert_eq!(&model.counted, &found.counted, "counted, {}", &how);
            prop_assert_eq!(model.sent.len(), found.sent.len(), "sent, {}", &how);
            for ((if_a, _, a), (if_b, _, b)) in model.sent.iter().zip(&found.sent) {
                prop_assert_eq!((if_a, a), (if_b, b), "{}", &how);
            }
        }
        Ok(())
    });
    labs.into_iter().for_each(|(_, lab)| lab.into_inner().close());
}

/// Every level sends the same with features on output as without, on some interfaces or on all.
#[test]
fn every_level_passes_output_features_alike() {
    let _alone = LEVELS.lock();
    let mut labs = labs(2048);
    labs.retain(|(_, lab)| lab.borrow().c.workers() == 1);
    let mut plain = router();
    plain.ok(SETUP);
    let plain = RefCell::new(plain);
    for on in [&[1][..], &[1, 2]] {
        for (_, lab) in &labs {
            let mut lab = lab.borrow_mut();
            on.iter().for_each(|n| {
                let sw_if = lab.sw_if(*n);
                lab.c.enable_feature("ip4-output", "b-output", sw_if, true).expect("a feature");
            });
        }
        check(100, |parts| {
            let model = outcome(&mut plain.borrow_mut(), Level::PerPacket, parts.clone());
            for (level, lab) in &labs {
                let found = outcome(&mut lab.borrow_mut(), *level, parts.clone());
                prop_assert_eq!(&model.sent, &found.sent, "{:?}", level);
                prop_assert_eq!(&model.counted, &found.counted, "{:?}", level);
            }
            Ok(())
        });
    }
    labs.into_iter().for_each(|(_, lab)| lab.into_inner().close());
    plain.into_inner().close();
}

/// Frames of two interfaces by turns, in one table or in two.
#[test]
fn frames_of_several_interfaces_are_forwarded_alike() {
    let _alone = LEVELS.lock();
    let mut labs = labs(2048);
    labs.retain(|(_, lab)| lab.borrow().c.workers() == 1);
    labs.iter().for_each(|(_, lab)| _ = lab.borrow_mut().interface(3));
    for two_tables in [false, true] {
        if two_tables {
            for (_, lab) in &labs {
                lab.borrow_mut().ok("ip table add 7
                    set interface ip table test3 7
                    ip route add 10.0.0.0/16 table 7 via 10.0.0.2 test0
                    ip route add 48.1.0.0/16 table 7 via 10.0.2.2 test2
                    ip route add 48.4.0.0/16 table 7 via 10.0.1.2 test1");
            }
        }
        let ports = prop::collection::vec(prop_oneof![Just(0u8), Just(3)], 256);
        let input = (arrivals(), ports).prop_map(|(frames, ports)| {
            let on_port = |(mut frame, port): (Vec<u8>, u8)| {
                if frame.starts_with(&our_mac(0).0) {
                    frame[..6].copy_from_slice(&our_mac(port).0);
                }
                (port, frame)
            };
            frames.into_iter().zip(ports).map(on_port).collect::<Vec<_>>()
        });
        let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
        let result = TestRunner::new(config).run(&input, |frames| {
            let mut model = None;
            for (level, lab) in &labs {
                let mut lab = lab.borrow_mut();
                let deliver = |lab: &mut Lab| lab.deliver_mixed(0, frames.clone());
                let found = outcome_of(&mut lab, *level, deliver);
                let model = model.get_or_insert_with(|| found.clone());
                prop_assert_eq!(&*model, &found, "{:?}", level);
            }
            Ok(())
        });
        simd::set_level(Level::best());
        result.unwrap_or_else(|e| panic!("{e}"));
    }
    labs.into_iter().for_each(|(_, lab)| lab.into_inner().close());
}

/// Frames sent, by interface, and counters.
type Counted = (Vec<(SwIfIndex, Vec<u8>)>, Vec<(String, u64)>);

fn outcome_of(lab: &mut Lab, level: Level, deliver: impl FnOnce(&mut Lab)) -> Counted {
    simd::set_level(level);
    let before = lab.counters(&["ip4-icmp-error"]);
    deliver(lab);
    lab.settle();
    lab.accepted();
    let sent = lab.sent_by_workers().into_iter();
    // ICMP errors are rate limited by the clock.
    let is_error = |f: &[u8]| f.get(26..28) == Some(&[10, 0]) && f[28] == 0 && f[29] == 1;
    let sent = sent.filter(|(_, _, f)| !is_error(f)).map(|(sw_if, _, frame)| (sw_if, frame));
    let mut sent: Vec<_> = sent.collect();
    // Packets of different interfaces and verdicts may pass each other.
    sent.sort();
    let after = lab.counters(&["ip4-icmp-error"]).into_iter().zip(before);
    let grown = after.map(|((name, now), (_, then))| (name, now - then)).filter(|(_, n)| *n > 0);
    (sent, grown.collect())
}

/// Counters of packets lost for lack of buffers, and of fragments, which are then missing.
const OF_FRAGMENTS: [&str; 2] = ["no buffers for fragments", "fragments sent"];

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.counted.iter().find(|(n, _)| n == name).map_or(0, |(_, n)| *n)
}

/// With hardly any buffers, routers refuse packets and fragment only some of them. Every such loss
/// is counted; otherwise the result is as if the refused packets had never arrived.
#[test]
fn without_buffers_every_loss_is_counted() {
    let _alone = LEVELS.lock();
    let labs = labs(128);
    let mut model = router();
    model.ok(SETUP);
    let model = RefCell::new(model);
    let lost_any = Cell::new([0, 0]);
    check(120, |parts| {
        for (level, lab) in &labs {
            let mut lab = lab.borrow_mut();
            let (refused, offered) = (lab.refused(), parts.iter().map(Vec::len).sum::<usize>());
            let found = outcome(&mut lab, *level, parts.clone());
            let how = format!("{level:?}, {} workers", lab.c.workers());
            let refused = lab.refused() - refused;
            let accepted = found.accepted.iter().map(Vec::len).sum::<usize>();
            prop_assert_eq!(accepted as u64 + refused, offered as u64, "{}", &how);
            let model = &mut model.borrow_mut();
            let expected = outcome(model, Level::PerPacket, found.accepted.clone());
            let not_cut = same_but_fragments(&expected, &found)
                .map_err(|e| TestCaseError::fail(format!("{how}: {e}")))?;
            let [r, c] = lost_any.get();
            lost_any.set([r + refused, c + not_cut]);
        }
        Ok(())
    });
    let lost = lost_any.get();
    assert!(lost.iter().all(|n| *n > 0), "the pool was never empty: {lost:?}");
    labs.into_iter().for_each(|(_, lab)| lab.into_inner().close());
    model.into_inner().close();
}

/// Checks that outcomes differ only by packets dropped instead of fragmented; returns their number.
fn same_but_fragments(expected: &Outcome, found: &Outcome) -> Result<u64, String> {
    let others = |o: &Outcome| -> Vec<_> {
        let all = o.counted.iter().filter(|(name, _)| !OF_FRAGMENTS.contains(&name.as_str()));
        all.cloned().collect()
    };
    let (a, b) = (others(expected), others(found));
    if a != b {
        return Err(format!("counted {b:?}, not {a:?}"));
    }
    let mut left = found.sent.iter().peekable();
    let (mut first_ones, mut fragments) = (0, 0);
    for (sw_if, _, frame) in &expected.sent {
        if left.next_if(|(i, _, f)| (i, f) == (sw_if, frame)).is_some() {
            continue;
        }
        let word = frame.get(20..22).map_or(0, |w| u16::from_be_bytes([w[0], w[1]]));
        if word & 0x3fff == 0 {
            return Err(format!("not sent: {frame:02x?}"));
        }
        fragments += 1;
        first_ones += u64::from(word & 0x1fff == 0);
    }
    if let Some(more) = left.next() {
        return Err(format!("sent though not expected: {more:02x?}"));
    }
    let dropped = counter(found, OF_FRAGMENTS[0]);
    let cut = counter(expected, OF_FRAGMENTS[1]) - counter(found, OF_FRAGMENTS[1]);
    if (dropped, cut) != (first_ones, fragments) {
        return Err(format!("{first_ones} packets not cut, {fragments} fragments; {found:?}"));
    }
    Ok(dropped)
}
