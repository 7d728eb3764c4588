//! Interfaces by which this machine is reached, and those that lead to the same link: load on them
//! would cut it off from its users.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use anyhow::{Context, Result, bail};
use thalweg_netlink::{Link, Route, tables};

use super::logins::{self, Login};

/// The machine's interfaces and the ways to it.
pub(crate) struct Ways {
    links: Vec<Link>,
    /// Pairs of interfaces of which one sends by the other, or passes on what it receives.
    joined: Vec<(u32, u32)>,
    /// Interfaces that must not have load, with the reason.
    needed: Vec<(u32, String)>,
}

impl Ways {
    /// Asks the kernel, in this thread's network namespace.
    pub(crate) fn read() -> Result<Ways> {
        let links = Link::all().context("read the interfaces")?;
        let tables = tables(&links).context("read the routing rules")?;
        let mut needed = Vec::new();
        for route in Route::all().context("read the routes")? {
            let used = route.leads_elsewhere() && tables.contains(&route.table);
            if used && let Some(kind) = wide(route.destination) {
                let of = |index: &u32| (*index, format!("{kind} ({route})"));
                needed.extend(route.interfaces.iter().map(of));
            }
        }
        for login in logins::all() {
            let peer = login.peer;
            let text = format!("the route to {peer}, from which a user is logged in");
            let interfaces = interfaces_to(&login, &links).context("read a route")?;
            needed.extend(interfaces.into_iter().map(|index| (index, text.clone())));
        }
        let joined = joined(&links)?;
        Ok(Ways { links, joined, needed })
    }

    /// Refuses an interface that is not there, or by whose link the machine is reached. `option`:
    /// the one that names it.
    pub(crate) fn check(&self, option: &str, name: &str, even_needed: bool) -> Result<()> {
        let Some(link) = self.links.iter().find(|link| link.name == name) else {
            bail!("{option}: no interface {name}");
        };
        if even_needed {
            return Ok(());
        }
        let way =
            |(index, why): &(u32, String)| Some((self.path(link.index, *index)?, why.clone()));
        let Some((path, why)) = self.needed.iter().find_map(way) else { return Ok(()) };
        let by =
            if path.len() > 1 { format!(", by {}", path.join(" – ")) } else { String::new() };
        bail!(
            "{option}: {name} has {why}{by}: load on it would cut the machine off. Name another, or \
             give --even-default-route"
        )
    }

    /// The names of interfaces from one to another, if they are joined.
    fn path(&self, from: u32, to: u32) -> Option<Vec<String>> {
        let mut before = BTreeMap::from([(to, to)]);
        let mut next = VecDeque::from([to]);
        while let Some(at) = next.pop_front() {
            for (a, b) in &self.joined {
                let other = match at {
                    _ if at == *a => *b,
                    _ if at == *b => *a,
                    _ => continue,
                };
                before.entry(other).or_insert_with(|| {
                    next.push_back(other);
                    at
                });
            }
        }
        let mut path = Vec::new();
        let mut at = from;
        loop {
            let next = *before.get(&at)?;
            path.push(self.name(at));
            if at == next {
                return Some(path);
            }
            at = next;
        }
    }

    fn name(&self, index: u32) -> String {
        let link = self.links.iter().find(|link| link.index == index);
        link.map_or_else(|| format!("interface {index}"), |link| link.name.clone())
    }
}

/// A route by which the machine reaches whatever it does not know: the default, or one of the parts
/// into which a VPN or a router may cut it. Networks of one's own are smaller: no block that is
/// given out in the Internet has fewer bits than 8 and 12.
fn wide((to, bits): (IpAddr, u8)) -> Option<&'static str> {
    let is_part = match to {
        IpAddr::V4(to) => bits < 8 && !to.is_multicast(),
        IpAddr::V6(to) => {
            let global = (to.to_bits() >> 125) == 0b001;
            bits < 3 || (bits <= 12 && global)
        }
    };
    match bits {
        0 => Some("this machine's default route"),
        _ => is_part.then_some("a part of this machine's default route"),
    }
}

/// Interfaces by which packets of a session leave.
fn interfaces_to(login: &Login, links: &[Link]) -> std::io::Result<Vec<u32>> {
    if let Some(zone) = &login.zone {
        let link = links.iter().find(|link| link.name == *zone);
        return Ok(link.map(|link| link.index).into_iter().collect());
    }
    // A session of another network namespace has an address that is not of this one.
    if !Route::to(login.own, None)?.is_some_and(|route| route.is_local()) {
        return Ok(Vec::new());
    }
    let route = Route::to(login.peer, Some(login.own))?.filter(Route::leads_elsewhere);
    Ok(route.map_or_else(Vec::new, |route| route.interfaces))
}

/// The interfaces that are joined: a VLAN, macvlan or tunnel with what is below it, both ends of a
/// virtual Ethernet pair, a bridge, bond or team with its members.
fn joined(links: &[Link]) -> Result<Vec<(u32, u32)>> {
    let kind = |index: u32| links.iter().find(|of| of.index == index).map(|of| of.kind.as_str());
    let mut joined = Vec::new();
    for link in links {
        joined.extend(link.lower.map(|lower| (link.index, lower)));
        // Members of a VRF share a table, no link.
        let master = link.master.filter(|master| kind(*master) != Some("vrf"));
        joined.extend(master.map(|master| (link.index, master)));
        // Ports of Open vSwitch in the kernel have its one datapath as their master, and its own
        // interfaces none.
        if link.kind == OVS {
            let other = links.iter().find(|other| other.kind == OVS);
            joined.extend(other.map(|other| (link.index, other.index)));
        }
        if let Some(remote) = link.remote {
            let route = Route::to(remote, None).context("read the route of a tunnel")?;
            let below = route.filter(Route::leads_elsewhere);
            let below = below.into_iter().flat_map(|route| route.interfaces);
            joined.extend(below.map(|below| (link.index, below)));
        }
    }
    Ok(joined)
}

/// The kind of interfaces of Open vSwitch in the kernel.
const OVS: &str = "openvswitch";

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use thalweg_testkit::{LinkOptions, Netns, lab_test, veth};

    #[test]
    fn default_routes_and_their_parts_are_wide() {
        for (text, bits) in [
            ("0.0.0.0", 0),
            ("0.0.0.0", 1),
            ("128.0.0.0", 1),
            ("64.0.0.0", 2),
            ("8.0.0.0", 7),
            ("::", 0),
            ("::", 1),
            ("8000::", 1),
            ("2000::", 3),
            ("2400::", 12),
        ] {
            assert!(wide((text.parse().unwrap(), bits)).is_some(), "{text}/{bits}");
        }
        for (text, bits) in [
            ("10.0.0.0", 8),
            ("224.0.0.0", 4),
            ("192.0.2.0", 24),
            ("fe80::", 10),
            ("fc00::", 7),
            ("ff00::", 8),
            ("2001:db8::", 32),
        ] {
            assert!(wide((text.parse().unwrap(), bits)).is_none(), "{text}/{bits}");
        }
    }

    /// Interfaces, as name, kind, master and what is below, by their places from 1.
    fn ways(links: &[(&str, &str, u32, u32)], needed: u32) -> Ways {
        let link = |(at, (name, kind, master, lower)): (usize, &(&str, &str, u32, u32))| Link {
            index: at as u32 + 1,
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            master: Some(*master).filter(|index| *index > 0),
            lower: Some(*lower).filter(|index| *index > 0),
            ..Link::default()
        };
        let links: Vec<Link> = links.iter().enumerate().map(link).collect();
        let joined = joined(&links).unwrap();
        Ways { links, joined, needed: vec![(needed, "a way".to_owned())] }
    }

    #[test]
    fn interfaces_that_lead_to_the_same_link_are_joined() {
        let kinds = [("bond0", "bond"), ("team0", "team"), ("br0", "bridge")];
        for (name, kind) in kinds {
            // Members, a VLAN of each, and one on top of the master.
            let all = [
                ("eth0", "", 4, 0),
                ("eth1", "", 4, 0),
                ("eth2", "", 0, 0),
                (name, kind, 0, 0),
                ("top", "vlan", 0, 4),
                ("of1", "macvlan", 0, 2),
            ];
            let ways = ways(&all, 5);
            for name in ["eth0", "eth1", name, "top", "of1"] {
                let why = ways.check("--ports", name, false).unwrap_err().to_string();
                assert!(why.starts_with(&format!("--ports: {name} has a way")), "{why}");
            }
            ways.check("--ports", "eth2", false).unwrap();
            let why = ways.check("--ports", "of1", false).unwrap_err().to_string();
            assert!(why.contains(&format!("by of1 – eth1 – {} – top:", all[3].0)), "{why}");
        }
        // Open vSwitch: the bridge's own interface has no master.
        let switch =
            [("ovs-system", OVS, 0, 0), ("eth0", "", 1, 0), ("br0", OVS, 0, 0), ("eth1", "", 0, 0)];
        assert!(ways(&switch, 3).check("--ports", "eth0", false).is_err());
        ways(&switch, 3).check("--ports", "eth1", false).unwrap();
    }

    #[test]
    fn members_of_a_vrf_are_not_joined() {
        let all = [("red", "vrf", 0, 0), ("eth0", "", 1, 0), ("eth1", "", 1, 0)];
        ways(&all, 2).check("--ports", "eth1", false).unwrap();
        assert!(ways(&all, 2).check("--ports", "eth0", false).is_err());
        ways(&all, 2).check("--ports", "eth0", true).unwrap();
    }

    /// A namespace with pairs of interfaces, whose one end is in another one.
    fn machine(pairs: usize) -> Result<(Netns, Netns)> {
        let (ns, other) = (Netns::new("machine")?, Netns::new("other")?);
        for n in 0..pairs {
            let end = LinkOptions::default();
            veth((&ns, &format!("p{n}"), &end), (&other, &format!("d{n}"), &end))?;
        }
        ns.set_sysctl("net/ipv6/conf/all/disable_ipv6", "0")?;
        Ok((ns, other))
    }

    /// Returns the reason why an interface is refused; empty if it is not.
    fn why(ns: &Netns, name: &str) -> Result<String> {
        ns.run(|| {
            let ways = Ways::read()?;
            assert!(ways.check("--ports", name, true).is_ok(), "{name} is there");
            Ok(ways
                .check("--ports", name, false)
                .err()
                .map_or_else(String::new, |why| why.to_string()))
        })?
    }

    /// Sets something up, and says why the first interface is refused, while the second is not.
    fn refused(lines: &[&str]) -> Result<String> {
        let (ns, _other) = machine(2)?;
        lines.iter().try_for_each(|line| ns.ip(line).map(drop))?;
        assert_eq!(why(&ns, "p1")?, "", "{lines:?}");
        let why = why(&ns, "p0")?;
        assert!(why.starts_with("--ports: p0 has "), "{lines:?}: {why}");
        assert!(why.contains("--even-default-route"), "{why}");
        Ok(why)
    }

    /// Lines that make an interface the way out.
    fn out_by(name: &str) -> [String; 3] {
        [
            format!("link set {name} up"),
            format!("address add 10.9.0.1/24 dev {name}"),
            format!("route add default via 10.9.0.2 dev {name}"),
        ]
    }

    lab_test! {
        fn an_interface_without_a_way_is_taken() {
            let (ns, _other) = machine(1)?;
            ns.ip("address add 10.9.0.1/24 dev p0")?;
            ns.ip("route add 10.0.0.0/8 via 10.9.0.2")?;
            ns.ip("route add blackhole default")?;
            assert_eq!(why(&ns, "p0")?, "");
            let missing = ns.run(|| Ways::read()?.check("--ports", "p7", true))?.unwrap_err();
            assert_eq!(missing.to_string(), "--ports: no interface p7");
            Ok(())
        }

        fn routes_that_lead_anywhere_are_kept() {
            let address = "address add 10.9.0.1/24 dev p0";
            let address6 = "address add 2001:db8:9::1/64 dev p0 nodad";
            for (lines, text) in [
                (&[address, "route add default via 10.9.0.2"][..],
                 "this machine's default route (0.0.0.0/0 via 10.9.0.2)"),
                (&["route add default dev p0"], "default route (0.0.0.0/0)"),
                (&[address, "route add 0.0.0.0/1 via 10.9.0.2"],
                 "a part of this machine's default route (0.0.0.0/1 via 10.9.0.2)"),
                (&[address, "route add 128.0.0.0/2 via 10.9.0.2"], "(128.0.0.0/2 via 10.9.0.2)"),
                (&[address, "route add default nexthop via 10.9.0.2 nexthop via 10.9.0.3"],
                 "this machine's default route"),
                (&[address, "nexthop add id 5 via 10.9.0.2 dev p0", "route add default nhid 5"],
                 "this machine's default route"),
                (&[address6, "route add default via 2001:db8:9::2"],
                 "this machine's default route (::/0 via 2001:db8:9::2)"),
                (&[address6, "route add 2000::/3 via 2001:db8:9::2"],
                 "a part of this machine's default route (2000::/3 via 2001:db8:9::2)"),
                (&[address, "rule add from 10.9.0.1 table 1000",
                   "route add default via 10.9.0.2 table 1000"],
                 "this machine's default route (0.0.0.0/0 via 10.9.0.2 in table 1000)"),
                (&[address6, "-6 rule add from 2001:db8:9::1 table 1000",
                   "route add default via 2001:db8:9::2 table 1000"], "in table 1000)"),
            ] {
                let why = refused(lines)?;
                assert!(why.contains(text), "{lines:?}: {why}");
            }
            Ok(())
        }

        fn a_table_that_no_rule_uses_is_no_way() {
            let (ns, _other) = machine(1)?;
            ns.ip("address add 10.9.0.1/24 dev p0")?;
            ns.ip("route add default via 10.9.0.2 table 1000")?;
            assert_eq!(why(&ns, "p0")?, "");
            Ok(())
        }

        fn what_is_below_a_way_and_above_it_is_kept() {
            for (make, way) in [
                (&["link add br9 type bridge", "link set p0 master br9"][..], "br9"),
                (&["link add mv link p0 type macvlan mode bridge"], "mv"),
                (&["link add br9 type bridge", "link add mv link p0 type macvlan mode bridge",
                   "link set mv master br9", "link add mw link br9 type macvlan mode bridge"],
                 "mw"),
                (&["address add 10.8.0.1/24 dev p0",
                   "link add x0 type vxlan id 7 dstport 4789 remote 10.8.0.2"], "x0"),
                (&["link add x0 type vxlan id 7 dev p0 dstport 4789 group 239.1.1.1"], "x0"),
            ] {
                let out = out_by(way);
                let lines: Vec<&str> =
                    make.iter().copied().chain(out.iter().map(String::as_str)).collect();
                let why = refused(&lines)?;
                assert!(why.contains("by p0 – ") && why.contains(way), "{why}");
                // The way itself, too.
                let (ns, _other) = machine(1)?;
                let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
                ns.ip_batch(&lines)?;
                let why = self::why(&ns, way)?;
                assert!(why.starts_with(&format!("--ports: {way} has this")), "{why}");
            }
            Ok(())
        }

        /// Frames of an interface above the way leave by its link.
        fn what_sends_by_the_link_of_a_way_is_kept() {
            let (ns, _other) = machine(1)?;
            ns.ip("link add mv link p0 type macvlan mode bridge")?;
            ns.ip_batch(&out_by("p0"))?;
            let why = why(&ns, "mv")?;
            assert!(why.contains("by mv – p0"), "{why}");
            Ok(())
        }

        fn the_other_end_of_a_pair_is_kept() {
            let ns = Netns::new("pair")?;
            let end = LinkOptions::default();
            veth((&ns, "pa", &end), (&ns, "pb", &end))?;
            ns.ip_batch(&out_by("pb"))?;
            assert!(why(&ns, "pa")?.contains("by pa – pb"));
            Ok(())
        }

        fn the_route_to_a_logged_in_user_is_kept() {
            for (own, peer, more) in [
                ("10.9.0.1/24", "10.9.0.2/24", None),
                ("2001:db8:9::1/64", "2001:db8:9::2/64", None),
                // The address is not on the link, and a route of one host leads to it.
                ("10.9.0.1/24", "192.0.2.7/32", Some("route add 192.0.2.7/32 via 10.9.0.2")),
            ] {
                let (ns, other) = machine(2)?;
                other.set_sysctl("net/ipv6/conf/all/disable_ipv6", "0")?;
                let nodad = if own.contains(':') { " nodad" } else { "" };
                ns.ip(&format!("address add {own} dev p0{nodad}"))?;
                other.ip(&format!("address add {peer} dev d0{nodad}"))?;
                if let Some(more) = more {
                    other.ip("address add 10.9.0.2/24 dev d0")?;
                    ns.ip(more)?;
                }
                assert_eq!(why(&ns, "p0")?, "", "nobody is logged in");
                let address = |text: &str| -> Result<IpAddr> {
                    Ok(text.split('/').next().unwrap_or_default().parse()?)
                };
                let (server, client) = (address(own)?, address(peer)?);
                let listener = ns.run(|| TcpListener::bind((server, 22)))??;
                let mut dialed = other.run(|| TcpStream::connect((server, 22)))??;
                let mut session = listener.accept()?.0;
                dialed.write_all(b"x")?;
                session.read_exact(&mut [0])?;
                let from = dialed.local_addr()?.ip();
                let why = why(&ns, "p0")?;
                let text = format!("p0 has the route to {from}, from which a user is logged in");
                assert!(why.contains(&text), "{why}");
                assert!(more.is_some() || from == client);
                assert_eq!(self::why(&ns, "p1")?, "");
            }
            Ok(())
        }

        /// An address of another namespace does not concern this one.
        fn a_session_elsewhere_has_no_way_here() {
            let (ns, _other) = machine(1)?;
            ns.ip("address add 10.9.0.1/24 dev p0")?;
            let login = |own: [u8; 4]| Login {
                peer: IpAddr::from([10, 9, 0, 7]),
                own: IpAddr::from(own),
                zone: None,
            };
            let to = |own| ns.run(move || interfaces_to(&login(own), &[]));
            assert!(to([198, 51, 100, 1])??.is_empty());
            let index = ns.run(|| Link::named("p0"))??.map(|link| link.index);
            assert_eq!(to([10, 9, 0, 1])??, Vec::from_iter(index));
            Ok(())
        }
    }
}
