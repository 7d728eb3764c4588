//! Twins of sub-interfaces are VLAN links of the kernel's 8021q, which may be members of a VRF or
//! below a bond.
//!
//! ```text
//! plane: e0, e0.10 … ═ ra  router  rb ═ e1
//!                       ║          ║
//!                 far: va          vb
//! ```

use crate::guest::{LIMIT, cli, passed, run};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_netns::{Netns, PingOptions, ping};
use thalweg_testkit::wait_until_seen;

/// Name of the namespace with the twins.
const PLANE: &str = "plane";

/// Commands of the router: sub-interfaces with one tag, an outer tag, and both; twins.
const ROUTER: &str = "create host-interface name ra hw-addr 02:00:00:00:00:0a
create host-interface name rb hw-addr 02:00:00:00:00:0b
set interface state host-ra up
set interface state host-rb up
lcp default netns plane
lcp lcp-sync on
lcp create host-ra host-if e0
create sub-interfaces host-ra 10 dot1q 10 exact-match
set interface ip address host-ra.10 10.10.0.1/24
set interface state host-ra.10 up
lcp create host-ra.10 host-if e0.10
create sub-interfaces host-ra 20 dot1ad 20 exact-match
set interface state host-ra.20 up
create sub-interfaces host-ra 27 dot1ad 20 inner-dot1q 7 exact-match
set interface ip address host-ra.27 10.27.0.1/24
set interface state host-ra.27 up
lcp create host-ra.20 host-if e0.20
lcp create host-ra.27 host-if e0.27";

/// The scenario, with a router that runs.
pub(crate) fn twins() -> Result<()> {
    let lab = Lab::new()?;
    for line in ROUTER.lines() {
        cli(line).with_context(|| line.to_owned())?;
    }
    lab.made_by_hand()?;
    lab.made_with_the_sub_interface()?;
    lab.made_in_linux()?;
    lab.states_follow_each_other()?;
    lab.namespace_goes_and_comes_back()?;
    lab.in_a_vrf()?;
    lab.below_a_bond()?;
    lab.deleted_in_linux()?;
    cli("delete host-interface name ra")?;
    cli("delete host-interface name rb")?;
    lab.until_plane("nothing to be left", "-br link", |text| !text.contains("e0"))?;
    Ok(())
}

/// A host with VLANs, on both ports of the router, and the namespace with the twins.
struct Lab {
    far: Netns,
}

impl Lab {
    fn new() -> Result<Lab> {
        run(&format!("ip netns add {PLANE}"))?;
        let far = Netns::new("far")?;
        for (own, other) in [("va", "ra"), ("vb", "rb")] {
            far.ip(&format!("link add name {own} type veth peer name {other} netns 1"))?;
            far.ip(&format!("link set {own} up"))?;
            run(&format!("ip link set {other} up"))?;
        }
        for (under, name, kind) in [
            ("va", "va.10", "id 10"),
            ("va", "va.20", "protocol 802.1ad id 20"),
            ("va.20", "va.27", "id 7"),
            ("va.20", "va.28", "id 8"),
            ("va", "va.30", "id 30"),
            ("va", "va.40", "id 40"),
        ] {
            far.ip(&format!("link add link {under} name {name} type vlan {kind}"))?;
            far.ip(&format!("link set {name} up"))?;
        }
        for net in [10, 27, 28, 30, 40] {
            far.ip(&format!("address add 10.{net}.0.2/24 dev va.{net}"))?;
        }
        Ok(Lab { far })
    }

    /// The namespace with the twins, which is another one after it came back.
    fn plane(&self) -> Result<Netns> {
        Netns::existing(PLANE)
    }

    /// Waits until what `ip` says there is as wanted.
    fn until_plane(&self, what: &str, line: &str, is: impl Fn(&str) -> bool) -> Result<String> {
        wait_until_seen(LIMIT, what, || {
            let text = self.plane().and_then(|p| p.ip(line)).map_err(|e| format!("{e:#}"))?;
            if is(&text) { Ok(text) } else { Err(text) }
        })
    }

    /// Waits until a twin is described by all these words.
    fn until_twin(&self, twin: &str, words: &[&str]) -> Result<()> {
        let all = |text: &str| words.iter().all(|word| text.contains(word));
        let line = format!("-d address show dev {twin}");
        self.until_plane(&format!("{twin} with {words:?}"), &line, all).map(drop)
    }

    /// A program of the twin's namespace reaches the host of a network, and that the router.
    fn reaches(&self, net: u8) -> Result<()> {
        let patient = PingOptions { count: 1, ..PingOptions::default() };
        let answered = |from: &Netns, host: u8| {
            wait_until_seen(LIMIT, &format!("an answer from 10.{net}.0.{host}"), || {
                let got = ping(from, [10, net, 0, host], &patient).map_err(|e| format!("{e:#}"))?;
                if got.received > 0 { Ok(()) } else { Err(got.text) }
            })
        };
        answered(&self.plane()?, 2)?;
        answered(&self.far, 1)
    }

    /// The pair of an interface in `show lcp`.
    fn pair(&self, phy: &str) -> Result<Option<Value>> {
        let shown: Value = serde_json::from_str(&cli("show lcp | json")?)?;
        let all = shown["pairs"].as_array().context("pairs")?;
        Ok(all.iter().find(|pair| pair["phy"] == phy).cloned())
    }

    /// Waits until the router says of all these interfaces whether their twins are away.
    fn until_away(&self, phys: &[&str], away: bool) -> Result<()> {
        wait_until_seen(LIMIT, &format!("twins to be away: {away}"), || {
            for phy in phys {
                let pair = self.pair(phy).map_err(|e| format!("{e:#}"))?;
                match &pair {
                    Some(pair) if pair["away"] == away => {}
                    other => return Err(format!("{phy}: {other:?}")),
                }
            }
            Ok(())
        })
    }

    fn made_by_hand(&self) -> Result<()> {
        self.until_twin("e0.10", &["vlan protocol 802.1Q id 10", "10.10.0.1/24", ",UP"])?;
        self.until_twin("e0.20", &["vlan protocol 802.1ad id 20", ",UP"])?;
        self.until_twin("e0.27", &["e0.27@e0.20", "vlan protocol 802.1Q id 7", "10.27.0.1/24"])?;
        self.reaches(10)?;
        self.reaches(27)?;
        passed("twins of sub-interfaces with one tag, and with two");
        Ok(())
    }

    fn made_with_the_sub_interface(&self) -> Result<()> {
        cli("lcp lcp-auto-subint on")?;
        cli("create sub-interfaces host-ra 30 dot1q 30 exact-match")?;
        cli("set interface ip address host-ra.30 10.30.0.1/24")?;
        cli("set interface state host-ra.30 up")?;
        self.until_twin("e0.30", &["vlan protocol 802.1Q id 30", "10.30.0.1/24", ",UP"])?;
        self.reaches(30)?;
        cli("delete sub-interface host-ra.30")?;
        self.until_plane("the link to go", "-br link", |text| !text.contains("e0.30"))?;
        passed("a twin is made with its sub-interface, and goes with it");
        Ok(())
    }

    fn made_in_linux(&self) -> Result<()> {
        let plane = self.plane()?;
        plane.ip("link add link e0 name e0.40 type vlan id 40")?;
        plane.ip("address add 10.40.0.1/24 dev e0.40")?;
        plane.ip("link set e0.40 up")?;
        plane.ip("link add link e0.20 name inner type vlan id 8")?;
        plane.ip("address add 10.28.0.1/24 dev inner")?;
        plane.ip("link set inner up")?;
        self.until_away(&["host-ra.40", "host-ra.200008"], false)?;
        self.reaches(40)?;
        self.reaches(28)?;
        passed("sub-interfaces are made for VLAN links of Linux, with one tag and with two");
        Ok(())
    }

    /// The kernel takes VLAN links down and up with the link below, which is nobody's wish.
    fn states_follow_each_other(&self) -> Result<()> {
        let state = |name: &str| -> Result<bool, String> {
            let shown = cli(&format!("show interface {name} | json")).map_err(|e| e.to_string())?;
            let shown: Value = serde_json::from_str(&shown).map_err(|e| e.to_string())?;
            let row = shown.as_array().and_then(|rows| rows.first()).unwrap_or(&shown);
            row["admin_up"].as_bool().ok_or_else(|| shown.to_string())
        };
        cli("set interface state host-ra down")?;
        self.until_plane("the VLAN link to go down", "-br link show dev e0.10", |text| {
            !text.contains(",UP") && text.contains("DOWN")
        })?;
        cli("set interface state host-ra up")?;
        self.until_twin("e0.10", &[",UP", "10.10.0.1/24"])?;
        for name in ["host-ra.10", "host-ra.20", "host-ra.27"] {
            ensure!(state(name).map_err(anyhow::Error::msg)?, "{name} is down");
        }
        self.reaches(10)?;
        self.reaches(27)?;
        let plane = self.plane()?;
        plane.ip("link set e0.10 down")?;
        let is = |up: bool| {
            wait_until_seen(LIMIT, &format!("host-ra.10 to be up: {up}"), || {
                if state("host-ra.10")? == up { Ok(()) } else { Err("not yet".to_owned()) }
            })
        };
        is(false)?;
        plane.ip("link set e0.10 up")?;
        is(true)?;
        self.reaches(10)?;
        passed("VLAN twins go down and up with the link below, and their interfaces do not");
        Ok(())
    }

    fn namespace_goes_and_comes_back(&self) -> Result<()> {
        let all = ["host-ra", "host-ra.10", "host-ra.20", "host-ra.27", "host-ra.40"];
        for _ in 0..2 {
            run(&format!("ip netns delete {PLANE}"))?;
            self.until_away(&all, true)?;
            run(&format!("ip netns add {PLANE}"))?;
            self.until_away(&all, false)?;
            self.until_twin("e0.10", &["vlan protocol 802.1Q id 10", "10.10.0.1/24", ",UP"])?;
            self.until_twin("e0.27", &["vlan protocol 802.1Q id 7", "10.27.0.1/24", ",UP"])?;
            self.reaches(10)?;
            self.reaches(27)?;
        }
        // The device below is deleted, and its VLAN links with it.
        self.plane()?.ip("link delete e0")?;
        self.until_away(&all, false)?;
        self.until_twin("e0.27", &["vlan protocol 802.1Q id 7", "10.27.0.1/24", ",UP"])?;
        self.reaches(10)?;
        self.reaches(27)?;
        passed("a namespace goes and comes back with its VLAN twins, and a device with its own");
        Ok(())
    }

    fn in_a_vrf(&self) -> Result<()> {
        let plane = self.plane()?;
        plane.ip("link add red type vrf table 100")?;
        plane.ip("link set red up")?;
        plane.ip("address add 10.40.0.1/24 dev e0.40")?;
        plane.ip("link set e0.40 up")?;
        self.reaches(40)?;
        plane.ip("link set e0.40 master red")?;
        let in_table = |net: &str, table: u32| {
            let name = format!("host-ra.{net}");
            wait_until_seen(LIMIT, &format!("{name} in table {table}"), || {
                let shown = cli(&format!("show ip fib table {table} 10.{net}.0.1/32"));
                let shown = shown.map_err(|e| format!("{e:#}"))?;
                if shown.contains(&name) { Ok(()) } else { Err(shown) }
            })
        };
        in_table("40", 100)?;
        let quick = PingOptions { count: 1, ..PingOptions::default() };
        wait_until_seen(LIMIT, "the router to answer in the VRF", || {
            let got = ping(&self.far, [10, 40, 0, 1], &quick).map_err(|e| format!("{e:#}"))?;
            if got.received > 0 { Ok(()) } else { Err(got.text) }
        })?;
        plane.ip("link set e0.40 nomaster")?;
        in_table("40", 0)?;
        self.reaches(40)?;
        // The usual case: the address is written, and `lcp-sync' has given it to the twin.
        plane.ip("link set e0.10 master red")?;
        in_table("10", 100)?;
        self.until_twin("e0.10", &["10.10.0.1/24", "master red"])?;
        wait_until_seen(LIMIT, "the router to answer by its written address", || {
            let got = ping(&self.far, [10, 10, 0, 1], &quick).map_err(|e| format!("{e:#}"))?;
            if got.received > 0 { Ok(()) } else { Err(got.text) }
        })?;
        let shown = cli("show lcp")?;
        ensure!(!shown.contains("does not take"), "{shown}");
        plane.ip("link set e0.10 nomaster")?;
        in_table("10", 0)?;
        self.reaches(10)?;
        plane.ip("link delete red")?;
        passed("an interface follows its twin into a VRF, and out of it");
        Ok(())
    }

    /// A bond of Linux gives both twins its MAC address, and so their interfaces; what it asks for
    /// by ARP is answered through the one that is active.
    fn below_a_bond(&self) -> Result<()> {
        cli("lcp create host-rb host-if e1")?;
        self.until_twin("e1", &[",UP"])?;
        let far = &self.far;
        far.ip("link add br0 type bridge")?;
        for port in ["va", "vb"] {
            far.ip(&format!("link set {port} master br0"))?;
        }
        far.ip("link set br0 up")?;
        far.ip("address add 10.60.0.2/24 dev br0")?;
        let plane = self.plane()?;
        plane.ip("link add bond0 type bond mode active-backup miimon 100")?;
        for twin in ["e0", "e1"] {
            plane.ip(&format!("link set {twin} down"))?;
            plane.ip(&format!("link set {twin} master bond0"))?;
        }
        plane.ip("link set bond0 up")?;
        plane.ip("address add 10.60.0.1/24 dev bond0")?;
        let macs = || -> Result<Vec<String>> {
            ["bond0", "e0", "e1"].iter().map(|dev| Ok(plane.link(dev)?.mac)).collect()
        };
        let mac = wait_until_seen(LIMIT, "one MAC address", || {
            let all = macs().map_err(|e| format!("{e:#}"))?;
            let hardware = cli("show hardware-interfaces").map_err(|e| format!("{e:#}"))?;
            let same = all.iter().all(|mac| *mac == all[0]);
            if same && hardware.matches(all[0].as_str()).count() >= 2 {
                Ok(all[0].clone())
            } else {
                Err(format!("{all:?} {hardware}"))
            }
        })?;
        // The kernel asks again until it knows.
        wait_until_seen(LIMIT, "a neighbour through the bond", || {
            let _ = ping(&plane, [10, 60, 0, 2], &PingOptions::unanswered(1));
            let text = plane.ip("neighbour show dev bond0").map_err(|e| format!("{e:#}"))?;
            if text.contains("10.60.0.2 lladdr") { Ok(()) } else { Err(text) }
        })?;
        let orders = || -> Result<u64> {
            let shown: Value = serde_json::from_str(&cli("show lcp verbose | json")?)?;
            Ok(shown["namespaces"][0]["orders"].as_u64().unwrap_or(0))
        };
        // A change that Linux makes after all others is seen after them.
        let settled = |mtu: u32| -> Result<u64> {
            plane.ip(&format!("link set e1 mtu {mtu}"))?;
            wait_until_seen(LIMIT, "the MTU of host-rb", || {
                let shown = cli("show interface host-rb").map_err(|e| format!("{e:#}"))?;
                if shown.contains(&format!("{mtu}/0/0/0")) { Ok(()) } else { Err(shown) }
            })?;
            orders()
        };
        settled(1401)?;
        let before = settled(1402)?;
        ensure!(settled(1403)? == before, "orders go on: {before}, {}", orders()?);
        ensure!(macs()?.iter().all(|now| *now == mac), "{:?}", macs()?);
        plane.ip("link delete bond0")?;
        for twin in ["e0", "e1"] {
            plane.ip(&format!("link set {twin} up"))?;
        }
        for port in ["va", "vb"] {
            far.ip(&format!("link set {port} nomaster"))?;
        }
        self.reaches(10)?;
        passed("twins below a bond have its MAC address, nothing goes to and fro, ARP passes");
        Ok(())
    }

    /// A link that is deleted alone ends its pair, and the sub-interface that was made for it.
    fn deleted_in_linux(&self) -> Result<()> {
        let plane = self.plane()?;
        plane.ip("link delete e0.40")?;
        wait_until_seen(LIMIT, "the sub-interface to go", || {
            let shown = cli("show interface").map_err(|e| format!("{e:#}"))?;
            if shown.contains("host-ra.40") { Err(shown) } else { Ok(()) }
        })?;
        plane.ip("link delete e0.20")?;
        wait_until_seen(LIMIT, "both pairs to end", || {
            let pairs = (self.pair("host-ra.20"), self.pair("host-ra.27"));
            match &pairs {
                (Ok(None), Ok(None)) => Ok(()),
                _ => Err(format!("{pairs:?}")),
            }
        })?;
        let shown = cli("show interface")?;
        ensure!(shown.contains("host-ra.20") && shown.contains("host-ra.27"), "{shown}");
        passed("a VLAN link that Linux deletes ends its pair, and what was made for it");
        Ok(())
    }
}
