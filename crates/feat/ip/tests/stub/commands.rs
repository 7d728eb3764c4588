//! Commands find the protocol by the version of an address.

use crate::protocol::{Requests, STUB_4, STUB_6, lab, leaf};
use std::cell::Cell;
use std::rc::Rc;
use thalweg_device::testing::Lab;
use thalweg_feat_ip::ping::{self, Reply};
use thalweg_feat_ip::{
    Ip4, Ip6, MAX_TABLES, Path, PathKind, Source, add_route, add_table, replace,
};
use thalweg_fib::TableId;
use thalweg_graph::clock;
use thalweg_tables::Ipv6Prefix;
use thalweg_testkit::golden;

/// Both protocols, with a subnet of each on two interfaces.
fn both() -> Lab {
    let mut lab = lab(&[&STUB_4, &STUB_6]);
    for n in 0..2 {
        lab.ok(&format!(
            "set interface ip address test{n} 10.0.{n}.1/24\n\
             set interface ip address test{n} 2001:db8:0:{n}::1/64"
        ));
    }
    lab
}

#[test]
fn routes_of_the_other_version_come_and_go() {
    let mut lab = both();
    let before = (lab.cli("show ip fib"), lab.cli("show ip6 fib"));
    lab.ok("ip route add 2001:db8:9::/48 via 2001:db8:0:1::2 test1\n\
         ip route add 2001:db8:a::/48 via 2001:db8:9::7\n\
         ip route add 2001:db8:b::77/64 via 2001:db8:0:1::2 via 2001:db8::3 test0 weight 2\n\
         ip route add 2001:db8:c::/48 via fe80::1 test0\n\
         ip route add ::/0 prohibit");
    golden!("tests/golden/show_ip6_fib.txt", lab.cli("show ip6 fib"));
    golden!("tests/golden/show_ip6_fib_route.txt", lab.cli("show ip6 fib 2001:db8:a::/48"));
    golden!("tests/golden/show_ip6_fib_summary.txt", lab.cli("show ip6 fib summary"));
    let at = leaf(&lab, TableId(0), "2001:db8:9::/48");
    assert!(at.is_some() && leaf(&lab, TableId(0), "2001:db8:9::/49").is_none());
    // Its recursive route follows.
    lab.ok("ip route replace 2001:db8:9::/48 via 2001:db8::2 test0");
    assert_ne!(leaf(&lab, TableId(0), "2001:db8:9::/48"), at);
    let shown = lab.cli("show ip6 fib 2001:db8:a::1");
    assert!(shown.contains("via 2001:db8::2 test0"), "{shown}");
    assert_eq!(lab.cli("show ip6 fib 2001:db8:d::"), lab.cli("show ip6 fib ::/0"));
    lab.ok("ip route del 2001:db8:b::/64 via 2001:db8:0:1::2");
    let left = lab.cli("show ip6 fib 2001:db8:b::/64");
    assert!(left.contains("2001:db8::3 test0") && !left.contains("2001:db8:0:1::2"), "{left}");
    for prefix in ["2001:db8:9::/48", "2001:db8:a::/48", "2001:db8:b::/64", "2001:db8:c::/48"] {
        lab.ok(&format!("ip route del {prefix}"));
    }
    lab.ok("ip route del ::/0");
    assert_eq!((lab.cli("show ip fib"), lab.cli("show ip6 fib")), before);
    lab.close();
}

#[test]
fn many_routes_of_the_other_version() {
    let mut lab = both();
    let count = |lab: &Lab| lab.c.state::<Ip6>().borrow().route_count(TableId(0));
    let before = count(&lab);
    let text = lab.run("ip route add count 300 2001:db8:ff00::/56 drop", None, |_| {});
    assert!(text.ends_with(" routes/sec\n"), "{text}");
    assert_eq!(count(&lab), before + 300);
    assert!(leaf(&lab, TableId(0), "2001:db8:ff01:2b00::/56").is_some());
    assert!(leaf(&lab, TableId(0), "2001:db8:ff01:2c00::/56").is_none());
    lab.run("ip route del count 300 2001:db8:ff00::/56", None, |_| {});
    assert_eq!(count(&lab), before);
    let text = lab.cli("ip route add count 3 ffff:ffff:ffff:fffe::/63 drop");
    assert!(text.contains("only 1 prefixes of length 63 from ffff:ffff:ffff:fffe:: on"), "{text}");
    let text = lab.cli("ip route add count 2 ::/0 drop");
    assert!(text.contains("only 1 prefixes of length 0 from :: on"), "{text}");
    lab.close();
}

#[test]
fn tables_belong_to_one_version() {
    let mut lab = both();
    let most = u32::MAX;
    lab.ok(&format!(
        "ip6 table add 7\nip6 table add {most}\n\
         set interface ip6 table test2 {most}\n\
         set interface ip address test2 2001:db8::1/64\n\
         ip route add 2001:db8:9::/48 table {most} via 2001:db8::9 test2"
    ));
    golden!("tests/golden/show_ip6_table.txt", lab.cli("show ip6 table"));
    assert!(leaf(&lab, TableId(most), "2001:db8:9::/48").is_some());
    assert_eq!(leaf(&lab, TableId(7), "2001:db8:9::/48"), None);
    assert_eq!(lab.c.state::<Ip4>().borrow().table_ids(), [TableId(0)]);
    let shown = lab.cli("show interface address");
    assert!(shown.contains(&format!("L3 2001:db8::1/64 ip6 table-id {most} fib-idx {most}")));
    assert!(shown.contains("L3 10.0.0.1/24\n  L3 2001:db8::1/64\n"), "{shown}");
    for (line, want) in [
        ("ip table del 7".to_owned(), "no IPv4 table 7; `ip table add 7` makes one".to_owned()),
        (
            "ip route add 2001:db8::/32 table 8 drop".into(),
            "no IPv6 table 8; `ip6 table add 8` makes one".into(),
        ),
        (
            format!("ip6 table del {most}"),
            format!("table {most} is used by `test2`; `set interface ip6 table test2 0` frees it"),
        ),
        ("ip6 table del 0".into(), "table 0 is the default table".into()),
        ("ip6 table add 4294967296".into(), "table".into()),
        ("set interface ip6 table test0 7".into(), "`test0` has addresses".into()),
        ("show ip6 fib table 8".into(), "no IPv6 table 8".into()),
    ] {
        let text = lab.cli(&line);
        assert!(text.contains(&want), "{line}\nsaid: {text}wanted: {want}");
    }
    lab.ok(&format!(
        "set interface ip address del test2 all\nset interface ip6 table test2 0\n\
         ip6 table del {most}\nip6 table del 7"
    ));
    assert_eq!(lab.c.state::<Ip6>().borrow().table_ids(), [TableId(0)]);
    lab.close();
}

#[test]
fn next_hops_may_be_of_the_other_version() {
    let mut lab = both();
    // RFC 8950.
    lab.ok("ip route add 192.0.2.0/24 via 2001:db8::2 test0");
    let shown = lab.cli("show ip fib 192.0.2.0/24");
    assert!(shown.contains("2001:db8::2 test0"), "{shown}");
    let text = lab.cli("ip route add 198.51.100.0/24 via 2001:db8::2");
    assert_eq!(text, "", "it is followed by the routes of IPv6 (RFC 4798 the other way round)");
    let shown = lab.cli("show ip fib 198.51.100.0/24");
    assert!(shown.contains("2001:db8::2") && shown.contains("test0"), "{shown}");
    lab.ok("ip route add 2001:db8:2::/48 via 198.18.0.1");
    let shown = lab.cli("show ip6 fib 2001:db8:2::/48");
    assert!(shown.contains("next hop 198.18.0.1 is not reachable in table 0"), "{shown}");
    let text = lab.cli("ip route add 198.51.100.0/24 via 2001:db8::2 next-hop-table 9");
    assert!(text.contains("no IPv6 table 9"), "{text}");
    // A table that routes of the other version follow stays until they go.
    lab.ok("ip table add 9\nip route add 2001:db8:3::/48 via 192.0.2.1 next-hop-table 9");
    let text = lab.cli("ip table del 9");
    assert!(text.contains("routes of other tables have next hops in table 9"), "{text}");
    lab.ok("ip route del 2001:db8:3::/48 via 192.0.2.1\nip table del 9");
    let text = lab.cli("ip route add 2001:db8:1::/48 via fe80::1");
    assert!(text.contains("fe80::1 is link-local; name its interface"), "{text}");
    lab.close();
}

#[test]
fn mistakes_are_reported() {
    let mut lab = both();
    for (line, want) in [
        ("ip route add 2001:db8::/129 drop", "a prefix such as 192.0.2.0/24 or 2001:db8::/32"),
        ("ip route add 2001:db8:: drop", "a prefix such as"),
        ("ip route add drop", "a prefix such as"),
        ("ip route add ::ffff:1.2.3.4/33x drop", "a prefix such as"),
        ("ip route del 2001:db8::/64", "(this one is from: interface)"),
        ("set interface ip address test2 2001:db8::1/129", "a prefix such as"),
        ("set interface ip address test2 ff02::1/64", "it is a multicast address"),
        ("set interface ip address test2 2001:db8::/64", "it is the subnet address"),
        ("set interface ip address test2 ::/0", "the prefix length must be 1 to 128"),
        (
            "set interface ip address test2 2001:db8::77/48",
            "2001:db8::77/48 overlaps with 2001:db8::1/64 on `test0`",
        ),
        (
            "set interface ip address del test0 2001:db8::2/64",
            "has no address 2001:db8::2/64; it has 2001:db8::1/64",
        ),
        ("show ip fib 2001:db8::", "an address or prefix such as 192.0.2.1"),
        ("show ip6 fib 10.0.0.0/24", "an address or prefix such as 2001:db8::1"),
        ("show ip6 fib 2001:db8:0:5::/64", "no route 2001:db8:0:5::/64"),
        ("ping 2001:db8:77::1", "no egress interface: no route to 2001:db8:77::1 in table 0"),
        ("ping 2001:db8::2 size 993", "a number from 0 to 992"),
        ("ping 2001:db8::2 source test2", "`test2' has no IPv6 address to send from"),
        ("ping 2001:db8::2 table-id 4", "no IPv6 table 4"),
        ("ping here", "an IP address such as"),
        ("ping ipv4 2001:db8::2", "an IPv4 address such as 192.0.2.1"),
        ("ping 2001:db8::2 ipv4", "2001:db8::2 is not an IPv4 address"),
        ("ping 2001:db8::2 repeat 4294967296", "a number from 1 to 4294967295"),
        ("ping 2001:db8::2 burst 33", "a number from 1 to 32"),
        ("ping 2001:db8::2 interval nan", "seconds from 0.00001 to 86400"),
        ("ping 2001:db8::2 source test9", "interface"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(want), "{line}\nsaid: {text}wanted: {want}");
    }
    lab.close();
}

#[test]
fn a_version_that_nobody_brings_is_refused() {
    let mut lab = lab(&[&STUB_4]);
    lab.ok("set interface ip address test0 10.0.0.1/24");
    let prefix = "an IPv4 prefix such as 192.0.2.0/24";
    for (line, want) in [
        ("ip route add 2001:db8::/32 drop", prefix),
        ("ip route add 2001:db8::/32 via fe80::1 test0", prefix),
        ("ip route add 192.0.2.0/24 via fe80::1 test0", "bad next hop `fe80::1' (argument 4)"),
        ("set interface ip address test0 2001:db8::1/64", prefix),
        ("set interface ip address del test0 2001:db8::1/64", prefix),
        ("ping 2001:db8::1", "an IPv4 address such as 192.0.2.1"),
        ("show ip fib 2001:db8::/32", "an address or prefix such as 192.0.2.1"),
        ("ip6 table add 7", "ip6"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(want), "{line}\nsaid: {text}wanted: {want}");
    }
    lab.close();
    // The same without any protocol.
    let mut lab = crate::protocol::lab(&[]);
    for (line, want) in [
        ("ip table add 7", "IPv4 is not supported yet"),
        ("ip table del 0", "IPv4 is not supported yet"),
        ("ip route add 192.0.2.0/24 drop", "IPv4 is not supported yet"),
        ("ip route del 192.0.2.0/24", "IPv4 is not supported yet"),
        ("ip route add 2001:db8::/32 drop", "IPv6 is not supported yet"),
        ("set interface ip address test0 2001:db8::1/64", "IPv6 is not supported yet"),
        ("set interface ip address del test0 10.0.0.1/24", "IPv4 is not supported yet"),
        ("set interface ip table test0 0", "IPv4 is not supported yet"),
        ("ping 192.0.2.1", "IPv4 is not supported yet"),
        ("show ip fib table 0", "IPv4 is not supported yet"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(want), "{line}\nsaid: {text}wanted: {want}");
    }
    lab.ok("set interface ip address del test0 all\nshow ip table\nshow ip fib summary");
    lab.close();
}

#[test]
fn words_of_both_versions_complete() {
    let mut lab = both();
    lab.ok("ip6 table add 7");
    assert_eq!(
        lab.complete("set interface ip address del test1 "),
        ["10.0.1.1/24", "2001:db8:0:1::1/64", "all"]
    );
    assert_eq!(lab.complete("set interface ip6 table test1 "), ["0", "7"]);
    let after = lab.complete("ip route add 2001:db8::/32 via fe80::1 ");
    assert!(after.iter().any(|w| w == "test1"), "{after:?}");
    lab.close();
}

#[test]
fn pings_of_the_other_version() {
    let mut lab = both();
    let requests = lab.c.shared::<Requests>();
    let line = "ping 2001:db8:0:1::2 repeat 3 interval 0.01 size 992";
    let text = lab.run(line, None, |lab| {
        for (head, len) in std::mem::take(&mut *requests.0.lock().unwrap()) {
            let words: Vec<&str> = head.split(' ').collect();
            let [from, to, id, seq] = words[..] else { panic!("{head}") };
            assert_eq!((from, len), ("2001:db8:0:1::1", 1000));
            let (id, seq) = (id.parse().unwrap(), seq.parse().unwrap());
            let from = to.parse().unwrap();
            let reply = Reply { from, id, seq, ttl: 60, len: 1008, at: clock::ticks() };
            ping::received(&lab.c, reply);
            // A stranger's reply does not count, nor one of another session.
            ping::received(&lab.c, Reply { from: [10, 0, 0, 2].into(), ..reply });
            ping::received(&lab.c, Reply { id: id.wrapping_add(1), ..reply });
        }
    });
    assert!(text.starts_with("1008 bytes from 2001:db8:0:1::2: icmp_seq=1 ttl=60"), "{text}");
    assert!(text.ends_with("\nStatistics: 3 sent, 3 received, 0% packet loss\n"), "{text}");
    lab.close();
}

#[test]
fn routes_added_during_a_flush_stay() {
    const ROUTES: u128 = 30_000;
    let mut lab = both();
    lab.ok("ip6 table add 7");
    let host = |n: u128| Ipv6Prefix::host((0x2001_0db8 << 96) + n);
    let drop = || vec![Path::special(PathKind::Drop)];
    for n in 0..ROUTES {
        add_route(&mut lab.c, TableId(7), host(n), drop(), false).expect("a route");
    }
    let before = lab.c.state::<Ip6>().borrow().route_count(TableId(7));
    let done = Rc::new(Cell::new(false));
    let flag = done.clone();
    replace::flush::<u128>(&mut lab.c, TableId(7), Box::new(move || flag.set(true)))
        .expect("a flush");
    assert!(!done.get(), "it took one slice only");
    // New ones, and one that was there and may have gone.
    for n in [ROUTES, ROUTES + 1, 77] {
        add_route(&mut lab.c, TableId(7), host(n), drop(), false).expect("a route");
    }
    let again = Rc::new(Cell::new(false));
    let flag = again.clone();
    replace::begin::<u128>(&mut lab.c, TableId(7)).expect("a begin");
    add_route(&mut lab.c, TableId(7), host(77), drop(), false).expect("a route");
    lab.until("the flush to end", |_| done.get());
    let kept = [host(77), host(ROUTES), host(ROUTES + 1)];
    let left = |lab: &thalweg_device::testing::Lab| {
        let ip = lab.c.state::<Ip6>();
        let routes = ip.borrow().routes(TableId(7));
        let own = routes.into_iter().filter(|r| r.source == Source::Static);
        own.map(|r| r.prefix).collect::<Vec<_>>()
    };
    assert_eq!(left(&lab), kept);
    assert!(before > left(&lab).len());
    replace::finish::<u128>(&mut lab.c, TableId(7), Box::new(move || flag.set(true)))
        .expect("an end");
    lab.until("the replacement to end", |_| again.get());
    assert_eq!(left(&lab), [host(77)]);
    lab.close();
}

#[test]
fn each_version_has_a_limit_of_tables() {
    let mut lab = both();
    for id in 1..MAX_TABLES as u32 {
        add_table::<u128>(&mut lab.c, TableId(id)).expect("a table");
    }
    let text = lab.cli("ip6 table add 5000");
    assert!(text.contains("no room for another IPv6 table: the limit is 1024"), "{text}");
    lab.ok("ip6 table add 7\nip table add 5000\nip6 table del 9\nip6 table add 5000");
    lab.close();
}
