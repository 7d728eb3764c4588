//! Static mappings, hairpinning, twice-NAT, load balancing.

use crate::nat::{FAR, Nat, SHARED, echo, tcp, udp};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::build::Packet;

#[test]
fn a_mapped_port_is_reachable_from_outside() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add static mapping tcp local 10.0.0.2 8080 external 192.0.2.1 80");
    let (near, far) = ((ip(0, 2), 8080), (FAR, 4000));
    for _ in 0..2 {
        let out = n.one(1, 0, tcp(far, (SHARED, 80), 2));
        assert_eq!((out.dst(), out.ports()), (ip(0, 2), (4000, 8080)));
        let out = n.one(0, 1, tcp(near, far, 0x12));
        assert_eq!((out.src(), out.ports()), (SHARED, (80, 4000)));
        assert_eq!(n.one(1, 0, tcp(far, (SHARED, 80), 0x10)).dst(), ip(0, 2));
    }
    // Sessions that the host opens from that port have the external endpoint, too.
    let out = n.one(0, 1, tcp(near, (FAR, 443), 2));
    assert_eq!((out.src(), out.ports()), (SHARED, (80, 443)));
    assert!(n.pass(1, tcp(far, (SHARED, 81), 2)).is_empty());
    assert!(n.pass(1, tcp((FAR, 4001), (SHARED, 80), 0x10)).is_empty());
    assert_eq!(n.sessions().len(), 2);
    n.lab.ok("nat44 add static mapping tcp local 10.0.0.2 8080 external 192.0.2.1 80 del");
    n.await_no_sessions();
    n.close();
}

/// Mappings by which host 10.0.0.3 keeps its address when it calls others.
const IDENTITIES: [&str; 3] = [
    "nat44 add identity mapping 10.0.0.3",
    "nat44 add identity mapping 10.0.0.3 udp 5555",
    "nat44 add static mapping local 10.0.0.3 external 10.0.0.3",
];

#[test]
fn a_host_that_keeps_its_address_calls_others_by_their_external_ones() {
    for identity in IDENTITIES {
        for output_feature in [false, true] {
            let mut n = Nat::new();
            if output_feature {
                n.lab.ok("set interface nat44 in test0 out test1 del\n\
                          set interface nat44 in test0 out test1 output-feature");
            }
            n.lab.ok("nat44 add static mapping udp local 10.0.0.2 53 external 192.0.2.1 5353");
            n.lab.ok(identity);
            for _ in 0..3 {
                let out = n.one(0, 0, udp((ip(0, 3), 5555), (SHARED, 5353)));
                assert_eq!((out.src(), out.ports()), (ip(0, 3), (5555, 53)), "{identity}");
                assert_eq!(out.dst(), ip(0, 2));
                let back = n.pass(0, udp((ip(0, 2), 53), (ip(0, 3), 5555)));
                assert_eq!(back.len(), 1, "{identity}");
                assert_eq!((back[0].src(), back[0].ports()), (SHARED, (5353, 5555)), "{identity}");
            }
            assert_eq!(n.lab.count("error-drop", "packet goes round in the graph"), 0);
            n.close();
        }
    }
}

/// With `output-feature`, a host that keeps its address gets from other inside hosts what needs no
/// translation.
#[test]
fn a_host_that_keeps_its_address_gets_protocols_and_fragments_as_they_are() {
    for identity in IDENTITIES {
        let mut n = Nat::new();
        n.lab.ok("set interface nat44 in test0 out test1 del\n\
                  set interface nat44 in test0 out test1 output-feature");
        n.lab.ok(identity);
        let from = || Packet::new().ipv4(ip(0, 2), ip(0, 3));
        for packet in [
            from().gre().payload_len(20),
            from().protocol(17).id(9).fragment(16, false).payload_len(64),
            from().udp(53, 5555).id(10).fragment(0, true).payload_len(64),
        ] {
            let out = n.pass(0, packet.clone());
            assert_eq!(out.len(), 1, "{identity}");
            assert_eq!((out[0].src(), out[0].dst()), (ip(0, 2), ip(0, 3)), "{identity}");
            assert_eq!(out[0].bytes[34..], packet.build()[20..], "{identity}");
        }
        n.close();
    }
}

/// A session of an inside host that changes nothing would be found by its own packets again.
#[test]
fn a_caller_that_claims_an_external_address_makes_no_circle() {
    for identity in IDENTITIES {
        let mut n = Nat::new();
        n.lab.ok(identity);
        n.pass(1, udp((SHARED, 7), (ip(0, 3), 5555)));
        n.pass(0, udp((ip(0, 3), 5555), (SHARED, 7)));
        n.pass(1, udp((SHARED, 7), (ip(0, 3), 5555)));
        assert_eq!(n.lab.count("error-drop", "packet goes round in the graph"), 0, "{identity}");
        n.close();
    }
}

#[test]
fn a_mapped_address_is_reachable_from_outside() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add static mapping local 10.0.0.2 external 192.0.2.50");
    let named = Ipv4Addr::new(192, 0, 2, 50);
    assert_eq!(n.one(1, 0, udp((FAR, 9), (named, 53))).ports(), (9, 53));
    assert_eq!(n.one(1, 0, echo(FAR, named, 5)).ports().0, 5);
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 700), (FAR, 10))).src(), named);
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 700), (FAR, 10))).ports(), (700, 10));
    assert_eq!(n.one(0, 1, udp((ip(0, 3), 700), (FAR, 10))).src(), SHARED);
    n.close();
}

#[test]
fn identity_mappings() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add identity mapping 10.0.0.2 udp 700");
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 700), (FAR, 10))).src(), ip(0, 2));
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 701), (FAR, 10))).src(), SHARED);
    assert_eq!(n.one(1, 0, udp((FAR, 11), (ip(0, 2), 700))).dst(), ip(0, 2));
    n.close();
}

#[test]
fn inside_hosts_reach_the_router_by_an_address_with_an_identity_mapping() {
    for workers in [1, 2] {
        for mapping in ["10.0.1.1", "10.0.1.1 icmp 5", "external test1 icmp 5"] {
            let mut n = Nat::of(workers);
            n.lab.ok(&format!(
                "nat44 add interface address test1\nnat44 add identity mapping {mapping}"
            ));
            for from in [0, 1, 0] {
                let out = n.one(from, from, echo(ip(from, 2), ip(1, 1), 5));
                let seen = (out.src(), out.dst(), out.ports().0);
                assert_eq!(seen, (ip(1, 1), ip(from, 2), 5), "{mapping}");
            }
            n.close();
        }
    }
}

#[test]
fn inside_hosts_reach_one_with_an_identity_mapping() {
    for workers in [1, 2] {
        for mapping in ["10.0.0.3", "10.0.0.3 icmp 5"] {
            let mut n = Nat::of(workers);
            n.lab.ok(&format!("nat44 add identity mapping {mapping}"));
            for _ in 0..3 {
                for (from, to) in [(2, 3), (3, 2)] {
                    let out = n.pass(0, echo(ip(0, from), ip(0, to), 5));
                    let seen = (out.len(), out[0].src(), out[0].dst(), out[0].ports().0);
                    assert_eq!(seen, (1, ip(0, from), ip(0, to), 5), "{mapping}");
                }
            }
            n.close();
        }
    }
}

#[test]
fn inside_hosts_reach_each_other_by_external_address() {
    for workers in [1, 2] {
        let mut n = Nat::of(workers);
        n.lab.ok("nat44 add static mapping udp local 10.0.0.3 53 external 192.0.2.1 53");
        let ask = udp((ip(0, 2), 5000), (SHARED, 53));
        let mut seen = None;
        for _ in 0..3 {
            let out = n.pass(0, ask.clone());
            assert_eq!((out.len(), out[0].port), (1, 0));
            assert_eq!((out[0].src(), out[0].dst(), out[0].ports().1), (SHARED, ip(0, 3), 53));
            let port = out[0].ports().0;
            assert_eq!(*seen.get_or_insert(port), port);
            let back = n.pass(0, udp((ip(0, 3), 53), (SHARED, port)));
            assert_eq!((back.len(), back[0].port), (1, 0));
            assert_eq!((back[0].src(), back[0].dst()), (SHARED, ip(0, 2)));
            assert_eq!(back[0].ports(), (53, 5000));
        }
        assert_eq!(n.sessions().len(), 2);
        n.close();
    }
}

#[test]
fn twice_nat_translates_clients() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 10.9.9.9 twice-nat\n\
              ip route add 10.9.9.0/24 via 10.0.1.2 test1\n\
              nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 80 twice-nat");
    let far = (FAR, 4000);
    let out = n.one(1, 0, tcp(far, (SHARED, 80), 2));
    let twice = Ipv4Addr::new(10, 9, 9, 9);
    assert_eq!((out.src(), out.dst(), out.ports().1), (twice, ip(0, 2), 80));
    let port = out.ports().0;
    let back = n.one(0, 1, tcp((ip(0, 2), 80), (twice, port), 0x12));
    assert_eq!((back.src(), back.dst(), back.ports()), (SHARED, FAR, (80, 4000)));
    n.close();
}

#[test]
fn clients_are_balanced() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add load-balancing static mapping protocol udp external 192.0.2.1:53 \
              local 10.0.0.2:5353 probability 25 local 10.0.0.3:5354 probability 75");
    let mut counts = BTreeMap::new();
    for port in 1000..1200 {
        let out = n.pass(1, udp((FAR, port), (SHARED, 53)));
        assert_eq!((out.len(), out[0].port), (1, 0));
        *counts.entry((out[0].dst(), out[0].ports().1)).or_insert(0) += 1;
        let back = n.one(0, 1, udp((out[0].dst(), out[0].ports().1), (FAR, port)));
        assert_eq!((back.src(), back.ports()), (SHARED, (53, port)));
    }
    assert_eq!(counts.keys().map(|k| k.1).collect::<Vec<_>>(), [5353, 5354]);
    assert!((25..80).contains(&counts[&(ip(0, 2), 5353)]), "{counts:?}");
    n.close();
}

#[test]
fn segments_are_kept_small() {
    let mut n = Nat::new();
    n.lab.ok("nat mss-clamping 1200");
    let mss = |size: u16| [2, 4, (size >> 8) as u8, size as u8];
    for (offered, want) in [(1460u16, 1200u16), (1000, 1000)] {
        let syn = tcp((ip(0, 2), 5000 + offered), (FAR, 80), 2).tcp_options(&mss(offered));
        let out = n.one(0, 1, syn);
        let tcp = thalweg_wire::tcp::TcpView::parse(out.view().payload()).unwrap().mss();
        assert_eq!(tcp, Some(want));
    }
    n.close();
}

#[test]
fn mappings_belong_to_one_worker() {
    let mut n = Nat::of(2);
    for host in 2..=9u8 {
        n.lab.neighbor(0, ip(0, host), host_mac(0, host));
        n.lab.ok(&format!(
            "nat44 add static mapping udp local 10.0.0.{host} 53 external 192.0.2.1 {}",
            2000 + u16::from(host)
        ));
        for worker in [0, 1] {
            let ask = udp((FAR, 7), (SHARED, 2000 + u16::from(host))).build();
            let out = n.pass_on(worker, 1, vec![ask]);
            assert_eq!((out.len(), out[0].dst()), (1, ip(0, host)));
            let back = udp((ip(0, host), 53), (FAR, 7)).build();
            let back = n.pass_on(1 - worker, 0, vec![back]);
            assert_eq!(back[0].ports(), (2000 + u16::from(host), 7));
            assert_eq!(back[0].worker, out[0].worker);
        }
    }
    assert_eq!(n.sessions().len(), 8);
    n.close();
}

/// The addresses of an interface can be used for inside hosts and for twice-NAT at once.
#[test]
fn interface_addresses_serve_both_pools() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 192.0.2.1 del\nnat44 add interface address test1\n\
              nat44 add interface address test1 twice-nat\n\
              nat44 add static mapping tcp local 10.0.0.2 80 external test1 80 twice-nat");
    let text = n.lab.cli("show nat44 interface address");
    assert_eq!(text.matches("test1").count(), 2, "{text}");
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53))).src(), ip(1, 1));
    assert_eq!(n.one(1, 0, tcp((FAR, 4000), (ip(1, 1), 80), 2)).src(), ip(1, 1));
    n.lab.ok("nat44 add interface address test1 twice-nat del");
    let text = n.lab.cli("show nat44 interface address");
    assert_eq!(text.matches("test1").count(), 1, "{text}");
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 5001), (FAR, 53))).src(), ip(1, 1));
    n.close();
}

/// An address is added once only, or its ports would be assigned twice.
#[test]
fn an_address_is_there_once() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 10.0.1.1 tenant-vrf 7");
    let text = n.lab.cli("nat44 add interface address test1");
    assert!(text.contains("address 10.0.1.1 tenant-vrf 7 exists already"), "{text}");
    n.lab.ok("nat44 add address 10.0.1.1 tenant-vrf 7 del\nnat44 add interface address test1");
    let text = n.lab.cli("nat44 add address 10.0.1.0 - 10.0.1.9 tenant-vrf 7");
    assert!(text.contains("pool address 10.0.1.1 of an interface exists already"), "{text}");
    // The interface gets such an address later, and its configured use is deleted.
    n.lab.ok("nat44 add address 10.0.9.1 tenant-vrf 7\nset interface ip address test1 10.0.9.1/24");
    let count = |n: &mut Nat| n.lab.cli("show nat44 addresses").matches("10.0.9.1").count();
    assert_eq!(count(&mut n), 1);
    assert!(n.lab.cli("show nat44 addresses").contains("tenant VRF: 7"));
    n.lab.ok("nat44 add address 10.0.9.1 tenant-vrf 7 del");
    assert_eq!(count(&mut n), 1);
    n.close();
}

/// With `exact`, only this address of the twice-NAT pool is used.
#[test]
fn exact_selects_the_twice_nat_address() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 10.9.9.1 - 10.9.9.8 twice-nat\n\
              nat44 add address 10.9.9.9 tenant-vrf 7 twice-nat\n\
              ip route add 10.9.9.0/24 via 10.0.1.2 test1\n\
              nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 80 twice-nat exact 10.9.9.9\n\
              nat44 add static mapping tcp local 10.0.0.3 80 external 192.0.2.1 81 twice-nat exact 10.9.9.10");
    for caller in 1..20 {
        let far = (Ipv4Addr::new(198, 51, 100, caller), 4000);
        let out = n.one(1, 0, tcp(far, (SHARED, 80), 2));
        assert_eq!((out.src(), out.dst()), (Ipv4Addr::new(10, 9, 9, 9), ip(0, 2)));
    }
    // An address that is not in the pool: sessions are refused.
    assert!(n.pass(1, tcp((FAR, 4000), (SHARED, 81), 2)).iter().all(|o| o.port == 1));
    assert_eq!(n.lab.count("nat44-ed-out2in", "out of ports"), 1);
    assert!(n.lab.cli("show nat44 static mappings").contains("exact 10.9.9.9"));
    for (words, why) in [
        ("tcp local 10.0.0.4 80 external 192.0.2.1 82 exact 10.9.9.9", "requires twice-nat"),
        ("local 10.0.0.4 external 192.0.2.5 exact 10.9.9.9", "requires twice-nat"),
    ] {
        let text = n.lab.cli(&format!("nat44 add static mapping {words}"));
        assert!(text.contains(why), "{text}");
    }
    let text = n.lab.cli("nat44 add identity mapping 10.0.0.2 exact 10.9.9.9");
    assert!(text.contains("`exact' applies to static mappings"), "{text}");
    n.close();
}
