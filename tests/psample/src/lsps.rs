//! Routes of labels in the kernel of the twins are labels of the router, which is the core between
//! two kernels. First they are written by hand, then FRRouting has them.
//!
//! ```text
//! left: va ═ rc  router  rd ═ vb :right
//!            ║           ║
//!       plane: e0        e1, lo
//! ```

use crate::guest::{LIMIT, cli, passed, run};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use thalweg_netns::{Netns, PingOptions, ping};
use thalweg_testkit::{Running, wait_for_unix_socket, wait_until_seen};

const PLANE: &str = "labels";
/// Addresses that only labels lead to.
const LEFT: [u8; 4] = [10, 255, 0, 1];
const RIGHT: [u8; 4] = [10, 255, 0, 3];
/// Labels of a batch.
const MANY: usize = 10_000;

const ROUTER: &str = "create host-interface name rc hw-addr 02:00:00:00:00:0a
create host-interface name rd hw-addr 02:00:00:00:00:0b
set interface state host-rc up
set interface state host-rd up
set interface ip address host-rc 10.0.1.2/24
set interface ip address host-rd 10.0.2.2/24
set interface ip address host-rc 2001:db8:1::2/64
set interface ip address host-rd 2001:db8:2::2/64
lcp default netns labels
lcp lcp-sync on
lcp create host-rc host-if e0
lcp create host-rd host-if e1";

struct Lab {
    left: Netns,
    right: Netns,
    plane: Netns,
}

/// The scenario, with a router that runs.
pub(crate) fn lsps() -> Result<()> {
    let lab = Lab::new()?;
    for line in ROUTER.lines() {
        cli(line).with_context(|| line.to_owned())?;
    }
    lab.until_plane("addresses", "address", |text| {
        text.contains("10.0.1.2/24") && text.contains("2001:db8:2::2/64")
    })?;
    lab.inputs_follow_each_other()?;
    lab.kinds()?;
    lab.written_ones_win()?;
    lab.silent_removals()?;
    lab.many()?;
    lab.core_of_kernels()?;
    lab.of_frr()?;
    cli("delete host-interface name rc")?;
    cli("delete host-interface name rd")?;
    lab.until_plane("the twins to be gone", "-br link", |text| !text.contains("e0"))?;
    let shown = cli("show mpls fib 100").err().context("label 100 is still there")?;
    ensure!(format!("{shown:#}").contains("no label"), "{shown:#}");
    drop(lab);
    run(&format!("ip netns delete {PLANE}"))?;
    Ok(())
}

/// The paths of a label, at the bottom of the stack or above it.
fn label(label: u32, eos: bool) -> Result<Value, String> {
    let shown = cli(&format!("show mpls fib {label} | json")).map_err(|e| format!("{e:#}"))?;
    let shown: Value = serde_json::from_str(&shown).map_err(|e| e.to_string())?;
    let all = shown[0]["labels"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|l| l["eos"] == eos).ok_or_else(|| shown.to_string())
}

/// Waits until a label has all of these words, or is not there (`None`).
fn until(of: u32, eos: bool, words: Option<&[&str]>) -> Result<()> {
    wait_until_seen(LIMIT, &format!("{words:?} of label {of}"), || match (label(of, eos), words) {
        (Ok(shown), Some(words)) => {
            let text = shown.to_string();
            if words.iter().all(|word| text.contains(word)) { Ok(()) } else { Err(text) }
        }
        (Err(_), None) => Ok(()),
        (Ok(shown), None) => Err(shown.to_string()),
        (Err(e), Some(_)) => Err(e),
    })
}

/// The state of the kernel's routes.
fn state() -> Result<Value, String> {
    let shown = cli("show lcp routes | json").map_err(|e| format!("{e:#}"))?;
    let shown: Value = serde_json::from_str(&shown).map_err(|e| e.to_string())?;
    Ok(shown["namespaces"][0].clone())
}

/// A list of all routes finds nothing that was not known.
fn compare() -> Result<()> {
    wait_until_seen(LIMIT, "a list without differences", || {
        cli("lcp resync").map_err(|e| format!("{e:#}"))?;
        let state = state()?;
        let last = &state["last"];
        let is_equal = last["cause"] == "a user asked" && last["differences"] == 0;
        if is_equal { Ok(()) } else { Err(state.to_string()) }
    })
}

impl Lab {
    fn new() -> Result<Lab> {
        run(&format!("ip netns add {PLANE}"))?;
        let plane = Netns::existing(PLANE)?;
        plane.ip("link set lo up")?;
        plane.set_sysctl("net/mpls/platform_labels", "100000")?;
        plane.ip("link add red type vrf table 100")?;
        plane.ip("link set red up")?;
        let end = |name: &'static str, own: &str, other: &str, n: u8| -> Result<Netns> {
            let far = Netns::new(name)?;
            for which in ["all", "default"] {
                far.set_sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0")?;
            }
            far.ip(&format!("link add name {own} type veth peer name {other} netns 1"))?;
            for link in ["lo", own] {
                far.ip(&format!("link set {link} up"))?;
            }
            run(&format!("ip link set {other} up"))?;
            far.ip(&format!("address add 10.0.{n}.1/24 dev {own}"))?;
            far.ip(&format!("address add 2001:db8:{n}::1/64 dev {own} nodad"))?;
            far.set_sysctl("net/mpls/platform_labels", "100000")?;
            far.set_sysctl(&format!("net/mpls/conf/{own}/input"), "1")?;
            far.set_sysctl("net/mpls/conf/lo/input", "1")?;
            Ok(far)
        };
        let (left, right) = (end("lsp-left", "va", "rc", 1)?, end("lsp-right", "vb", "rd", 2)?);
        let host = |[a, b, c, d]: [u8; 4]| format!("address add {a}.{b}.{c}.{d}/32 dev lo");
        left.ip(&host(LEFT))?;
        right.ip(&host(RIGHT))?;
        Ok(Lab { left, right, plane })
    }

    fn until_plane(&self, what: &str, line: &str, is: impl Fn(&str) -> bool) -> Result<String> {
        wait_until_seen(LIMIT, what, || {
            let text = self.plane.ip(line).map_err(|e| format!("{e:#}"))?;
            if is(&text) { Ok(text) } else { Err(text) }
        })
    }

    fn input(&self, twin: &str) -> Result<String> {
        Ok(self.plane.sysctl(&format!("net/mpls/conf/{twin}/input"))?.trim().to_owned())
    }

    /// One side takes labels if the other does; the last change wins.
    fn inputs_follow_each_other(&self) -> Result<()> {
        let twin_is = |twin: &str, value: &str| {
            wait_until_seen(LIMIT, &format!("input of {twin} to be {value}"), || {
                let now = self.input(twin).map_err(|e| format!("{e:#}"))?;
                if now == value { Ok(()) } else { Err(now) }
            })
        };
        let interface_is = |name: &str, word: &str| {
            wait_until_seen(LIMIT, &format!("{name} to have MPLS {word}"), || {
                let shown = cli(&format!("show mpls interface {name}"));
                let shown = shown.map_err(|e| format!("{e:#}"))?;
                if shown.contains(&format!("MPLS {word}")) { Ok(()) } else { Err(shown) }
            })
        };
        cli("mpls table add 0")?;
        cli("set interface mpls host-rc enable")?;
        twin_is("e0", "1")?;
        cli("set interface mpls host-rc disable")?;
        twin_is("e0", "0")?;
        self.plane.set_sysctl("net/mpls/conf/e0/input", "1")?;
        self.plane.set_sysctl("net/mpls/conf/e1/input", "1")?;
        interface_is("host-rc", "enabled")?;
        interface_is("host-rd", "enabled")?;
        self.plane.set_sysctl("net/mpls/conf/e1/input", "0")?;
        interface_is("host-rd", "disabled")?;
        self.plane.set_sysctl("net/mpls/conf/e1/input", "1")?;
        interface_is("host-rd", "enabled")?;
        // A new twin meets an interface that takes labels.
        cli("lcp delete host-rc")?;
        cli("lcp create host-rc host-if e0")?;
        twin_is("e0", "1")?;
        passed("interfaces and twins take labelled packets alike");
        Ok(())
    }

    /// Routes of all kinds.
    fn kinds(&self) -> Result<()> {
        self.until_plane("the twin's address", "address show dev e0", |text| {
            text.contains("10.0.1.2/24")
        })?;
        let route = |words: &str| self.plane.ip(&format!("-f mpls route {words}")).map(drop);
        route("add 100 as 200 via inet 10.0.2.1 dev e1")?;
        until(100, true, Some(&["10.0.2.1", "host-rd", "[200]", r#""source":"lcp-rt""#]))?;
        until(100, false, Some(&["10.0.2.1", "host-rd", "[200]"]))?;
        route("add 101 via inet 10.0.2.1 dev e1 proto 193")?;
        until(101, true, Some(&["10.0.2.1", r#""mode":"ttl""#, "lcp-rt-dynamic"]))?;
        until(101, false, Some(&["10.0.2.1", r#""mode":"pipe""#]))?;
        route("add 102 as 300/301 via inet6 2001:db8:2::1 dev e1")?;
        until(102, true, Some(&["2001:db8:2::1", "[300,301]"]))?;
        route(
            "add 103 nexthop as 401 via inet 10.0.1.1 dev e0 nexthop as 402 via inet 10.0.2.1 dev e1",
        )?;
        until(103, true, Some(&["10.0.1.1", "host-rc", "[401]", "10.0.2.1", "host-rd", "[402]"]))?;
        route("add 104 dev lo")?;
        until(104, true, Some(&["lookup in ip-VRF:0"]))?;
        until(104, false, Some(&["lookup in MPLS-VRF:0"]))?;
        route("add 105 dev red")?;
        until(105, true, Some(&["lookup in ip-VRF:100"]))?;
        until(105, false, None)?;
        route("add 106 via inet 10.0.2.1 dev e1 ttl-propagate disabled")?;
        until(106, true, Some(&["10.0.2.1", r#""mode":"pipe""#]))?;
        // More labels than a path takes.
        let stack: Vec<String> = (500..516).map(|label| label.to_string()).collect();
        route(&format!("add 107 as {} via inet 10.0.2.1 dev e1", stack.join("/")))?;
        let unresolved = wait_until_seen(LIMIT, "label 107 to be unresolved", || {
            let shown = cli("show lcp routes unresolved").map_err(|e| format!("{e:#}"))?;
            if shown.contains("label 107") { Ok(shown) } else { Err(shown) }
        })?;
        ensure!(unresolved.contains("16 labels, more than 12"), "{unresolved}");
        ensure!(route("add 15 dev lo").is_err(), "the kernel has taken a reserved label");
        route("replace 100 as 210 via inet 10.0.1.1 dev e0 proto 193")?;
        until(100, true, Some(&["10.0.1.1", "host-rc", "[210]", "lcp-rt-dynamic"]))?;
        route("del 107")?;
        route("del 106")?;
        until(106, true, None)?;
        self.equals_the_kernels()?;
        // Imposed by routes of IP, with a TTL and without.
        self.plane.ip("route add 192.0.2.0/24 encap mpls 600/601 via inet 10.0.2.1 dev e1")?;
        self.plane.ip("route add 192.0.3.0/24 encap mpls 602 ttl 9 via inet 10.0.2.1 dev e1")?;
        self.plane.ip("nexthop add id 7 encap mpls 603 via 10.0.1.1 dev e0")?;
        self.plane.ip("nexthop add id 8 encap mpls 604 via 10.0.2.1 dev e1")?;
        self.plane.ip("nexthop add id 9 group 7,3/8,1")?;
        self.plane.ip("route add 192.0.4.0/24 nhid 9")?;
        for (prefix, words) in [
            ("192.0.2.0/24", &["600 uniform", "601 uniform"][..]),
            ("192.0.3.0/24", &["602 pipe ttl:9"]),
            // Entries of labels 603 and 604.
            ("192.0.4.0/24", &["0025b140 weight:3", "0025c140 weight:1"]),
        ] {
            wait_until_seen(LIMIT, &format!("{words:?} of {prefix}"), || {
                let shown = cli(&format!("show ip fib {prefix}")).map_err(|e| format!("{e:#}"))?;
                let all = words.iter().all(|word| shown.contains(word));
                if all { Ok(()) } else { Err(shown) }
            })?;
        }
        self.plane.set_sysctl("net/mpls/ip_ttl_propagate", "0")?;
        cli("lcp resync")?;
        wait_until_seen(LIMIT, "the kernel's own TTL", || {
            let shown = cli("show ip fib 192.0.2.0/24").map_err(|e| format!("{e:#}"))?;
            if shown.contains("600 pipe ttl:255") { Ok(()) } else { Err(shown) }
        })?;
        until(101, true, Some(&["10.0.2.1", r#""mode":"pipe""#]))?;
        self.plane.set_sysctl("net/mpls/ip_ttl_propagate", "1")?;
        cli("lcp resync")?;
        until(101, true, Some(&[r#""mode":"ttl""#]))?;
        for gone in ["192.0.2.0/24", "192.0.3.0/24", "192.0.4.0/24"] {
            self.plane.ip(&format!("route del {gone}"))?;
        }
        compare()?;
        passed("labels swapped, stacked, popped, shared and looked up; encapsulations, TTL");
        Ok(())
    }

    /// All labels of the kernel, and no others, are in the router.
    fn equals_the_kernels(&self) -> Result<()> {
        let text = self.plane.ip("-f mpls route show")?;
        let first = |line: &str| line.split_whitespace().next()?.parse::<u64>().ok();
        let mut kernel: Vec<u64> = text.lines().filter_map(first).collect();
        kernel.sort_unstable();
        wait_until_seen(LIMIT, "the kernel's labels", || {
            let shown = cli("show mpls fib | json").map_err(|e| format!("{e:#}"))?;
            let shown: Value = serde_json::from_str(&shown).map_err(|e| e.to_string())?;
            let tables = shown.as_array().cloned().unwrap_or_default();
            let labels = tables.iter().flat_map(|t| t["labels"].as_array().cloned());
            let of_kernel = labels.flatten().filter(|l| {
                l["eos"] == true && l["source"].as_str().is_some_and(|s| s.starts_with("lcp-rt"))
            });
            let mut ours: Vec<u64> = of_kernel.filter_map(|l| l["label"].as_u64()).collect();
            ours.sort_unstable();
            if ours == kernel { Ok(()) } else { Err(format!("{ours:?}, not {kernel:?}")) }
        })
    }

    /// A label that a user has bound is not the kernel's, which waits behind it.
    fn written_ones_win(&self) -> Result<()> {
        cli("mpls local-label add 100 eos via 10.0.2.1 host-rd out-labels 777")?;
        until(100, true, Some(&["[777]", r#""source":"CLI""#]))?;
        let shown = cli("show mpls fib 100")?;
        ensure!(shown.contains("lcp-rt-dynamic refs:1 src-flags:added,\n"), "{shown}");
        self.plane.ip("-f mpls route replace 100 as 220 via inet 10.0.1.1 dev e0")?;
        // The other one of the label is the kernel's.
        until(100, false, Some(&["[220]", "lcp-rt"]))?;
        until(100, true, Some(&["[777]"]))?;
        let document = cli("show configuration")?;
        ensure!(document.contains("777") && !document.contains("220"), "{document}");
        cli("mpls local-label del 100 eos")?;
        until(100, true, Some(&["[220]", r#""source":"lcp-rt""#]))?;
        // One of the kernel's is not the user's to delete.
        ensure!(cli("mpls local-label del 100 eos").is_err(), "the kernel's label was deleted");
        cli("mpls local-label add 100 eos via 10.0.2.1 host-rd out-labels 777")?;
        self.plane.ip("-f mpls route del 100")?;
        until(100, false, None)?;
        cli("mpls local-label del 100 eos")?;
        until(100, true, None)?;
        passed("a written label wins, and leaves the kernel's when it goes");
        Ok(())
    }

    /// The kernel says nothing of links that go, or comes back with what it has.
    fn silent_removals(&self) -> Result<()> {
        let plane = &self.plane;
        plane.ip("link set e1 down")?;
        until(101, true, None)?;
        until(103, true, Some(&["10.0.1.1", "[401]"]))?;
        plane.ip("link set e1 up")?;
        until(101, true, Some(&["10.0.2.1"]))?;
        until(103, true, Some(&["[401]", "[402]"]))?;
        plane.ip("link delete red")?;
        until(105, true, None)?;
        // Labels beyond a lower limit go.
        plane.set_sysctl("net/mpls/platform_labels", "102")?;
        until(103, true, None)?;
        until(101, true, Some(&["10.0.2.1"]))?;
        plane.set_sysctl("net/mpls/platform_labels", "100000")?;
        self.equals_the_kernels()?;
        compare()?;
        // The table goes with all its labels, and comes back for the kernel's.
        for name in ["host-rc", "host-rd"] {
            cli(&format!("set interface mpls {name} disable"))?;
        }
        cli("mpls table del 0")?;
        until(101, true, Some(&["10.0.2.1"]))?;
        for name in ["host-rc", "host-rd"] {
            cli(&format!("set interface mpls {name} enable"))?;
        }
        passed("labels whose links, VRF or room go, and a table that is deleted");
        Ok(())
    }

    fn many(&self) -> Result<()> {
        let lines: Vec<String> = (0..MANY)
            .map(|n| format!("route add {} as {n} via inet 10.0.2.1 dev e1", 20_000 + n))
            .map(|line| line.replace(" as 3 ", " as 16 "))
            .collect();
        fs::write("/tmp/labels", lines.join("\n") + "\n")?;
        let count = |wanted: usize| {
            wait_until_seen(LIMIT, &format!("{wanted} labels"), || {
                let state = state()?;
                let is_there = state["labels"] == wanted && state["waiting"] == 0;
                if is_there { Ok(()) } else { Err(state.to_string()) }
            })
        };
        let before = self.plane.ip("-f mpls route show")?.lines().count();
        let begin = std::time::Instant::now();
        self.plane.ip("-f mpls -batch /tmp/labels")?;
        let written = begin.elapsed();
        count(before + MANY)?;
        println!("  {MANY} labels: written in {written:.1?}, taken in {:.1?}", begin.elapsed());
        self.equals_the_kernels()?;
        fs::write("/tmp/labels", lines.join("\n").replace("route add", "route del") + "\n")?;
        self.plane.ip("-f mpls -batch /tmp/labels")?;
        count(before)?;
        self.equals_the_kernels()?;
        compare()?;
        passed("ten thousand labels come and go");
        Ok(())
    }

    /// Kernels push labels that the router swaps and pops.
    fn core_of_kernels(&self) -> Result<()> {
        let Lab { left, right, plane } = self;
        left.ip("route add 10.255.0.3/32 encap mpls 1000 via inet 10.0.1.2 src 10.255.0.1")?;
        right.ip("route add 10.255.0.1/32 encap mpls 1001 via inet 10.0.2.2 src 10.255.0.3")?;
        plane.ip("-f mpls route add 1000 as 2000 via inet 10.0.2.1 dev e1")?;
        plane.ip("-f mpls route add 1001 via inet 10.0.1.1 dev e0")?;
        right.ip("-f mpls route add 2000 dev lo")?;
        self.reaches("labels of kernels")?;
        let traced = self.trace()?;
        ensure!(traced.contains("label 1000") && traced.contains("label 2000"), "{traced}");
        // A kernel between twins has its own packets leave with labels.
        plane.ip("route add 10.255.0.3/32 encap mpls 2000 via inet 10.0.2.1 dev e1")?;
        wait_until_seen(LIMIT, "an answer to the plane", || {
            let once = PingOptions { count: 1, ..PingOptions::default() };
            let got = ping(plane, RIGHT, &once).map_err(|e| format!("{e:#}"))?;
            if got.received > 0 { Ok(()) } else { Err(got.text) }
        })?;
        plane.ip("route del 10.255.0.3/32")?;
        for (ns, label) in [(plane, 1000), (plane, 1001), (right, 2000)] {
            ns.ip(&format!("-f mpls route del {label}"))?;
        }
        left.ip("route del 10.255.0.3/32")?;
        right.ip("route del 10.255.0.1/32")?;
        passed("the core of two kernels, and labelled packets of twins");
        Ok(())
    }

    /// The left end reaches an address that only labels lead to.
    fn reaches(&self, what: &str) -> Result<()> {
        wait_until_seen(LIMIT, what, || {
            let few = PingOptions { count: 3, ..PingOptions::default() };
            let got = ping(&self.left, RIGHT, &few).map_err(|e| format!("{e:#}"))?;
            if got.received == 3 { Ok(()) } else { Err(got.text) }
        })
    }

    /// Traces packets to the right end.
    fn trace(&self) -> Result<String> {
        cli("clear trace")?;
        cli("trace add af-packet-input 50")?;
        ping(&self.left, RIGHT, &PingOptions { count: 3, ..PingOptions::default() })?;
        cli("show trace max 50")
    }

    /// Static labels and routes of FRRouting, then LDP between three.
    fn of_frr(&self) -> Result<()> {
        let Lab { left, right, plane } = self;
        let mut ours = Frr::new("plane");
        let lsps = "mpls lsp 1000 10.0.2.1 2000\nmpls lsp 1002 10.0.2.1 implicit-null\n";
        ours.start(plane, "zebra", lsps)?;
        ours.start(plane, "staticd", "")?;
        until(1000, true, Some(&["10.0.2.1", "host-rd", "[2000]", "lcp-rt-dynamic"]))
            .with_context(|| ours.said())?;
        until(1002, true, Some(&["10.0.2.1", r#""mode":"ttl""#]))?;
        // The daemon takes it once it has heard from zebra that the kernel knows labels.
        wait_until_seen(LIMIT, "a static route to be taken", || {
            let line = "ip route 198.51.100.0/24 10.0.2.1 label 3000/3001";
            ours.configure("staticd", line).map_err(|e| format!("{e:#}"))
        })?;
        wait_until_seen(LIMIT, "a static route with labels", || {
            let shown = cli("show ip fib 198.51.100.0/24").map_err(|e| format!("{e:#}"))?;
            // Entries of labels 3000 and 3001.
            if shown.contains("00bb804000bb9140") { Ok(()) } else { Err(shown) }
        })
        .with_context(|| ours.said())?;
        passed("static labels of FRRouting, and its routes with labels");
        drop(ours);
        for label in [1000, 1002] {
            plane.ip(&format!("-f mpls route del {label}"))?;
        }
        until(1000, true, None)?;

        let ospf = |id: u8, links: &[&str]| {
            let each = links.iter().map(|link| {
                format!(
                    "interface {link}\n ip ospf area 0\n ip ospf network point-to-point\n \
                     ip ospf hello-interval 1\n ip ospf dead-interval 10\n"
                )
            });
            let lo = "interface lo\n ip ospf area 0\n";
            let head = format!("router ospf\n ospf router-id 10.255.0.{id}\n");
            each.collect::<String>() + lo + &head
        };
        let ldp = |id: u8, transport: &str, links: &[&str]| {
            let links: String =
                links.iter().map(|l| format!("  interface {l}\n  exit\n")).collect();
            format!(
                "mpls ldp\n router-id 10.255.0.{id}\n dual-stack transport-connection prefer ipv4\n \
                 address-family ipv4\n  discovery transport-address {transport}\n{links} \
                 exit-address-family\nexit\n"
            )
        };
        let mut all = Vec::new();
        for (ns, name, id, transport, links) in [
            (plane, "plane", 2, "10.0.1.2", &["e0", "e1"][..]),
            (left, "left", 1, "10.255.0.1", &["va"]),
            (right, "right", 3, "10.255.0.3", &["vb"]),
        ] {
            let mut frr = Frr::new(name);
            frr.start(ns, "zebra", "")?;
            frr.start(ns, "ospfd", &ospf(id, links))?;
            frr.start(ns, "ldpd", &ldp(id, transport, links))?;
            all.push(frr);
        }
        let said = || all.iter().map(Frr::said).collect::<Vec<_>>().join("\n");
        // The label by which the left end reaches the right one.
        let by = wait_until_seen(LIMIT, "LDP's label of the other end", || {
            let shown = left.ip("route show 10.255.0.3").map_err(|e| format!("{e:#}"))?;
            let mut words = shown.split_whitespace().skip_while(|word| *word != "mpls");
            let label = words.nth(1).and_then(|word| word.parse::<u32>().ok());
            label.ok_or_else(|| format!("{shown}{}", plane.ip("-f mpls route").unwrap_or_default()))
        })
        .with_context(said)?;
        until(by, true, Some(&["10.0.2.1", "host-rd", "lcp-rt-dynamic"])).with_context(said)?;
        self.equals_the_kernels()?;
        self.reaches("the other end by labels of LDP").with_context(said)?;
        let traced = self.trace()?;
        ensure!(traced.contains(&format!("label {by}")), "label {by}: {traced}");
        compare()?;
        // Without LDP the labels go.
        if let Some(ours) = all.first_mut() {
            ours.stop("ldpd")?;
        }
        until(by, true, None)?;
        passed("the core of a network with LDP, by labels of FRRouting");
        Ok(())
    }
}

/// Daemons of FRRouting in a namespace, which are killed when the value is dropped.
struct Frr {
    dir: String,
    daemons: Vec<(&'static str, Running)>,
}

impl Frr {
    fn new(name: &str) -> Frr {
        let dir = format!("/run/frr-{name}");
        let _ = fs::remove_dir_all(&dir);
        Frr { dir, daemons: Vec::new() }
    }

    fn start(&mut self, ns: &Netns, name: &'static str, config: &str) -> Result<()> {
        fs::create_dir_all(&self.dir)?;
        let file = |kind: &str| format!("{}/{name}.{kind}", self.dir);
        fs::write(file("conf"), config)?;
        let mut command = ns
            .command(format!("/usr/lib/frr/{name}"))
            .args(["-u", "root", "-g", "root", "-A", "127.0.0.1", "-P", "0"])
            .args(["--log", "stdout", "--log-level", "informational"])
            .args(["-f", &file("conf"), "-i", &file("pid")])
            .args(["-z", &format!("{}/zserv.api", self.dir), "--vty_socket", &self.dir]);
        if name == "ldpd" {
            command = command.args(["--ctl_socket", &self.dir]);
        }
        let running = command.spawn()?;
        wait_for_unix_socket(Path::new(&file("vty")), LIMIT)
            .with_context(|| format!("{name}: {}{}", running.stdout(), running.stderr()))?;
        self.daemons.push((name, running));
        Ok(())
    }

    /// Adds a line to the configuration of a daemon, as `vtysh` does: each command ends with a NUL
    /// byte, and each answer with three and a byte that is 0 if all is well.
    fn configure(&self, daemon: &str, line: &str) -> Result<()> {
        let mut vty = UnixStream::connect(format!("{}/{daemon}.vty", self.dir))?;
        vty.set_read_timeout(Some(LIMIT))?;
        for command in ["enable", "configure terminal", line] {
            vty.write_all(format!("{command}\0").as_bytes())?;
            let (mut answer, mut byte) = (Vec::new(), [0]);
            let code = loop {
                vty.read_exact(&mut byte)?;
                if answer.ends_with(&[0; 3]) {
                    break byte[0];
                }
                answer.push(byte[0]);
            };
            ensure!(code == 0, "{command}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }

    fn stop(&mut self, name: &str) -> Result<()> {
        let at = self.daemons.iter().position(|(own, _)| *own == name).context("no such daemon")?;
        self.daemons.remove(at).1.stop(LIMIT)?;
        Ok(())
    }

    fn said(&self) -> String {
        let each = self.daemons.iter();
        let each = each.map(|(name, r)| format!("{name}: {}{}", r.stdout(), r.stderr()));
        each.collect::<Vec<_>>().join("\n")
    }
}
