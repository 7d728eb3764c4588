//! Changes to make while packets flow, none of which concerns a packet that does.

use anyhow::{Context, Result};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use thalweg_bench_pg::Router;
use thalweg_device::{SwIfIndex, interface};
use thalweg_feat_ip::TableId;
use thalweg_feat_ip::{Path, add_route, del_route};
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// The two streams' destinations, and the routes that take them, stay as they are: everything
/// beneath 48.0.0.0/8 goes to `pg1`, everything beneath 49.0.0.0/8 to `pg2`.
pub const PORTS: &str = "create packet-generator interface pg0
    create packet-generator interface pg1
    create packet-generator interface pg2
    create packet-generator interface pg3
    create packet-generator interface pg4
    set interface state pg0 up
    set interface state pg1 up
    set interface state pg2 up
    set interface state pg3 up
    set interface mac address pg0 02:fe:00:00:00:01
    set interface mac address pg3 02:fe:00:00:00:03
    set interface ip address pg0 10.0.0.254/24
    set interface ip address pg1 10.1.0.254/24
    set interface ip address pg2 10.2.0.254/24
    set interface ip address pg3 10.3.0.254/24
    set interface ip address pg4 10.4.0.254/24
    set ip neighbor pg1 10.1.0.1 02:00:00:00:01:01 static
    set ip neighbor pg2 10.2.0.1 02:00:00:00:02:01 static
    ip route add 48.0.0.0/25 via 10.1.0.1 pg1
    ip route add 48.1.0.0/16 via 10.1.0.1 pg1
    ip route add 49.0.0.0/25 via 10.2.0.1 pg2
    ip route add 49.1.0.0/16 via 10.2.0.1 pg2";

/// A file of commands that add these routes, by either side in turn.
///
/// # Errors
/// If there is no room for the file.
pub fn script(prefixes: &[Ipv4Prefix]) -> Result<tempfile::NamedTempFile> {
    let mut text = String::new();
    for (n, prefix) in prefixes.iter().enumerate() {
        let side = 1 + n % 2;
        writeln!(text, "ip route add {prefix} via 10.{side}.0.1 pg{side}")?;
    }
    let file = tempfile::NamedTempFile::new().context("a file for a million commands")?;
    std::fs::write(file.path(), text)?;
    Ok(file)
}

/// The streams: one to a few addresses of one /24, and one to ten thousand, to either side.
pub fn streams() -> String {
    let stream = |name: &str, port: &str, mac: &str, from: &str, to: &str| {
        format!(
            "packet-generator new {{ name {name} limit -1 size 64-64 interface {port} worker 0 \
             data {{ IP4: 0200.0000.00aa -> {mac} UDP: {from} -> {to} UDP: 1234 -> 4321 \
             incrementing 22 }} }}\n"
        )
    };
    let (left, right) =
        (("pg0", "02fe.0000.0001", "10.0.0.1"), ("pg3", "02fe.0000.0003", "10.3.0.1"));
    let one = |name, (port, mac, from), to| stream(name, port, mac, from, to);
    one("near0", left, "48.0.0.0 - 48.0.0.127")
        + &one("far0", left, "48.1.0.0 - 48.1.39.15")
        + &one("near3", right, "49.0.0.0 - 49.0.0.127")
        + &one("far3", right, "49.1.0.0 - 49.1.39.15")
}

/// A kind of change.
pub struct Churn {
    /// Name in tables.
    pub name: &'static str,
    /// Changes a second.
    pub rate: u64,
    /// Commands that begin and end the measurement.
    pub around: Option<(&'static str, &'static str)>,
    /// Makes the `n`th one.
    step: fn(&mut Router, u64) -> Result<()>,
}

/// Everything that is changed under load.
pub const ALL: [Churn; 7] = [
    Churn { name: "routes", rate: 50_000, around: None, step: route },
    Churn { name: "tables made and deleted", rate: 200, around: None, step: table },
    Churn { name: "interface up and down", rate: 1000, around: None, step: up_and_down },
    Churn { name: "sflow enable-disable", rate: 1000, around: None, step: sflow },
    Churn { name: "sflow sampling-rate", rate: 1000, around: Some(SFLOW), step: rate },
    Churn { name: "neighbors", rate: 1000, around: None, step: neighbor },
    Churn { name: "MAC address of a next hop in use", rate: 1000, around: None, step: next_hop },
];

const SFLOW: (&str, &str) = ("sflow enable-disable pg0", "sflow enable-disable pg0 disable");

impl Churn {
    /// Changes from number `first` on for as long as `time`; returns the next number, an even one.
    /// The main thread does what else it has to do meanwhile.
    ///
    /// # Errors
    /// If a change is refused.
    pub fn run(&self, r: &mut Router, first: u64, time: Duration) -> Result<u64> {
        let start = Instant::now();
        let mut n = first;
        while start.elapsed() < time || n % 2 == 1 {
            let due = first + (start.elapsed().as_secs_f64() * self.rate as f64) as u64;
            // Late changes come in portions, so that others get a turn.
            for _ in 0..due.saturating_sub(n).min(200) {
                (self.step)(r, n).with_context(|| format!("{}, change {n}", self.name))?;
                n += 1;
            }
            r.control().run_once(Some(Duration::from_micros(500)));
        }
        Ok(n)
    }
}

/// Routes above, beneath and next to those that packets take, each to the wrong side, and some of
/// the Internet's.
fn route(r: &mut Router, n: u64) -> Result<()> {
    // Each is added in one round and deleted in the next.
    const ROUTES: u64 = 4096;
    let (i, del) = ((n % ROUTES) as u32, (n / ROUTES) % 2 == 1);
    let side = i % 2;
    let base = (48 + side) << 24;
    let (addr, len) = match i % 8 {
        // Routes in the same /24, behind the addresses that are used.
        0 | 1 => (base | 128 | (i / 8 % 128), 32),
        2 | 3 => (base | 128 | (i / 8 % 8) << 4, 28),
        // Routes above them.
        4 => (base, 9 + (i / 8 % 7) as u8),
        5 => (base | 1 << 16, 9 + (i / 8 % 7) as u8),
        // Routes elsewhere.
        6 => (base | 2 << 16 | (i / 8) << 8, 24),
        _ => ((i / 8) << 12 | 100 << 24, 20 + (i / 8 % 6) as u8),
    };
    let c = r.control();
    let (prefix, wrong) = (Ipv4Prefix::new(addr, len)?, 1 + (1 - side));
    let next_hop = Ipv4Addr::new(10, wrong as u8, 0, 1);
    if del {
        // Two numbers may stand for one prefix: the first of them deletes it.
        let _ = del_route(c, TableId(0), prefix, &[]);
        return Ok(());
    }
    let path = Path::via(next_hop, Some(SwIfIndex(port(c, wrong)?)));
    Ok(add_route(c, TableId(0), prefix, vec![path], true)?)
}

fn port(c: &Control, number: u32) -> Result<u32> {
    Ok(interface::find(c, &format!("pg{number}"))?.get())
}

fn table(r: &mut Router, n: u64) -> Result<()> {
    r.command(["ip table add 7", "ip table del 7"][n as usize % 2]);
    Ok(())
}

fn up_and_down(r: &mut Router, n: u64) -> Result<()> {
    r.command(["set interface state pg4 up", "set interface state pg4 down"][n as usize % 2]);
    Ok(())
}

fn sflow(r: &mut Router, n: u64) -> Result<()> {
    r.command([SFLOW.0, SFLOW.1][n as usize % 2]);
    Ok(())
}

fn rate(r: &mut Router, n: u64) -> Result<()> {
    r.command(&format!("sflow sampling-rate {}", 10_000 + n % 2));
    Ok(())
}

fn neighbor(r: &mut Router, n: u64) -> Result<()> {
    let (host, del) = (2 + n / 2 % 200, ["", "del "][n as usize % 2]);
    r.command(&format!("set ip neighbor {del}pg1 10.1.0.{host} 02:00:00:00:05:{host:02x}"));
    Ok(())
}

fn next_hop(r: &mut Router, n: u64) -> Result<()> {
    r.command(&format!("set ip neighbor pg1 10.1.0.1 02:00:00:00:01:{:02x} static", n % 200));
    Ok(())
}
