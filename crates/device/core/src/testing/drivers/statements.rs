//! The statements.

use super::bench::{Bench, check_flows, frame, frame_to, frame_to_cut};
use super::{MTU, Outside};
use crate::interface;
use thalweg_graph::RxMode;
use thalweg_wire::MacAddr;

/// Buffers of a router that has enough of them.
const BUFFERS: usize = 4096;
/// Frames sent at a time: they fit into any ring.
const BURST: usize = 64;
/// Length in bytes of an Ethernet header.
const HEADER: usize = 14;
/// More bytes than a frame may have beyond its MTU: headers, and tags of which drivers know.
const BEYOND: usize = HEADER + 3 * 4;

fn bench(outside: Box<dyn Outside>, workers: usize) -> Bench {
    Bench::new(outside, workers, BUFFERS)
}

/// Numbered frames of a length.
fn frames(from: u32, count: u32, len: usize) -> Vec<Vec<u8>> {
    (from..from + count).map(|i| frame(i, len, None)).collect()
}

/// Lengths around those where something changes, and some in between.
fn lengths(least: usize, most: usize) -> Vec<usize> {
    let around = |at: usize| at.saturating_sub(6)..=at + 6;
    let edges = [64, 128, 256, 512, 1514, 2048, 4096, 6144, 8192];
    let mut all: Vec<usize> = edges.into_iter().flat_map(around).collect();
    all.extend(least..least + 50);
    all.extend((least..most).step_by(97));
    all.extend(most - 6..=most);
    all.retain(|len| (least..=most).contains(len));
    all.sort_unstable();
    all.dedup();
    all
}

fn all_sizes(outside: Box<dyn Outside>, tag: Option<u16>) {
    let mut b = bench(outside, 1);
    let tags = if tag.is_some() { 4 } else { 0 };
    // Linux drops tagged frames with less than two bytes of data.
    let least = b.can.shortest.max(if tags > 0 { HEADER + tags + 2 } else { HEADER });
    let lens = lengths(least, MTU as usize + HEADER + tags);
    for n in 0..2 {
        let mut number = 0;
        for burst in lens.chunks(BURST / 2) {
            let mut next = |len: &usize| {
                number += 1;
                // Queues keep no order between flows: all are of one.
                frame(number * super::bench::FLOWS, *len, tag)
            };
            let sent: Vec<_> = burst.iter().map(&mut next).collect();
            b.send(n, &sent);
            let got = b.receive(1 - n, sent.len());
            for (got, sent) in got.iter().zip(&sent) {
                assert!(got == sent, "{} bytes became {} bytes", sent.len(), got.len());
            }
        }
    }
    let (count, bytes) = (lens.len() as u64, lens.iter().sum::<usize>() as u64);
    for n in 0..2 {
        let t = b.totals(n);
        let have = [t.rx_packets, t.rx_bytes, t.tx_packets, t.tx_bytes];
        assert_eq!(have, [count, bytes, count, bytes], "interface {n}");
        assert_eq!([t.drops, t.rx_no_buf, t.rx_miss, t.rx_error, t.tx_error], [0; 5]);
    }
    b.close();
}

/// Frames of all sizes, from the shortest to the MTU.
pub fn frames_of_all_sizes_arrive_whole_and_in_order(outside: Box<dyn Outside>) {
    all_sizes(outside, None);
}

/// Frames of all sizes with a VLAN tag, for which the MTU leaves room.
pub fn frames_with_vlan_tags_arrive_whole_and_in_order(outside: Box<dyn Outside>) {
    all_sizes(outside, Some(100));
}

/// A worker sends by an interface whose receive queues are another one's, and two workers send by
/// the same.
pub fn workers_send_on_both_interfaces(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    for (first, second) in [(0, 1), (1, 0), (0, 0), (1, 1)] {
        if b.can.rx_queues > 0 {
            b.place(0, first);
            b.place(1, second);
        }
        let sent = [frames(0, BURST as u32, 200), frames(100, BURST as u32, 3000)];
        let mut want = [b.received_by(0), b.received_by(1)];
        want[0][first] += BURST as u64;
        want[1][second] += BURST as u64;
        b.send_by(0, first, &sent[0]);
        b.send_by(1, second, &sent[1]);
        check_flows(&b.receive(1, BURST), &sent[0]);
        check_flows(&b.receive(0, BURST), &sent[1]);
        assert_eq!([b.received_by(0), b.received_by(1)], want, "by worker");
    }
    for n in 0..2 {
        let t = b.totals(n);
        assert_eq!((t.rx_packets, t.tx_packets), (4 * BURST as u64, 4 * BURST as u64));
    }
    b.close();
}

/// Waits until all frames sent to interface 0 are in one of its counters, and all that it received
/// in one of interface 1's; returns those of interface 0.
fn all_counted(b: &mut Bench, sent: usize) -> thalweg_graph::stats::IfTotals {
    let of_rx = |b: &mut Bench| {
        let t = b.totals(0);
        t.rx_packets + t.rx_miss + t.rx_no_buf + t.rx_error
    };
    b.until("all frames to be counted", |b| of_rx(b) >= sent as u64);
    let (rx, tx) = (b.totals(0), b.totals(1));
    assert_eq!(of_rx(b), sent as u64);
    assert_eq!(rx.rx_packets, tx.tx_packets + b.dropped());
    rx
}

/// Frames that found the ring full are counted as missed.
pub fn a_burst_larger_than_the_ring_is_counted_to_the_last_frame(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    let sent = frames(0, b.can.burst as u32, 1000);
    b.held(|b| b.send(0, &sent));
    let t = all_counted(&mut b, sent.len());
    assert_eq!(t.rx_miss > 0, b.can.rx_queues > 0, "{t:?}");
    b.receive(1, 1);
    b.close();
}

/// Frames for which there was no buffer are counted, and later ones pass.
pub fn frames_without_a_buffer_are_counted(outside: Box<dyn Outside>) {
    let mut b = Bench::new(outside, 1, 128);
    let sent = frames(0, 200, 9000);
    for _ in 0..3 {
        b.held(|b| b.send(0, &sent));
    }
    let t = all_counted(&mut b, 3 * sent.len());
    assert_eq!(t.rx_no_buf > 0, b.can.rx_queues > 0, "{t:?}");
    let all = t.rx_packets - b.dropped();
    b.receive(1, all as usize);
    b.passes();
    b.close();
}

/// Frames for an interface that is down are dropped with a reason, and not sent later.
pub fn an_interface_that_is_down_sends_nothing(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    for round in 0..2 {
        b.up(1, false);
        b.send(0, &frames(1, 20, 100));
        b.until("drops", |b| b.dropped() == 20 * (round + 1));
        assert_eq!(b.reasons().get("interface is down"), Some(&(20 * (round + 1))));
        assert_eq!(b.totals(0).drops, 20 * (round + 1));
        let marks = round * b.marks();
        assert_eq!(b.totals(1).tx_packets, marks, "sent while down");
        b.up(1, true);
        b.nothing_more(1);
    }
    b.passes();
    b.close();
}

/// Frames that come while an interface is down are not received, nor are they once it is up.
pub fn an_interface_that_is_down_receives_nothing_then_or_later(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    if !b.can.hears_while_down {
        return b.close();
    }
    for round in 0..3 {
        b.up(0, false);
        // None of them is a loss, however many come.
        b.send(0, &frames(1, b.can.burst as u32, 1000));
        let (t, marks) = (b.totals(0), round * b.marks());
        assert_eq!((t.rx_packets, t.rx_miss, t.drops), (marks, 0, 0));
        b.up(0, true);
        b.nothing_more(1);
    }
    b.passes();
    b.close();
}

/// Frames that wait in the device when an interface goes down are received then or never.
pub fn frames_that_wait_when_an_interface_goes_down_do_not_come_later(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    for _ in 0..3 {
        let down = |b: &mut Bench| interface::set_admin(&mut b.c, b.ports[0], false).expect("down");
        b.held_before(down, |b| b.send(0, &frames(1, 20, 100)));
        b.ignore();
        b.up(0, true);
        b.nothing_more(1);
    }
    b.passes();
    b.close();
}

/// Queues that move under traffic lose nothing and give nothing twice; flows keep their order.
pub fn queues_move_to_every_worker_under_traffic(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    if b.can.rx_queues == 0 {
        let refused = interface::set_rx_placement(&mut b.c, b.ports[0], 0, Some(1));
        assert!(!refused.expect_err("no queue moves").to_string().is_empty());
        return b.close();
    }
    let (mut sent, mut number) = ([Vec::new(), Vec::new()], 0);
    for round in 0..8 {
        for (n, sent) in sent.iter_mut().enumerate() {
            for queue in 0..b.can.rx_queues {
                let burst = frames(number, BURST as u32 / 2, 150);
                number += burst.len() as u32;
                b.send(n, &burst);
                sent.extend(burst);
                let worker = (round + n + queue as usize) % 2;
                let moved = interface::set_rx_placement(&mut b.c, b.ports[n], queue, Some(worker));
                moved.expect("move");
                let row = b.queues(n).into_iter().find(|q| q.0 == queue);
                assert_eq!(row.map(|q| q.1), Some(worker));
            }
        }
    }
    for (n, sent) in sent.iter().enumerate() {
        let mut got = b.receive(1 - n, sent.len());
        if b.can.steers {
            got.sort_by_key(|frame| super::bench::number(frame));
        }
        check_flows(&got, sent);
        b.nothing_more(1 - n);
        let (t, all) = (b.totals(n), sent.len() as u64 + b.marks());
        assert_eq!((t.rx_packets, t.rx_miss), (all, 0));
    }
    let beyond = interface::set_rx_placement(&mut b.c, b.ports[0], 0, Some(2));
    assert!(beyond.is_err(), "there is no worker 2");
    b.close();
}

/// Each receive mode works, for a worker that is awake and one that sleeps, or is refused with a
/// message.
pub fn every_receive_mode_works_or_is_refused(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    for mode in RxMode::ALL.into_iter().chain(RxMode::ALL) {
        for n in 0..2 {
            let before = b.queues(n);
            let set = interface::set_rx_mode(&mut b.c, b.ports[n], None, mode);
            if b.can.modes.contains(&mode) {
                set.unwrap_or_else(|e| panic!("{mode:?}: {e}"));
                assert!(b.queues(n).iter().all(|q| q.2 == mode));
            } else {
                assert!(!set.expect_err("refused").to_string().is_empty());
                assert_eq!(b.queues(n), before);
            }
        }
        b.c.finish_late();
        if b.can.modes.contains(&mode) && mode != RxMode::Polling {
            b.until("the worker to sleep", |b| b.c.worker_sleeps(0));
        }
        b.passes();
        assert!(!b.can.modes.contains(&mode) || mode != RxMode::Polling || !b.c.worker_sleeps(0));
    }
    b.close();
}

/// Checks that frames to an address pass from interface 0 to the other one.
fn passes_to(b: &mut Bench, mac: MacAddr) {
    let sent: Vec<_> = (0..10).map(|i| frame_to(mac, i, 100, None)).collect();
    b.send(0, &sent);
    check_flows(&b.receive(1, sent.len()), &sent);
}

/// An interface gets another MAC address, to which its device takes frames; or it keeps its own,
/// and there is a message.
pub fn the_mac_address_is_changed_or_that_is_refused(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    let own = b.outside.device_mac(0);
    let others = [MacAddr([2, 0, 0, 0, 0x77, 1]), MacAddr([2, 0, 0, 0, 0x77, 2])];
    for mac in others.into_iter().chain(own).chain([others[0]]) {
        let before = b.view(0).mac;
        match interface::set_mac(&mut b.c, b.ports[0], mac) {
            Ok(()) => {
                assert!(b.can.sets_mac && b.view(0).mac == mac);
                let is_device = b.outside.device_mac(0) == Some(mac);
                if let Some(all) = b.outside.takes_all(0) {
                    assert!(all || is_device, "the device does not take frames to {mac}");
                }
                passes_to(&mut b, mac);
            }
            Err(e) => {
                assert!(!b.can.sets_mac, "{e}");
                assert_eq!(b.view(0).mac, before);
            }
        }
    }
    let before = b.view(0).mac;
    for mac in [MacAddr([0xff; 6]), MacAddr([1, 0, 0x5e, 0, 0, 1]), MacAddr::ZERO] {
        assert!(interface::set_mac(&mut b.c, b.ports[0], mac).is_err(), "{mac}");
        assert_eq!(b.view(0).mac, before);
    }
    b.close();
}

/// In promiscuous mode the device takes frames to all addresses, and otherwise only if the
/// interface's is not its own.
pub fn promiscuous_mode_takes_frames_to_all_addresses(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    let (port, own) = (b.ports[0], b.outside.device_mac(0));
    if let Some(own) = own {
        interface::set_mac(&mut b.c, port, own).expect("the device's own address");
        assert_ne!(b.outside.takes_all(0), Some(true));
    }
    for _ in 0..2 {
        interface::set_promiscuous(&mut b.c, port, true).expect("on");
        assert_ne!(b.outside.takes_all(0), Some(false));
        passes_to(&mut b, MacAddr([2, 0, 0, 0, 0x88, 1]));
        // Promiscuous mode outlasts a change of the address.
        if let Some(own) = own {
            for mac in [MacAddr([2, 0, 0, 0, 0x77, 1]), own] {
                interface::set_mac(&mut b.c, port, mac).expect("address");
                assert_ne!(b.outside.takes_all(0), Some(false));
            }
        }
        interface::set_promiscuous(&mut b.c, port, false).expect("off");
        assert!(own.is_none() || b.outside.takes_all(0) != Some(true));
    }
    b.passes();
    b.close();
}

/// An MTU that is set limits what is sent, and one beyond the device's is refused.
pub fn frames_longer_than_the_mtu_are_dropped_with_a_reason(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    let (port, most) = (b.ports[1], b.can.mtu);
    if let Some(most) = most {
        let beyond = interface::set_link_mtu(&mut b.c, port, most + 1);
        assert!(!beyond.expect_err("beyond the device's").to_string().is_empty());
        assert_eq!(b.view(1).link_mtu, MTU);
    }
    let mut dropped = 0;
    for mtu in [1000, MTU, 1400] {
        interface::set_link_mtu(&mut b.c, port, mtu).expect("MTU");
        assert_eq!(b.view(1).link_mtu, mtu);
        let fits = frames(0, 10, mtu as usize + HEADER);
        b.send(0, &fits);
        check_flows(&b.receive(1, fits.len()), &fits);
        let long = frames(20, 10, (mtu as usize + BEYOND).min(MTU as usize + HEADER));
        b.send(0, &long);
        if most.is_some() && mtu < MTU {
            dropped += long.len() as u64;
            b.until("drops", |b| b.dropped() == dropped);
            b.nothing_more(1);
            assert_eq!(b.totals(1).tx_error, dropped);
        } else {
            check_flows(&b.receive(1, long.len()), &long);
        }
    }
    b.close();
}

/// Without a carrier the link is down, and what is sent then is not sent later.
pub fn the_link_follows_the_carrier(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    if !b.can.carrier {
        return b.close();
    }
    for round in 1..=2 {
        b.outside.set_carrier(1, false);
        b.until("the link to go down", |b| !b.view(1).link_up);
        assert!(b.view(1).admin_up && b.view(0).link_up);
        b.send(0, &frames(1, 20, 100));
        b.until("drops", |b| b.dropped() == 20 * round);
        assert_eq!(b.totals(1).tx_error, 20 * round);
        b.outside.set_carrier(1, true);
        b.until("the link to come up", |b| b.view(1).link_up);
        b.nothing_more(1);
        b.passes();
    }
    b.close();
}

/// A device that went away and is back has the modes, placement, address and state of before.
pub fn a_device_that_comes_back_is_used_as_before(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    if !b.can.unplugs {
        return b.close();
    }
    let mac = MacAddr([2, 0, 0, 0, 0x77, 3]);
    interface::set_mac(&mut b.c, b.ports[0], mac).expect("address");
    interface::set_rx_mode(&mut b.c, b.ports[0], Some(0), b.can.modes[0]).expect("mode");
    b.place(0, 1);
    for round in 0..3 {
        let (queues, mac) = (b.queues(0), b.view(0).mac);
        b.send(0, &frames(0, 20, 100));
        b.unplug(0);
        // Frames received before leave as usual; frames that it would send are dropped.
        let before = b.dropped();
        b.send(1, &frames(0, 20, 100));
        b.until("drops", |b| b.dropped() == before + 20);
        if round == 1 {
            // Settings of an interface without its device.
            let worker = 1 - queues[0].1;
            interface::set_rx_placement(&mut b.c, b.ports[0], 0, Some(worker)).expect("move");
            interface::set_rx_mode(&mut b.c, b.ports[0], Some(0), b.can.modes[1]).expect("mode");
            b.up(0, false);
            b.up(0, true);
            interface::set_promiscuous(&mut b.c, b.ports[0], true).expect("promiscuous");
        }
        let (queues, is_changed) = if round == 1 { (b.queues(0), true) } else { (queues, false) };
        assert_eq!(b.view(0).promiscuous, is_changed || round > 1);
        b.plug(0, MTU);
        assert_eq!((b.queues(0), b.view(0).mac), (queues, mac));
        assert!(b.view(0).admin_up);
        assert_ne!(b.outside.takes_all(0), Some(false));
        // Frames that came before may have left.
        b.last(1);
        let before = b.received_by(0);
        b.passes();
        polled_as_said(&mut b, &before);
    }
    // An interface that is down stays so.
    b.up(0, false);
    b.unplug(0);
    b.plug(0, MTU);
    assert!(!b.view(0).admin_up);
    let received = b.totals(0).rx_packets;
    b.send(0, &frames(0, 20, 100));
    assert_eq!(b.totals(0).rx_packets, received);
    b.up(0, true);
    b.nothing_more(1);
    b.passes();
    b.close();
}

/// Checks that only workers with queues of interface 0 have received more than before, and that one
/// with a queue to be polled stays awake.
fn polled_as_said(b: &mut Bench, before: &[u64]) {
    let (after, queues) = (b.received_by(0), b.queues(0));
    for worker in 0..b.c.workers() {
        let mut own = queues.iter().filter(|q| q.1 == worker).peekable();
        assert!(own.peek().is_some() || after[worker] == before[worker], "by worker {worker}");
        let is_awake = own.any(|q| q.2 == RxMode::Polling);
        assert!(!is_awake || !b.c.worker_sleeps(worker), "worker {worker} sleeps");
    }
}

/// A device that is back with another MTU is as if that had been changed meanwhile; one that the
/// user has set holds.
pub fn a_device_that_comes_back_with_another_mtu_is_followed(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    if !b.can.unplugs {
        return b.close();
    }
    let again = |b: &mut Bench, mtu: u32| {
        b.unplug(1);
        b.plug(1, mtu);
    };
    for (device, want) in [(1500, 1500), (MTU, MTU)] {
        again(&mut b, device);
        b.until("the MTU", |b| b.view(1).link_mtu == want);
        let fits = frames(0, 10, want as usize + HEADER);
        b.send(0, &fits);
        check_flows(&b.receive(1, fits.len()), &fits);
    }
    interface::set_link_mtu(&mut b.c, b.ports[1], 1400).expect("MTU");
    for (device, want) in [(1300, 1300), (MTU, 1400)] {
        again(&mut b, device);
        b.until("the MTU", |b| b.view(1).link_mtu == want);
        let before = b.dropped();
        b.send(0, &frames(0, 10, want as usize + BEYOND));
        b.until("drops", |b| b.dropped() == before + 10);
        b.passes();
    }
    b.close();
}

/// Settings are accepted while the router has not heard yet that the device went away, and are
/// those of the one that comes back.
pub fn settings_before_it_is_known_that_a_device_went_away_hold(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    if !b.can.unplugs {
        return b.close();
    }
    let (port, mac) = (b.ports[0], MacAddr([2, 0, 0, 0, 0x77, 4]));
    b.outside.unplug(0);
    for up in [false, true] {
        interface::set_admin(&mut b.c, port, up).expect("state");
    }
    interface::set_mac(&mut b.c, port, mac).expect("address");
    interface::set_promiscuous(&mut b.c, port, true).expect("promiscuous mode");
    interface::set_rx_mode(&mut b.c, port, None, b.can.modes[0]).expect("mode");
    interface::set_link_mtu(&mut b.c, port, 1400).expect("MTU");
    b.until("the link to go down", |b| !b.view(0).link_up);
    b.plug(0, MTU);
    let v = b.view(0);
    assert_eq!((v.admin_up, v.mac, v.promiscuous, v.link_mtu), (true, mac, true, 1400));
    assert_ne!(b.outside.takes_all(0), Some(false));
    passes_to(&mut b, mac);
    b.passes();
    b.close();
}

/// Frames that a device lost shortly before it went away are counted.
pub fn losses_before_a_device_went_away_are_counted(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    if !b.can.unplugs {
        return b.close();
    }
    for _ in 0..2 {
        let before = b.totals(0).rx_miss;
        let sent = frames(0, b.can.burst as u32, 1000);
        b.held(|b| b.send(0, &sent));
        b.unplug(0);
        b.until("the loss", |b| b.c.interface_totals(b.ports[0]).rx_miss > before);
        b.plug(0, MTU);
        b.ignore();
        b.last(1);
        b.passes();
    }
    b.close();
}

/// An interface without its device is deleted, and created when that is back.
pub fn an_interface_is_deleted_while_its_device_is_away(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    if !b.can.unplugs {
        return b.close();
    }
    for round in 0..4 {
        if round % 2 == 0 {
            b.unplug(0);
        } else {
            // The router has no event of it.
            b.outside.unplug(0);
        }
        b.delete(0);
        b.outside.plug(0, MTU);
        b.create(0);
        b.passes();
    }
    b.close();
}

/// Interfaces deleted and created again under traffic give back their buffers, name, index and
/// places of queues.
pub fn interfaces_come_and_go_under_traffic(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 2);
    let name = b.view(0).name;
    let spread = |b: &Bench| {
        let all = [b.queues(0), b.queues(1)].concat();
        let on = |worker: usize| all.iter().filter(|q| q.1 == worker).count();
        [on(0), on(1)]
    };
    let before = spread(&b);
    for round in 0..20 {
        let burst = frames(0, BURST as u32, 100 + 400 * round);
        b.send_by(0, round % 2, &burst);
        b.send_by(1, round % 2, &burst);
        if b.can.rx_queues > 0 {
            b.place(0, 0);
        }
        b.delete(0);
        b.send_by(1, round % 2, &burst);
        b.create(0);
        b.send_by(0, round % 2, &burst);
        assert_eq!((b.view(0).name, spread(&b)), (name.clone(), before));
        // The outside has a ring, too.
        b.ignore();
    }
    (0..2).for_each(|n| drop(b.last(n)));
    b.passes();
    b.close();
}

/// Bytes that are no frame, or more than one may have, are refused or dropped with a reason.
pub fn frames_that_are_none_are_refused_or_dropped(outside: Box<dyn Outside>) {
    let mut b = bench(outside, 1);
    // Bytes from outside.
    for len in [1, HEADER - 1] {
        let before = b.dropped();
        let t = b.totals(0);
        if b.outside.send(&mut b.c, 0, 0, &[vec![2; len]]).is_ok() {
            b.until("the drop", |b| b.dropped() + b.totals(0).rx_error == before + t.rx_error + 1);
        }
    }
    let long = frame(1, MTU as usize + BEYOND, None);
    if b.outside.send(&mut b.c, 0, 0, std::slice::from_ref(&long)).is_ok() {
        assert!(b.receive(1, 1)[0] == long);
    }
    // Bytes from within.
    for len in [1, HEADER - 1] {
        let before = b.dropped();
        b.send(0, &[frame_to_cut(len as u8)]);
        if len < b.can.shortest {
            b.until("the drop", |b| b.dropped() == before + 1);
        } else {
            assert_eq!(b.receive(1, 1)[0].len(), len);
        }
    }
    b.nothing_more(1);
    b.passes();
    b.close();
}
