//! Addresses are tested before they are used, and the router answers for hosts of other links.

use crate::{bare, link_local, router};
use std::net::Ipv6Addr;
use thalweg_device::testing::ip6::{at, icmp_packet, ip, link, to_group};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_wire::MacAddr;
use thalweg_wire::nd::{emit_advertisement, emit_solicitation, flag, solicited_node};

/// A host asks who has `target`: from no address if it tests the address itself.
fn solicitation(src: Ipv6Addr, target: Ipv6Addr, mac: MacAddr) -> Vec<u8> {
    let dst = solicited_node(target);
    let mut message = [0; 32];
    let len = if src.is_unspecified() { 24 } else { 32 };
    emit_solicitation(&src, &dst, target, mac, &mut message).unwrap();
    to_group(mac, &icmp_packet((src, dst), 255, &[], &message[..len]))
}

/// A host says that it has `target`.
fn advertisement(target: Ipv6Addr, mac: MacAddr) -> Vec<u8> {
    let (dst, mut message) = (at("ff02::1"), [0; 32]);
    emit_advertisement(&target, &dst, flag::OVERRIDE, target, mac, &mut message).unwrap();
    to_group(mac, &icmp_packet((target, dst), 255, &[], &message))
}

/// Types and targets of neighbour discovery messages sent by `testN` since the last call.
fn messages(lab: &mut Lab, n: u8) -> Vec<(u8, Ipv6Addr)> {
    let sw_if = lab.sw_if(n);
    let sent = lab.sent().into_iter().filter(|(i, _)| *i == sw_if).map(|(_, frame)| frame);
    let target = |f: &[u8]| Ipv6Addr::from(*f[62..].first_chunk::<16>().unwrap());
    sent.filter(|f| f[20] == 58).map(|f| (f[54], target(&f))).collect()
}

#[test]
fn an_address_is_used_once_it_is_tested() {
    let mut lab = bare().alone().start();
    lab.ok("set ip6 dad enable transmits 2 delay 1.5");
    lab.ok("set interface ip address test0 2001:db8::1/64");
    let (own, link_local) = (at("2001:db8::1"), link_local(&lab, 0));
    lab.wait(1);
    let mut asked = messages(&mut lab, 0);
    asked.sort_unstable();
    assert_eq!(asked, [(135, own), (135, link_local)]);
    // Nobody hears that the router has it.
    lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 9))]);
    assert!(messages(&mut lab, 0).is_empty());
    let text = lab.cli("show ip6 dad");
    assert!(text.contains("Active DAD entries: 2") && text.contains("state=TENTATIVE"), "{text}");
    assert!(!lab.cli("show ip6 fib 2001:db8::1/128").contains("receive"));
    lab.wait(1500);
    assert_eq!(messages(&mut lab, 0).len(), 2);
    lab.wait(1000);
    lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 9))]);
    assert!(messages(&mut lab, 0).is_empty());
    lab.wait(510);
    lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 9))]);
    assert_eq!(messages(&mut lab, 0), [(136, own)]);
    assert!(lab.cli("show ip6 dad").contains("Active DAD entries: 0"));
    let text = lab.cli("show ip6 fib 2001:db8::1/128");
    assert!(text.contains("receive"), "{text}");
    // Another link-local address is tested, too.
    lab.ok("set interface ip address test0 fe80::77/128");
    lab.wait(1);
    assert_eq!(messages(&mut lab, 0), [(135, at("fe80::77"))]);
    lab.wait(1500);
    lab.wait(1500);
    messages(&mut lab, 0);
    lab.receive(0, vec![solicitation(link(9), at("fe80::77"), host_mac(0, 9))]);
    assert_eq!(messages(&mut lab, 0), [(136, at("fe80::77"))]);
    // A link that comes up may be another one.
    lab.up(0, false);
    lab.up(0, true);
    lab.wait(1);
    assert_eq!(messages(&mut lab, 0).len(), 2);
    lab.ok("set ip6 dad disable");
    lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 9))]);
    assert_eq!(messages(&mut lab, 0), [(136, own)]);
    lab.close();
}

#[test]
fn an_address_of_another_host_is_not_used() {
    for by_test in [false, true] {
        let mut lab = bare().alone().start();
        lab.ok("set ip6 dad enable");
        lab.ok("set interface ip address test0 2001:db8::1/64");
        let own = at("2001:db8::1");
        lab.wait(1);
        // Our own question that comes back is not taken for another host's.
        lab.receive(0, vec![solicitation(Ipv6Addr::UNSPECIFIED, own, our_mac(0))]);
        lab.wait(1);
        assert!(!lab.cli("show ip6 dad").contains("DUPLICATE"));
        lab.receive(
            0,
            vec![match by_test {
                true => solicitation(Ipv6Addr::UNSPECIFIED, own, host_mac(0, 9)),
                false => advertisement(own, host_mac(0, 9)),
            }],
        );
        lab.wait(1);
        lab.wait(5000);
        messages(&mut lab, 0);
        let text = lab.cli("show ip6 interface test0");
        assert!(text.contains("2001:db8::1 DUPLICATE"), "{text}");
        lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 9))]);
        assert!(messages(&mut lab, 0).is_empty());
        // The other host is a neighbour like others: it is answered, and reached.
        let linked = link_local(&lab, 0);
        lab.receive(0, vec![solicitation(own, linked, host_mac(0, 9))]);
        assert_eq!(messages(&mut lab, 0), [(136, linked)]);
        lab.wait(1);
        let text = lab.cli("show ip6 neighbors");
        assert!(text.contains("2001:db8::1") && !lab.cli("show ip6 fib").contains("::1 on test0"));
        // The link-local address has nothing to do with it.
        let linked = link_local(&lab, 0);
        lab.receive(0, vec![solicitation(link(9), linked, host_mac(0, 9))]);
        assert_eq!(messages(&mut lab, 0), [(136, linked)]);
        // Set again, it is tested again.
        lab.ok("set interface ip address del test0 2001:db8::1/64");
        lab.ok("set interface ip address test0 2001:db8::1/64");
        lab.wait(1);
        lab.wait(5000);
        messages(&mut lab, 0);
        lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 9))]);
        assert_eq!(messages(&mut lab, 0), [(136, own)]);
        lab.close();
    }
}

/// Messages on one link, or about other addresses, do not affect another.
#[test]
fn links_are_tested_apart_and_floods_do_not_disturb() {
    let mut lab = bare().alone().start();
    assert_eq!(lab.cli("create sub-interfaces test0 100"), "test0.100\n");
    lab.ok("set ip6 dad enable transmits 3\n\
            set interface state test0.100 up\n\
            set interface ip address test0 2001:db8::1/64\n\
            set interface ip address test1 2001:db8:1::1/64\n\
            set interface ip address test0.100 2001:db8:100::1/64");
    let all = ["2001:db8::1", "2001:db8:1::1", "2001:db8:100::1"].map(at);
    lab.wait(1);
    // Each is asked for on its own link, with that link's tags.
    let sent = lab.sent();
    let asked = |tagged: bool, ip: Ipv6Addr| {
        let skip = if tagged { 4 } else { 0 };
        let is_it = |f: &[u8]| {
            (f[12..14] == [0x81, 0]) == tagged
                && f.len() >= 78 + skip
                && f[54 + skip] == 135
                && f[62 + skip..78 + skip] == ip.octets()
        };
        sent.iter().filter(|(_, f)| is_it(f)).map(|(i, _)| *i).collect::<Vec<_>>()
    };
    assert_eq!(asked(false, all[0]), [lab.sw_if(0)]);
    assert_eq!(asked(false, all[1]), [lab.sw_if(1)]);
    assert_eq!(asked(true, all[2]), [lab.sw_if(0)]);
    assert!(asked(false, all[2]).is_empty());
    let tagged = |mut frame: Vec<u8>, vlan: u8| {
        frame.splice(12..12, [0x81, 0, 0, vlan]);
        frame
    };
    for some in 0..20u16 {
        let one = |n: u16| {
            let other = Ipv6Addr::from_bits(all[0].to_bits() + 1 + u128::from(some * 200 + n));
            let mac = MacAddr([2, 7, 0, 0, (n >> 8) as u8, n as u8]);
            match n % 4 {
                // Others' addresses, those of other links, and our own question that comes back.
                0 => advertisement(other, mac),
                1 => advertisement(all[1 + usize::from(n) / 4 % 2], mac),
                2 => tagged(advertisement(all[0], mac), 100),
                _ => tagged(solicitation(Ipv6Addr::UNSPECIFIED, all[2], our_mac(0)), 100),
            }
        };
        lab.deliver(0, (0..200).map(one).collect());
        lab.wait(1);
    }
    let text = lab.cli("show ip6 dad");
    assert!(text.contains("TENTATIVE") && !text.contains("DUPLICATE"), "{text}");
    // Each is found where it belongs, and no other with it.
    lab.receive(0, vec![tagged(advertisement(all[2], host_mac(0, 9)), 100)]);
    lab.wait(1);
    (0..4).for_each(|_| lab.wait(1000));
    let text = lab.cli("show ip6 dad");
    assert_eq!(text.matches("DUPLICATE").count(), 1, "{text}");
    assert!(text.contains("2001:db8:100::1") && !text.contains("TENTATIVE"), "{text}");
    for (n, own) in [(0, all[0]), (1, all[1])] {
        messages(&mut lab, n);
        lab.receive(n, vec![solicitation(link(9), own, host_mac(n, 9))]);
        assert_eq!(messages(&mut lab, n), [(136, own)]);
    }
    lab.close();
}

/// Tested addresses may go, or change, while answers are under way.
#[test]
fn tests_end_with_what_they_are_about() {
    let mut lab = bare().alone().start();
    let own = at("2001:db8::1");
    let used = || vec![advertisement(own, host_mac(0, 9))];
    let is_there = |lab: &mut Lab, word: &str| lab.cli("show ip6 dad").contains(word);
    lab.ok("set ip6 dad enable transmits 10 delay 10");
    // The address goes, and with it its test.
    lab.ok("set interface ip address test0 2001:db8::1/64");
    lab.wait(1);
    lab.deliver(0, used());
    lab.seen();
    lab.ok("set interface ip address del test0 2001:db8::1/64");
    lab.wait(1);
    assert!(!is_there(&mut lab, "2001:db8::1 "));
    // Tests are switched off between question and answer.
    lab.ok("set interface ip address test0 2001:db8::1/64");
    lab.wait(1);
    lab.deliver(0, used());
    lab.seen();
    lab.ok("set ip6 dad disable");
    lab.wait(1);
    messages(&mut lab, 0);
    lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 8))]);
    assert_eq!(messages(&mut lab, 0), [(136, own)]);
    lab.ok("set interface ip address del test0 2001:db8::1/64\nset ip6 dad enable");
    // The link goes down and up between them: the host that answered may be of another link.
    lab.ok("set interface ip address test0 2001:db8::1/64");
    lab.wait(1);
    lab.deliver(0, used());
    lab.seen();
    lab.ok("set interface state test0 down\nset interface state test0 up");
    lab.wait(1);
    lab.wait(1000);
    lab.wait(1000);
    messages(&mut lab, 0);
    lab.receive(0, vec![solicitation(link(9), own, host_mac(0, 8))]);
    let text = lab.cli("show ip6 dad");
    assert!(messages(&mut lab, 0) == [(136, own)] || text.contains("DUPLICATE"), "{text}");
    // A sub-interface goes, whose index another one gets.
    lab.cli("create sub-interfaces test1 7");
    lab.ok("set interface state test1.7 up\n\
            set interface ip address test1.7 2001:db8:7::1/64");
    lab.wait(1);
    let mut frame = advertisement(at("2001:db8:7::1"), host_mac(1, 9));
    frame.splice(12..12, [0x81, 0, 0, 7]);
    lab.deliver(1, vec![frame]);
    lab.seen();
    lab.ok("delete sub-interface test1.7");
    lab.cli("create sub-interfaces test2 8");
    lab.ok("set interface state test2.8 up\n\
            set interface ip address test2.8 2001:db8:7::1/64");
    lab.wait(1);
    assert!(!is_there(&mut lab, "DUPLICATE"));
    lab.close();
}

#[test]
fn addresses_that_are_used_already_stay_so() {
    let mut lab = bare().alone().start();
    lab.ok("set interface ip address test0 2001:db8::1/64");
    lab.ok("set ip6 dad enable");
    lab.wait(1);
    assert!(messages(&mut lab, 0).is_empty());
    lab.receive(0, vec![solicitation(link(9), at("2001:db8::1"), host_mac(0, 9))]);
    assert_eq!(messages(&mut lab, 0), [(136, at("2001:db8::1"))]);
    for (line, why) in [
        ("set ip6 dad enable transmits 11", "1 to 10"),
        ("set ip6 dad enable delay 0.05", "0.1 to 10.0"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(why), "{text}");
    }
    lab.close();
}

#[test]
fn hosts_of_other_links_are_answered_for() {
    let mut lab = router();
    let host = at("2001:db8:0:1::99");
    lab.ok("set ip6 nd proxy test1 2001:db8:0:1::99");
    assert!(lab.cli("show ip6 nd proxy").contains("2001:db8:0:1::99 on test1"));
    let asked = |n: u8, lab: &mut Lab| {
        lab.receive(n, vec![solicitation(ip(n, 9), host, host_mac(n, 9))]);
        messages(lab, n)
    };
    assert_eq!(asked(0, &mut lab), [(136, host)]);
    // On its own link the host answers itself.
    assert!(asked(1, &mut lab).is_empty());
    let text = lab.cli("show ip6 fib 2001:db8:0:1::99/128");
    assert!(text.contains("IPv6-proxy-nd"), "{text}");
    lab.ok("set ip6 nd proxy test1 del 2001:db8:0:1::99");
    assert!(asked(0, &mut lab).is_empty());
    assert!(!lab.cli("show ip6 fib 2001:db8:0:1::99/128").contains("IPv6-proxy-nd"));
    // Hosts of another table are not meant, whatever their addresses are.
    lab.ok("ip6 table add 9
         set interface ip address del test2 all
         set interface ip6 table test2 9
         set interface ip address test2 2001:db8:0:2::1/64
         set ip6 nd proxy test1 2001:db8:0:1::99");
    let probe = |lab: &mut Lab| {
        lab.receive(2, vec![solicitation(at("::"), host, host_mac(2, 9))]);
        messages(lab, 2)
    };
    assert_eq!(asked(0, &mut lab), [(136, host)]);
    assert!(asked(2, &mut lab).is_empty() && probe(&mut lab).is_empty());
    lab.ok("set interface ip address del test2 all
         set interface ip6 table test2 0
         set interface ip address test2 2001:db8:0:2::1/64");
    assert_eq!(asked(2, &mut lab), [(136, host)]);
    lab.ok("set ip6 nd proxy test1 del 2001:db8:0:1::99");
    // Its route is in the table of the interface, also if that changes.
    lab.ok("ip6 table add 7
         set interface ip address del test1 all
         set interface ip address del test2 all
         set ip6 nd proxy test1 2001:db8:0:1::99
         set ip6 nd proxy test2 2001:db8:0:1::99");
    let via = |lab: &mut Lab, table: u32| {
        let text = lab.cli(&format!("show ip6 fib table {table} 2001:db8:0:1::99/128"));
        let is_there = text.contains("IPv6-proxy-nd");
        ["test1", "test2"].map(|name| is_there && text.contains(name))
    };
    assert_eq!((via(&mut lab, 0), via(&mut lab, 7)), ([true, true], [false, false]));
    lab.ok("set interface ip6 table test1 7");
    assert_eq!((via(&mut lab, 0), via(&mut lab, 7)), ([false, true], [true, false]));
    lab.ok("set interface ip6 table test2 7");
    assert_eq!((via(&mut lab, 0), via(&mut lab, 7)), ([false, false], [true, true]));
    lab.ok("set ip6 nd proxy test2 del 2001:db8:0:1::99\nset interface ip6 table test1 0");
    assert_eq!((via(&mut lab, 0), via(&mut lab, 7)), ([true, false], [false, false]));
    lab.ok("set ip6 nd proxy test1 del 2001:db8:0:1::99");
    let text = lab.cli("set ip6 nd proxy test1 del 2001:db8:0:1::99");
    assert!(text.contains("is not proxied for `test1'"), "{text}");
    assert!(lab.cli("set ip6 nd proxy test1 ff02::1").contains("not the address of a host"));
    lab.close();
}

#[test]
fn link_local_addresses_are_shown_by_link() {
    let mut lab = bare().ip6(2..=4).alone().start();
    let own = link_local(&lab, 1);
    lab.receive(1, vec![solicitation(link(8), ip(1, 1), host_mac(1, 8))]);
    lab.wait(1);
    let text = lab.cli("show ip6-ll test1");
    assert!(text.starts_with("IP6-link-local:test1\n"), "{text}");
    assert!(text.contains(&format!("{own}/128")) && text.contains("ipv6 via fe80::99:8"), "{text}");
    assert!(!text.contains("test0"));
    lab.close();
}
