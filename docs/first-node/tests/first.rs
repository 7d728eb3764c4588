//! The feature between test interfaces.

use std::net::Ipv4Addr;
use thalweg_device::testing::{self, Lab};
use thalweg_engine::Feature;
use thalweg_wire::build::Packet;

fn lab(workers: usize) -> Lab {
    let features: [&Feature; 8] = [
        &thalweg_device::FEATURE,
        &thalweg_fib::FEATURE,
        &thalweg_feat_ethernet::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_arp::FEATURE,
        &thalweg_feat_ip::FEATURE,
        &thalweg_feat_ip4::FEATURE,
        &thalweg_feat_first::FEATURE,
    ];
    let mut lab = Lab::new(&features, workers, 2048, 2);
    lab.ok("set interface ip address test0 10.0.0.1/24
        set interface ip address test1 10.0.1.1/24
        set ip neighbor test1 10.0.1.2 02:00:00:00:01:02 static");
    lab
}

/// A packet to a host behind `test1`.
fn frame(host: u8, ttl: u8) -> Vec<u8> {
    let (from, to) = (Ipv4Addr::new(10, 0, 0, host), Ipv4Addr::new(10, 0, 1, 2));
    let packet = Packet::new().ipv4(from, to).udp(1024, 53).payload(&[0; 20]).ttl(ttl).build();
    let header = [&testing::our_mac(0)[..], &[2, 0, 0, 0, 0, host], &[8, 0]].concat();
    [header, packet].concat()
}

#[test]
fn unlucky_packets_are_dropped_where_it_is_enabled() {
    let mut lab = lab(1);
    lab.receive(0, vec![frame(2, 13), frame(2, 64)]);
    assert_eq!(lab.sent().len(), 2);
    lab.ok("set interface drop-ttl test0 enable");
    lab.receive(0, vec![frame(2, 13), frame(2, 64)]);
    assert_eq!(lab.sent().len(), 1);
    assert_eq!(lab.count("drop-ttl", "unlucky ttl"), 1);
    lab.close();
}

#[test]
fn the_kernel_does_as_the_function() {
    let arrivals = || (0..=255).map(|ttl| frame(2, if ttl % 5 == 0 { 13 } else { ttl.max(2) }));
    let run = |node: &str| {
        let mut lab = lab(1);
        let sw_if = lab.sw_if(0);
        lab.c.enable_feature("ip4-unicast", node, sw_if, true).expect("a feature");
        lab.receive(0, arrivals().collect());
        let found = (lab.sent(), lab.count(node, "unlucky ttl"));
        lab.close();
        found
    };
    let (plain, fast) = (run("drop-ttl"), run("drop-ttl-fast"));
    assert!(plain.1 > 50 && plain.0.len() as u64 + plain.1 == 256, "{}", plain.1);
    assert_eq!(plain, fast);
}

#[test]
fn packets_meet_their_owner() {
    let mut lab = lab(2);
    let sw_if = lab.sw_if(0);
    for node in ["drop-ttl-owner", "drop-ttl"] {
        lab.c.enable_feature("ip4-unicast", node, sw_if, true).expect("a feature");
    }
    lab.receive(0, (2..66).map(|host| frame(host, 64)).collect());
    let mut workers: Vec<usize> = lab.sent_by_workers().iter().map(|(_, w, _)| *w).collect();
    assert_eq!(workers.len(), 64);
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers, [0, 1]);
    assert!(lab.cli("show handoff").contains("drop-ttl-handoff"));
    lab.close();
}
