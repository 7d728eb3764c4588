//! ICMP errors of the router itself quote packets as their senders sent them, and go to these.

use crate::nat::{FAR, Nat, Out, SHARED, udp};
use crate::setup;
use std::net::Ipv4Addr;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::build::Packet;

/// Source, destination and ports of the packet that an error quotes.
fn quoted(error: &Out) -> (Ipv4Addr, Ipv4Addr, (u16, u16)) {
    let view = error.view();
    let quote = &view.payload()[8..];
    let address = |at: usize| Ipv4Addr::from(*quote[at..].first_chunk::<4>().unwrap());
    let port = |at: usize| u16::from_be_bytes(*quote[at..].first_chunk().unwrap());
    (address(12), address(16), (port(20), port(22)))
}

fn long(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Packet {
    Packet::new().ipv4(from.0, to.0).udp(from.1, to.1).payload_len(900).dont_fragment()
}

/// Sends a packet by `port`, which is answered there by an error about what was sent.
#[track_caller]
fn answered(n: &mut Nat, port: u8, packet: Packet, kind: u8) {
    let sent = packet.build();
    let out = n.pass_all(port, vec![sent.clone()]);
    let [error] = &out[..] else { panic!("{out:02x?}\n{}", n.lab.cli("show errors")) };
    let address = |at: usize| Ipv4Addr::from(*sent[at..].first_chunk::<4>().unwrap());
    let number = |at: usize| u16::from_be_bytes(*sent[at..].first_chunk().unwrap());
    assert_eq!((error.port, error.dst()), (port, address(12)), "{error:02x?}");
    assert_eq!(error.view().payload()[0], kind);
    assert_eq!(quoted(error), (address(12), address(16), (number(20), number(22))));
    // Checksums are those of the packet that was sent, with the TTL that it has here.
    let quote = &error.view().payload()[8..];
    assert_eq!(quote[26..28], sent[26..28], "UDP checksum");
}

/// Moves an interface with its address and the neighbour 10.0.PORT.HOST to a table.
fn settle(n: &mut Nat, port: u8, table: u32, host: u8) {
    let mac = host_mac(port, 2).0.map(|b| format!("{b:02x}")).join(":");
    n.lab.ok(&format!(
        "set interface ip address del test{port} all\n\
         ip table add {table}\n\
         set interface ip table test{port} {table}\n\
         set interface ip address test{port} 10.0.{port}.1/24\n\
         set ip neighbor test{port} 10.0.{port}.{host} {mac} static"
    ));
}

fn bare(workers: usize) -> Nat {
    Nat { lab: setup().workers(workers).start() }
}

/// Creates a translator with the inside in table 7, the outside in table 0; with `output` it
/// translates on output.
fn across(workers: usize, output: bool) -> Nat {
    let mut n = bare(workers);
    settle(&mut n, 0, 7, 2);
    n.lab.ok(&format!(
        "ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
         ip route add 198.51.100.0/24 table 7 via 10.0.1.2 test1\n\
         nat44 plugin enable sessions 1000\n\
         nat44 add address 192.0.2.1\n\
         set interface nat44 in test0\n\
         set interface nat44 out test1{}",
        if output { " output-feature" } else { "" }
    ));
    n.lab.c.sync();
    n
}

#[test]
fn errors_between_tables_are_about_what_was_sent() {
    for (workers, output) in [(1, false), (2, false), (1, true)] {
        let mut n = across(workers, output);
        let host = (ip(0, 2), 5000);
        let out = n.one(0, 1, udp(host, (FAR, 53)));
        let port = out.ports().0;
        n.lab.ok("set interface mtu packet 600 test1\nset interface mtu packet 700 test0");
        answered(&mut n, 0, long(host, (FAR, 53)), 3);
        answered(&mut n, 1, long((FAR, 53), (SHARED, port)), 3);
        answered(&mut n, 1, udp((FAR, 53), (SHARED, port)).ttl(1), 11);
        n.close();
    }
}

/// The host's own table has no route: the outside interface's is asked.
#[test]
fn errors_are_about_what_was_sent_where_only_the_other_table_leads() {
    let mut n = across(1, false);
    n.lab.ok("ip route del 198.51.100.0/24 table 7 via 10.0.1.2 test1");
    let host = (ip(0, 2), 5000);
    let port = n.one(0, 1, udp(host, (FAR, 53))).ports().0;
    n.lab.ok("set interface mtu packet 600 test1\nset interface mtu packet 700 test0");
    answered(&mut n, 0, long(host, (FAR, 53)), 3);
    answered(&mut n, 1, long((FAR, 53), (SHARED, port)), 3);
    n.close();
}

/// Two tenants have hosts with the same address, and both talk with the same port of one host.
#[test]
fn errors_are_about_the_right_tenants_packet() {
    let mut n = across(1, false);
    settle(&mut n, 2, 8, 2);
    n.lab.ok("set interface ip address del test2 all\n\
         set interface ip address test2 10.0.0.1/24\n\
         ip route add 198.51.100.0/24 table 8 via 10.0.1.2 test1\n\
         set interface nat44 in test2\n\
         nat44 add static mapping udp local 10.0.0.2 53 external 192.0.2.1 1007 vrf 7\n\
         nat44 add static mapping udp local 10.0.0.2 53 external 192.0.2.1 1008 vrf 8\n\
         nat44 add static mapping udp local 10.0.9.9 53 external 192.0.2.1 1009 vrf 8\n\
         ip table unreachables 0 on");
    for port in [0, 2] {
        let mac = host_mac(port, 2).0.map(|b| format!("{b:02x}")).join(":");
        n.lab.ok(&format!("set ip neighbor test{port} 10.0.0.2 {mac} static"));
    }
    n.lab.c.sync();
    let from = (FAR, 4000);
    for (to, port) in [(1007, 0), (1008, 2)] {
        let got = n.one(1, port, udp(from, (SHARED, to)));
        assert_eq!((got.dst(), got.ports()), (ip(0, 2), (4000, 53)));
    }
    n.lab.ok("set interface mtu packet 600 test0\nset interface mtu packet 600 test2");
    for to in [1007, 1008] {
        answered(&mut n, 1, long(from, (SHARED, to)), 3);
        answered(&mut n, 1, udp(from, (SHARED, to)).ttl(1), 11);
    }
    // No interface leads to this one.
    answered(&mut n, 1, udp(from, (SHARED, 1009)), 3);
    n.close();
}

/// A neighbour that does not answer.
#[test]
fn errors_about_silent_hosts_in_another_table_are_about_what_was_sent() {
    let mut n = across(1, false);
    n.lab.ok("nat44 add static mapping udp local 10.0.0.77 53 external 192.0.2.1 1077 vrf 7");
    n.lab.c.sync();
    // ARP requests, and the error when nobody has answered these.
    let out = n.pass(1, udp((FAR, 4000), (SHARED, 1077)));
    let errors = out.iter().filter(|o| o.port == 1).map(quoted).collect::<Vec<_>>();
    assert_eq!(errors, [(FAR, SHARED, (4000, 1077))]);
    n.close();
}

/// Callers are at 10.0.0.2, in table `callers`; 10.0.2.2, in table `servers`, is called by an
/// external address.
fn hairpin(workers: usize, callers: u32, servers: u32) -> Nat {
    let mut n = bare(workers);
    for (port, table) in [(0, callers), (2, servers)] {
        if table != 0 {
            settle(&mut n, port, table, 2);
        }
    }
    n.lab.ok(&format!(
        "nat44 plugin enable sessions 1000\n\
         nat44 add address 192.0.2.1\n\
         set interface nat44 in test0 out test1\n\
         set interface nat44 in test2\n\
         nat44 add static mapping udp local 10.0.2.2 53 external 192.0.2.1 5353 vrf {servers}"
    ));
    n.lab.c.sync();
    n
}

#[test]
fn errors_about_hairpinned_packets_are_about_what_was_sent() {
    for (workers, callers, servers) in [(1, 0, 0), (2, 0, 0), (1, 7, 8), (2, 7, 8)] {
        let mut n = hairpin(workers, callers, servers);
        for sport in 5000..5008 {
            let (host, called) = ((ip(0, 2), sport), (SHARED, 5353));
            let got = n.one(0, 2, udp(host, called));
            assert_eq!((got.src(), got.dst()), (SHARED, ip(2, 2)));
            let caller = (got.src(), got.ports().0);
            assert_eq!(n.one(2, 0, udp((ip(2, 2), 53), caller)).dst(), host.0);
            n.lab.ok("set interface mtu packet 600 test0\nset interface mtu packet 600 test2");
            answered(&mut n, 0, long(host, called), 3);
            answered(&mut n, 2, long((ip(2, 2), 53), caller), 3);
            answered(&mut n, 0, udp(host, called).ttl(1), 11);
            answered(&mut n, 2, udp((ip(2, 2), 53), caller).ttl(1), 11);
            n.lab.ok("set interface mtu packet 1500 test0\nset interface mtu packet 1500 test2");
        }
        n.close();
    }
}

/// The first packet is the one whose TTL expires, as that of a traceroute.
#[test]
fn a_traceroute_to_an_inside_host_by_external_address_is_answered() {
    for output in ["", " output-feature"] {
        let mut n = hairpin(1, 0, 0);
        n.lab.ok(&format!(
            "set interface nat44 in test0 out test1 del\nset interface nat44 in test2 del\n\
             set interface nat44 in test0 out test1{output}\nset interface nat44 in test2"
        ));
        answered(&mut n, 0, udp((ip(0, 2), 5000), (SHARED, 5353)).ttl(1), 11);
        // An external address of nobody is not asked for.
        let out = n.pass(0, udp((ip(0, 2), 5000), (SHARED, 5354)).ttl(1));
        assert!(out.is_empty(), "{out:02x?}");
        n.close();
    }
}

/// On output, a packet with a TTL of 1 has been let through: it does not leave as it is.
#[test]
fn a_packet_to_an_external_address_of_nobody_is_dropped_on_output() {
    let mut n = bare(1);
    n.lab.ok("nat44 plugin enable sessions 1000\n\
         nat44 add address 192.0.2.1\n\
         set interface nat44 out test1 output-feature\n\
         ip route add 192.0.2.0/24 via 10.0.1.2 test1");
    n.lab.c.sync();
    for ttl in [2, 3] {
        assert!(n.pass(0, udp((ip(0, 2), 5000), (SHARED, 5354)).ttl(ttl)).is_empty());
    }
    assert_eq!(n.lab.count("nat44-ed-in2out-output", "no translation"), 2);
    n.close();
}

/// On output, packets of interfaces without a role are translated too: those that were there before
/// and those that come later. The error is one that comes after that, of a label too many.
#[test]
fn errors_about_packets_that_were_translated_on_output_are_about_what_was_sent() {
    let with_labels = || setup().with(&thalweg_feat_mpls::FEATURE);
    let mut n = Nat { lab: with_labels().start() };
    n.lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1 out-labels 33\n\
              nat44 plugin enable sessions 1000\n\
              nat44 add address 192.0.2.1\n\
              set interface nat44 out test1 output-feature\n\
              set interface mtu packet 928 test1");
    n.lab.interface(7);
    n.lab.ok("set interface ip address test7 10.0.7.1/24");
    let mac = host_mac(7, 2).0.map(|b| format!("{b:02x}")).join(":");
    n.lab.ok(&format!("set ip neighbor test7 10.0.7.2 {mac} static"));
    n.lab.c.sync();
    for port in [0, 7] {
        answered(&mut n, port, long((ip(port, 2), 5000), (FAR, 53)), 3);
    }
    // Another one translates on output, then none.
    n.lab.ok("set interface nat44 in test0\n\
              set interface nat44 out test2 output-feature\n\
              set interface nat44 out test1 output-feature del\n\
              set interface nat44 in test0 del");
    let restores = |n: &Nat| {
        let sw_ifs = [0, 1, 2, 7].map(|port| n.lab.sw_if(port));
        sw_ifs.map(|i| {
            let on = n.lab.c.enabled_features(i);
            on.iter().any(|(_, all)| all.contains(&"nat44-ed-icmp-error"))
        })
    };
    assert_eq!(restores(&n), [true; 4]);
    n.lab.ok("set interface nat44 out test2 output-feature del");
    assert_eq!(restores(&n), [false; 4]);
    n.lab.ok("set interface nat44 in test0 out test1");
    assert_eq!(restores(&n), [true, true, false, false]);
    n.close();
}
