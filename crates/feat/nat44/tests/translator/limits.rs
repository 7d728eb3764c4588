//! Port assignment and session limits.

use crate::nat::{FAR, Nat, SHARED, udp};
use thalweg_device::testing::ip4::ip;

/// External ports of a host's sessions, one packet each, without refused sessions.
fn ports(n: &mut Nat, host: u8, from: std::ops::Range<u16>) -> Vec<u16> {
    from.filter_map(|port| {
        let out = n.pass(0, udp((ip(0, host), port), (FAR, 53)));
        out.first().filter(|out| out.port == 1).map(|out| out.ports().0)
    })
    .collect()
}

#[test]
fn ports_are_those_of_the_algorithm() {
    let mut n = Nat::of(1);
    n.lab.ok("nat addr-port-assignment-alg default");
    assert!(ports(&mut n, 2, 1..9).iter().all(|p| *p >= 1024));
    n.lab.ok("nat addr-port-assignment-alg port-range 2000 - 2019");
    let text = n.lab.cli("show nat addr-port-assignment-alg");
    assert!(text.contains("port-range 2000 - 2019, 20 ports"), "{text}");
    let mut got = ports(&mut n, 2, 100..130);
    got.sort_unstable();
    assert_eq!(got, (2000..2020).collect::<Vec<u16>>());
    assert_eq!(n.lab.count("nat44-ed-in2out", "out of ports"), 10);
    n.lab.ok("nat addr-port-assignment-alg map-e psid 10 psid-offset 6 psid-len 6");
    // Sessions with other ports end.
    n.await_no_sessions();
    let got = ports(&mut n, 2, 200..300);
    assert_eq!(got.len(), 100);
    for p in got {
        assert!(p >> 4 & 63 == 10 && p >> 10 > 0, "{p:#x}");
    }
    let refused = n.lab.cli("nat addr-port-assignment-alg map-e psid 99 psid-offset 6 psid-len 6");
    assert!(refused.contains("has more than psid-len 6 bits"), "{refused}");
    n.close();
}

#[test]
fn mistakes_are_named_where_they_are() {
    let mut n = Nat::of(1);
    for (command, what) in [
        (
            "nat addr-port-assignment-alg port-range 60000 - 32000",
            "alg: port-range 60000 - 32000: the last port 32000 is below the first, 60000",
        ),
        (
            "nat addr-port-assignment-alg map-e psid 99 psid-offset 6 psid-len 6",
            "alg: map-e: psid 99 has more than psid-len 6 bits",
        ),
        (
            "nat44 add static mapping tcp local 10.0.0.2 80 external 203.0.113.300 80",
            "bad address `203.0.113.300'",
        ),
    ] {
        let refused = n.lab.cli(command);
        assert!(refused.contains(what), "{command}: {refused}");
    }
    // The ticker receives no packets that could be traced.
    let refused = n.lab.cli("trace add nat44-ed-ticker 1");
    assert!(refused.contains("expected an input node"), "{refused}");
    assert_eq!(refused.matches("nat44-ed-ticker").count(), 1, "{refused}");
    n.close();
}

#[test]
fn answers_find_their_worker_with_any_algorithm() {
    for algorithm in ["port-range 3000 - 3100", "map-e psid 5 psid-offset 4 psid-len 6"] {
        let mut n = Nat::of(3);
        n.know(3..30);
        n.lab.ok(&format!("nat addr-port-assignment-alg {algorithm}"));
        n.lab.c.sync();
        for host in 2..30 {
            let packet = udp((ip(0, host), 77), (FAR, 53)).build();
            let out = n.pass_on(usize::from(host) % 3, 0, vec![packet]).remove(0);
            let (src, port) = (out.src(), out.ports().0);
            let back = udp((FAR, 53), (src, port)).build();
            let out = n.pass_on(usize::from(host + 1) % 3, 1, vec![back]).remove(0);
            assert_eq!((out.dst(), out.ports().1), (ip(0, host), 77), "{algorithm}");
        }
        n.close();
    }
}

#[test]
fn sessions_per_host_are_limited() {
    let mut n = Nat::new();
    n.know(3..4);
    // Some exist before the limit is set.
    assert_eq!(ports(&mut n, 2, 1..4).len(), 3);
    n.lab.ok("set nat44 session limit 5 per-host");
    n.lab.c.sync();
    assert_eq!(ports(&mut n, 3, 1..9).len(), 5);
    assert_eq!(ports(&mut n, 2, 10..20).len(), 2);
    let reason = "max user sessions exceeded";
    assert_eq!(n.lab.count("nat44-ed-in2out", reason), 3 + 8);
    // One session less, one more.
    n.lab.ok("nat44 del session in 10.0.0.2:1 udp external-host 198.51.100.7:53");
    assert_eq!(ports(&mut n, 2, 30..40).len(), 1);
    let text = n.lab.cli("show nat44 session limits");
    assert!(text.contains("per host: 5 sessions"), "{text}");
    n.lab.ok("set nat44 session limit 0 per-host");
    assert_eq!(ports(&mut n, 2, 50..60).len(), 10);
    n.close();
}

#[test]
fn sessions_per_table_are_limited() {
    let mut n = Nat::of(2);
    n.know(3..51);
    n.lab.ok("set nat44 session limit 9 vrf 0\nset nat44 session limit 1 vrf 7");
    let all: usize = (2..40).map(|host| ports(&mut n, host, 1..2).len()).sum();
    assert_eq!(all, 9);
    let text = n.lab.cli("show nat44 session limits");
    assert!(text.contains("vrf 0: 9 sessions\nvrf 7: 1 session\n"), "{text}");
    n.lab.ok("set nat44 session limit 0\nset nat44 session limit 0 vrf 7");
    n.lab.c.sync();
    assert_eq!(ports(&mut n, 50, 1..20).len(), 19);
    n.close();
}

#[test]
fn a_full_table_may_refuse() {
    let mut n = Nat::with(1, "nat44 plugin enable sessions 20");
    n.lab.ok("set nat44 table-full refuse");
    assert_eq!(ports(&mut n, 2, 1..31).len(), 20);
    assert_eq!(n.lab.count("nat44-ed-in2out", "maximum sessions exceeded"), 10);
    n.lab.ok("set nat44 table-full recycle");
    assert_eq!(ports(&mut n, 2, 100..110).len(), 10);
    assert_eq!(n.sessions().len(), 20);
    assert_eq!(n.sessions()[0].mapped().0, SHARED);
    n.close();
}

/// IPFIX collectors are notified of exhausted resources, once a second.
#[test]
fn exhaustion_is_reported() {
    let collector = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(std::time::Duration::from_millis(10))).unwrap();
    let to = collector.local_addr().unwrap();
    // The event and its further fields, from the first record of a template. `again` runs until it
    // comes.
    let notice_when = |n: &mut Nat, template: u16, again: &mut dyn FnMut(&mut Nat)| -> Vec<u8> {
        let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
        loop {
            assert!(std::time::Instant::now() < end, "no record of template {template}");
            again(n);
            n.lab.c.run_once(Some(std::time::Duration::from_millis(5)));
            let mut m = [0; 2000];
            let Ok(len) = collector.recv(&mut m) else { continue };
            let mut at = 16;
            while at < len {
                let word = |at: usize| u16::from_be_bytes([m[at], m[at + 1]]);
                let end = at + usize::from(word(at + 2));
                if word(at) == template {
                    return m[at + 4 + 8..end].to_vec();
                }
                at = end;
            }
        }
    };
    let notice = |n: &mut Nat, template| notice_when(n, template, &mut |_| ());
    let mut n = Nat::of(1);
    n.know(3..5);
    n.lab.ok(&format!("nat44 log ipfix {to}\nset nat44 session limit 2 per-host"));
    n.lab.c.sync();
    assert_eq!(ports(&mut n, 2, 1..6).len(), 2);
    assert_eq!(notice(&mut n, 260), [13, 0, 0, 0, 3, 0, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0, 0]);
    n.lab.ok("set nat44 session limit 0 per-host\nset nat44 session limit 4");
    n.lab.c.sync();
    assert_eq!(ports(&mut n, 3, 1..6).len(), 2);
    // The next second begins sooner or later.
    let mut again = |n: &mut Nat| assert_eq!(ports(n, 3, 6..7).len(), 0);
    assert_eq!(notice_when(&mut n, 259, &mut again), [13, 0, 0, 0, 1, 0, 0, 0, 4]);
    n.lab.ok("set nat44 session limit 0\nnat44 add address 192.0.2.1 del");
    n.lab.c.sync();
    assert_eq!(ports(&mut n, 4, 1..6).len(), 0);
    assert_eq!(notice(&mut n, 258), [3, 0, 0, 0, 0]);
    n.close();
}
