//! Session life cycle: limits, timeouts, deleted addresses.

use crate::nat::{FAR, Nat, SHARED, tcp, udp};
use std::time::{Duration, Instant};
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;

fn wait(n: &mut Nat, until: impl Fn(&mut Nat) -> bool) {
    let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
    while !until(n) {
        assert!(Instant::now() < end, "{}", n.lab.cli("show nat44 summary"));
        n.lab.c.run_once(Some(Duration::from_millis(5)));
    }
}

fn counted(n: &mut Nat, what: &str) -> u64 {
    let text = n.lab.cli("show nat44 summary");
    let line = text.lines().find_map(|l| l.strip_prefix(what)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {what} in {text}")).parse().unwrap()
}

/// Number of ports in use, of all addresses and protocols.
fn busy(n: &mut Nat) -> u32 {
    let text = n.lab.cli("show nat44 addresses");
    let busy = text.lines().filter(|l| l.contains(" busy "));
    busy.map(|l| l.split_whitespace().next().unwrap().parse::<u32>().unwrap()).sum()
}

#[test]
fn sessions_end_and_give_their_ports_back() {
    let mut n = Nat::new();
    n.lab.ok("set nat timeout udp 1 tcp-transitory 1");
    for port in 1..=50 {
        n.one(0, 1, udp((ip(0, 2), port), (FAR, 53)));
        n.one(0, 1, tcp((ip(0, 2), port), (FAR, 53), 2));
    }
    assert_eq!(busy(&mut n), 100);
    wait(&mut n, |n| counted(n, "total sessions") == 0);
    assert_eq!((busy(&mut n), counted(&mut n, "sessions expired")), (0, 100));
    n.close();
}

#[test]
fn a_full_table_gives_up_what_is_half_open() {
    let mut n = Nat::with(1, "nat44 plugin enable sessions 20");
    // Ten established connections, and more than ten half-open ones.
    for port in 1..=10 {
        let out = n.one(0, 1, udp((ip(0, 2), port), (FAR, 53)));
        n.one(1, 0, udp((FAR, 53), (SHARED, out.ports().0)));
    }
    for port in 101..=150 {
        n.one(0, 1, tcp((ip(0, 2), port), (FAR, 80), 2));
    }
    assert_eq!(counted(&mut n, "half open sessions recycled"), 40);
    assert_eq!((counted(&mut n, "total sessions"), busy(&mut n)), (20, 20));
    for port in 1..=10 {
        n.one(0, 1, udp((ip(0, 2), port), (FAR, 53)));
    }
    assert_eq!(counted(&mut n, "sessions created"), 60);
    // Ten more established connections fill the table.
    for port in 201..=210 {
        let out = n.one(0, 1, udp((ip(0, 2), port), (FAR, 53)));
        n.one(1, 0, udp((FAR, 53), (SHARED, out.ports().0)));
    }
    let out = n.pass(0, udp((ip(0, 2), 300), (FAR, 53)));
    assert_eq!((out.len(), out[0].port), (1, 0), "an ICMP error");
    assert_eq!(out[0].view().payload()[..2], [3, 1]);
    assert_eq!(n.lab.count("nat44-ed-in2out", "maximum sessions exceeded"), 1);
    n.lab.ok("clear nat44 sessions");
    wait(&mut n, |n| counted(n, "total sessions") == 0);
    assert_eq!(busy(&mut n), 0);
    n.close();
}

#[test]
fn running_out_of_ports_sends_an_icmp_error() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 192.0.2.1 del");
    let out = n.pass(0, udp((ip(0, 2), 1), (FAR, 53)));
    assert_eq!((out.len(), out[0].port, out[0].dst()), (1, 0, ip(0, 2)));
    assert_eq!(out[0].view().payload()[..2], [3, 1]);
    assert_eq!(n.lab.count("nat44-ed-in2out", "out of ports"), 1);
    n.close();
}

#[test]
fn deleting_an_address_ends_its_sessions() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 192.0.2.2");
    let mut of_two = 0;
    for host in 2..=40 {
        let out = n.one(0, 1, udp((ip(0, host), 7), (FAR, 53)));
        of_two += usize::from(out.src() != SHARED);
    }
    assert!(of_two > 5 && of_two < 34, "{of_two}");
    n.lab.ok("nat44 add address 192.0.2.2 del");
    wait(&mut n, |n| n.sessions().len() == 39 - of_two);
    for host in 2..=40 {
        assert_eq!(n.one(0, 1, udp((ip(0, host), 7), (FAR, 53))).src(), SHARED);
    }
    // Another address takes its place.
    n.lab.ok("nat44 add address 192.0.2.3");
    assert_eq!(n.sessions().len(), 39);
    n.close();
}

#[test]
fn an_interfaces_address_is_followed() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 192.0.2.1 del\nnat44 add interface address test1");
    let first = n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53)));
    assert_eq!(first.src(), ip(1, 1));
    let back = n.one(1, 0, udp((FAR, 53), (ip(1, 1), first.ports().0)));
    assert_eq!(back.dst(), ip(0, 2));
    n.lab.ok("set interface ip address del test1 10.0.1.1/24\n\
              set interface ip address test1 10.0.1.9/24");
    for host in 2..=4 {
        n.lab.neighbor(1, ip(1, host), host_mac(1, host));
    }
    n.lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1");
    wait(&mut n, |n| n.sessions().is_empty());
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53))).src(), ip(1, 9));
    n.close();
}

#[test]
fn a_session_is_ended_by_name() {
    let mut n = Nat::new();
    let port = n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53))).ports().0;
    let text = n.lab.cli("nat44 del session in 10.0.0.2:8 udp external-host 198.51.100.7:53");
    assert!(text.contains("no session"), "{text}");
    n.lab.ok("nat44 del session in 10.0.0.2:7 udp external-host 198.51.100.7:53");
    assert_eq!((n.sessions().len(), busy(&mut n)), (0, 0));
    let port = {
        let _ = port;
        n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53))).ports().0
    };
    n.lab.ok(&format!("nat44 del session out 192.0.2.1:{port} udp external-host 198.51.100.7:53"));
    assert!(n.sessions().is_empty());
    n.close();
}

#[test]
fn disabling_deletes_everything() {
    let mut n = Nat::new();
    n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53)));
    n.lab.ok("nat44 plugin disable");
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53))).src(), ip(0, 2));
    assert_eq!(n.lab.cli("show nat44 summary"), "NAT44 is disabled\n");
    n.lab.ok("nat44 add address 192.0.2.1\nset interface nat44 in test0 out test1");
    n.lab.c.sync();
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53))).src(), SHARED);
    n.close();
}

#[test]
fn what_is_shown() {
    let mut n = Nat::new();
    n.one(0, 1, udp((ip(0, 2), 7), (FAR, 53)));
    let text = n.lab.run("show nat44 sessions", None, |_| {});
    for part in [
        "NAT44 ED sessions:",
        "i2o 10.0.0.2 proto UDP port 7 fib 0",
        "external host 198.51.100.7:53",
        "total packets 1, total bytes 59",
        "dynamic translation",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(n.lab.cli("show nat44 interfaces"), "NAT44 interfaces:\n test0 in\n test1 out\n");
    let text = n.lab.cli("show nat44 addresses");
    assert!(text.contains("192.0.2.1\n  tenant VRF independent\n  1 busy udp ports\n"), "{text}");
    n.close();
}

/// Filters apply in combination, to either direction.
#[test]
fn listings_are_filtered() {
    let mut n = Nat::of(2);
    n.know(3..5);
    n.lab.ok("nat44 add static mapping tcp local 10.0.0.2 8080 external 192.0.2.1 80");
    for host in 2..5 {
        for port in [5000, 5001] {
            n.one(0, 1, udp((ip(0, host), port), (FAR, 53)));
        }
    }
    n.one(1, 0, tcp((FAR, 4000), (SHARED, 80), 2));
    let mut count = |words: &str| -> usize {
        let all = n.lab.cli(&format!("show nat44 sessions {words} | json"));
        let all: serde_json::Value = serde_json::from_str(&all).expect(&all);
        assert_eq!(
            n.lab.cli(&format!("show nat44 sessions {words}")).matches("o2i flow").count(),
            all.as_array().unwrap().len()
        );
        all.as_array().unwrap().len()
    };
    assert_eq!(count(""), 7);
    assert_eq!(count("filter i2o saddr 10.0.0.3"), 2);
    assert_eq!(count("filter i2o saddr 10.0.0.3 filter i2o sport 5001"), 1);
    assert_eq!(count("filter i2o proto udp filter i2o dport 53 max 100"), 6);
    assert_eq!(count("filter o2i proto 6"), 1);
    assert_eq!(count("filter o2i saddr 198.51.100.7 filter o2i sport 4000"), 1);
    assert_eq!(count("filter o2i daddr 192.0.2.1 filter o2i dport 80"), 1);
    assert_eq!(count("filter i2o daddr 192.0.2.1"), 0);
    for (words, why) in [
        ("filter", "direction"),
        ("filter i2o", "field"),
        ("filter i2o saddr", "address"),
        ("filter i2o proto xyz", "protocol"),
        ("filter o2i sport 70000", "port"),
    ] {
        let text = n.lab.cli(&format!("show nat44 sessions {words}"));
        assert!(text.contains(why), "{words}: {text}");
    }
    n.close();
}

/// All sessions of an endpoint, if no external host is given.
#[test]
fn sessions_of_an_end_are_ended() {
    let mut n = Nat::of(2);
    n.know(3..4);
    let near = (ip(0, 2), 5000);
    for port in 53..63 {
        n.one(0, 1, udp(near, (FAR, port)));
    }
    n.one(0, 1, udp((ip(0, 2), 5001), (FAR, 53)));
    n.one(0, 1, udp((ip(0, 3), 5000), (FAR, 53)));
    n.lab.ok("nat44 del session in 10.0.0.2:5000 udp external-host 198.51.100.7:53");
    assert_eq!(n.sessions().len(), 11);
    let text = n.lab.cli("nat44 del session in 10.0.0.2:5000 tcp");
    assert!(text.contains("no session of 10.0.0.2:5000"), "{text}");
    n.lab.ok("nat44 del session in 10.0.0.2:5000 udp");
    assert_eq!(n.sessions().len(), 2);
    let name = n.sessions()[0].mapped();
    n.lab.ok(&format!("nat44 del session out {}:{} udp", name.0, name.1));
    assert_eq!(n.sessions().len(), 1);
    n.close();
}

#[test]
fn hash_table_usage_is_shown() {
    let mut n = Nat::of(2);
    n.lab.ok("nat44 add static mapping tcp local 10.0.0.2 8080 external 192.0.2.1 80");
    n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53)));
    let text = n.lab.cli("show nat44 hash tables");
    assert_eq!(text.matches("\n    1 active elements\n").count(), 2, "{text}");
    assert_eq!(text.matches("    2 active elements, room for ").count(), 1, "{text}");
    assert_eq!(text.matches("    0 active elements, room for ").count(), 1, "{text}");
    assert_eq!(n.lab.cli("show nat44 hash tables detail"), text);
    // The capacity is fixed.
    let room = n.lab.cli("set nat frame-queue-nelts 64");
    assert!(room.contains("have a fixed capacity of 32 frames"), "{room}");
    n.lab.ok("set nat frame-queue-nelts 32");
    n.close();
}
