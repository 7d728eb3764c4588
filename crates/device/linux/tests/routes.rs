//! Routes that are taken are those of the kernel, whatever happens to them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_device_linux::Namespace;
use thalweg_device_linux::routes::{Hops, Limits, NextHop, Routes};
use thalweg_netlink::fib::RouteKind;
use thalweg_netns::{LinkOptions, Netns, veth};
use thalweg_testkit::{lab_test, wait_until_seen};

/// Longer than a machine under load takes.
const LONG: Duration = Duration::from_secs(30);
const BUFFER: usize = 8 << 20;

/// A route: kind, and its next hops as link, gateway and weight.
type Used = (String, Vec<(u32, Option<IpAddr>, u16)>);
type All = BTreeMap<(u32, IpAddr, u8), Used>;

/// A namespace with two links whose other ends are up, and its routes as they were taken.
struct Lab {
    ns: Netns,
    other: Netns,
    routes: Routes,
    news: Receiver<()>,
    taken: RefCell<Taken>,
}

#[derive(Default)]
struct Taken {
    routes: BTreeMap<(u32, IpAddr, u8), (RouteKind, Hops)>,
    objects: BTreeMap<u32, Vec<NextHop>>,
}

impl Lab {
    fn new(buffer: usize, limits: Limits) -> Result<Lab> {
        let (ns, other) = (Netns::new("routes")?, Netns::new("other")?);
        for (name, value) in [("disable_ipv6", "0"), ("accept_dad", "0")] {
            ns.set_sysctl(&format!("net/ipv6/conf/default/{name}"), value)?;
        }
        for n in 0..2 {
            let dev = format!("e{n}");
            let ours = LinkOptions::default()
                .address(format!("10.0.{n}.1/24"))
                .address(format!("2001:db8:{n}::1/64"));
            veth((&ns, &dev, &ours), (&other, &dev, &LinkOptions::default()))?;
        }
        let (send, news) = channel();
        let place = Namespace::open(&ns.path().display().to_string())?;
        let announce = move || send.send(()).is_ok();
        let routes = Routes::start(Some(&place), limits, buffer, announce)?;
        Ok(Lab { ns, other, routes, news, taken: RefCell::default() })
    }

    /// Takes what has changed, as a router does.
    fn take(&self) {
        while self.news.try_recv().is_ok() {}
        let mut all = self.taken.borrow_mut();
        loop {
            let taken = self.routes.take(100);
            all.objects.extend(taken.objects);
            for change in taken.routes {
                let (ip, bits) = change.destination;
                let key = (change.table, ip, bits);
                match change.now {
                    Some(used) => _ = all.routes.insert(key, (used.kind, used.hops)),
                    None => _ = all.routes.remove(&key),
                }
            }
            for id in taken.gone {
                let users = all.routes.values().filter(|(_, hops)| *hops == Hops::Object(id));
                assert_eq!(users.count(), 0, "object {id} is gone and has users");
                all.objects.remove(&id);
            }
            if !taken.more {
                return;
            }
        }
    }

    fn seen(&self) -> All {
        let all = self.taken.borrow();
        let place = |hop: &NextHop| (hop.link, hop.gateway, hop.weight);
        let used = |(key, (kind, hops)): (&(u32, IpAddr, u8), &(RouteKind, Hops))| {
            let mut hops: Vec<_> = match hops {
                Hops::These(hops) => hops.iter().map(place).collect(),
                Hops::Object(id) => {
                    let hops = all.objects.get(id).map_or(&[][..], |hops| hops);
                    hops.iter().map(place).collect()
                }
            };
            hops.sort_unstable();
            (*key, (format!("{kind:?}").to_lowercase(), hops))
        };
        all.routes.iter().map(used).collect()
    }

    /// The kernel's routes, of those that are not its own.
    fn kernel(&self) -> Result<All> {
        let mut all: BTreeMap<_, (u64, Used)> = BTreeMap::new();
        let text = self.ns.ip("-j link show")?;
        let links: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        let link =
            |row: &Value| Some((row["ifname"].as_str()?.into(), row["ifindex"].as_u64()? as u32));
        let links = links.as_array().context("links")?.iter().filter_map(link).collect();
        for (version, any) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
            let text = self.ns.ip(&format!("-j -d {version} route show table all"))?;
            let rows: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
            for row in rows.as_array().context("rows")? {
                add_row(&links, &mut all, row, any)?;
            }
        }
        Ok(all.into_iter().map(|(key, (_, used))| (key, used)).collect())
    }

    /// Waits until the taken routes are those of the kernel.
    fn settle(&self, after: &str) -> Result<()> {
        let same = || {
            self.take();
            let kernel = self.kernel().map_err(|e| format!("{e:#}"))?;
            let seen = self.seen();
            match seen == kernel && self.routes.state().complete {
                true => Ok(()),
                false => Err(format!("taken: {seen:#?}\nkernel: {kernel:#?}")),
            }
        };
        wait_until_seen(LONG, after, same)
    }

    /// Runs commands one by one; after each, what was taken is what the kernel has.
    fn each(&self, commands: &str) -> Result<()> {
        for command in commands.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.ns.ip(command)?;
            self.settle(command)?;
        }
        Ok(())
    }
}

/// Adds a row of `ip route`, unless a better one of its destination is there.
fn add_row(
    links: &BTreeMap<String, u32>,
    all: &mut BTreeMap<(u32, IpAddr, u8), (u64, Used)>,
    row: &Value,
    any: &str,
) -> Result<()> {
    let kind = row["type"].as_str().unwrap_or("unicast").to_owned();
    let own = ["local", "broadcast", "anycast", "multicast"].contains(&kind.as_str());
    if own || row["protocol"] == "kernel" {
        return Ok(());
    }
    let dst = row["dst"].as_str().context("a destination")?;
    let dst = if dst == "default" { any } else { dst };
    let (ip, bits) = dst.split_once('/').map_or((dst, None), |(ip, bits)| (ip, Some(bits)));
    let ip: IpAddr = ip.parse()?;
    let bits = bits.map_or(Ok(if ip.is_ipv4() { 32 } else { 128 }), str::parse)?;
    let table = match row["table"].as_str() {
        None | Some("main") => 254,
        Some(table) => table.parse()?,
    };
    let metric = row["metric"].as_u64().unwrap_or(0);
    let is_dead = |hop: &Value| {
        hop["flags"].as_array().is_some_and(|flags| flags.iter().any(|f| f == "dead"))
    };
    let hop = |hop: &Value| -> Result<(u32, Option<IpAddr>, u16)> {
        let link = *links.get(hop["dev"].as_str().context("a link")?).context("a link")?;
        let gateway = hop["gateway"].as_str().or(hop["via"]["host"].as_str());
        let weight = hop["weight"].as_u64().unwrap_or(1) as u16;
        Ok((link, gateway.map(str::parse).transpose()?, weight))
    };
    let rows = row["nexthops"].as_array().cloned().unwrap_or_else(|| vec![row.clone()]);
    let live = rows.iter().filter(|one| !is_dead(one));
    let mut hops = match kind.as_str() {
        "unicast" => live.map(hop).collect::<Result<Vec<_>>>()?,
        _ => Vec::new(),
    };
    hops.sort_unstable();
    // The first of the lowest metric is used.
    let place = all.entry((table, ip, bits)).or_insert((u64::MAX, Used::default()));
    if metric < place.0 {
        *place = (metric, (kind, hops));
    }
    Ok(())
}

fn lab() -> Result<Lab> {
    Lab::new(BUFFER, Limits::default())
}

lab_test! {
    fn ipv4_routes_of_all_kinds() {
        let lab = lab()?;
        lab.each(
            "route add 192.0.2.0/24 via 10.0.0.2
             route add 192.0.2.0/24 via 10.0.1.2 metric 10
             route replace 192.0.2.0/24 via 10.0.0.3
             route append 192.0.2.0/24 via 10.0.0.4
             route prepend 192.0.2.0/24 via 10.0.0.5
             route del 192.0.2.0/24 via 10.0.0.5
             route del 192.0.2.0/24 via 10.0.0.3
             route del 192.0.2.0/24
             route del 192.0.2.0/24 metric 10
             route add default nexthop via 10.0.0.2 weight 3 nexthop via 10.0.1.2
             route change default nexthop via 10.0.0.2 nexthop via 10.0.1.2 weight 256
             route add blackhole 198.51.100.0/24
             route add unreachable 198.51.100.0/25
             route add prohibit 198.51.100.128/25
             route replace 198.51.100.0/24 dev e0
             route add 203.0.113.1 via inet6 2001:db8:0::9 dev e0
             route add 203.0.113.0/24 via 10.0.0.2 table 100
             route add 203.0.113.0/24 via 10.0.0.77 dev e1 onlink
             route flush table 100",
        )?;
        // The router has no tables by type of service.
        lab.ns.ip("route add 203.0.113.0/24 tos 8 via 10.0.1.2")?;
        lab.ns.ip("route add throw 203.0.114.0/24")?;
        wait_until_seen(LONG, "two left out", || match lab.routes.state().left.unsupported {
            2 => Ok(()),
            n => Err(n),
        })
    }

    fn ipv6_routes_of_all_kinds() {
        let lab = lab()?;
        lab.each(
            "-6 route add 2001:db8:a::/48 via 2001:db8:0::2
             -6 route append 2001:db8:a::/48 via 2001:db8:1::2
             -6 route append 2001:db8:a::/48 via 2001:db8:1::3
             -6 route del 2001:db8:a::/48 via 2001:db8:1::2
             -6 route replace 2001:db8:a::/48 nexthop via 2001:db8:0::2 weight 3 nexthop via 2001:db8:1::2
             -6 route add 2001:db8:a::/48 via 2001:db8:1::7 metric 10
             -6 route del 2001:db8:a::/48 metric 10
             -6 route del 2001:db8:a::/48
             -6 route add default via 2001:db8:0::2
             -6 route add unreachable 2001:db8:b::/48
             -6 route add blackhole 2001:db8:c::/48
             -6 route add 2001:db8:d::/48 dev e0
             -6 route append 2001:db8:d::/48 dev e1
             -6 route del 2001:db8:d::/48 dev e0
             -6 route flush 2001:db8::/32 proto boot",
        )
    }

    /// Routes that the kernel removes without a notice.
    fn silent_removals() {
        let lab = lab()?;
        lab.each(
            "route add 192.0.2.0/24 via 10.0.0.2
             route add 192.0.2.0/25 nexthop via 10.0.0.2 nexthop via 10.0.1.2
             -6 route add 2001:db8:a::/48 nexthop via 2001:db8:0::2 nexthop via 2001:db8:1::2
             -6 route add 2001:db8:b::/48 via 2001:db8:0::2
             link set e0 down
             link set e0 up
             route replace 192.0.2.0/24 via 10.0.0.2
             address del 10.0.0.1/24 dev e0
             address add 10.0.0.1/24 dev e0
             route replace 192.0.2.0/24 via 10.0.0.2
             nexthop add id 1 via 10.0.0.2 dev e0
             nexthop add id 2 via 10.0.1.2 dev e1
             nexthop add id 3 group 1/2,3
             route add 198.51.100.0/24 nhid 3
             route add 198.51.100.0/25 nhid 1",
        )?;
        lab.other.ip("link set e0 down")?;
        lab.settle("a carrier lost")?;
        lab.other.ip("link set e0 up")?;
        lab.settle("a carrier regained")?;
        lab.each("link del e0")?;
        ensure!(lab.routes.state().counters.resyncs > 1, "{:?}", lab.routes.state());
        Ok(())
    }

    fn next_hop_objects() {
        let lab = lab()?;
        lab.each(
            "nexthop add id 1 via 10.0.0.2 dev e0
             nexthop add id 2 via 10.0.1.2 dev e1
             nexthop add id 3 group 1/2
             nexthop add id 4 blackhole
             nexthop add id 5 via 2001:db8:1::2 dev e1
             route add 192.0.2.0/24 nhid 1
             route add 192.0.2.0/25 nhid 3
             route add 192.0.2.128/25 nhid 3
             -6 route add 2001:db8:a::/48 nhid 5
             nexthop replace id 3 group 1,3/2
             nexthop replace id 1 via 10.0.0.7 dev e0
             nexthop replace id 3 group 2
             nexthop del id 1
             nexthop del id 2
             nexthop del id 5",
        )
    }

    /// A buffer of the kernel for a few hundred notices, and 30,000 routes at once.
    fn lost_notices_are_made_up_for() {
        let lab = Lab::new(4096, Limits::default())?;
        lab.settle("the start")?;
        for word in ["add", "del"] {
            let mut batch = String::new();
            for n in 0..30_000 {
                writeln!(batch, "route {word} 20.{}.{}.0/24 via 10.0.0.2", n >> 8, n & 255)?;
            }
            let file = tempfile::NamedTempFile::new()?;
            std::fs::write(file.path(), batch)?;
            lab.ns.ip(&format!("-batch {}", file.path().display()))?;
            lab.settle(word)?;
        }
        let state = lab.routes.state();
        ensure!(state.counters.overruns > 0 && state.counters.resyncs > 1, "{state:?}");
        ensure!(state.routes == 0 && state.waiting == 0, "{state:?}");
        Ok(())
    }

    fn limits_are_kept_and_counted() {
        let limits = Limits { routes: 10, tables: 3, objects: 2, hops: 2, ..Limits::default() };
        let lab = Lab::new(BUFFER, limits)?;
        lab.settle("the start")?;
        for n in 0..20 {
            lab.ns.ip(&format!("route add 192.0.2.{n} via 10.0.0.2"))?;
            lab.ns.ip(&format!("nexthop add id {} via 10.0.0.2 dev e0", n + 1))?;
        }
        wait_until_seen(LONG, "limits", || {
            let state = lab.routes.state();
            let full = (state.routes, state.objects, state.left.beyond >= 28) == (10, 2, true);
            if full { Ok(()) } else { Err(format!("{state:?}")) }
        })?;
        lab.ns.ip("route flush 192.0.2.0/24")?;
        lab.ns.ip("route flush proto boot")?;
        lab.settle("flushed")
    }
}
