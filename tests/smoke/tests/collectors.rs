//! sFlow datagrams of a real router, read by the collectors of others: Wireshark, sfacctd (pmacct)
//! and goflow2. All of them agree with our decoder, sample by sample or in their totals.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use thalweg_sflow::header::SampledHeader;
use thalweg_sflow::pcapfile::PcapReader;
use thalweg_sflow::{Datagram, FlowRecord, Interface, SFLOW_PORT, Sample};
use thalweg_smoke::{Peer, Router, host_pair};
use thalweg_testkit::{
    Cmd, Lab, PingOptions, Running, Signal, lab_test, ping, wait_for_udp_port, wait_until_seen,
};

use crate::sflow::capture_sflow;

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;
pub(crate) const SFACCTD_PORT: u16 = 6344;
const GOFLOW2_PORT: u16 = 6345;

/// Fields of a sampled packet that every tool prints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sampled {
    rate: u64,
    input: u64,
    length: u64,
    /// Addresses of IP packets.
    addresses: Option<(IpAddr, IpAddr)>,
}

/// Returns the samples that our decoder finds in a capture.
pub(crate) fn ours(pcap: &Path) -> Result<Vec<Sampled>> {
    let mut reader = PcapReader::open(pcap, SFLOW_PORT)?;
    let mut found = Vec::new();
    while let Some(captured) = reader.next_datagram()? {
        let datagram = Datagram::parse(captured.payload)?;
        ensure!(datagram.agent == Some("10.10.1.1".parse()?), "agent {:?}", datagram.agent);
        for sample in datagram.samples() {
            let Sample::Flow(flow) = sample? else { continue };
            let Interface::Index(input) = flow.input else { bail!("input {:?}", flow.input) };
            for record in flow.records {
                let FlowRecord::RawHeader(raw) = record? else { continue };
                let header = SampledHeader::parse(raw.protocol, raw.header);
                found.push(Sampled {
                    rate: flow.rate.into(),
                    input: input.into(),
                    length: raw.frame_length.into(),
                    addresses: header.addresses().map(|(from, to, _)| (from, to)),
                });
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Wireshark's values of a field, those of counter samples not among them.
fn dissected(pcap: &Path, field: &str) -> Result<Vec<u64>> {
    let text = Cmd::new("tshark")
        .args(["-n", "-d", "udp.port==6343,sflow", "-r"])
        .arg(pcap)
        .args(["-Y", "sflow", "-T", "fields", "-e", field])
        .output()?;
    let words = text.split(['\n', ',']).filter(|word| !word.is_empty());
    let mut values = words.map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    values.sort_unstable();
    Ok(values)
}

pub(crate) fn tshark_agrees(pcap: &Path, ours: &[Sampled]) -> Result<()> {
    let sorted = |of: fn(&Sampled) -> u64| {
        let mut values: Vec<u64> = ours.iter().map(of).collect();
        values.sort_unstable();
        values
    };
    for (field, expected) in [
        ("sflow.flow_sample.sampling_rate", sorted(|s| s.rate)),
        ("sflow.flow_sample.input_interface_value", sorted(|s| s.input)),
        ("sflow_245.header.frame_length", sorted(|s| s.length)),
    ] {
        let found = dissected(pcap, field)?;
        ensure!(found == expected, "{field}: Wireshark has {found:?}, we have {expected:?}");
    }
    Ok(())
}

/// sfacctd with totals by addresses and input interface, printed when it ends.
pub(crate) fn sfacctd(lab: &Lab, dir: &Path) -> Result<Running> {
    let peer = Peer::find("pmacct", &["usr/sbin/sfacctd"])?;
    let config = dir.join("sfacctd.conf");
    let text = format!(
        "daemonize: false\nsfacctd_ip: 127.0.0.1\nsfacctd_port: {SFACCTD_PORT}\nplugins: print\n\
         aggregate: src_host, dst_host, in_iface\nprint_output: csv\nprint_refresh_time: 3600\n\
         print_output_file: {}\n",
        dir.join("sfacctd.csv").display()
    );
    fs::write(&config, text)?;
    let running =
        peer.command(Some(&lab.router), "usr/sbin/sfacctd").arg("-f").arg(config).spawn()?;
    wait_for_udp_port(&lab.router, SFACCTD_PORT, LIMIT)?;
    Ok(running)
}

/// Packets and bytes by interface and addresses.
type Totals = BTreeMap<(u64, IpAddr, IpAddr), (u64, u64)>;

fn totals(samples: &[Sampled]) -> Totals {
    let mut totals = Totals::new();
    for sample in samples {
        if let Some((from, to)) = sample.addresses {
            let total = totals.entry((sample.input, from, to)).or_default();
            total.0 += sample.rate;
            total.1 += sample.rate * sample.length;
        }
    }
    totals
}

pub(crate) fn sfacctd_agrees(running: Running, dir: &Path, ours: &[Sampled]) -> Result<()> {
    running.signal(Signal::INT)?;
    let printed = running.finish(LIMIT)?;
    let file = dir.join("sfacctd.csv");
    let text = fs::read_to_string(&file).with_context(|| format!("sfacctd: {printed:?}"))?;
    let mut found = Totals::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let [input, from, to, packets, bytes] = columns[..] else { bail!("sfacctd: {text}") };
        // Packets other than IP have no addresses there.
        let (Ok(from), Ok(to)) = (from.parse::<IpAddr>(), to.parse::<IpAddr>()) else { continue };
        if from.is_unspecified() && to.is_unspecified() {
            continue;
        }
        found.insert((input.parse()?, from, to), (packets.parse()?, bytes.parse()?));
    }
    let expected = totals(ours);
    ensure!(found == expected, "sfacctd has {found:?}, we have {expected:?}\n{text}");
    Ok(())
}

/// Nothing where there is neither goflow2 nor Go to build it; in continuous integration, Go without
/// goflow2 is an error.
fn goflow2(lab: &Lab, dir: &Path) -> Result<Option<Running>> {
    let program = "usr/local/bin/goflow2";
    let peer = match Peer::find("goflow2", &[program]) {
        Ok(peer) => peer,
        Err(error) => {
            let go = Cmd::new("go").arg("version").output().is_ok();
            ensure!(
                !go || std::env::var_os("CI").is_none(),
                "there is Go but no goflow2; run scripts/setup.sh long"
            );
            eprintln!("goflow2 is left out: {error:#}");
            return Ok(None);
        }
    };
    let running = peer
        .command(Some(&lab.router), program)
        .arg("-listen")
        .arg(format!("sflow://127.0.0.1:{GOFLOW2_PORT}"))
        .args(["-transport", "file", "-format", "json", "-addr", "", "-transport.file"])
        .arg(dir.join("goflow2.json"))
        .spawn()?;
    wait_for_udp_port(&lab.router, GOFLOW2_PORT, LIMIT)?;
    Ok(Some(running))
}

fn goflow2_samples(dir: &Path) -> Result<Vec<Sampled>> {
    let text = fs::read_to_string(dir.join("goflow2.json")).unwrap_or_default();
    let mut found = Vec::new();
    // A line that is being written is none yet.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let line: serde_json::Value = serde_json::from_str(line)?;
        ensure!(line["sampler_address"] == "10.10.1.1", "{line}");
        let number = |name: &str| line[name].as_u64().with_context(|| format!("{name} of {line}"));
        let address = |name: &str| line[name].as_str().and_then(|text| text.parse().ok());
        found.push(Sampled {
            rate: number("sampling_rate")?,
            input: number("in_if")?,
            length: number("bytes")?,
            addresses: address("src_addr").zip(address("dst_addr")),
        });
    }
    found.sort();
    Ok(found)
}

fn goflow2_agrees(running: Running, dir: &Path, ours: &[Sampled]) -> Result<()> {
    wait_until_seen(LIMIT, "goflow2 to write what we decode", || match goflow2_samples(dir) {
        Ok(found) if found == ours => Ok(()),
        Ok(found) => Err(format!("{found:?}, not {ours:?}")),
        Err(error) => Err(format!("{error:#}")),
    })?;
    running.stop(LIMIT).map(drop)
}

/// Samples by the node's own count, which outlives the sampling.
fn samples_taken(errors: &str) -> u64 {
    let lines = errors.lines().filter(|line| line.contains("sflow packets sampled"));
    lines.filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

lab_test! {
    fn collectors_of_others_agree_with_our_decoder() {
        thalweg_testkit::require_tools(&["tshark", "tcpdump"])?;
        let lab = Lab::new()?;
        let dir = tempfile::tempdir()?;
        let sfacctd = sfacctd(&lab, dir.path())?;
        let goflow2 = goflow2(&lab, dir.path())?;
        let pcap = dir.path().join("sflow.pcap");
        let capture = capture_sflow(&lab.router, &pcap)?;
        let config = host_pair().commands(&format!(
            "sflow collector add 127.0.0.1
             sflow collector add 127.0.0.1 port {SFACCTD_PORT}
             sflow collector add 127.0.0.1 port {GOFLOW2_PORT}
             sflow agent-address 10.10.1.1
             sflow sampling-rate 1
             sflow enable-disable host-eth0
             sflow enable-disable host-eth1"
        ));
        let router = Router::start(&lab.router, &config)?;
        for size in [56, 400, 1400] {
            let options = PingOptions { count: 20, size, ..PingOptions::default() };
            ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        }
        // No more samples, and all of them sent: every collector has got the same.
        router.cli("sflow enable-disable host-eth0 disable")?;
        router.cli("sflow enable-disable host-eth1 disable")?;
        let taken = wait_until_seen(LIMIT, "all samples to be sent", || {
            let errors = router.cli("show errors").map_err(|e| format!("{e:#}"))?;
            let shown = router.json("show sflow").map_err(|e| format!("{e:#}"))?;
            let taken = samples_taken(&errors);
            let settled = taken > 0 && shown["samples"]["sent"] == taken;
            if settled { Ok(taken) } else { Err(format!("{taken} taken, {shown}")) }
        })?;
        let expected = wait_until_seen(LIMIT, "all samples to be captured", || {
            match ours(&pcap) {
                Ok(found) if found.len() as u64 >= taken => Ok(found),
                Ok(found) => Err(format!("{} of {taken}", found.len())),
                Err(error) => Err(format!("{error:#}")),
            }
        })?;
        capture.stop()?;
        ensure!(expected.len() as u64 == taken, "{} captured, {taken} taken", expected.len());
        let pings = expected.iter().filter(|s| s.length == 400 + 42 + 4).count();
        ensure!(pings == 40, "{pings} samples of 40 packets: {expected:?}");

        tshark_agrees(&pcap, &expected)?;
        sfacctd_agrees(sfacctd, dir.path(), &expected)?;
        if let Some(goflow2) = goflow2 {
            goflow2_agrees(goflow2, dir.path(), &expected)?;
        }
        router.stop().map(drop)
    }
}
