//! Translation, rules and tracking on sub-interfaces and through a BVI, and what goes while all of
//! it is in use.

use crate::setup;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_device::{SwIfIndex, TagMatch, VlanTag, interface};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4::Ipv4View;

const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Host behind the outside.
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// 10.1.VLAN.HOST
fn inside(vlan: u16, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, vlan as u8, host)
}

/// Adds `testN.ID` with one tag and an address, and its host 2.
fn sub(lab: &mut Lab, n: u8, id: u16) -> SwIfIndex {
    let sub = bare(lab, n, id);
    lab.ok(&format!("set interface ip address test{n}.{id} {}/24", inside(id, 1)));
    lab.ok(&format!("set ip neighbor test{n}.{id} {} {} static", inside(id, 2), host_mac(n, 2)));
    sub
}

pub(crate) fn bare(lab: &mut Lab, n: u8, id: u16) -> SwIfIndex {
    let port = lab.sw_if(n);
    let matches = TagMatch::Outer { tag: VlanTag::dot1q(id), exact: true };
    let sub = interface::create_sub(&mut lab.c, port, id.into(), matches).unwrap();
    interface::set_admin(&mut lab.c, sub, true).unwrap();
    sub
}

/// A datagram in a VLAN of `testN`, to the router.
fn datagram(n: u8, vlan: u16, ends: [(Ipv4Addr, u16); 2]) -> Vec<u8> {
    to(our_mac(n), n, vlan, ends)
}

fn to(mac: MacAddr, n: u8, vlan: u16, [from, to]: [(Ipv4Addr, u16); 2]) -> Vec<u8> {
    let ether = Packet::new().ether(host_mac(n, 2), mac).vlan(vlan);
    ether.ipv4(from.0, to.0).udp(from.1, to.1).payload(&[7; 40]).build()
}

/// VLAN, addresses and ports of a frame with one tag.
fn read(frame: &[u8]) -> (u16, [(Ipv4Addr, u16); 2]) {
    assert_eq!((&frame[12..14], &frame[16..18]), (&[0x81, 0][..], &[8, 0][..]), "{frame:02x?}");
    let vlan = u16::from_be_bytes([frame[14], frame[15]]);
    let ip = Ipv4View::parse(&frame[18..]).unwrap();
    let port = |at: usize| u16::from_be_bytes([ip.payload()[at], ip.payload()[at + 1]]);
    (vlan, [(ip.src(), port(0)), (ip.dst(), port(2))])
}

/// Translation between VLANs of two ports, in VLAN 10 of the first and, through a BVI, in VLAN 30.
fn translating(workers: usize) -> Lab {
    let mut lab = setup().workers(workers).buffers(4096).start();
    sub(&mut lab, 0, 10);
    sub(&mut lab, 1, 20);
    bare(&mut lab, 0, 30);
    lab.ok("set interface l2 bridge test0.30 5
        set interface l2 tag-rewrite test0.30 pop 1");
    lab.cli("create loopback interface instance 0");
    lab.ok("set interface state loop0 up
        set interface l2 bridge loop0 5 bvi
        set interface ip address loop0 10.1.30.1/24");
    let host = host_mac(0, 2);
    lab.ok(&format!("set ip neighbor loop0 10.1.30.2 {host} static"));
    lab.ok(&format!("ip route add 198.51.100.0/24 via {} test1.20", inside(20, 2)));
    lab.ok("l2fib add 02:00:00:99:00:02 5 test0.30 static");
    lab
}

/// MAC address at which frames of a VLAN of `test0` reach the router.
fn gateway(lab: &Lab, vlan: u16) -> MacAddr {
    match vlan {
        30 => interface::view(&lab.c, interface::find(&lab.c, "loop0").unwrap()).unwrap().mac,
        _ => our_mac(0),
    }
}

#[test]
fn hosts_in_vlans_are_translated() {
    for workers in [1, 2] {
        let mut lab = translating(workers);
        lab.ok("nat44 plugin enable sessions 1000
            nat44 add address 192.0.2.1
            set interface nat44 in test0.10 out test1.20
            set interface nat44 in loop0");
        both_ways(&mut lab);
        lab.close();
    }
}

#[test]
fn rules_translate_what_comes_by_vlans() {
    for workers in [1, 2] {
        let mut lab = translating(workers);
        lab.ok("flow add 7 table=0,priority=2,ip,actions=ct(table=1,nat)
            flow add 7 table=0,priority=1,actions=normal
            flow add 7 table=1,ip,ct_state=+new,actions=ct(commit,nat(src=192.0.2.1)),normal
            flow add 7 table=1,ip,ct_state=+est,actions=normal
            set interface flow test0.10 7
            set interface flow loop0 7
            flow add 8 table=0,priority=2,ip,actions=ct(table=1,nat)
            flow add 8 table=0,priority=1,actions=normal
            flow add 8 table=1,ip,ct_state=+est,actions=normal
            set interface flow test1.20 8");
        both_ways(&mut lab);
        assert!(lab.cli("show conntrack").contains("192.0.2.1"));
        lab.close();
    }
}

/// Packets of hosts are translated, and answers find them. Other VLANs are as before.
fn both_ways(lab: &mut Lab) {
    let plain = sub(lab, 0, 40);
    for vlan in [10, 30] {
        for n in [1, 40] {
            let host = (inside(vlan, 2), 5000 + n);
            let mac = gateway(lab, vlan);
            for worker in 0..lab.c.workers() {
                let one = to(mac, 0, vlan, [host, (FAR, 53)]);
                lab.deliver_to(worker, 0, vec![one; n.into()]);
                lab.settle();
                let sent = lab.sent();
                assert_eq!(sent.len(), usize::from(n), "{vlan}: {}", lab.cli("show errors"));
                let (out, [shared, far]) = read(&sent[0].1);
                assert_eq!((out, shared.0, far), (20, SHARED, (FAR, 53)), "{vlan}");
                assert!(sent.iter().all(|(_, frame)| read(frame).1[0] == shared));
                let back = datagram(1, 20, [(FAR, 53), shared]);
                lab.deliver_to(worker, 1, vec![back; n.into()]);
                lab.settle();
                let sent = lab.sent();
                assert_eq!(sent.len(), usize::from(n), "{vlan}: {}", lab.cli("show errors"));
                for (sw_if, frame) in sent {
                    assert_eq!(sw_if, lab.sw_if(0));
                    assert_eq!(read(&frame), (vlan, [(FAR, 53), host]));
                }
            }
        }
    }
    lab.receive(0, vec![datagram(0, 40, [(inside(40, 2), 9), (ip(2, 2), 53)])]);
    let sent = lab.sent();
    assert_eq!((sent.len(), &sent[0].1[26..30]), (1, &inside(40, 2).octets()[..]));
    assert_eq!(lab.c.interface_totals(plain).rx_packets, 1);
}

/// Rules see what a sub-interface receives, in layer 2 and 3, and no packets of its neighbours.
#[test]
fn rules_are_those_of_a_sub_interface() {
    for n in [1, 60] {
        let mut lab = translating(2);
        let port = lab.sw_if(0);
        sub(&mut lab, 0, 11);
        lab.ok("flow add 9 priority=2,udp,tp_dst=53,in_port=test0.10,actions=drop
            flow add 9 priority=1,actions=normal
            set interface flow test0.10 9");
        let sends = |lab: &mut Lab, vlan: u16, dport: u16| {
            let (from, mac) = ((inside(vlan, 2), 1), gateway(lab, vlan));
            lab.receive(0, vec![to(mac, 0, vlan, [from, (FAR, dport)]); n]);
            lab.sent().len()
        };
        for round in 0..2 {
            let expected = [0, n, n, n];
            let found =
                [(10, 53), (10, 54), (11, 53), (30, 53)].map(|(v, p)| sends(&mut lab, v, p));
            assert_eq!(found, expected, "{round}");
        }
        // Each once, for the port and for the sub-interface.
        let count = |lab: &Lab, name: &str| {
            let sw_if = interface::find(&lab.c, name).unwrap();
            lab.c.interface_totals(sw_if).rx_packets
        };
        assert_eq!(count(&lab, "test0.10"), 4 * n as u64);
        assert_eq!(lab.c.interface_totals(port).rx_packets, 8 * n as u64);
        lab.ok("set interface flow test0.10 disable");
        assert_eq!(sends(&mut lab, 10, 53), n);
        // Rules of a bridge domain hold for its sub-interfaces; tags are as they came.
        lab.ok("flow add 5 priority=2,udp,tp_dst=53,dl_vlan=30,actions=drop
            flow add 5 priority=1,actions=normal");
        assert_eq!([53, 54].map(|p| sends(&mut lab, 30, p)), [0, n]);
        lab.ok("flow del 5
            flow add 9 priority=2,udp,tp_dst=53,in_port=loop0,actions=drop
            set interface flow loop0 9");
        assert_eq!([53, 54].map(|p| sends(&mut lab, 30, p)), [0, n]);
        lab.close();
    }
}

/// A sub-interface goes with routes, translations, rules and connections on it, while packets come:
/// others go on, all packets are accounted for, and no buffer is lost.
#[test]
fn what_goes_in_use_disturbs_nothing_else() {
    let mut lab = translating(2);
    lab.ok("nat44 plugin enable sessions 1000
        nat44 add address 192.0.2.1
        set interface nat44 in test0.10 out test1.20
        flow add 7 table=0,priority=2,ip,actions=ct(table=1)
        flow add 7 table=0,priority=1,actions=normal
        flow add 7 table=1,ip,ct_state=+new,actions=ct(commit),normal
        flow add 7 table=1,ip,ct_state=+est,actions=normal
        set interface flow test0.10 7");
    sub(&mut lab, 0, 40);
    let bvi = gateway(&lab, 30);
    let load = |lab: &mut Lab| {
        for worker in 0..2 {
            let frames = (0..120u16)
                .map(|i| match i % 4 {
                    0 => (0, datagram(0, 10, [(inside(10, 2), i), (FAR, 53)])),
                    1 => (0, to(bvi, 0, 30, [(inside(30, 2), i), (FAR, 53)])),
                    2 => (0, datagram(0, 40, [(inside(40, 2), i), (ip(2, 2), 53)])),
                    _ => (1, datagram(1, 20, [(FAR, 53), (SHARED, 1024 + i)])),
                })
                .collect();
            lab.deliver_mixed(worker, frames);
        }
    };
    // Number of packets of VLAN 40 that `test2` has sent, which has no others.
    let others = |lab: &mut Lab| {
        let port = lab.sw_if(2);
        lab.sent().iter().filter(|(sw_if, _)| *sw_if == port).count()
    };
    let mut seen = 0;
    for round in 0..9 {
        load(&mut lab);
        match round {
            1 => lab.ok("delete sub-interface test0.10"),
            3 => lab.ok("delete sub-interface test1.20"),
            5 => lab.ok("delete sub-interface test0.30"),
            6 => lab.ok("set interface l3 loop0\ncreate bridge-domain 5 del"),
            7 => lab.ok("delete loopback interface intfc loop0"),
            _ => {}
        }
        lab.settle();
        seen += others(&mut lab);
        assert_eq!(seen, (round + 1) * 60, "{round}");
    }
    for gone in ["test0.10", "test1.20", "test0.30", "loop0"] {
        assert!(interface::find(&lab.c, gone).is_err(), "{gone}");
    }
    // The numbers are free, and new ones inherit nothing from the old.
    sub(&mut lab, 0, 10);
    lab.receive(0, vec![datagram(0, 10, [(inside(10, 2), 1), (ip(2, 2), 53)])]);
    let sent = lab.sent();
    assert_eq!((sent.len(), &sent[0].1[26..30]), (1, &inside(10, 2).octets()[..]));
    lab.close();
}

/// VLANs take turns on one index, each with a translation and rules of its own. A packet of one is
/// never forwarded as the other's. The first packets of a new one are neither translated nor
/// tracked; those of the old one never leave with their inside address.
#[test]
fn vlans_take_turns_in_use() {
    for workers in [1, 2] {
        let mut lab = translating(workers);
        lab.ok("nat44 plugin enable sessions 1000
            nat44 add address 192.0.2.1
            set interface nat44 in test0.10 out test1.20
            flow add 7 table=0,priority=2,ip,actions=ct(table=1)
            flow add 7 table=0,priority=1,actions=normal
            flow add 7 table=1,ip,ct_state=+new,actions=ct(commit),normal
            flow add 7 table=1,ip,ct_state=+est,actions=normal
            set interface flow test0.10 7");
        sub(&mut lab, 0, 40);
        let index = interface::find(&lab.c, "test0.10").unwrap();
        for round in 0..12u16 {
            let (old, new) = (10 + round % 2, 11 - round % 2);
            let load = |lab: &mut Lab, vlan: u16| {
                for worker in 0..workers {
                    let frames = (0..240).map(|i| match i % 4 {
                        3 => (0, datagram(0, 40, [(inside(40, 2), i), (ip(2, 2), 53)])),
                        _ => (0, datagram(0, vlan, [(inside(vlan, 2), i), (FAR, 53)])),
                    });
                    lab.deliver_mixed(worker, frames.collect());
                }
            };
            load(&mut lab, old);
            // Every other time in the midst of it.
            if round / 2 % 2 == 0 {
                lab.until("some", |lab| lab.sent_frames() > 0);
            }
            lab.ok(&format!("delete sub-interface test0.{old}"));
            assert_eq!(sub(&mut lab, 0, new), index);
            load(&mut lab, new);
            lab.settle();
            let (test1, test2) = (lab.sw_if(1), lab.sw_if(2));
            let sent = lab.sent();
            let of = |port, src: Ipv4Addr| {
                let at = if port == test1 { 30 } else { 26 };
                let from = |frame: &[u8]| frame.get(at..at + 4) == Some(&src.octets()[..]);
                sent.iter().filter(|(out, frame)| *out == port && from(frame)).count()
            };
            let all = 60 * workers;
            assert_eq!(of(test2, inside(40, 2)), 2 * all, "{round}");
            assert_eq!(of(test1, inside(new, 2)), 3 * all, "{round}");
            assert_eq!(of(test1, inside(old, 2)), 0, "{round}");
            assert_eq!(lab.c.interface_totals(index).rx_packets, 3 * all as u64);
            lab.ok(&format!(
                "set interface nat44 in test0.{new}
                set interface flow test0.{new} 7"
            ));
        }
        lab.close();
    }
}
