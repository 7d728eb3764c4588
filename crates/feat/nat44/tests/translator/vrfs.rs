//! Routes between routing tables.

use crate::nat::{FAR, Nat, SHARED, echo, tcp, udp};
use crate::setup;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::icmpv4::{self, IcmpRepr};
use thalweg_wire::ipv4::Ipv4View;

const SYN: u8 = 2;
const ACK: u8 = 16;
const HOST: (std::net::Ipv4Addr, u16) = (std::net::Ipv4Addr::new(10, 0, 0, 2), 5000);

/// `test0` is a tenant's inside, in table 7, which has no routes. `test1` and `test2` are outside,
/// in tables 0 and 20, and both have a route to the same host.
fn nat(workers: usize) -> Nat {
    let mut lab = setup().workers(workers).start();
    let mac = |port| host_mac(port, 2).0.map(|b| format!("{b:02x}")).join(":");
    lab.ok(&format!(
        "set interface ip address del test0 all\n\
         set interface ip address del test2 all\n\
         ip table add 7\n\
         ip table add 20\n\
         set interface ip table test0 7\n\
         set interface ip table test2 20\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test2 10.0.2.1/24\n\
         set ip neighbor test0 10.0.0.2 {} static\n\
         set ip neighbor test2 10.0.2.2 {} static\n\
         ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
         ip route add 198.51.100.0/24 table 20 via 10.0.2.2 test2\n\
         nat44 plugin enable sessions 1000\n\
         nat44 add address 192.0.2.1\n\
         set interface nat44 in test0 out test1\n\
         set interface nat44 out test2",
        mac(0),
        mac(2),
    ));
    lab.c.sync();
    Nat { lab }
}

/// A connection, a ping and an ICMP error between the tenant's host and the network behind
/// `outside`.
fn converse(n: &mut Nat, outside: u8, sport: u16) {
    let host = (HOST.0, sport);
    let out = n.one(0, outside, tcp(host, (FAR, 80), SYN));
    assert_eq!((out.src(), out.dst()), (SHARED, FAR));
    let port = out.ports().0;
    // Packets come often enough to take the fast path.
    for flags in [SYN | ACK, ACK, ACK] {
        let back = n.one(outside, 0, tcp((FAR, 80), (SHARED, port), flags));
        assert_eq!((back.dst(), back.ports()), (host.0, (80, sport)));
        assert_eq!(n.one(0, outside, tcp(host, (FAR, 80), ACK)).ports(), (port, 80));
    }
    assert_eq!(n.one(0, outside, echo(host.0, FAR, sport)).src(), SHARED);
    let sent = n.one(0, outside, udp(host, (FAR, 53)));
    let mut error = vec![0; 600];
    let view = Ipv4View::parse(&sent.bytes[14..]).unwrap();
    let len = icmpv4::emit_error(IcmpRepr::unreachable(3), FAR, &view, &mut error).unwrap();
    let out = n.pass_all(outside, vec![error[..len].to_vec()]);
    assert_eq!((out.len(), out[0].port, out[0].dst()), (1, 0, host.0));
    // The host gets the ICMP error of this hop as well.
    let out = n.pass(0, udp(host, (FAR, 33_434)).ttl(1));
    assert_eq!((out.len(), out[0].port, out[0].src(), out[0].dst()), (1, 0, ip(0, 1), host.0));
    assert_eq!(out[0].view().payload()[0], 11, "time exceeded");
}

/// A route, like a label, hands packets to an interface, and they pass its translation.
#[test]
fn a_route_that_has_an_interface_receive_leads_through_its_translation() {
    for workers in [1, 2] {
        let mut n = Nat { lab: setup().workers(workers).start() };
        let mac = |port| host_mac(port, 2);
        n.lab.ok(&format!(
            "set interface ip address del test1 all\n\
             ip table add 5\n\
             set interface ip table test1 5\n\
             set interface ip address test1 10.0.1.1/24\n\
             set ip neighbor test1 10.0.1.2 {} static\n\
             ip route add 198.51.100.0/24 via rx-ip4 test1\n\
             ip route add 198.51.100.0/24 table 5 via 10.0.2.2 test2\n\
             nat44 plugin enable sessions 1000\n\
             nat44 add address 192.0.2.1\n\
             set interface nat44 in test1 out test2",
            mac(1)
        ));
        n.lab.c.sync();
        for count in [1, 40] {
            let out = n.pass_all(0, vec![udp(HOST, (FAR, 53)).build(); count]);
            assert_eq!(out.len(), count);
            assert!(out.iter().all(|o| (o.port, o.src()) == (2, SHARED)), "{out:?}");
        }
        n.lab.up(1, false);
        assert!(n.pass(0, udp(HOST, (FAR, 53))).is_empty());
        n.close();
    }
}

#[test]
fn tables_of_interfaces_outside_are_reached() {
    for workers in [1, 2] {
        let mut n = nat(workers);
        converse(&mut n, 1, 5000);
        // Without a route in one table, the next one is used.
        n.lab.ok("ip route del 198.51.100.0/24 via 10.0.1.2 test1");
        converse(&mut n, 2, 5001);
        assert_eq!(n.sessions().len(), 6);
        n.close();
    }
}

#[test]
fn an_empty_table_reaches_nothing() {
    let mut n = nat(1);
    n.lab.ok("nat44 vrf table add 7");
    assert_eq!(n.lab.cli("show nat44 vrf tables").trim(), "table 7 reaches: none");
    let silent = |n: &mut Nat| {
        let out = n.pass(0, tcp(HOST, (FAR, 80), SYN));
        assert!(out.iter().all(|o| o.port == 0), "{out:?}");
    };
    silent(&mut n);
    // A route that leads into another table does not count, either.
    n.lab.ok("ip route add 198.51.100.0/24 table 7 via 10.0.1.2 test1");
    silent(&mut n);
    let closed = "inter-VRF route not allowed";
    assert_eq!(n.lab.count("nat44-ed-in2out", closed), 1);
    // A table becomes one with a route.
    n.lab.ok("nat44 vrf route add table 7 0");
    n.one(0, 1, tcp(HOST, (FAR, 80), SYN));
    assert_eq!(n.sessions().len(), 1);
    n.lab.ok("nat44 vrf table del 7");
    assert_eq!(n.lab.cli("show nat44 vrf tables").trim(), "");
    n.one(0, 1, tcp((HOST.0, 6000), (FAR, 80), SYN));
    n.close();
}

#[test]
fn tables_are_tried_in_their_order() {
    let mut n = nat(2);
    n.lab
        .ok("nat44 vrf table add 7\nnat44 vrf route add table 7 20\nnat44 vrf route add table 7 0");
    assert_eq!(n.lab.cli("show nat44 vrf tables").trim(), "table 7 reaches: 20 0");
    converse(&mut n, 2, 5000);
    n.lab.ok("nat44 vrf route del table 7 20");
    converse(&mut n, 1, 5001);
    // Existing sessions continue.
    n.one(0, 2, tcp((HOST.0, 5000), (FAR, 80), ACK));
    n.lab.ok("nat44 vrf route add table 7 20");
    converse(&mut n, 1, 5002);
    n.lab.ok("ip route del 198.51.100.0/24 via 10.0.1.2 test1");
    converse(&mut n, 2, 5003);
    for (wrong, why) in [
        (
            "vrf route add table 9 0",
            "there is no nat44 vrf table 9: `nat44 vrf table add 9` adds it",
        ),
        ("vrf route add table 7 0", "nat44 vrf route of table 7 to 0 exists already"),
        ("vrf table add 7", "nat44 vrf table 7 exists already"),
    ] {
        let text = n.lab.cli(&format!("nat44 {wrong}"));
        assert!(text.contains(why), "{text}");
    }
    n.close();
}

#[test]
fn sessions_between_tables_survive_a_restart() {
    let mut n = nat(1);
    converse(&mut n, 1, 5000);
    let port = n.sessions().iter().find(|s| s.inside.dport == 80).unwrap().mapped().1;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions");
    assert_eq!(n.lab.cli(&format!("nat44 save {}", file.display())).trim(), "3 sessions saved");
    n.close();
    let mut n = nat(1);
    let text = n.lab.cli(&format!("nat44 restore {}", file.display()));
    assert_eq!(text.trim(), "3 sessions restored");
    assert_eq!(n.one(0, 1, tcp(HOST, (FAR, 80), ACK)).ports().0, port);
    assert_eq!(n.one(1, 0, tcp((FAR, 80), (SHARED, port), ACK)).dst(), HOST.0);
    n.close();
}

/// Default tables.
#[test]
fn tables_by_default() {
    let mut lab = setup().start();
    let [a, b, c, d, e, f] = host_mac(0, 2).0;
    let mac = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    lab.ok("set interface ip address del test0 all\n\
         set interface ip address del test1 all\n\
         ip table add 7\n\
         ip table add 9\n\
         set interface ip table test0 7\n\
         set interface ip table test1 9\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test1 10.0.1.1/24\n\
         ip route add 198.51.100.0/24 table 9 via 10.0.1.2 test1\n\
         nat44 plugin enable sessions 1000 inside-vrf 7 outside-vrf 9\n\
         nat44 add address 192.0.2.1\n\
         nat44 add static mapping tcp local 10.0.0.2 8080 external 192.0.2.1 80\n\
         set interface nat44 in test0 out test1");
    lab.ok(&format!("set ip neighbor test0 10.0.0.2 {mac} static"));
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    lab.c.sync();
    let mut n = Nat { lab };
    let out = n.one(1, 0, tcp((FAR, 4000), (SHARED, 80), SYN));
    assert_eq!((out.dst(), out.ports().1), (ip(0, 2), 8080));
    assert_eq!(n.one(0, 1, tcp((ip(0, 2), 8080), (FAR, 4000), SYN | ACK)).src(), SHARED);
    assert_eq!(n.one(0, 1, tcp((ip(0, 2), 5000), (FAR, 4000), SYN)).src(), SHARED);
    let text = n.lab.cli("show nat44 static mappings");
    assert!(text.contains("vrf 7"), "{text}");
    let text = n.lab.cli("nat44 plugin enable inside-vrf 8");
    assert!(text.contains("inside-vrf 7 outside-vrf 9 (disable it to have others)"), "{text}");
    n.close();
}

/// A host in table 7 and a server in table 8, which is called by its external address.
#[test]
fn inside_hosts_of_different_tables_meet_by_external_address() {
    for workers in [1, 2] {
        let mut n = nat(workers);
        n.lab.ok("nat44 plugin disable\n\
             set interface ip address del test2 all\n\
             ip table add 8\n\
             set interface ip table test2 8\n\
             set interface ip address test2 10.0.2.1/24\n\
             nat44 plugin enable sessions 1000\n\
             nat44 add address 192.0.2.1\n\
             set interface nat44 in test0 out test1\n\
             set interface nat44 in test2\n\
             nat44 add static mapping tcp local 10.0.2.2 8080 external 192.0.2.1 80 vrf 8");
        let mac = host_mac(2, 2).0.map(|b| format!("{b:02x}")).join(":");
        n.lab.ok(&format!("set ip neighbor test2 10.0.2.2 {mac} static"));
        n.lab.c.sync();
        let server = (ip(2, 2), 8080);
        let call = n.one(0, 2, tcp(HOST, (SHARED, 80), SYN));
        assert_eq!((call.src(), call.dst(), call.ports().1), (SHARED, server.0, server.1));
        let caller = (SHARED, call.ports().0);
        for flags in [SYN | ACK, ACK, ACK] {
            let answer = n.one(2, 0, tcp(server, caller, flags));
            assert_eq!((answer.src(), answer.dst()), (SHARED, HOST.0));
            assert_eq!(answer.ports(), (80, HOST.1));
            let more = n.one(0, 2, tcp(HOST, (SHARED, 80), ACK));
            assert_eq!(
                (more.src(), more.dst(), more.ports()),
                (SHARED, server.0, (caller.1, 8080))
            );
        }
        assert_eq!(n.sessions().len(), 2);
        n.close();
    }
}

/// The back ends of a load balance are in tables 8 and 9, and their callers in table 7.
#[test]
fn back_ends_in_several_tables_are_called_by_external_address() {
    for (workers, affinity) in [(1, ""), (2, ""), (2, " affinity 60")] {
        let mut n = nat(workers);
        n.lab.ok("nat44 plugin disable\n\
             ip route del 198.51.100.0/24 via 10.0.1.2 test1\n\
             set interface ip address del test1 all\n\
             set interface ip address del test2 all\n\
             ip table add 8\n\
             ip table add 9\n\
             set interface ip table test1 9\n\
             set interface ip table test2 8\n\
             set interface ip address test1 10.0.1.1/24\n\
             set interface ip address test2 10.0.2.1/24\n\
             nat44 plugin enable sessions 1000\n\
             nat44 add address 192.0.2.1\n\
             nat44 add address 192.0.2.2\n\
             set interface nat44 in test0\n\
             set interface nat44 in test1\n\
             set interface nat44 in test2");
        n.lab.ok(&format!(
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
             local 10.0.1.2:8080 vrf 9 probability 50 local 10.0.2.2:8080 vrf 8 probability 50\
             {affinity}"
        ));
        for port in [1, 2] {
            let mac = host_mac(port, 2).0.map(|b| format!("{b:02x}")).join(":");
            n.lab.ok(&format!("set ip neighbor test{port} 10.0.{port}.2 {mac} static"));
        }
        n.lab.c.sync();
        let mut called = [0; 3];
        for sport in 5000..5040 {
            let sent = n.pass(0, tcp((HOST.0, sport), (SHARED, 80), SYN));
            let [call] = &sent[..] else { panic!("{workers}: {sent:?}") };
            let (port, caller) = (call.port, (call.src(), call.ports().0));
            called[usize::from(port)] += 1;
            let server = (ip(port, 2), 8080);
            assert_eq!((call.dst(), call.ports().1), server);
            for flags in [SYN | ACK, ACK] {
                let answer = n.one(port, 0, tcp(server, caller, flags));
                assert_eq!((answer.src(), answer.dst()), (SHARED, HOST.0));
                assert_eq!(answer.ports(), (80, sport));
                let more = n.one(0, port, tcp((HOST.0, sport), (SHARED, 80), ACK));
                assert_eq!(
                    (more.src(), more.dst(), more.ports().0),
                    (caller.0, server.0, caller.1)
                );
            }
        }
        // Callers with an affinity stay with their back ends, by their two addresses.
        assert!(called[1] + called[2] == 40, "{called:?}");
        assert!(!affinity.is_empty() || called[1].min(called[2]) > 5, "{called:?}");
        n.close();
    }
}

/// Keys have 24 bits for the table. An interface may be moved to a greater one once it has its
/// role: its hosts must not meet those of the table with the same lower bits.
#[test]
fn hosts_in_a_table_beyond_the_keys_are_not_translated() {
    for workers in [1, 2] {
        let mut n = nat(workers);
        let host = (HOST.0, 5001);
        let open = n.one(0, 1, tcp(host, (FAR, 80), SYN));
        let back = (open.src(), open.ports().0);
        let far = 7 + (1 << 24);
        n.lab.ok(&format!(
            "ip table add {far}\n\
             set interface ip address del test0 all\n\
             set interface ip table test0 {far}\n\
             set interface ip address test0 10.0.0.1/24\n\
             set ip neighbor test0 10.0.0.2 {} static",
            host_mac(0, 2).0.map(|b| format!("{b:02x}")).join(":"),
        ));
        for packets in [1, 20] {
            let all = vec![tcp(host, (FAR, 80), ACK).build(); packets];
            assert!(n.pass_all(0, all).is_empty());
        }
        let ping = n.pass(0, echo(host.0, ip(0, 1), 1));
        assert_eq!(ping.len(), 1, "the router itself answers");
        // The host that the session belongs to is no longer in its table.
        assert!(n.pass(1, tcp((FAR, 80), back, SYN | ACK)).is_empty());
        let errors = n.lab.cli("show errors");
        let count = |line: &&str| line.contains("no translation");
        assert!(errors.lines().any(|line| count(&line)), "{errors}");
        n.close();
    }
}

/// The same of an outside interface: no session is opened whose answers another table's hosts could
/// send.
#[test]
fn nothing_is_translated_to_a_table_beyond_the_keys() {
    for (workers, output) in [(1, false), (2, false), (1, true)] {
        let mut n = nat(workers);
        if output {
            n.lab.ok(
                "set interface nat44 out test1 del\nset interface nat44 out test1 output-feature",
            );
        }
        let far = 1 << 24;
        // The host's own table leads there, or else the outside interface's.
        let table = if output { 7 } else { far };
        n.lab.ok(&format!(
            "ip table add {far}\n\
             set interface ip address del test1 all\n\
             set interface ip table test1 {far}\n\
             set interface ip address test1 10.0.1.1/24\n\
             set ip neighbor test1 10.0.1.2 {} static\n\
             ip route add 198.51.100.0/24 table {table} via 10.0.1.2 test1",
            host_mac(1, 2).0.map(|b| format!("{b:02x}")).join(":"),
        ));
        for packets in [1, 20] {
            let packet = |n| tcp((HOST.0, 6000 + n as u16), (FAR, 80), SYN).build();
            assert!(n.pass_all(0, (0..packets).map(packet).collect()).is_empty());
        }
        let sessions = n.lab.cli("show nat44 sessions");
        assert!(!sessions.contains("6000"), "{sessions}");
        let errors = n.lab.cli("show errors");
        assert!(errors.contains("no translation"), "{errors}");
        n.close();
    }
}
