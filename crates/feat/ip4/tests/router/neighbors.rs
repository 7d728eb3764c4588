//! Neighbours and the routes around them: what hosts say never beats what is written.

use crate::{bare, router};
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_feat_neighbor::Neighbors;
use thalweg_wire::build::Packet;

/// A host of `testN` says that it has an address, until it is a neighbour.
fn claim(lab: &mut Lab, n: u8, address: Ipv4Addr, of: Ipv4Addr) {
    let known = |lab: &Lab| {
        let all = lab.c.state::<Neighbors>();
        let all = all.borrow();
        all.find(lab.sw_if(n), address.into()).is_some_and(|neighbor| neighbor.mac.is_some())
    };
    let begun = std::time::Instant::now();
    while !known(lab) {
        assert!(begun.elapsed() < thalweg_testkit::WAIT_LIMIT, "{}", lab.cli("show ip neighbors"));
        lab.receive(n, vec![Packet::arp_request(host_mac(n, 66), address, of).build()]);
        lab.c.run_once(Some(std::time::Duration::from_millis(20)));
    }
    lab.sent();
}

/// Interfaces by which packets to an address leave, each with the MAC address that they go to.
fn ways(lab: &mut Lab, dst: Ipv4Addr) -> Vec<(u8, [u8; 6])> {
    let flow = |n: u16| framed(2, 2, &Packet::new().ipv4(ip(2, 2), dst).udp(n, 9).build());
    lab.receive(2, (0..32).map(flow).collect());
    let mut all: Vec<_> = lab
        .sent()
        .iter()
        .map(|(i, f)| (lab.number(*i), f[..6].try_into().expect("6 bytes")))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_host_does_not_take_what_a_longer_route_leads_elsewhere() {
    let mut lab = router();
    lab.ok("ip route add 10.0.0.96/28 via 10.0.1.2 test1\nip route add 10.0.0.112/28 via drop");
    claim(&mut lab, 0, ip(0, 100), ip(0, 1));
    claim(&mut lab, 0, ip(0, 120), ip(0, 1));
    assert_eq!(ways(&mut lab, ip(0, 100)), [(1, host_mac(1, 2).0)]);
    assert_eq!(ways(&mut lab, ip(0, 120)), []);
    // The neighbour is judged again when the route around it goes, and comes back.
    lab.ok("ip route del 10.0.0.96/28");
    assert_eq!(ways(&mut lab, ip(0, 100)), [(0, host_mac(0, 66).0)]);
    lab.ok("ip route add 10.0.0.96/28 via 10.0.1.2 test1");
    assert_eq!(ways(&mut lab, ip(0, 100)), [(1, host_mac(1, 2).0)]);
    lab.close();
}

#[test]
fn a_host_behind_an_attached_route_takes_only_what_no_other_route_has() {
    let mut lab = router();
    lab.ok("ip route add 0.0.0.0/0 via test0\nip route add 10.55.0.0/16 via 10.0.1.2 test1");
    lab.c.sync();
    // A network behind a next hop, and a host of another interface.
    claim(&mut lab, 0, [10, 55, 0, 9].into(), ip(0, 1));
    claim(&mut lab, 0, ip(1, 3), ip(0, 1));
    assert_eq!(ways(&mut lab, [10, 55, 0, 9].into()), [(1, host_mac(1, 2).0)]);
    assert_eq!(ways(&mut lab, ip(1, 3)), [(1, host_mac(1, 3).0)]);
    claim(&mut lab, 0, [198, 51, 100, 9].into(), ip(0, 1));
    assert_eq!(ways(&mut lab, [198, 51, 100, 9].into()), [(0, host_mac(0, 66).0)]);
    lab.close();
}

/// Routes of another table put hosts on an interface: not for the table of the interface.
#[test]
fn a_host_by_a_route_of_another_table_is_one_there() {
    let mut lab = router();
    lab.ok("ip table add 7\nip route add 10.55.0.0/16 table 7 via test0");
    lab.ok("ip route add 10.55.0.0/16 via 10.0.1.2 test1");
    lab.c.sync();
    claim(&mut lab, 0, [10, 55, 0, 9].into(), ip(0, 1));
    assert_eq!(ways(&mut lab, [10, 55, 0, 9].into()), [(1, host_mac(1, 2).0)]);
    let there = lab.cli("show ip fib table 7 10.55.0.9/32");
    assert!(there.contains("10.55.0.9") && there.contains("test0"), "{there}");
    let here = lab.cli("show ip fib 10.55.0.9");
    assert!(here.contains("10.55.0.0/16"), "{here}");
    lab.close();
}

/// The first of several hosts with one address keeps it while it answers.
#[test]
fn of_two_borrowers_the_first_keeps_an_address_while_it_answers() {
    let mut lab = bare().interfaces(4).start();
    lab.ok(
        "set interface ip address test3 10.0.0.1/24\nset interface ip address test2 10.0.2.1/24",
    );
    lab.ok("set interface unnumbered test0 use test3\nset interface unnumbered test1 use test3");
    lab.neighbor(2, ip(2, 2), host_mac(2, 2));
    lab.c.sync();
    claim(&mut lab, 0, ip(0, 9), ip(0, 1));
    assert_eq!(ways(&mut lab, ip(0, 9)), [(0, host_mac(0, 66).0)]);
    lab.receive(1, vec![Packet::arp_request(host_mac(1, 66), ip(0, 9), ip(0, 1)).build()]);
    // The first is asked whether it is still there.
    lab.until("a question", |lab| lab.sent_frames() > 1);
    let asked = lab.sent().into_iter().find(|(i, _)| *i == lab.sw_if(0)).expect("a question");
    assert_eq!(asked.1[..6], host_mac(0, 66).0);
    assert_eq!(ways(&mut lab, ip(0, 9)), [(0, host_mac(0, 66).0)]);
    let asked = thalweg_wire::arp::ArpView::parse(&asked.1[14..]).expect("ARP").repr();
    lab.receive(0, vec![Packet::arp_reply(host_mac(0, 66), &asked).build()]);
    assert_eq!(ways(&mut lab, ip(0, 9)), [(0, host_mac(0, 66).0)]);
    // The other one takes over once it has gone.
    lab.ok("set interface state test0 down");
    lab.c.sync();
    assert_eq!(ways(&mut lab, ip(0, 9)), [(1, host_mac(1, 66).0)]);
    lab.close();
}

/// A neighbour that an operator has written keeps its address from what hosts of other interfaces
/// say, in whatever order they came, and whichever subnet it is.
#[test]
fn a_written_neighbour_beats_those_that_are_heard() {
    let at = ip(0, 9);
    for written_first in [true, false] {
        for heard_on in [1, 3] {
            let mut lab = bare().interfaces(4).start();
            lab.ok("set interface ip address test3 10.0.0.1/24");
            lab.ok("set interface ip address test2 10.0.2.1/24");
            lab.ok("set interface unnumbered test0 use test3");
            lab.ok("set interface unnumbered test1 use test3");
            lab.neighbor(2, ip(2, 2), host_mac(2, 2));
            lab.c.sync();
            let write = format!("set ip neighbor test0 10.0.0.9 {} static", host_mac(0, 9));
            if written_first {
                lab.ok(&write);
            }
            claim(&mut lab, heard_on, at, ip(0, 1));
            if !written_first {
                assert_eq!(ways(&mut lab, at), [(heard_on, host_mac(heard_on, 66).0)]);
                lab.ok(&write);
            }
            assert_eq!(ways(&mut lab, at), [(0, host_mac(0, 9).0)]);
            // The route around them moves away, and comes back; borrowers follow in slices.
            lab.ok("set interface ip address del test3 10.0.0.1/24");
            lab.ok("set interface ip address test3 10.0.0.1/24");
            lab.until("the written neighbour", |lab| ways(lab, at) == [(0, host_mac(0, 9).0)]);
            claim(&mut lab, heard_on, at, ip(0, 1));
            assert_eq!(ways(&mut lab, at), [(0, host_mac(0, 9).0)]);
            // Without what was written, the host that speaks has the address.
            lab.ok("set ip neighbor del test0 10.0.0.9");
            assert_eq!(ways(&mut lab, at), [(heard_on, host_mac(heard_on, 66).0)]);
            lab.close();
        }
    }
}
