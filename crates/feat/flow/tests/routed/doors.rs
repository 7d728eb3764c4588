//! Ways into an interface without a device: its rules see each packet once, as received by the
//! interface that it came by, and one that is down takes none.

use crate::setup;
use crate::subs::bare;
use thalweg_device::testing::ip4::{framed, ip, sound, udp};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_device::{SwIfIndex, interface};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;

/// Hosts behind `test0` may open connections, nobody may open one to them.
const FIREWALL: &str = "flow add 10 'priority=2,arp,actions=normal'
    flow add 10 'priority=1,ip,ct_state=-trk,actions=ct(table=0)'
    flow add 10 'priority=1,ip,ct_state=+trk+new,in_port=test0,actions=ct(commit),normal'
    flow add 10 'priority=1,ip,ct_state=+trk+est,actions=normal'
    flow add 10 'priority=0,actions=drop'";

/// `test0` and the router's `loop0`, with 10.0.0.1, are the ports of bridge domain 10.
fn bridged(workers: usize) -> (Lab, SwIfIndex, MacAddr) {
    let mut lab = setup().workers(workers).buffers(4096).start();
    lab.ok("set interface ip address del test0 all");
    lab.cli("create loopback interface instance 0");
    let host = host_mac(0, 2);
    lab.ok(&format!(
        "set interface state loop0 up
         set interface l2 bridge loop0 10 bvi
         set interface l2 bridge test0 10
         set interface ip address loop0 10.0.0.1/24
         set ip neighbor loop0 10.0.0.2 {host} static
         l2fib add {host} 10 test0 static"
    ));
    let bvi = interface::find(&lab.c, "loop0").unwrap();
    let mac = interface::view(&lab.c, bvi).unwrap().mac;
    lab.c.sync();
    lab.sent();
    (lab, bvi, mac)
}

/// A frame from a host behind `test0` to the router.
fn to(mac: MacAddr, packet: Packet) -> Vec<u8> {
    let mut frame = framed(0, 2, &packet.build());
    frame[..6].copy_from_slice(&mac.0);
    frame
}

/// Packets that the rules with this text have matched.
fn taken(lab: &mut Lab, set: u32, rule: &str) -> u64 {
    let text = lab.cli(&format!("flow dump {set}"));
    let line = text.lines().find(|line| line.contains(rule)).expect("the rule");
    let (_, rest) = line.split_once("n_packets=").expect("a count");
    rest[..rest.find(',').expect("more")].parse().expect("a number")
}

fn received(lab: &Lab, sw_if: SwIfIndex) -> [u64; 2] {
    let totals = lab.c.interface_totals(sw_if);
    [totals.rx_packets, totals.tx_packets]
}

#[test]
fn a_firewall_on_a_bridge_sees_each_packet_of_its_bvi_once() {
    let outside = |sport, dport| Packet::new().ipv4(ip(1, 2), ip(0, 2)).udp(sport, dport);
    for workers in [1, 2] {
        for n in [1, 40] {
            let (mut lab, bvi, mac) = bridged(workers);
            lab.ok(FIREWALL);
            let many = n as u64;
            // Packets from outside, by the router.
            lab.receive(1, vec![framed(1, 2, &outside(9, 9).build()); n]);
            assert_eq!(lab.sent(), []);
            let seen = ["ct_state=-trk", "priority=0"].map(|rule| taken(&mut lab, 10, rule));
            assert_eq!(seen, [many; 2]);
            // Packets from inside, and back.
            lab.receive(0, vec![to(mac, udp(ip(0, 2), ip(1, 2), 20)); n]);
            let sent = lab.sent();
            assert_eq!(sent.len(), n);
            sent.iter().for_each(|(_, frame)| assert_eq!(sound(1, 2, frame).src(), ip(0, 2)));
            lab.receive(1, vec![framed(1, 2, &outside(53, 1024).build()); n]);
            let (sent, left) = (lab.sent(), lab.sw_if(0));
            assert_eq!(sent.len(), n);
            assert!(sent.iter().all(|(sw_if, f)| *sw_if == left && f[..6] == host_mac(0, 2).0));
            let rules = ["ct_state=-trk", "+new", "+est", "priority=0"];
            let seen = rules.map(|rule| taken(&mut lab, 10, rule));
            assert_eq!(seen, [3 * many, many, many, many]);
            // Counted once as well: what the router got, and what it has sent.
            assert_eq!(received(&lab, bvi), [many, 2 * many]);
            lab.close();
        }
    }
}

#[test]
fn the_router_is_the_port_of_its_bvi() {
    let (mut lab, bvi, mac) = bridged(1);
    let out = to(mac, udp(ip(0, 2), ip(1, 2), 20));
    let back = framed(1, 2, &udp(ip(1, 2), ip(0, 2), 20).build());
    lab.ok("flow add 10 priority=0,actions=normal\n\
            flow add 10 priority=9,in_port=loop0,actions=drop");
    for n in [1, 40] {
        lab.receive(0, vec![out.clone(); n]);
        assert_eq!(lab.sent().len(), n, "what goes to the router");
        lab.receive(1, vec![back.clone(); n]);
        assert_eq!(lab.sent().len(), 0, "what comes from it");
    }
    assert_eq!(["priority=0", "in_port=loop0"].map(|rule| taken(&mut lab, 10, rule)), [41; 2]);
    // Outputs by this port go to the router, copies too, and not round.
    lab.ok("flow add 10 priority=9,in_port=loop0,actions=normal");
    for actions in ["output:loop0", "output:loop0,output:test2", "output:test2,output:loop0"] {
        lab.ok(&format!("flow add 10 priority=9,in_port=test0,actions={actions}"));
        let before = received(&lab, bvi);
        lab.receive(0, vec![out.clone(); 5]);
        let sent = lab.sent();
        let by = |n| sent.iter().filter(|(sw_if, _)| *sw_if == lab.sw_if(n)).count();
        assert_eq!((by(1), by(2)), (5, if actions.contains("test2") { 5 } else { 0 }), "{actions}");
        assert_eq!(received(&lab, bvi), [before[0] + 5, before[1]]);
    }
    lab.ok("flow add 10 priority=9,in_port=loop0,actions=output:test0,in_port");
    lab.receive(1, vec![back; 5]);
    assert_eq!(lab.sent().len(), 5, "what comes back is to another host");
    lab.close();
}

/// A BVI's own set applies to packets that it receives, like on any interface with an address; the
/// set of the bridge domain to packets that enter the domain by it.
#[test]
fn a_bvi_has_a_set_of_its_own() {
    let (mut lab, bvi, mac) = bridged(1);
    lab.ok("flow add 7 priority=0,actions=drop\nset interface flow loop0 7");
    let out = to(mac, udp(ip(0, 2), ip(1, 2), 20));
    let back = framed(1, 2, &udp(ip(1, 2), ip(0, 2), 20).build());
    let both = |lab: &mut Lab, n: usize| {
        lab.receive(0, vec![out.clone(); n]);
        let there = lab.sent().len();
        lab.receive(1, vec![back.clone(); n]);
        [there, lab.sent().len()]
    };
    for n in [1, 40] {
        assert_eq!(both(&mut lab, n), [0, n]);
    }
    assert_eq!(taken(&mut lab, 7, "priority=0"), 41);
    // Both enabled, each has its direction.
    lab.ok("flow add 10 priority=0,actions=normal\n\
            flow add 10 priority=1,in_port=loop0,actions=drop\n\
            flow add 7 priority=5,actions=normal");
    for n in [1, 40] {
        assert_eq!(both(&mut lab, n), [n, 0]);
    }
    let seen = ["priority=0", "in_port=loop0"].map(|rule| taken(&mut lab, 10, rule));
    assert_eq!((seen, taken(&mut lab, 7, "priority=5")), ([41; 2], 41));
    // A loopback again, it is no port.
    lab.ok("set interface l3 loop0");
    assert_eq!(both(&mut lab, 1), [0, 0]);
    assert_eq!(taken(&mut lab, 10, "in_port=loop0"), 41);
    assert_eq!(received(&lab, bvi)[0], 82);
    lab.close();
}

#[test]
fn a_bvi_that_is_down_takes_nothing() {
    let (mut lab, bvi, mac) = bridged(1);
    lab.ok("set interface state loop0 down");
    for n in [1, 40] {
        let before = lab.count("bvi-input", "BVI is down");
        lab.receive(0, vec![to(mac, udp(ip(0, 2), ip(1, 2), 20)); n]);
        assert_eq!((lab.sent().len(), received(&lab, bvi)), (0, [0; 2]));
        assert_eq!(lab.count("bvi-input", "BVI is down"), before + n as u64);
    }
    lab.close();
}

#[test]
fn rules_see_what_comes_out_of_a_pseudowire_once() {
    let mut lab = setup().with(&thalweg_feat_mpls::FEATURE).buffers(4096).start();
    lab.ok("mpls table add 0\nset interface mpls test1 enable");
    lab.cli("mpls tunnel add l2-only via 10.0.1.2 test1 out-labels 60");
    lab.ok("set interface state mpls-tunnel0 up
        mpls local-label add 71 eos via l2-input-on mpls-tunnel0
        set interface ip address del test0 all
        set interface l2 bridge mpls-tunnel0 10
        set interface l2 bridge test0 10
        flow add 10 priority=1,in_port=test0,actions=normal
        flow add 10 priority=0,actions=drop");
    let wire = interface::find(&lab.c, "mpls-tunnel0").unwrap();
    let inner = Packet::new().ether(host_mac(5, 5), host_mac(0, 2)).ipv4(ip(5, 5), ip(0, 2));
    let inner = inner.udp(1, 2).payload(&[7; 40]).build();
    let frame = {
        let packet = Packet::new().mpls(71).payload(&inner).build();
        let mut frame = framed(1, 2, &packet);
        frame[12..14].copy_from_slice(&[0x88, 0x47]);
        frame
    };
    let mut all = 0;
    for n in [1, 40] {
        lab.receive(1, vec![frame.clone(); n]);
        all += n as u64;
        assert_eq!((lab.sent(), taken(&mut lab, 10, "priority=0")), (vec![], all));
    }
    lab.ok("flow add 10 priority=1,in_port=mpls-tunnel0,actions=normal");
    for n in [1, 40] {
        lab.receive(1, vec![frame.clone(); n]);
        let sent = lab.sent();
        assert!(sent.len() == n && sent.iter().all(|(_, out)| *out == inner));
    }
    assert_eq!(taken(&mut lab, 10, "in_port=mpls-tunnel0"), 41);
    assert_eq!(received(&lab, wire)[0], 2 * 41);
    // One that is down takes nothing, and its rules see nothing.
    lab.ok("set interface state mpls-tunnel0 down");
    lab.receive(1, vec![frame; 3]);
    assert_eq!((lab.sent().len(), received(&lab, wire)[0]), (0, 2 * 41));
    assert_eq!(taken(&mut lab, 10, "in_port=mpls-tunnel0"), 41);
    lab.close();
}

#[test]
fn a_sub_interface_that_is_down_takes_nothing() {
    let mut lab = setup().start();
    let sub = bare(&mut lab, 0, 10);
    lab.ok("flow add 8 priority=0,actions=normal\nset interface flow test0.10 8");
    let frame = Packet::new().ether(host_mac(0, 2), thalweg_device::testing::our_mac(0)).vlan(10);
    let frame = frame.ipv4(ip(0, 2), ip(1, 2)).udp(1, 2).payload(&[7; 40]).build();
    for (up, counted) in [(true, 41), (false, 41), (true, 82)] {
        interface::set_admin(&mut lab.c, sub, up).unwrap();
        for n in [1, 40] {
            lab.receive(0, vec![frame.clone(); n]);
        }
        assert_eq!(received(&lab, sub)[0], counted);
        assert_eq!(taken(&mut lab, 8, "priority=0"), counted);
    }
    lab.close();
}
