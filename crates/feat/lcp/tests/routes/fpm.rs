//! Routes that a `zebra` which the tests play sends itself (FPM).

use super::Router;
use anyhow::Result;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::ops::Range;
use thalweg_feat_ip::{Ip, TableId};
use thalweg_feat_lcp::routes;
use thalweg_netlink::fpm;
use thalweg_netlink::wire::message;
use thalweg_tables::Address;
use thalweg_testkit::lab_test;

/// Routes of each version in each table.
const MANY: u32 = 3000;
/// Tables: main, and two VRFs'.
const TABLES: [u32; 3] = [254, 77, 1078];

/// A frame of messages.
fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    fpm::frame(&messages.concat())
}

fn object(id: u32, link: u32, gateway: impl Into<IpAddr>) -> Vec<u8> {
    let gateway = gateway.into();
    message(104, &[family(gateway), 0, 11, 0, 0, 0, 0, 0], |w| {
        w.u32(1, id).u32(5, link).bytes(6, &octets(gateway));
    })
}

fn group(id: u32, members: [u32; 2]) -> Vec<u8> {
    let members: Vec<u8> =
        members.iter().flat_map(|id| [&id.to_ne_bytes()[..], &[0; 4]].concat()).collect();
    message(104, &[0, 0, 11, 0, 0, 0, 0, 0], |w| _ = w.u32(1, id).bytes(2, &members))
}

fn family(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 2 } else { 10 }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// A route in a table, by an object, or its end.
fn route_in(table: u32, (ip, bits): (IpAddr, u8), object: Option<u32>) -> Vec<u8> {
    let kind = if object.is_some() { 24 } else { 25 };
    let low = u8::try_from(table).unwrap_or(0);
    message(kind, &[family(ip), bits, 0, 0, low, 186, 0, 1, 0, 0, 0, 0], |w| {
        w.bytes(1, &octets(ip)).u32(15, table).u32(6, 0);
        object.into_iter().for_each(|object| _ = w.u32(30, object));
    })
}

/// A route of BGP to 192.0.2.0/24, by an object.
fn route(object: u32) -> Vec<u8> {
    message(24, &[2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0], |w| {
        w.bytes(1, &[192, 0, 2, 0]).u32(6, 0).u32(30, object);
    })
}

/// A label that is swapped.
fn label(from: u32, to: u32, link: u32, gateway: [u8; 4]) -> Vec<u8> {
    message(24, &[28, 20, 0, 0, 254, 193, 0, 1, 0, 0, 0, 0], |w| {
        let via = [&2_u16.to_ne_bytes()[..], &gateway].concat();
        w.bytes(1, &(from << 12 | 1 << 8).to_be_bytes()).bytes(19, &(to << 12).to_be_bytes());
        w.bytes(18, &via).u32(4, link);
    })
}

/// A label by a look-up behind it, or by a next hop that pops it.
fn label_anywhere(from: u32, hops: [(u32, Option<[u8; 4]>); 2]) -> Vec<u8> {
    let hops = hops.map(|(link, gateway)| {
        let via = gateway.map_or(Vec::new(), |gateway| {
            [
                &10_u16.to_ne_bytes()[..],
                &18_u16.to_ne_bytes(),
                &2_u16.to_ne_bytes(),
                &gateway,
                &[0; 2],
            ]
            .concat()
        });
        let length = (8 + via.len() as u16).to_ne_bytes();
        [&length[..], &[0, 0], &link.to_ne_bytes(), &via].concat()
    });
    message(24, &[28, 20, 0, 0, 254, 193, 0, 1, 0, 0, 0, 0], |w| {
        w.bytes(1, &(from << 12 | 1 << 8).to_be_bytes()).bytes(9, &hops.concat());
    })
}

impl Router {
    /// Connects as `zebra`, once the router listens.
    fn zebra(&mut self) -> TcpStream {
        let mut connected = None;
        self.until("a listener", |r| {
            connected = r.ns.run(|| TcpStream::connect("127.0.0.1:2620").ok()).unwrap();
            connected.is_some()
        });
        connected.unwrap()
    }

    /// Routes in a table of the router.
    fn count_in<A: Address>(&self, table: u32) -> usize {
        let ip = self.lab.c.state::<Ip<A>>();
        let ip = ip.borrow();
        let table = TableId(if table == 254 { 0 } else { table });
        if ip.table_ids().contains(&table) { ip.route_count(table) } else { 0 }
    }

    fn counts(&self) -> [[usize; 2]; 3] {
        TABLES.map(|table| [self.count_in::<u32>(table), self.count_in::<u128>(table)])
    }

    fn fib_in(&mut self, table: u32, to: (IpAddr, u8)) -> String {
        let word = if to.0.is_ipv4() { "ip" } else { "ip6" };
        let table = if table == 254 { 0 } else { table };
        self.lab.cli(&format!("show {word} fib table {table} {}/{}", to.0, to.1))
    }
}

/// The `n`th destination of a version.
fn to(is_v4: bool, n: u32) -> (IpAddr, u8) {
    match is_v4 {
        true => (Ipv4Addr::from_bits(20 << 24 | n << 8).into(), 24),
        false => (Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(n) << 64).into(), 64),
    }
}

/// Frames with some routes of both versions in each of some tables.
fn frames(tables: &[u32], some: Range<u32>, by: [Option<u32>; 2]) -> Vec<u8> {
    let of_table = |table: &u32| {
        let table = *table;
        some.clone().flat_map(move |n| {
            [route_in(table, to(true, n), by[0]), route_in(table, to(false, n), by[1])]
        })
    };
    let all: Vec<Vec<u8>> = tables.iter().flat_map(of_table).collect();
    all.chunks(500).flat_map(frame).collect()
}

lab_test! {
    /// They rank as if `zebra` had written them to the kernel, and stay when it goes.
    fn routes_that_zebra_sends_itself() {
        let mut r = Router::new()?;
        r.ip("link set lo up");
        r.lab.ok("lcp fpm enable");
        let links = [r.ns.link("e0")?.index, r.ns.link("e1")?.index];
        let mut zebra = r.zebra();
        zebra.write_all(&frame(&[object(7, links[0], [10, 1, 0, 2])]))?;
        zebra.write_all(&frame(&[route(7)]))?;
        zebra.write_all(&frame(&[label(100, 200, links[1], [10, 1, 1, 2])]))?;
        r.until_fib("192.0.2.0/24", &["10.1.0.2", "test0", "lcp-rt-dynamic"]);
        r.until("a label", |r| r.lab.cli("show mpls fib 100").contains("10.1.1.2"));
        let shown = r.lab.cli("show lcp routes");
        assert!(shown.contains("by FPM: 1 routes, 1 labels"), "{shown}");
        // Routes of the kernel with a worse, the same and a better metric.
        for (metric, used) in [(30, "10.1.0.2"), (20, "10.1.0.2"), (10, "10.1.1.10")] {
            r.ip(&format!("route add 192.0.2.0/24 via 10.1.1.{metric} metric {metric}"));
            r.ip(&format!("route add 198.51.{metric}.0/24 via 10.1.1.2"));
            r.until_fib(&format!("198.51.{metric}.0/24"), &["10.1.1.2"]);
            r.until_fib("192.0.2.0/24", &[used]);
        }
        r.ip("route del 192.0.2.0/24 metric 10");
        r.until_fib("192.0.2.0/24", &["10.1.0.2"]);
        // Its next-hop object changes, and the route with it.
        zebra.write_all(&frame(&[object(7, links[0], [10, 1, 0, 77])]))?;
        r.until_fib("192.0.2.0/24", &["10.1.0.77"]);
        // A route over a link that is no twin is shown with its source.
        zebra.write_all(&frame(&[object(8, 1, [127, 0, 0, 2]), route(8)]))?;
        r.until_fib("192.0.2.0/24", &["10.1.1.20"]);
        let shown = r.lab.cli("show lcp routes unresolved");
        assert!(shown.contains("192.0.2.0/24") && shown.contains("by FPM"), "{shown}");
        zebra.write_all(&frame(&[route(7)]))?;
        r.until_fib("192.0.2.0/24", &["10.1.0.77"]);
        // A user asks for all: the kernel's by a list, those of `zebra` by the connection's end.
        r.lab.ok("lcp resync");
        zebra.write_all(&frame(&[object(7, links[0], [10, 1, 0, 78])]))?;
        r.until_fib("192.0.2.0/24", &["10.1.0.78"]);
        r.lab.ok("lcp resync fpm");
        let mut end = [0];
        assert!(zebra.read(&mut end).is_ok_and(|n| n == 0));
        r.until("no connection", |r| r.lab.cli("show lcp routes").contains("no connection"));
        let said = r.lab.cli("lcp resync fpm");
        assert!(said.contains("no zebra is connected"), "{said}");
        let mut zebra = r.zebra();
        zebra.write_all(&frame(&[object(7, links[0], [10, 1, 0, 77]), route(7)]))?;
        r.until_fib("192.0.2.0/24", &["10.1.0.77"]);
        // The connection ends, the route stays; without a listener the kernel's is used.
        drop(zebra);
        r.until("the end", |r| r.lab.cli("show lcp routes").contains("goes in"));
        r.until_fib("192.0.2.0/24", &["10.1.0.77"]);
        r.lab.ok("lcp fpm disable");
        r.until_fib("192.0.2.0/24", &["10.1.1.20"]);
        r.until("no label", |r| !r.lab.cli("show mpls fib").contains("10.1.1.2"));
        assert!(!r.lab.cli("show lcp routes").contains("FPM"));
        Ok(())
    }

    /// Thousands of both versions in main and in VRFs: all are there, follow their objects without
    /// being taken again, and go as they were announced.
    fn thousands_of_routes_of_both_versions_in_vrfs() {
        let mut r = Router::new()?;
        r.ip("link set lo up");
        r.lab.ok("lcp fpm enable\nlcp fpm-hold 600\nip table add 76\nip6 table add 76");
        let links = [r.ns.link("e0")?.index, r.ns.link("e1")?.index];
        let v6 = |link: u32, host: &str| format!("2001:db8:{link}::{host}").parse::<Ipv6Addr>();
        let empty = [r.count_in::<u32>(76), r.count_in::<u128>(76)];
        let main = r.counts()[0];
        let with = |more: [usize; 3]| {
            let of_vrf = |n: usize| if n == 0 { [0, 0] } else { empty.map(|base| base + n) };
            [main.map(|base| base + more[0]), of_vrf(more[1]), of_vrf(more[2])]
        };
        let many = MANY as usize;
        let mut zebra = r.zebra();
        zebra.write_all(&frame(&[
            object(1, links[0], [10, 1, 0, 2]),
            object(2, links[1], [10, 1, 1, 2]),
            group(3, [1, 2]),
            object(4, links[0], v6(0, "2")?),
        ]))?;
        zebra.write_all(&frames(&TABLES, 0..MANY, [Some(3), Some(4)]))?;
        r.until("all of them", |r| r.counts() == with([many; 3]));
        for table in TABLES {
            for n in [0, 1, MANY / 2, MANY - 1] {
                let shown = r.fib_in(table, to(true, n));
                assert!(shown.contains("10.1.0.2") && shown.contains("10.1.1.2"), "{shown}");
                let shown = r.fib_in(table, to(false, n));
                assert!(shown.contains("2001:db8::2") || shown.contains("2001:db8:0::2"), "{shown}");
            }
        }
        // Objects change: no route is taken again.
        r.until("nothing waits", |r| routes::namespaces(&r.lab.c)[1].state.waiting == 0);
        let taken = routes::counters(&r.lab.c);
        assert_eq!(taken.refused, 0);
        zebra.write_all(&frame(&[
            object(2, links[1], [10, 1, 1, 77]),
            object(4, links[1], v6(1, "77")?),
        ]))?;
        let last = to(false, MANY - 1);
        r.until("the new next hop", |r| r.fib_in(1078, last).contains("2001:db8:1::77"));
        r.until("the other", |r| r.fib_in(77, to(true, 0)).contains("10.1.1.77"));
        assert_eq!(routes::counters(&r.lab.c), taken, "routes stay");
        // IPv4 by way of an IPv6 neighbour, and half of a VRF without.
        zebra.write_all(&frames(&[77], 0..MANY / 2, [Some(4), None]))?;
        r.until("the change", |r| r.count_in::<u128>(77) == empty[1] + many / 2);
        r.until("by IPv6", |r| r.fib_in(77, to(true, MANY / 2 - 1)).contains("2001:db8:1::77"));
        assert_eq!(r.count_in::<u32>(77), empty[0] + many);
        // A new connection leaves out a VRF, and half of main.
        drop(zebra);
        r.until("the end", |r| r.lab.cli("show lcp routes").contains("goes in"));
        assert_eq!(r.count_in::<u128>(1078), empty[1] + many);
        let mut zebra = r.zebra();
        zebra.write_all(&frame(&[object(1, links[0], [10, 1, 0, 3]), object(4, links[0], v6(0, "3")?)]))?;
        zebra.write_all(&frames(&[77], 0..MANY, [Some(1), Some(4)]))?;
        zebra.write_all(&frames(&[254], 0..MANY / 2, [Some(1), Some(4)]))?;
        for (table, n) in [(77, MANY - 1), (77, 0), (254, MANY / 2 - 1)] {
            r.until("the new way", |r| r.fib_in(table, to(true, n)).contains("10.1.0.3"));
            r.until("the new way", |r| {
                let shown = r.fib_in(table, to(false, n));
                shown.contains("2001:db8::3") || shown.contains("2001:db8:0::3")
            });
        }
        r.lab.ok("lcp fpm-hold 1");
        drop(zebra);
        // Nobody comes back: all goes, and the tables with it.
        r.until("nothing", |r| r.counts() == with([0; 3]));
        assert_eq!(routes::counters(&r.lab.c).refused, 0);
        Ok(())
    }

    /// Routes that were not announced again go with the hold, of each version and table.
    fn a_vrf_that_is_not_announced_again_goes() {
        let mut r = Router::new()?;
        r.ip("link set lo up");
        r.lab.ok("lcp fpm enable\nlcp fpm-hold 3");
        let link = r.ns.link("e0")?.index;
        let objects = || -> Result<Vec<u8>> {
            let v6: Ipv6Addr = "2001:db8::2".parse()?;
            Ok(frame(&[object(1, link, [10, 1, 0, 2]), object(4, link, v6)]))
        };
        let before = r.counts()[0];
        let mut zebra = r.zebra();
        zebra.write_all(&objects()?)?;
        zebra.write_all(&frames(&TABLES, 0..MANY, [Some(1), Some(4)]))?;
        let all = r.counts();
        r.until("all", |r| routes::namespaces(&r.lab.c)[1].state.routes == 6 * MANY as usize);
        r.until("some of them in tables", |r| r.counts() != all);
        drop(zebra);
        r.until("the end", |r| r.lab.cli("show lcp routes").contains("goes in"));
        let mut zebra = r.zebra();
        zebra.write_all(&objects()?)?;
        zebra.write_all(&frames(&[254], 0..10, [Some(1), Some(4)]))?;
        zebra.write_all(&frames(&[77], 0..20, [None, Some(4)]))?;
        r.until("what is left", |r| {
            let [main, vrf, gone] = r.counts();
            let few = main == before.map(|n| n + 10) && gone == [0, 0];
            few && vrf[0] < 20 && vrf[1] >= 20 && vrf[1] < 40
        });
        Ok(())
    }

    /// The kernel shares a label among look-ups and next hops; the router takes the next hops.
    fn a_label_that_is_looked_up_and_sent() {
        let mut r = Router::new()?;
        r.ip("link set lo up");
        r.lab.ok("lcp fpm enable");
        let link = r.ns.link("e0")?.index;
        let mut zebra = r.zebra();
        zebra.write_all(&frame(&[label_anywhere(100, [(1, None), (link, Some([10, 1, 0, 2]))])]))?;
        r.until("the label", |r| r.lab.cli("show mpls fib 100").contains("10.1.0.2"));
        assert_eq!(routes::counters(&r.lab.c).refused, 0);
        let shown = r.lab.cli("show lcp routes unresolved");
        assert!(shown.contains("label 100") && shown.contains("a look-up shares no label"), "{shown}");
        Ok(())
    }
}
