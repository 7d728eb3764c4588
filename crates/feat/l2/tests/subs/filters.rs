//! Sub-interfaces that send only frames that they would receive, and secondary MAC addresses.

use super::*;
use thalweg_device::DeviceError;

/// A port that pushes nothing leads to a sub-interface that removes nothing: tags are as received.
#[test]
fn frames_with_other_tags_do_not_leave() {
    for n in [1, 40] {
        let mut lab = lab(1);
        sub(&mut lab, 1, 10, one(10));
        sub(&mut lab, 1, 20, TagMatch::Outer { tag: dot1q(20), exact: false });
        lab.ok("set interface l2 xconnect test0 test1.10");
        lab.ok("set interface l2 efp-filter test1.10");
        let send = |lab: &mut Lab, tags: &[VlanTag]| {
            lab.receive(0, vec![frame(0, 1, tags, [8, 0], &[0x45; 40]); n]);
            lab.sent().len()
        };
        let post = |lab: &Lab| lab.count("l2-efp-filter", "L2 EFP filter post-rewrite drops");
        assert_eq!(send(&mut lab, &[dot1q(10)]), n);
        assert_eq!(send(&mut lab, &[dot1q(11)]), 0);
        assert_eq!(send(&mut lab, &[]), 0);
        assert_eq!(send(&mut lab, &[dot1q(10), dot1q(5)]), 0, "its match is exact");
        assert_eq!(send(&mut lab, &[dot1q(20)]), 0, "another one's");
        assert_eq!(post(&lab), 4 * n as u64);
        // The port itself sends what none of its sub-interfaces would receive.
        lab.ok("set interface l2 xconnect test0 test1\nset interface l2 efp-filter test1 enable");
        for tags in [&[][..], &[dot1q(11)], &[dot1q(0)]] {
            assert_eq!(send(&mut lab, tags), n, "{tags:?}");
        }
        assert_eq!(send(&mut lab, &[dot1q(20), dot1q(5)]), 0);
        lab.ok("set interface l2 efp-filter test1 disable");
        assert_eq!(send(&mut lab, &[dot1q(20), dot1q(5)]), n);
        lab.close();
    }
}

#[test]
fn frames_have_the_tags_that_a_port_gives_before_they_are_changed_back() {
    for n in [1, 40] {
        let mut lab = lab(1);
        sub(&mut lab, 1, 10, one(10));
        lab.ok("set interface l2 xconnect test0 test1.10");
        lab.ok("set interface l2 tag-rewrite test1.10 translate 1-1 dot1q 300");
        let send = |lab: &mut Lab, id: u16| {
            let mut one = frame(0, 1, &[dot1q(id)], [8, 0], &[0x45; 40]);
            one[14] |= 0xa0;
            lab.receive(0, vec![one; n]);
            lab.sent()
        };
        assert_eq!(send(&mut lab, 301).len(), n, "not checked yet");
        lab.ok("set interface l2 efp-filter test1.10");
        assert_eq!(send(&mut lab, 301).len(), 0);
        assert_eq!(lab.count("l2-output", "L2 EFP filter pre-rewrite drops"), n as u64);
        let sent = send(&mut lab, 300);
        assert_eq!(sent.len(), n);
        assert_eq!(parts(&sent[0].1).2, [dot1q(10)]);
        assert_eq!(sent[0].1[14] >> 4, 0xa, "with its priority");
        // The number of a deleted one is free of it.
        lab.ok("delete sub-interface test1.10");
        let again = sub(&mut lab, 1, 11, one(11));
        lab.ok("set interface l2 xconnect test0 test1.11");
        assert_eq!(send(&mut lab, 7).len(), n, "{again}");
        lab.close();
    }
}

#[test]
fn frames_to_secondary_addresses_are_ours() {
    for n in [1, 40] {
        let (mut lab, ways) = routed(1);
        neighbor(&mut lab, ways[1].0, ip(2, 9), host(9));
        let other = MacAddr([2, 0, 0, 0, 0, 0x55]);
        let send = |lab: &mut Lab, tags: &[VlanTag]| {
            let mut one = ipv4(0, 1, tags, &udp(ip(1, 1), ip(2, 9), 30));
            one[..6].copy_from_slice(&other.0);
            lab.receive(0, vec![one; n]);
            lab.sent().len()
        };
        let foreign = |lab: &Lab| lab.count("ethernet-input", "l3 mac mismatch");
        assert_eq!((send(&mut lab, &[dot1q(10)]), foreign(&lab)), (0, n as u64));
        // Addresses of a sub-interface are the port's.
        lab.ok(&format!("set interface secondary-mac-address test0.10 {other} add"));
        assert_eq!(send(&mut lab, &[dot1q(10)]), n);
        assert_eq!(send(&mut lab, &[]), n);
        let text = lab.cli("show interface secondary-mac-address test0.20");
        assert_eq!(text.trim_end(), format!("test0.20 (up):\n  {other}"));
        lab.ok(&format!("set interface secondary-mac-address test0 {other} add"));
        lab.ok(&format!("set interface secondary-mac-address test0 {other} del"));
        assert_eq!((send(&mut lab, &[dot1q(10)]), foreign(&lab)), (0, 2 * n as u64));
        lab.close();
    }
}

#[test]
fn secondary_addresses_have_a_limit() {
    let mut lab = lab(1);
    let port = lab.sw_if(0);
    let mac = |n: usize| MacAddr([2, 0, 0, 1, 0, n as u8]);
    for n in 0..interface::MAX_SECONDARY_MACS {
        interface::add_secondary_mac(&mut lab.c, port, mac(n)).expect("room");
    }
    for (line, said) in [
        ("test0 02:00:00:02:00:00 add", "has 64 secondary MAC addresses, the most"),
        ("test0 02:00:00:02:00:00 del", "`test0' has no secondary MAC address 02:00:00:02:00:00"),
        ("test0 01:00:00:02:00:00 add", "not a unicast MAC address"),
        ("local0 02:00:00:02:00:00 add", "a secondary MAC address is not supported"),
    ] {
        let text = lab.cli(&format!("set interface secondary-mac-address {line}"));
        assert!(text.contains(said), "{line}: {text}");
    }
    let unknown = interface::add_secondary_mac(&mut lab.c, SwIfIndex(999), mac(1));
    assert!(matches!(unknown, Err(DeviceError::Unknown(_))));
    assert_eq!(interface::secondary_macs(&lab.c, port).expect("a port").len(), 64);
    lab.close();
}
