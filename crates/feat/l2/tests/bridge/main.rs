//! Bridge domains between test interfaces.

#![allow(clippy::expect_used, clippy::panic)]

mod failure;
mod flags;
mod kernels;

use std::time::{Duration, Instant};
use thalweg_device::testing::Lab;
use thalweg_testkit::WAIT_LIMIT;

/// The MAC address of host `n`.
fn host_mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0x99, 0, n]
}

const BROADCAST: [u8; 6] = [0xff; 6];

/// A frame of `len` bytes of payload.
fn frame(to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend([8, 0]);
    frame.extend((0..len).map(|i| i as u8));
    frame
}

/// Four interfaces, the first `ports` of which are in bridge domain 10.
fn lab(ports: u8) -> Lab {
    let setup = Lab::of(&thalweg_feat_l2::FEATURE).with(&thalweg_feat_ethernet::FEATURE);
    let mut lab = setup.buffers(4096).interfaces(4).start();
    for n in 0..ports {
        lab.ok(&format!("set interface l2 bridge test{n} 10"));
    }
    lab
}

/// Numbers of the interfaces that a frame was sent to.
fn sent_to(lab: &mut Lab) -> Vec<u8> {
    let mut to: Vec<u8> = lab.sent().iter().map(|(sw_if, _)| lab.number(*sw_if)).collect();
    to.sort_unstable();
    to
}

/// Waits until the table holds `count` addresses.
fn known(lab: &mut Lab, count: u32) {
    known_again(lab, count, |_| ());
}

/// The same while frames come again, as workers do not report the same twice at once.
fn known_again(lab: &mut Lab, count: u32, mut again: impl FnMut(&mut Lab)) {
    let start = Instant::now();
    loop {
        again(lab);
        lab.c.run_once(Some(Duration::from_millis(1)));
        let l2 = lab.c.state::<thalweg_feat_l2::L2>();
        let now = l2.borrow().bridges().count().0;
        if now == count {
            return;
        }
        assert!(start.elapsed() < WAIT_LIMIT, "{now} MAC addresses known, not {count}");
    }
}

#[test]
fn learns_source_addresses() {
    let mut lab = lab(3);
    lab.receive(0, vec![frame(host_mac(2), host_mac(1), 50)]);
    assert_eq!(sent_to(&mut lab), [1, 2], "an unknown destination is flooded");
    known(&mut lab, 1);
    lab.receive(1, vec![frame(host_mac(1), host_mac(2), 50)]);
    assert_eq!(sent_to(&mut lab), [0]);
    known(&mut lab, 2);
    lab.receive(0, vec![frame(host_mac(2), host_mac(1), 50); 300]);
    assert_eq!(sent_to(&mut lab), [1; 300]);
    lab.receive(
        0,
        vec![frame(BROADCAST, host_mac(1), 50), frame([1, 0, 0x5e, 0, 0, 1], host_mac(1), 9)],
    );
    assert_eq!(sent_to(&mut lab), [1, 1, 2, 2]);
    // A destination on the ingress port is dropped; a port outside the bridge domain gets nothing.
    lab.receive(0, vec![frame(host_mac(1), host_mac(1), 50)]);
    assert!(sent_to(&mut lab).is_empty());
    assert_eq!(lab.count("l2-fwd", "reflection drop"), 1);
    let text = lab.cli("show l2fib verbose");
    assert!(text.contains("02:00:00:99:00:01") && text.contains("test0"), "{text}");
    assert!(text.contains("L2FIB total/learned entries: 2/2"), "{text}");
    lab.close();
}

#[test]
fn addresses_move_and_are_flushed() {
    let mut lab = lab(3);
    lab.receive(0, vec![frame(BROADCAST, host_mac(1), 50)]);
    known(&mut lab, 1);
    let start = Instant::now();
    loop {
        lab.receive(2, vec![frame(BROADCAST, host_mac(1), 50)]);
        lab.c.run_once(Some(Duration::from_millis(1)));
        let table = lab.cli("show l2fib verbose");
        if table.lines().any(|l| l.contains("02:00:00:99:00:01") && l.contains("test2")) {
            break;
        }
        assert!(start.elapsed() < WAIT_LIMIT, "it has not moved to test2: {table}");
    }
    lab.sent();
    lab.receive(1, vec![frame(host_mac(1), host_mac(3), 50)]);
    assert_eq!(sent_to(&mut lab), [2], "it has moved");
    known(&mut lab, 2);
    lab.ok("l2fib flush-mac interface test2");
    lab.receive(1, vec![frame(host_mac(1), host_mac(3), 50)]);
    assert_eq!(sent_to(&mut lab), [0, 2]);
    // A port that goes down or leaves takes its learned addresses with it.
    lab.up(1, false);
    known(&mut lab, 0);
    lab.up(1, true);
    known_again(&mut lab, 1, |lab| lab.receive(1, vec![frame(host_mac(1), host_mac(3), 50)]));
    lab.ok("set interface l3 test1");
    known(&mut lab, 0);
    lab.close();
}

/// Reports of workers that the main thread reads once the port has gone down.
#[test]
fn what_was_heard_before_a_port_went_down_is_not_learned() {
    let mut lab = lab(3);
    for comes_back in [false, true, false] {
        for n in 0..50 {
            lab.deliver(1, vec![frame(BROADCAST, host_mac(n), 50)]);
        }
        lab.pass();
        lab.up(1, false);
        if comes_back {
            lab.up(1, true);
        }
        for _ in 0..20 {
            lab.c.run_once(Some(Duration::from_millis(1)));
        }
        lab.settle();
        known(&mut lab, 0);
        lab.up(1, true);
        known_again(&mut lab, 1, |lab| lab.receive(1, vec![frame(BROADCAST, host_mac(1), 50)]));
        lab.ok("clear l2fib");
        known(&mut lab, 0);
    }
    lab.sent();
    lab.close();
}

/// IEEE 802.1Q-2018, table 8-1: pause, LACP, spanning trees, LLDP and others.
#[test]
fn frames_for_one_link_are_not_bridged() {
    let mut lab = lab(3);
    let group = |last| [0x01, 0x80, 0xc2, 0, 0, last];
    for last in 0..16 {
        lab.receive(0, vec![frame(group(last), host_mac(1), 50)]);
        assert!(sent_to(&mut lab).is_empty(), "{last}");
        assert_eq!(
            lab.count("l2-flood", "link-local group address: not bridged"),
            u64::from(last) + 1
        );
    }
    lab.receive(0, vec![frame(group(16), host_mac(1), 50)]);
    assert_eq!(sent_to(&mut lab), [1, 2]);
    // A cross connect is a wire.
    lab.ok("set interface l2 xconnect test0 test1");
    lab.receive(0, vec![frame(group(2), host_mac(1), 50)]);
    assert_eq!(sent_to(&mut lab), [1]);
    lab.close();
}

#[test]
fn settings_take_effect() {
    let mut lab = lab(3);
    lab.ok("l2fib add 02:00:00:99:00:01 10 test0 static
        l2fib add 02:00:00:99:00:07 10 filter
        set bridge-domain uu-flood 10 disable");
    lab.receive(1, vec![frame(host_mac(7), host_mac(2), 50), frame(host_mac(9), host_mac(2), 50)]);
    assert!(sent_to(&mut lab).is_empty());
    assert_eq!(lab.count("l2-fwd", "filter mac drop"), 1);
    assert_eq!(lab.count("l2-fwd", "unknown destination MAC address"), 1);
    // A static entry does not move.
    known(&mut lab, 3);
    lab.receive(2, vec![frame(host_mac(2), host_mac(1), 50)]);
    assert!(sent_to(&mut lab).is_empty());
    assert_eq!(lab.count("l2-learn", "L2 mac move violations"), 1);
    lab.receive(1, vec![frame(host_mac(1), host_mac(2), 50)]);
    assert_eq!(sent_to(&mut lab), [0]);
    lab.ok("set bridge-domain flood 10 disable");
    lab.receive(1, vec![frame(BROADCAST, host_mac(2), 50)]);
    assert!(sent_to(&mut lab).is_empty());
    lab.ok("set bridge-domain forward 10 disable");
    lab.receive(1, vec![frame(host_mac(1), host_mac(2), 50)]);
    assert!(sent_to(&mut lab).is_empty());
    assert_eq!(lab.count("l2-fwd", "forwarding disabled"), 1);
    lab.ok("set bridge-domain forward 10
        set bridge-domain uu-flood 10
        set bridge-domain learn 10 disable");
    lab.receive(1, vec![frame(host_mac(9), host_mac(8), 50)]);
    assert_eq!(sent_to(&mut lab), [0, 2]);
    known(&mut lab, 3);
    // Ports of one split horizon group do not exchange frames.
    lab.ok("set bridge-domain flood 10
        set interface l2 bridge test0 10 5
        set interface l2 bridge test1 10 5");
    lab.receive(1, vec![frame(host_mac(1), host_mac(8), 50), frame(BROADCAST, host_mac(8), 50)]);
    assert_eq!(sent_to(&mut lab), [2]);
    assert_eq!(lab.count("l2-fwd", "split horizon"), 1);
    let text = lab.cli("show bridge-domain 10 detail");
    assert!(text.contains("BD-ID   Index   BSN") && text.contains("test2"), "{text}");
    lab.close();
}

#[test]
fn groups_are_counted_both_ways() {
    let mut lab = lab(3);
    let group = [0x01, 0, 0x5e, 0, 0, 1];
    let frames = [BROADCAST, group, host_mac(9)].map(|to| frame(to, host_mac(1), 50));
    lab.receive(0, frames.to_vec());
    assert_eq!(sent_to(&mut lab), [1, 1, 1, 2, 2, 2]);
    let totals = [0, 1, 2].map(|n| lab.c.interface_totals_raw(lab.sw_if(n)));
    let [rx, rest @ ..] = totals.map(|t| {
        let rx = (t.rx_multicast, t.rx_multicast_bytes, t.rx_broadcast, t.rx_broadcast_bytes);
        let tx = (t.tx_multicast, t.tx_multicast_bytes, t.tx_broadcast, t.tx_broadcast_bytes);
        (rx, tx)
    });
    let (one, none) = ((1, 64, 1, 64), (0, 0, 0, 0));
    assert_eq!(rx, (one, none));
    assert_eq!(rest, [(none, one); 2]);
    lab.close();
}

#[test]
fn a_limit_is_kept() {
    let mut lab = lab(2);
    lab.ok("set bridge-domain learn-limit 10 5");
    let all = (0..100).map(|n| frame(BROADCAST, host_mac(n), 50)).collect();
    lab.receive(0, all);
    known(&mut lab, 5);
    lab.receive(0, (100..200).map(|n| frame(BROADCAST, host_mac(n), 50)).collect());
    for _ in 0..5 {
        lab.c.run_once(Some(Duration::from_millis(1)));
    }
    known(&mut lab, 5);
    assert_eq!(sent_to(&mut lab).len(), 200, "frames of unknown sources are still forwarded");
    // A deleted entry makes room.
    let first = lab.cli("show l2fib verbose");
    let mac = first.lines().nth(1).and_then(|l| l.split_whitespace().next()).expect("an address");
    lab.ok(&format!("l2fib del {mac} 10"));
    lab.receive(0, vec![frame(BROADCAST, host_mac(250), 50)]);
    known(&mut lab, 5);
    lab.close();
}

#[test]
fn mistakes_are_reported() {
    let mut lab = lab(1);
    for (line, said) in [
        ("create bridge-domain 10", "bridge domain 10 already exists"),
        ("create bridge-domain 0", "expected a number from 1 to 16777215"),
        ("create bridge-domain 10 del", "has interfaces"),
        ("create bridge-domain 11 del", "there is no bridge domain 11"),
        ("set bridge-domain learn 77", "there is no bridge domain 77"),
        ("set interface l2 bridge test1 10 bvi", "a BVI is a loopback"),
        ("l2fib add 02:00:00:00:00:01 10 test3", "`test3' is not in bridge domain 10"),
        ("l2fib add 01:00:00:00:00:01 10 test0", "a unicast MAC address expected"),
        ("l2fib del 02:00:00:00:00:01 10", "has no entry for 02:00:00:00:00:01"),
        ("show bridge-domain 12", "there is no bridge domain 12"),
        ("show l2fib bd_id 12", "there is no bridge domain 12"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(said), "{line}: {text}");
    }
    // A deleted interface takes its addresses with it; its bridge domain stays.
    lab.ok("l2fib add 02:00:00:00:00:01 10 test0");
    lab.ok("set interface l2 xconnect test0 test1");
    assert!(lab.cli("show l2fib").contains("no l2fib entries"));
    lab.ok("create bridge-domain 10 del");
    lab.close();
}
