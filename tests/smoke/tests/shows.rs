//! Output of the show commands while packets flow.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use thalweg_smoke::{Router, host_pair, thalweg};
use thalweg_testkit::{Cmd, IperfOptions, Lab, PingOptions, iperf3, lab_test, ping};

/// Checks that a command prints all of this.
fn shows(router: &Router, command: &str, parts: &[&str]) -> Result<()> {
    let text = router.cli(command)?;
    for part in parts {
        ensure!(text.contains(part), "`{command}' lacks {part:?}:\n{text}");
    }
    Ok(())
}

fn nodes(runtime: &Value) -> Result<Vec<Value>> {
    let threads = runtime.as_array().cloned().or_else(|| runtime["threads"].as_array().cloned());
    let threads = threads.with_context(|| format!("no threads in {runtime}"))?;
    Ok(threads.iter().filter_map(|thread| thread["nodes"].as_array()).flatten().cloned().collect())
}

lab_test! {
    fn every_view_of_a_busy_router() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &IperfOptions::default())?;

        shows(&router, "show interface", &["local0", "host-eth0", "host-eth1", "rx packets"])?;
        let headings = ["Name", "Idx", "State", "MTU (L3/IP4/IP6/MPLS)", "Counter", "Count"];
        shows(&router, "show int", &headings)?;
        shows(&router, "show int addr", &["host-eth0 (up):", "10.10.1.1/24"])?;
        shows(&router, "show hardware-interfaces", &["Name", "Idx", "Link", "Hardware"])?;
        shows(&router, "show hardware host-eth0", &["host-eth0", "Ethernet address", "RX Queue 0"])?;
        shows(&router, "show ip neighbors", &["Age", "Flags", lab.left.mac, lab.right.mac])?;
        shows(&router, "show ip fib", &["ipv4-VRF:0", "10.10.1.0/24", "10.10.2.2/32"])?;
        shows(&router, "show ip fib 10.10.2.2", &["10.10.2.2/32", "host-eth1"])?;
        shows(&router, "show runtime", &[
            "Name", "State", "Calls", "Vectors", "Suspends", "Clocks", "Vectors/Call",
            "af-packet-input", "ethernet-input", "ip4-input", "ip4-lookup", "ip4-rewrite",
            "host-eth1-output", "host-eth1-tx", "vector rates in", "loops/sec",
        ])?;
        shows(&router, "show errors", &["Count", "Node", "Reason", "Severity"])?;
        shows(&router, "show buffers", &["Pool Name", "Avail", "Cached", "Used"])?;
        shows(&router, "show threads", &["ID", "Name", "LWP", "State", "workers"])?;
        shows(&router, "show unix files", &["host-eth0", "host-eth1"])?;
        shows(&router, "show version", &["thalweg v"])?;
        shows(&router, "show plugins", &["arp", "ip4", "ethernet", "sflow"])?;
        shows(&router, "show memory", &[])?;
        shows(&router, "show clock", &["Time now", "20"])?;
        shows(&router, "show packet accounting", &["every packet is accounted for"])?;
        router.stop().map(drop)
    }

    /// The router's counters and the kernel's, on the other ends of the links, agree.
    fn counters_agree_with_the_hosts() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let options = PingOptions { count: 100, size: 100, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        router.await_rest()?;
        for (side, interface) in [(&lab.left, "host-eth0"), (&lab.right, "host-eth1")] {
            let link = side.ns.link(side.dev)?;
            for (ours, theirs, what) in [
                ("rx_packets", link.tx_packets, "packets from the host"),
                ("tx_packets", link.rx_packets, "packets to the host"),
                ("rx_bytes", link.tx_bytes, "bytes from the host"),
                ("tx_bytes", link.rx_bytes, "bytes to the host"),
            ] {
                let ours = router.interface_counter(interface, ours)?;
                ensure!(ours == theirs, "{interface}: {what}: {ours} here, {theirs} there");
            }
        }
        router.cli("clear interfaces")?;
        ensure!(router.interface_counter("host-eth0", "rx_packets")? == 0);
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        let after = router.interface_counter("host-eth0", "rx_packets")?;
        ensure!((100..110).contains(&after), "{after} packets for 100 pings");
        router.stop().map(drop)
    }

    fn clear_starts_counting_anew() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let options = PingOptions { count: 50, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        router.await_rest()?;
        let lookups = |router: &Router| -> Result<u64> {
            let rows = nodes(&router.json("show runtime")?)?;
            let rows = rows.iter().filter(|row| row["name"] == "ip4-lookup");
            Ok(rows.filter_map(|row| row["vectors"].as_u64()).sum())
        };
        ensure!(lookups(&router)? >= 100, "{} lookups", lookups(&router)?);
        router.cli("clear runtime")?;
        ensure!(lookups(&router)? == 0, "{} lookups", lookups(&router)?);
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        router.await_rest()?;
        let again = lookups(&router)?;
        ensure!((100..110).contains(&again), "{again} lookups for 50 pings");

        router.cli("clear errors")?;
        let text = router.cli("show errors")?;
        ensure!(text.lines().count() <= 1, "{text}");
        router.stop().map(drop)
    }

    /// `show hardware … | grep rx`, as the article about host interfaces reads its counters.
    fn output_is_filtered() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let text = router.cli("show hardware-interfaces | grep rx")?;
        ensure!(!text.is_empty() && text.lines().all(|line| line.contains("rx")), "{text}");
        let text = router.cli("show int | include host-eth1")?;
        ensure!(text.lines().count() == 1, "{text}");
        router.stop().map(drop)
    }

    /// One bounded file for support, which only its owner reads.
    fn tech_support() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli("set interface tag host-eth0 password:hunter2\ntrace add af-packet-input 5")?;
        lab.ping_all()?;
        std::fs::write(router.dir().join("last-panic.txt"), "worker 0 panicked in node `x'\n")?;
        let file = router.dir().join("help.txt");
        let program = thalweg()?.with_file_name("thalctl");
        let socket = router.socket().display().to_string();
        let words = ["-s", &socket, "tech-support", &file.display().to_string()];
        let said = Cmd::new(program.display().to_string()).args(words).output()?;
        ensure!(said.starts_with(&format!("{} (", file.display())), "{said}");
        let meta = std::fs::metadata(&file)?;
        ensure!(meta.permissions().mode() & 0o777 == 0o600 && meta.len() < 8 << 20, "{meta:?}");
        let text = std::fs::read_to_string(&file)?;
        for part in [
            "===== show version verbose\n",
            "===== show configuration | head 20000\n",
            "===== show errors\n",
            "===== show logging\n",
            "===== show packet accounting\n",
            "===== /proc/version\nLinux version ",
            "worker 0 panicked in node `x'",
            "CapEff:",
            "cli.sock: mode ",
            ": af-packet-input\n",
            "Max open files",
        ] {
            ensure!(text.contains(part), "no {part:?} in:\n{text}");
        }
        ensure!(!text.contains("hunter2"), "a secret is in the file");
        router.stop().map(drop)
    }
}
