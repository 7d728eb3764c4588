//! VLAN twins, and twins that are members of a VRF and of a bond, outlive a router that is killed,
//! while a service manager keeps the descriptors of their TAPs.

use crate::guest::{LIMIT, passed, run};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use thalweg_netns::Netns;
use thalweg_testkit::{Cmd, Keeper, Running, Signal, wait_until_seen};

/// Name of the namespace with the twins.
const PLANE: &str = "kept";
const SOCKET: &str = "/run/kept/cli.sock";
const DOCUMENT: &str = "/tmp/kept.yaml";

/// Commands of the router, of which the document is made.
const ROUTER: &str = "create host-interface name rc
create host-interface name rd
set interface state host-rc up
set interface state host-rd up
lcp default netns kept
lcp lcp-sync on
lcp create host-rc host-if e0
lcp create host-rd host-if e1
create sub-interfaces host-rc 10 dot1q 10 exact-match
set interface ip address host-rc.10 10.10.0.1/24
set interface state host-rc.10 up
lcp create host-rc.10 host-if e0.10
create sub-interfaces host-rc 20 dot1ad 20 exact-match
set interface state host-rc.20 up
lcp create host-rc.20 host-if e0.20
create sub-interfaces host-rc 27 dot1ad 20 inner-dot1q 7 exact-match
set interface ip address host-rc.27 10.27.0.1/24
set interface state host-rc.27 up
lcp create host-rc.27 host-if e0.27
config commit";

fn cli(line: &str) -> Result<String> {
    Cmd::new("/bin/thalctl").args(["-s", SOCKET, line]).output()
}

/// Starts a router that gets what is kept.
fn start(keeper: &Keeper) -> Result<Running> {
    std::fs::create_dir_all(Path::new(SOCKET).parent().context("a directory")?)?;
    let stanzas = format!("unix {{ nodaemon runtime-dir /run/kept cli-listen {SOCKET} }}");
    let (script, _lent) = keeper.hand_over()?;
    let router = Cmd::new("/bin/bash")
        .args(["-c", &script, "/bin/thalweg", "run", "--config", DOCUMENT, &stanzas])
        .args(["cpu { workers 1 }", "buffers { buffers-per-numa 4096 }"])
        .env("NOTIFY_SOCKET", keeper.socket().display().to_string())
        .spawn()?;
    wait_until_seen(LIMIT, "the router that is kept", || {
        cli("show version").map(drop).map_err(|e| format!("{e:#}"))
    })?;
    Ok(router)
}

/// Waits until all pairs are there, and the VLAN's interface is in the table of the VRF.
fn until_complete() -> Result<()> {
    wait_until_seen(LIMIT, "all pairs, and a VRF", || {
        let seen = || -> Result<(Value, String)> {
            let shown = serde_json::from_str(&cli("show lcp verbose | json")?)?;
            Ok((shown, cli("show ip fib table 100 10.10.0.1/32")?))
        };
        let (shown, route) = seen().map_err(|e| format!("{e:#}"))?;
        let pairs = shown["pairs"].as_array().map_or(&[][..], Vec::as_slice);
        let there = pairs.iter().filter(|pair| pair["away"] == false).count();
        match there == 5 && route.contains("host-rc.10") {
            true => Ok(()),
            false => Err(format!("{shown} {route}")),
        }
    })
}

/// Links of the namespace with their numbers, and members of the VRF and of the bond.
fn links(plane: &Netns) -> Result<String> {
    let mut text = String::new();
    for link in plane.links()? {
        text += &format!("{} {} {} up {}\n", link.index, link.name, link.mac, link.up);
    }
    for master in ["red", "bond0"] {
        text += &plane.ip(&format!("-o -br link show master {master}"))?;
    }
    Ok(text)
}

/// The scenario, with a router of its own.
pub(crate) fn kept() -> Result<()> {
    run(&format!("ip netns add {PLANE}"))?;
    let (plane, far, keeper) = (Netns::existing(PLANE)?, Netns::new("kept-far")?, Keeper::new()?);
    for (own, other) in [("vc", "rc"), ("vd", "rd")] {
        far.ip(&format!("link add name {own} type veth peer name {other} netns 1"))?;
        far.ip(&format!("link set {own} up"))?;
        run(&format!("ip link set {other} up"))?;
    }
    let mut router = start(&keeper)?;
    for line in ROUTER.lines() {
        cli(line).with_context(|| line.to_owned())?;
    }
    plane.ip("link add red type vrf table 100")?;
    plane.ip("link set red up")?;
    plane.ip("link set e0.10 master red")?;
    plane.ip("link add bond0 type bond mode active-backup miimon 100")?;
    plane.ip("link set e1 down")?;
    plane.ip("link set e1 master bond0")?;
    plane.ip("link set bond0 up")?;
    until_complete()?;
    wait_until_seen(LIMIT, "the bond's member to be up", || {
        let shown = plane.ip("-br link show dev e1").map_err(|e| format!("{e:#}"))?;
        if shown.contains(",UP") { Ok(()) } else { Err(shown) }
    })?;
    let before = links(&plane)?;
    router.signal(Signal::KILL)?;
    router.wait(LIMIT)?;
    let router = start(&keeper)?;
    until_complete()?;
    let shown: Value = serde_json::from_str(&cli("show lcp verbose | json")?)?;
    ensure!(shown["namespaces"][0]["orders"] == 0, "orders: {shown}");
    let now = links(&plane)?;
    ensure!(now == before, "before:\n{before}now:\n{now}");
    router.stop(LIMIT)?.success()?;
    keeper.forget();
    passed("VLAN twins, a VRF's and a bond's member outlive a router that is killed");
    Ok(())
}
