//! The feature between test interfaces.

use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, ip, udp};

fn lab(workers: usize) -> Lab {
    let setup = Lab::of(&thalweg_feat_first::FEATURE).with(&thalweg_feat_ip4::FEATURE);
    setup.workers(workers).interfaces(2).ip4(2..=2).start()
}

/// A packet to a host behind `test1`.
fn frame(host: u8, ttl: u8) -> Vec<u8> {
    framed(0, host, &udp(ip(0, host), ip(1, 2), 20).ttl(ttl).build())
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
