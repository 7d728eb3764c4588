//! Routes of the kernel are the router's, and those that `zebra` sends itself.

#![allow(clippy::unwrap_used)]

mod fpm;

use anyhow::Result;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use thalweg_device::testing::Lab;
use thalweg_feat_ip::{Ip4, Source, TableId};
use thalweg_feat_lcp::{FEATURE, routes};
use thalweg_netns::{Netns, WAIT_LIMIT};
use thalweg_tables::Prefix;
use thalweg_testkit::lab_test;

/// A router whose `test0` and `test1` have the twins `e0` and `e1`, with addresses.
struct Router {
    lab: Lab,
    ns: Netns,
}

impl Router {
    fn new() -> Result<Router> {
        let ns = Netns::new("twins")?;
        for which in ["all", "default"] {
            ns.set_sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0")?;
            ns.set_sysctl(&format!("net/ipv6/conf/{which}/accept_dad"), "0")?;
        }
        let mut r = Router { lab: Lab::of(&FEATURE).start(), ns };
        r.lab.ok("lcp lcp-sync on");
        for n in 0..2 {
            r.lab.ok(&format!(
                "set interface ip address test{n} 10.1.{n}.1/24
                 set interface ip address test{n} 2001:db8:{n}::1/64"
            ));
            r.pair(n);
        }
        r.until("addresses", |r| {
            let text = r.ns.ip("address").unwrap_or_default();
            text.contains("2001:db8:0::1/64") || text.contains("2001:db8::1/64")
        });
        r.until("addresses of the second", |r| {
            r.ns.ip("address").unwrap_or_default().contains("2001:db8:1::1/64")
        });
        Ok(r)
    }

    fn pair(&mut self, n: usize) {
        let path = self.ns.descriptor_path();
        self.lab.ok(&format!("lcp create test{n} host-if e{n} netns {}", path.display()));
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Router) -> bool) {
        let start = Instant::now();
        while !done(self) {
            let late = start.elapsed() >= WAIT_LIMIT;
            let shown = if late { self.lab.cli("show ip fib all") } else { String::new() };
            assert!(!late, "waited too long for {what}: {shown}");
            self.lab.c.run_once(Some(Duration::from_millis(2)));
        }
    }

    fn ip(&self, command: &str) {
        self.ns.ip(command).unwrap();
    }

    fn fib(&mut self, prefix: &str) -> String {
        let word = if prefix.contains(':') { "ip6" } else { "ip" };
        self.lab.cli(&format!("show {word} fib {prefix}"))
    }

    /// Waits until the route of a prefix has all of these words.
    fn until_fib(&mut self, prefix: &str, words: &[&str]) {
        let what = format!("{words:?} of {prefix}");
        let start = Instant::now();
        loop {
            let text = self.fib(prefix);
            if words.iter().all(|word| text.contains(word)) {
                return;
            }
            assert!(start.elapsed() < WAIT_LIMIT, "waited too long for {what}: {text}");
            self.lab.c.run_once(Some(Duration::from_millis(2)));
        }
    }

    /// Waits until the kernel has no route for an IPv4 prefix here.
    fn until_none(&mut self, prefix: &str) {
        let (addr, len) = prefix.split_once('/').unwrap();
        let addr: std::net::Ipv4Addr = addr.parse().unwrap();
        let to = Prefix::new(u32::from(addr), len.parse().unwrap()).unwrap();
        self.until(&format!("no {prefix}"), |r| {
            let ip = r.lab.c.state::<Ip4>();
            let route = ip.borrow().route(TableId(0), to);
            let of_kernel = [Source::KernelStatic, Source::KernelDynamic];
            route.is_none_or(|route| !route.sources.iter().any(|s| of_kernel.contains(s)))
        });
    }

    fn state(&self) -> thalweg_device_linux::routes::RouteState {
        routes::namespaces(&self.lab.c)[0].state
    }

    fn count(&self) -> usize {
        self.lab.c.state::<Ip4>().borrow().route_count(TableId(0))
    }
}

lab_test! {
    fn routes_come_and_go() {
        let mut r = Router::new()?;
        r.ip("route add 192.0.2.0/24 via 10.1.0.2");
        r.until_fib("192.0.2.0/24", &["10.1.0.2", "test0", "lcp-rt"]);
        r.ip("route replace 192.0.2.0/24 proto bgp nexthop via 10.1.0.2 weight 3 nexthop via 10.1.1.2");
        r.until_fib("192.0.2.0/24", &["10.1.0.2", "10.1.1.2", "lcp-rt-dynamic"]);
        r.ip("-6 route add 2001:db8:a::/48 via 2001:db8:1::2");
        r.until_fib("2001:db8:a::/48", &["2001:db8:1::2", "test1"]);
        r.ip("route add blackhole 198.51.100.0/24");
        r.until_fib("198.51.100.0/24", &["drop"]);
        r.ip("route add prohibit 198.51.101.0/24");
        r.until_fib("198.51.101.0/24", &["prohibit"]);
        r.ip("route add 203.0.113.9 via inet6 2001:db8:1::2 dev e1");
        r.until_fib("203.0.113.9/32", &["2001:db8:1::2"]);
        r.ip("route add 203.0.113.0/24 dev e1 scope link");
        r.until_fib("203.0.113.0/24", &["test1"]);
        r.ip("route add default via 10.1.1.9");
        r.until_fib("0.0.0.0/0", &["10.1.1.9"]);
        for gone in ["192.0.2.0/24", "198.51.100.0/24", "198.51.101.0/24", "203.0.113.0/24"] {
            r.ip(&format!("route del {gone}"));
            r.until_none(gone);
        }
        // A table of its own is made.
        r.ip("route add 192.0.2.0/24 via 10.1.0.2 table 77");
        r.until("table 77", |r| r.lab.cli("show ip fib table 77 192.0.2.0/24").contains("10.1.0.2"));
        Ok(())
    }

    /// The kernel asks three tables one after the other, which are one here.
    fn tables_that_are_one_are_asked_in_turn() {
        let mut r = Router::new()?;
        let prefix = "192.0.2.0/24";
        r.ip(&format!("route add {prefix} via 10.1.0.3 table main"));
        r.until_fib(prefix, &["10.1.0.3"]);
        r.ip(&format!("route add {prefix} via 10.1.0.4 table default"));
        r.ip(&format!("route add {prefix} via 10.1.0.2 table local"));
        r.until_fib(prefix, &["10.1.0.2"]);
        r.ip(&format!("route del {prefix} table local"));
        r.until_fib(prefix, &["10.1.0.3"]);
        r.ip(&format!("route del {prefix} table main"));
        r.until_fib(prefix, &["10.1.0.4"]);
        r.ip(&format!("route add {prefix} via 10.1.0.3 table main"));
        r.until_fib(prefix, &["10.1.0.3"]);
        r.ip(&format!("route del {prefix} table default"));
        r.ip(&format!("route replace {prefix} via 10.1.0.5 table main"));
        r.until_fib(prefix, &["10.1.0.5"]);
        r.ip(&format!("route del {prefix} table main"));
        r.until_none(prefix);
        Ok(())
    }

    /// Tables that routes have made go with the last of these, unless a user has a part in them.
    fn tables_go_with_their_last_route() {
        let mut r = Router::new()?;
        r.lab.ok("ip table add 78");
        for table in [77, 78, 79, 80] {
            r.ip(&format!("route add 192.0.2.0/24 via 10.1.0.2 table {table}"));
            r.ip(&format!("-6 route add 2001:db8:a::/48 via 2001:db8:1::2 table {table}"));
            r.until("the table", |r| {
                let v6 = format!("show ip6 fib table {table} 2001:db8:a::/48");
                let v4 = format!("show ip fib table {table} 192.0.2.0/24");
                r.lab.cli(&v4).contains("10.1.0.2") && r.lab.cli(&v6).contains("2001:db8:1::2")
            });
        }
        r.lab.ok("ip route add 198.51.100.0/24 table 79 via drop");
        r.lab.ok("ip route add 198.51.100.0/24 via ip4-lookup-in-table 80");
        for table in [77, 78, 79, 80] {
            r.ip(&format!("route del 192.0.2.0/24 table {table}"));
            r.ip(&format!("-6 route del 2001:db8:a::/48 table {table}"));
        }
        let tables = |r: &Router| -> [Vec<u32>; 2] {
            fn ids<A: thalweg_tables::Address>(r: &Router) -> Vec<u32> {
                let ip = r.lab.c.state::<thalweg_feat_ip::Ip<A>>();
                ip.borrow().table_ids().into_iter().map(TableId::get).collect()
            }
            [ids::<u32>(r), ids::<u128>(r)]
        };
        r.until("unused tables to go", |r| tables(r) == [vec![0, 78, 79, 80], vec![0]]);
        // One that is used again comes again.
        r.ip("route add 192.0.2.0/24 via 10.1.0.2 table 77");
        r.until("77", |r| r.lab.cli("show ip fib table 77 192.0.2.0/24").contains("10.1.0.2"));
        // A namespace without twins has no routes.
        r.lab.ok("lcp delete test0\nlcp delete test1");
        r.until("none", |r| tables(r) == [vec![0, 78, 79, 80], vec![0]]);
        Ok(())
    }

    /// Two times 600 tables make room for each other, in turn, but for those that a
    /// user has a part in: a router has up to 1,024.
    fn many_tables_come_and_go() {
        let mut r = Router::new()?;
        let tables = |r: &Router| r.lab.c.state::<Ip4>().borrow().table_ids();
        let count = |r: &Router, first: u32| {
            tables(r).iter().filter(|id| (first..first + 600).contains(&id.get())).count()
        };
        let batch = |verb: &str, first: u32| -> Vec<String> {
            let line = |id| format!("route {verb} 192.0.2.0/24 via 10.1.0.2 table {id}");
            (first..first + 600).map(line).collect()
        };
        for first in [1000, 2000, 1000] {
            r.ns.ip_batch(&batch("add", first))?;
            r.until("all tables", |r| count(r, first) == 600);
            let has_route = |r: &mut Router, id: u32| {
                r.lab.cli(&format!("show ip fib table {id} 192.0.2.0/24")).contains("10.1.0.2")
            };
            r.until("the last route", |r| has_route(r, first + 599));
            assert!((first..first + 600).all(|id| has_route(&mut r, id)));
            let [added, routed] = [first, first + 1];
            r.lab.ok(&format!("ip table add {added}"));
            r.lab.ok(&format!("ip route add 198.51.100.0/24 table {routed} via 10.1.0.2 test0"));
            r.ns.ip_batch(&batch("delete", first))?;
        }
        r.until("unused tables to go", |r| (count(r, 1000), count(r, 2000)) == (2, 2));
        // A user deletes one that has routes: it comes back with these.
        r.ip("route add 192.0.2.0/24 via 10.1.0.2 table 77");
        let fib = |r: &mut Router| r.lab.cli("show ip fib table 77 192.0.2.0/24");
        r.until("the route", |r| fib(r).contains("10.1.0.2"));
        r.lab.ok("ip table add 77");
        r.lab.ok("ip table del 77");
        r.until("the route again", |r| fib(r).contains("10.1.0.2"));
        Ok(())
    }

    /// A route of the kernel is better than one of the CLI, which comes back when that goes.
    fn the_kernel_wins() {
        let mut r = Router::new()?;
        r.lab.ok("ip route add 192.0.2.0/24 via 10.1.1.7 test1");
        r.ip("route add 192.0.2.0/24 via 10.1.0.2 metric 100");
        r.until_fib("192.0.2.0/24", &["10.1.0.2"]);
        r.ip("route add 192.0.2.0/24 via 10.1.0.3 metric 50");
        r.until_fib("192.0.2.0/24", &["10.1.0.3"]);
        r.ip("route del 192.0.2.0/24 metric 50");
        r.until_fib("192.0.2.0/24", &["10.1.0.2"]);
        r.ip("route del 192.0.2.0/24 metric 100");
        r.until_fib("192.0.2.0/24", &["10.1.1.7", "CLI"]);
        Ok(())
    }

    /// Routes that the kernel removes without a word go here, too.
    fn links_that_go_take_their_routes() {
        let mut r = Router::new()?;
        r.ip("route add 192.0.2.0/24 via 10.1.0.2");
        r.ip("route add 192.0.2.128/25 nexthop via 10.1.0.2 nexthop via 10.1.1.2");
        r.until_fib("192.0.2.128/25", &["10.1.0.2", "10.1.1.2"]);
        r.ip("link set e0 down");
        r.until_none("192.0.2.0/24");
        r.until("one hop less", |r| !r.fib("192.0.2.128/25").contains("10.1.0.2"));
        r.ip("link set e0 up");
        r.ip("route add 192.0.2.0/24 via 10.1.0.2");
        r.until_fib("192.0.2.0/24", &["10.1.0.2"]);
        // The pair goes, and comes back.
        r.lab.ok("lcp delete test0");
        r.until_none("192.0.2.0/24");
        r.pair(0);
        r.until("up", |r| r.ns.ip("link show e0").unwrap_or_default().contains("LOWER_UP"));
        r.until("address", |r| r.ns.ip("address show e0").unwrap_or_default().contains("10.1.0.1"));
        r.ip("route add 192.0.2.0/24 via 10.1.0.2");
        r.until_fib("192.0.2.0/24", &["10.1.0.2"]);
        r.lab.ok("lcp delete test0\nlcp delete test1");
        r.until_none("192.0.2.0/24");
        r.until_none("192.0.2.128/25");
        Ok(())
    }

    /// A next-hop object is a group: routes stay as they are when it changes.
    fn objects_change_under_their_routes() {
        let mut r = Router::new()?;
        r.ip("nexthop add id 1 via 10.1.0.2 dev e0");
        r.ip("nexthop add id 2 via 10.1.1.2 dev e1");
        r.ip("nexthop add id 3 group 1/2");
        for n in 0..50 {
            r.ip(&format!("route add 192.0.2.{n} nhid 3"));
        }
        r.until_fib("192.0.2.49/32", &["10.1.0.2", "10.1.1.2"]);
        let taken = routes::counters(&r.lab.c).taken;
        r.ip("nexthop replace id 3 group 2");
        r.until("one hop", |r| !r.fib("192.0.2.49/32").contains("10.1.0.2"));
        r.ip("nexthop replace id 2 via 10.1.1.77 dev e1");
        r.until_fib("192.0.2.0/32", &["10.1.1.77"]);
        assert_eq!(routes::counters(&r.lab.c).taken, taken, "routes stay");
        r.ip("nexthop del id 2");
        for n in [0, 49] {
            r.until_none(&format!("192.0.2.{n}/32"));
        }
        Ok(())
    }

    /// Twenty thousand at once, while the router takes slices; then all go with their link.
    fn many_routes() {
        let mut r = Router::new()?;
        let before = r.count();
        let mut batch = String::new();
        for n in 0..20_000 {
            writeln!(batch, "route add 20.{}.{}.0/24 via 10.1.0.2", n >> 8, n & 255)?;
        }
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), batch)?;
        r.ip(&format!("-batch {}", file.path().display()));
        r.until("all of them", |r| r.count() == before + 20_000);
        assert_eq!((r.state().routes, r.state().left), (20_000, Default::default()));
        r.lab.ok("lcp resync");
        r.until("a resync", |r| r.state().counters.last.is_some_and(|l| l.cause.word() == "a user asked"));
        assert_eq!(r.state().counters.last.unwrap().differences, 0);
        r.ip("link set e0 down");
        // Its addresses' routes go as well.
        r.until("none", |r| r.count() <= before);
        Ok(())
    }

    /// The kernel asks main first of two tables that are one here; hosts that a route puts on a
    /// link stay there when its protocol changes, or when the CLI adds the same route.
    fn equal_routes_of_several_sources() {
        let mut r = Router::new()?;
        r.ip("route add 192.0.2.0/24 via 10.1.0.2");
        r.until_fib("192.0.2.0/24", &["10.1.0.2"]);
        r.ip("route add 192.0.2.0/24 via 10.1.1.2 table 253");
        r.ip("route add 192.0.3.0/24 via 10.1.1.2 table 253");
        r.until_fib("192.0.3.0/24", &["10.1.1.2"]);
        assert!(r.fib("192.0.2.0/24").contains("10.1.0.2"), "main is asked first");
        r.ip("route del 192.0.2.0/24 table main");
        r.until_fib("192.0.2.0/24", &["10.1.1.2"]);
        let peers = |r: &Router| {
            let ip = r.lab.c.state::<Ip4>();
            let peers = ip.borrow().routed_peers(r.lab.sw_if(0));
            format!("{peers:?}")
        };
        r.lab.ok("ip route add 198.51.100.0/24 via test0");
        let written = peers(&r);
        r.ip("route add 198.51.100.0/24 dev e0 scope link");
        r.until_fib("198.51.100.0/24", &["lcp-rt"]);
        r.ip("route replace 198.51.100.0/24 dev e0 scope link proto bgp");
        r.until_fib("198.51.100.0/24", &["lcp-rt-dynamic"]);
        assert_eq!(peers(&r), written);
        r.ip("route del 198.51.100.0/24");
        r.until_none("198.51.100.0/24");
        assert_eq!(peers(&r), written);
        Ok(())
    }

    /// Routes by links that are no twins are shown, and taken when they become twins.
    fn routes_by_other_links() {
        let mut r = Router::new()?;
        r.lab.ok("lcp delete test1");
        r.ip("link add other type veth peer name other1");
        r.ip("link set other up");
        r.ip("address add 10.9.0.1/24 dev other");
        r.ip("route add 192.0.2.0/24 via 10.9.0.2");
        r.until("unresolved", |r| r.lab.cli("show lcp routes unresolved").contains("192.0.2.0/24"));
        let shown = r.lab.cli("show lcp routes");
        assert!(shown.contains("1 routes") && shown.contains("overruns"), "{shown}");
        Ok(())
    }
}
