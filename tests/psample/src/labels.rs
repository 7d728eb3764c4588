//! The kernel as a router of labels between two of ours: it swaps the labels of the one and pops
//! those of the other.
//!
//! ```text
//! ours — near ═ p0  kernel  p1 ═ far — ours
//! ```

use crate::guest::{LIMIT, passed, run};
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use thalweg_testkit::{Cmd, Running, wait_for_unix_socket, wait_until_seen};

/// One of our routers.
struct Edge {
    running: Running,
    socket: String,
}

impl Edge {
    /// Starts a router behind a device, with a loopback address of both versions and a label that
    /// leads to the other one.
    fn start(device: &str, n: u8, other: u8, label: u32) -> Result<Edge> {
        let dir = format!("/run/{device}");
        fs::create_dir_all(&dir)?;
        let socket = format!("{dir}/cli.sock");
        let stanzas = format!("unix {{ nodaemon runtime-dir {dir} cli-listen {socket} }}");
        let running = Cmd::new("/bin/thalweg")
            .args(["run", &stanzas, "cpu { workers 1 }", "buffers { buffers-per-numa 2048 }"])
            .spawn()?;
        wait_for_unix_socket(Path::new(&socket), LIMIT)?;
        let edge = Edge { running, socket };
        for line in [
            format!("create host-interface name {device}"),
            format!("set interface state host-{device} up"),
            format!("set interface ip address host-{device} 10.0.{n}.1/24"),
            "create loopback interface".into(),
            "set interface state loop0 up".into(),
            format!("set interface ip address loop0 10.255.0.{n}/32"),
            format!("set interface ip address loop0 2001:db8::{n}/128"),
            "mpls table add 0".into(),
            format!("set interface mpls host-{device} enable"),
            format!(
                "ip route add 10.255.0.{other}/32 via 10.0.{n}.2 host-{device} out-labels {label}"
            ),
            // IPv6 behind a core that has none.
            format!(
                "ip route add 2001:db8::{other}/128 via 10.0.{n}.2 host-{device} out-labels {label} 2"
            ),
            "mpls local-label add 200 eos via ip4-lookup-in-table 0".into(),
            "mpls local-label add 200 non-eos via mpls-lookup-in-table 0".into(),
        ] {
            edge.cli(&line)?;
        }
        Ok(edge)
    }

    fn cli(&self, line: &str) -> Result<String> {
        Cmd::new("/bin/thalctl").args(["-s", &self.socket, line]).output()
    }
}

/// Sets a value below `/proc/sys/net`.
fn set(name: &str, value: &str) -> Result<()> {
    Ok(fs::write(format!("/proc/sys/net/{name}"), value)?)
}

/// The scenario, once the modules are loaded.
pub(crate) fn kernel_router() -> Result<()> {
    ensure!(Path::new("/proc/sys/net/mpls").exists(), "the kernel has no mpls_router");
    for (port, device, n) in [("p0", "near", 1), ("p1", "far", 2)] {
        run(&format!("ip link add {device} type veth peer name {port}"))?;
        run(&format!("ip link set {device} up"))?;
        run(&format!("ip link set {port} up"))?;
        run(&format!("ip address add 10.0.{n}.2/24 dev {port}"))?;
        set(&format!("mpls/conf/{port}/input"), "1")?;
    }
    set("mpls/platform_labels", "1000")?;
    run("ip -f mpls route add 100 as 200 via inet 10.0.2.1 dev p1")?;
    run("ip -f mpls route add 102 via inet 10.0.1.1 dev p0")?;
    let near = Edge::start("near", 1, 2, 100)?;
    let far = Edge::start("far", 2, 1, 102)?;
    far.cli("trace add af-packet-input 50")?;
    for to in ["10.255.0.2", "2001:db8::2"] {
        // The first ones may be lost while neighbours are being found.
        wait_until_seen(LIMIT, "answers through the kernel", || {
            let text = near.cli(&format!("ping {to} source loop0 repeat 3 interval 0.2"));
            let text = text.map_err(|e| format!("{e:#}"))?;
            if text.contains("3 sent, 3 received, 0% packet loss") { Ok(()) } else { Err(text) }
        })?;
    }
    let trace = far.cli("show trace max 50")?;
    ensure!(trace.contains("label 200"), "the kernel has swapped the label: {trace}");
    ensure!(trace.contains("lookup-ip6-dst-itf"), "label 2 came behind it: {trace}");
    near.running.stop(LIMIT)?.success()?;
    far.running.stop(LIMIT)?.success()?;
    passed("labels through the kernel as a router between two of ours, IPv4 and IPv6");
    Ok(())
}
