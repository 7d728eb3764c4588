//! Linux control plane: the router as a unit of systemd's, with twins that outlive it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Systemd, thalweg};
use thalweg_testkit::{
    LinkOptions, Netns, PingOptions, WAIT_LIMIT, lab_test, ping, veth, wait_until_seen,
};

/// The unit that `make install` copies.
const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/systemd/thalweg.service");

struct Edge {
    systemd: Systemd,
    plane: Netns,
    thalctl: PathBuf,
    _host: Netns,
}

impl Edge {
    fn start() -> Result<Edge> {
        let [router, plane, host] =
            ["systemd-router", "systemd-plane", "systemd-host"].map(Netns::new);
        let (router, plane, host) = (router?, plane?, host?);
        let theirs = LinkOptions::default().address("10.1.0.2/24");
        veth((&router, "e0", &LinkOptions::default()), (&host, "eth0", &theirs))?;
        let program = thalweg()?;
        let unit = fs::read_to_string(UNIT).context("read the unit")?;
        let installed = "@PREFIX@/bin/thalweg";
        ensure!(unit.contains(installed), "{unit}");
        let unit = unit.replace(installed, &program.display().to_string());
        let systemd = Systemd::start(&router, &plane, ("thalweg.service", &unit))?;
        let thalctl = program.with_file_name("thalctl");
        let edge = Edge { systemd, plane, thalctl, _host: host };
        edge.systemd.ctl("start thalweg")?;
        for command in [
            "create host-interface name e0",
            "set interface ip address host-e0 10.1.0.1/24",
            "set interface state host-e0 up",
            "lcp lcp-sync on",
            "lcp create host-e0 host-if e0 netns plane",
            "config commit",
        ] {
            edge.cli(command)?;
        }
        edge.reaches()?;
        Ok(edge)
    }

    fn cli(&self, command: &str) -> Result<String> {
        wait_until_seen(WAIT_LIMIT, "the router to answer", || {
            self.systemd.command(&self.thalctl).args(command.split(' ')).output()
        })
    }

    /// A host reaches a program behind the twin.
    fn reaches(&self) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, "an answer", || {
            ping(&self.plane, std::net::Ipv4Addr::new(10, 1, 0, 2), &PingOptions::default())?
                .all_answered()
        })
    }

    fn index(&self) -> Result<u32> {
        Ok(self.plane.link("e0")?.index)
    }

    /// Names that systemd keeps descriptors by.
    fn kept(&self) -> Result<u32> {
        let shown = self.systemd.ctl("show --value --property=NFileDescriptorStore thalweg")?;
        shown.trim().parse().with_context(|| format!("a number: {shown}"))
    }
}

lab_test! {
    /// The unit as it is installed, with all that it forbids.
    fn twins_outlive_a_unit_that_is_restarted() {
        let edge = Edge::start()?;
        edge.plane.ip("nexthop add id 7 via 10.1.0.2 dev e0")?;
        edge.plane.ip("route add 203.0.113.0/24 nhid 7")?;
        let (index, kept) = (edge.index()?, edge.kept()?);
        ensure!(kept > 0, "systemd keeps nothing");
        for way in ["restart", "kill --signal=KILL", "kill --signal=ABRT"] {
            let before = edge.systemd.ctl("show --value --property=MainPID thalweg")?;
            edge.systemd.ctl(&format!("{way} thalweg"))?;
            wait_until_seen(WAIT_LIMIT, "another process", || {
                let now = edge.systemd.ctl("show --value --property=MainPID thalweg")?;
                ensure!(now != before && now.trim() != "0", "{way}: process {now}");
                Ok(())
            })?;
            edge.reaches()?;
            assert_eq!((edge.index()?, edge.kept()?), (index, kept), "{way}");
            let routes = edge.plane.ip("route show 203.0.113.0/24")?;
            ensure!(routes.contains("nhid 7"), "{way}: {routes}");
        }
        // Nothing keeps what a stopped router had.
        edge.systemd.ctl("stop thalweg")?;
        wait_until_seen(WAIT_LIMIT, "the twin to go", || {
            ensure!(edge.index().is_err(), "the twin is there");
            Ok(())
        })
    }
}
