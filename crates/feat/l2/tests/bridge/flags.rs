//! Flags of single ports for frames that they receive.

use super::*;

fn arp(from: u8) -> Vec<u8> {
    use thalweg_wire::arp::{ArpRepr, Operation};
    use thalweg_wire::ethernet::{EthernetRepr, ethertype};
    let mac = thalweg_wire::MacAddr(host_mac(from));
    let (sender_ip, target_ip) = ([10, 0, 0, from].into(), [10, 0, 0, 9].into());
    let arp = ArpRepr {
        operation: Operation::Request,
        sender_mac: mac,
        sender_ip,
        target_mac: thalweg_wire::MacAddr::ZERO,
        target_ip,
    };
    let mut frame = vec![0; 60];
    let ether =
        EthernetRepr { dst: thalweg_wire::MacAddr(BROADCAST), src: mac, ethertype: ethertype::ARP };
    ether.emit(&mut frame).expect("room");
    arp.emit(&mut frame[14..]).expect("room");
    frame
}

/// Flags hold for one packet, and for frames that take the kernels.
#[test]
fn a_port_does_no_more_than_its_flags_say() {
    for n in [1, 40] {
        let mut lab = lab(3);
        lab.ok("l2fib add 02:00:00:99:00:02 10 test1 static");
        let unicast = |to, from| vec![frame(host_mac(to), host_mac(from), 50); n];
        lab.ok("set interface l2 learn test0 disable");
        lab.receive(0, unicast(2, 1));
        assert_eq!(sent_to(&mut lab), vec![1; n]);
        lab.receive(2, unicast(2, 3));
        known(&mut lab, 2);
        assert!(!lab.cli("show l2fib verbose").contains("02:00:00:99:00:01"));
        lab.ok("set interface l2 learn test0\nset interface l2 forward test0 disable");
        lab.sent();
        lab.receive(0, unicast(2, 1));
        assert!(sent_to(&mut lab).is_empty());
        assert_eq!(lab.count("l2-fwd", "forwarding disabled"), n as u64);
        // Frames of several ports at once: only one port's are dropped.
        lab.receive(2, unicast(2, 3));
        assert_eq!(sent_to(&mut lab), vec![1; n]);
        lab.ok("set interface l2 forward test0\nset interface l2 flood test0 disable");
        lab.receive(0, vec![frame(BROADCAST, host_mac(1), 50); n]);
        assert!(sent_to(&mut lab).is_empty());
        assert_eq!(lab.count("l2-fwd", "flooding disabled"), n as u64);
        lab.receive(0, unicast(7, 1));
        assert_eq!(sent_to(&mut lab), [vec![1; n], vec![2; n]].concat());
        lab.ok("set interface l2 flood test0 enable\nset interface l2 uu-flood test0 disable");
        lab.receive(0, unicast(7, 1));
        assert!(sent_to(&mut lab).is_empty());
        assert_eq!(lab.count("l2-fwd", "unknown destination MAC address"), n as u64);
        lab.receive(2, unicast(7, 3));
        assert_eq!(sent_to(&mut lab), [vec![0; n], vec![1; n]].concat());
        // A port that joins again does all.
        lab.ok("set interface l2 bridge test0 10");
        lab.receive(0, unicast(7, 1));
        assert_eq!(sent_to(&mut lab), [vec![1; n], vec![2; n]].concat());
        let text = lab.cli("set interface l2 learn test3 disable");
        assert!(text.contains("`test3' is in no bridge domain"), "{text}");
        lab.close();
    }
}

#[test]
fn a_port_may_leave_questions_to_others() {
    let mut lab = lab(3);
    lab.ok("set bridge-domain arp term 10");
    lab.ok("set bridge-domain arp entry 10 10.0.0.9 02:00:00:99:00:09");
    lab.receive(0, vec![arp(1)]);
    assert_eq!(sent_to(&mut lab), [0]);
    lab.ok("set interface l2 arp-term test0 disable");
    lab.receive(0, vec![arp(1)]);
    assert_eq!(sent_to(&mut lab), [1, 2]);
    lab.receive(1, vec![arp(2)]);
    assert_eq!(sent_to(&mut lab), [1]);
    lab.ok("set interface l2 flood test0 disable");
    lab.receive(0, vec![arp(1)]);
    assert!(sent_to(&mut lab).is_empty());
    assert_eq!(lab.count("arp-term-l2bd", "flooding disabled"), 1);
    lab.close();
}

#[test]
fn addresses_that_stay_are_not_taken_over() {
    for n in [1, 40] {
        let mut lab = lab(3);
        lab.ok("l2fib add 02:00:00:99:00:01 10 test0 static");
        lab.ok("l2fib add 02:00:00:99:00:02 10 filter");
        lab.ok("l2fib add 02:00:00:99:00:03 10 test0");
        lab.receive(1, vec![frame(BROADCAST, host_mac(1), 50); n]);
        lab.receive(1, vec![frame(BROADCAST, host_mac(2), 50); n]);
        assert!(sent_to(&mut lab).is_empty());
        assert_eq!(lab.count("l2-learn", "L2 mac move violations"), n as u64);
        assert_eq!(lab.count("l2-learn", "L2 filter mac drops"), n as u64);
        lab.receive(1, vec![frame(BROADCAST, [1, 0, 0, 0, 0, 1], 50); n]);
        assert!(sent_to(&mut lab).is_empty());
        assert_eq!(lab.count("l2-learn", "multicast source MAC address"), n as u64);
        // One of zeros passes, but is not learned.
        lab.receive(1, vec![frame(BROADCAST, [0; 6], 50); n]);
        assert_eq!(sent_to(&mut lab), [vec![0; n], vec![2; n]].concat());
        assert_eq!(lab.count("l2-learn", "source MAC address is zero: not learned"), n as u64);
        // One that was added moves, and is then a learned one.
        lab.receive(1, vec![frame(BROADCAST, host_mac(3), 50); n]);
        let start = Instant::now();
        let table = loop {
            lab.c.run_once(Some(Duration::from_millis(1)));
            let table = lab.cli("show l2fib verbose");
            if table.contains("total/learned entries: 3/1") {
                break table;
            }
            assert!(start.elapsed() < WAIT_LIMIT, "{table}");
        };
        let row = table.lines().find(|l| l.contains("02:00:00:99:00:03")).expect("its row");
        assert!(row.contains("test1"), "{table}");
        let raw = lab.cli("show l2fib raw");
        let (rows, words) = raw.split_once("Raw Hash Table:").expect("both");
        assert!(rows.contains("02:00:00:99:00:03") && words.lines().count() == 4, "{raw}");
        let of = |mac: &str| words.lines().any(|l| l.contains(&format!("key 1/{mac} value ")));
        assert!(of("02:00:00:99:00:01") && of("02:00:00:99:00:02"), "{raw}");
        lab.ok("l2fib flush-mac all");
        assert!(lab.cli("show l2fib verbose").contains("total/learned entries: 2/0"));
        lab.close();
    }
}
