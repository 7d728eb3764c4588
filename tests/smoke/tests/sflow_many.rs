//! sFlow of very many interfaces at once.

use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use thalweg_sflow::pcapout::{Packets, PcapOut};
use thalweg_sflow::text::Moment;
use thalweg_sflow::{DataSource, SFLOW_PORT};
use thalweg_smoke::{Collector, Config, Router};
use thalweg_testkit::{Lab, Netns, WAIT_LIMIT, lab_test, wait_for_udp_reader};

use crate::agent::Seen;
use crate::collectors::{SFACCTD_PORT, ours, sfacctd, sfacctd_agrees, tshark_agrees};

const PORTS: u32 = 1000;
/// Seconds between two counter samples of an interface.
const INTERVAL: u32 = 4;

/// Returns the number of packets that come by port `n`.
fn packets_of(n: u32) -> u32 {
    3 + n % 5
}

/// Commands for all ports, each with a stream of a few packets.
fn commands(dir: &Path) -> Result<String> {
    let mut text = String::new();
    for n in 0..PORTS {
        writeln!(text, "create packet-generator interface pg{n}")?;
        writeln!(
            text,
            "packet-generator new {{ name s{n} limit {} rate 5 size 100-100 interface pg{n} data {{ \
             IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.{}.{} -> 192.0.2.1 UDP: 7 -> 9 \
             incrementing 58 }} }}",
            packets_of(n),
            n >> 8,
            n & 255
        )?;
        writeln!(text, "sflow enable pg{n}")?;
    }
    let file = dir.join("ports.vpp");
    fs::write(&file, text)?;
    Ok(format!("exec {}", file.display()))
}

/// The lowest index of a port; the others follow.
fn first_port(router: &Router) -> Result<u32> {
    let shown = router.json("show interface pg0")?;
    let index = shown[0]["index"].as_u64().with_context(|| shown.to_string())?;
    Ok(u32::try_from(index)?)
}

/// Numbers of counter samples sent in each of `seconds` seconds by the agent's clock: the test's
/// processor may be busy when they come.
fn by_second(seen: &mut Seen, collector: &Collector, seconds: u64) -> Result<Vec<u64>> {
    let start = seen.uptime_ms;
    let mut counts = Vec::new();
    for second in 1..=seconds {
        let (before, end) = (seen.counters, start + second * 1000);
        seen.take_until(collector, &format!("second {second}"), |seen| seen.uptime_ms >= end)?;
        counts.push(seen.counters - before);
    }
    Ok(counts)
}

/// A capture of datagrams as the collector got them. One taken on the way shows them only while few
/// go at once: the kernel cuts many out of one at the end.
fn write(path: &Path, datagrams: &[Vec<u8>]) -> Result<()> {
    let mut file = PcapOut::new(Packets::Datagrams, SFLOW_PORT);
    for datagram in datagrams {
        file.add(Moment::now(), None, datagram);
    }
    Ok(fs::write(path, file.bytes())?)
}

/// Sends datagrams on to another collector, no faster than it reads: its socket has room for a
/// hundred, less than a thousand ports fill at once.
fn relay(ns: &Netns, datagrams: &[Vec<u8>], port: u16) -> Result<()> {
    let socket = ns.run(|| UdpSocket::bind("127.0.0.1:0"))??;
    for some in datagrams.chunks(32) {
        for datagram in some {
            socket.send_to(datagram, ("127.0.0.1", port))?;
        }
        wait_for_udp_reader(ns, port, WAIT_LIMIT)?;
    }
    Ok(())
}

lab_test! {
    /// A thousand interfaces, each sampled at 1:1: every sample arrives with its own numbers,
    /// packed with others, and counters come spread over the interval. Wireshark and sfacctd agree.
    fn a_thousand_interfaces() {
        thalweg_testkit::require_tools(&["tshark"])?;
        let lab = Lab::new()?;
        let dir = tempfile::tempdir()?;
        let sfacctd = sfacctd(&lab, dir.path())?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &Config::empty().commands(&format!(
            "sflow sampling-rate 1
             sflow polling-interval {INTERVAL}
             sflow host-interval 0
             sflow agent-address 10.10.1.1"
        )))?;
        router.cli(&commands(dir.path())?)?;
        router.cli("sflow collector add 127.0.0.1")?;

        // All counters at once, as nobody has seen any; then spread.
        let mut seen = Seen::default();
        seen.kept = Some(Vec::new());
        let all = u64::from(PORTS);
        seen.take_until(&collector, "counters of all", |seen| seen.counters >= all)?;
        let spread = by_second(&mut seen, &collector, 2 * u64::from(INTERVAL))?;
        let each = u64::from(PORTS / INTERVAL);
        ensure!(spread.iter().all(|n| *n <= 3 * each), "not spread: {spread:?}");
        let sum = spread.iter().sum::<u64>();
        ensure!((6 * each..=10 * each).contains(&sum), "{sum} in two intervals: {spread:?}");

        let before = router.json("show sflow")?["collectors"][0]["datagrams"].as_u64();
        router.cli("packet-generator enable-stream")?;
        let expected: u64 = (0..PORTS).map(|n| u64::from(packets_of(n))).sum();
        let what = format!("{expected} samples");
        seen.take_until(&collector, &what, |seen| seen.flows >= expected)?;
        let first = first_port(&router)?;
        for n in 0..PORTS {
            let source = DataSource::interface(first + n);
            let last = (seen.samples.get(&(0, source)), seen.pools.get(&source));
            let all = packets_of(n);
            ensure!(last == (Some(&all), Some(&all)), "pg{n}: {last:?}, not {all}");
        }
        // The best of three, as processors may be busy with something else.
        let mut shown = router.json("show sflow")?;
        let mut took = Duration::MAX;
        for _ in 0..3 {
            let asked = Instant::now();
            shown = router.json("show sflow")?;
            took = took.min(asked.elapsed());
        }
        ensure!(took < Duration::from_secs(2), "show sflow took {took:?}");
        ensure!(shown["samples"]["sent"] == expected, "{}", shown["samples"]);
        ensure!(shown["samples"]["dropped"] == 0, "{}", shown["samples"]);
        let ports = shown["interfaces"].as_array().map(Vec::len);
        ensure!(ports == Some(PORTS as usize), "{ports:?} interfaces");
        let datagrams = shown["collectors"][0]["datagrams"].as_u64().zip(before).map(|(a, b)| a - b);
        let datagrams = datagrams.context("datagrams sent")?;
        ensure!(datagrams * 3 < expected, "{expected} samples in {datagrams} datagrams");

        router.cli("sflow collector del 127.0.0.1")?;
        let datagrams = seen.kept.context("datagrams")?;
        let pcap = dir.path().join("sflow.pcap");
        write(&pcap, &datagrams)?;
        relay(&lab.router, &datagrams, SFACCTD_PORT)?;
        let found = ours(&pcap)?;
        ensure!(found.len() as u64 == expected, "{} in the file", found.len());
        tshark_agrees(&pcap, &found)?;
        sfacctd_agrees(sfacctd, dir.path(), &found)?;
        router.stop().map(drop)
    }
}
