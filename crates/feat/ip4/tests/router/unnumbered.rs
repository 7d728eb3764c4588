//! Unnumbered interfaces: `test1` uses the addresses of `test2`.

use crate::router;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, udp};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_wire::arp::{ArpRepr, ArpView};
use thalweg_wire::build::Packet;

const BORROW: &str = "set interface unnumbered test1 use test2";
const LEND: &str = "set interface ip address test2 10.0.2.1/24";
const SHARED: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);

fn arp(frame: &[u8]) -> ArpRepr {
    ArpView::parse(&frame[14..]).expect("ARP").repr()
}

/// Builds a router without addresses on `test1` and `test2`.
fn lab(commands: &[&str]) -> Lab {
    let mut lab = router();
    lab.ok("set interface ip address del test1 all\nset interface ip address del test2 all");
    commands.iter().for_each(|line| lab.ok(line));
    lab.c.sync();
    lab
}

/// True if a host behind `test1` is answered when it asks for an address.
fn answers(lab: &mut Lab, address: Ipv4Addr, host: Ipv4Addr) -> bool {
    lab.receive(1, vec![Packet::arp_request(host_mac(1, 77), host, address).build()]);
    let sent = lab.sent();
    let [(sw_if, frame)] = &sent[..] else { return false };
    let reply = arp(frame);
    assert_eq!((*sw_if, reply.sender_ip, reply.sender_mac), (lab.sw_if(1), address, our_mac(1)));
    true
}

#[test]
fn borrowed_addresses_are_used_whatever_came_first() {
    for commands in [[LEND, BORROW], [BORROW, LEND]] {
        let mut lab = lab(&commands);
        let host = ip(2, 77);
        // A host behind it is answered, and has a route of its own.
        assert!(answers(&mut lab, SHARED, host));
        lab.until("the host's route", |lab| lab.cli("show ip fib 10.0.2.77/32").contains("test1"));
        lab.receive_packet(0, 2, udp(ip(0, 2), host, 20));
        let sent = lab.sent_one(1);
        assert_eq!((&sent[..6], &sent[6..12]), (&host_mac(1, 77).0[..], &our_mac(1).0[..]));
        // Next hops on it are asked from the borrowed address.
        lab.ok("ip route add 198.51.100.0/24 via 10.0.2.88 test1");
        lab.deliver(0, vec![framed(0, 2, &udp(ip(0, 2), [198, 51, 100, 1].into(), 20).build())]);
        lab.until("a request", |lab| lab.sent_frames() > 0);
        let asked = arp(&lab.sent_one(1));
        assert_eq!((asked.sender_ip, asked.target_ip), (SHARED, ip(2, 88)));
        lab.receive(1, vec![Packet::arp_reply(host_mac(1, 88), &asked).build()]);
        lab.until("the packet", |lab| lab.sent_frames() > 0);
        assert_eq!(lab.sent_one(1)[..6], host_mac(1, 88).0);
        // The router's own errors come from the borrowed address, too.
        lab.receive_packet(1, 77, udp(host, ip(0, 2), 20).ttl(1));
        let sent = lab.sent_one(1);
        assert_eq!(icmp_error(1, 77, &sent).src, SHARED);
        let shown = lab.cli("show interface address");
        assert!(shown.contains("unnumbered, use test2"), "{shown}");
        lab.close();
    }
}

#[test]
fn a_change_of_the_lender_reaches_who_borrows() {
    let mut lab = lab(&[LEND, BORROW]);
    assert!(answers(&mut lab, SHARED, ip(2, 77)));
    lab.ok("set interface ip address del test2 10.0.2.1/24");
    lab.c.sync();
    assert!(!answers(&mut lab, SHARED, ip(2, 77)));
    lab.ok("set interface ip address test2 10.0.7.1/24");
    lab.c.sync();
    assert!(answers(&mut lab, ip(7, 1), ip(7, 77)));
    // Another lender, and none.
    lab.ok("set interface unnumbered test1 use test0");
    lab.c.sync();
    assert!(!answers(&mut lab, ip(7, 1), ip(7, 77)));
    assert!(answers(&mut lab, ip(0, 1), ip(0, 77)));
    lab.ok("set interface unnumbered del test1");
    lab.c.sync();
    assert!(!answers(&mut lab, ip(0, 1), ip(0, 77)));
    for (line, why) in [
        ("set interface unnumbered del test1", "`test1` is not unnumbered"),
        ("set interface unnumbered test1 use test1", "another interface expected"),
    ] {
        let said = lab.cli(line);
        assert!(said.contains(why), "{line}: {said}");
    }
    lab.close();
}
