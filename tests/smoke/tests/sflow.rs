//! sFlow datagrams of a real router, read by our decoder and by Wireshark's.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_sflow::{CounterRecord, DataSource, Datagram, FlowRecord, Interface, Sample};
use thalweg_smoke::{Collector, Config, Router, host_pair, thalweg};
use thalweg_testkit::{
    Capture, Cmd, IperfOptions, Lab, LabOptions, Netns, Offloads, PingOptions, iperf3, lab_test,
    ping,
};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

/// Nothing is sampled yet.
fn exporting(rate: u32) -> Config {
    host_pair().commands(&format!(
        "sflow collector add 127.0.0.1
         sflow agent-address 10.10.1.1
         sflow sampling-rate {rate}
         sflow polling-interval 1"
    ))
}

/// One in `rate` packets of host-eth0 is sampled, counters come each second.
fn sampling(rate: u32) -> Config {
    exporting(rate).commands("sflow enable-disable host-eth0")
}

/// Captures what goes to collectors at the usual port of this machine.
pub(crate) fn capture_sflow(ns: &Netns, pcap: &Path) -> Result<Capture> {
    Capture::start_cut(ns, "lo", pcap, "udp port 6343", 2048)
}

pub(crate) fn index_of(router: &Router, interface: &str) -> Result<u32> {
    let shown = router.json(&format!("show interface {interface}"))?;
    let index = shown[0]["index"].as_u64().with_context(|| format!("no index in {shown}"))?;
    Ok(u32::try_from(index)?)
}

/// A flow sample, reduced to what the scenarios look at.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    source: u32,
    input: Interface,
    rate: u32,
    pool: u32,
    drops: u32,
    frame_length: u32,
    header: Vec<u8>,
}

fn flow_samples(datagram: &[u8]) -> Result<Vec<Seen>> {
    let datagram = Datagram::parse(datagram)?;
    datagram.check_end()?;
    let mut seen = Vec::new();
    for sample in datagram.samples() {
        let Sample::Flow(sample) = sample? else { continue };
        for record in sample.records.clone() {
            if let FlowRecord::RawHeader(raw) = record? {
                seen.push(Seen {
                    source: sample.source.index,
                    input: sample.input,
                    rate: sample.rate,
                    pool: sample.pool,
                    drops: sample.drops,
                    frame_length: raw.frame_length - raw.stripped,
                    header: raw.header.to_vec(),
                });
            }
        }
    }
    Ok(seen)
}

/// Makes Wireshark's dissector look for what is malformed, or worth a warning, in a capture of
/// sFlow.
pub(crate) fn no_complaints(pcap: &Path) -> Result<()> {
    let complaints = Cmd::new("tshark")
        .args(["-n", "-d", "udp.port==6343,sflow", "-r"])
        .arg(pcap)
        .args(["-Y", "_ws.malformed || _ws.expert.severity >= 6291456 || !sflow"])
        .output()?;
    ensure!(complaints.trim().is_empty(), "tshark objects to:\n{complaints}");
    Ok(())
}

/// One column of each sFlow packet in a capture, each value in it.
pub(crate) fn dissected(pcap: &Path, field: &str) -> Result<Vec<String>> {
    let text = Cmd::new("tshark")
        .args(["-n", "-d", "udp.port==6343,sflow", "-r"])
        .arg(pcap)
        .args(["-Y", "sflow", "-T", "fields", "-e", field])
        .output()?;
    Ok(text.split(['\n', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

lab_test! {
    /// Each packet at 1:1: its length, its first bytes, its interface, and the true packet count.
    fn samples_tell_the_truth() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &sampling(1))?;
        let index = index_of(&router, "host-eth0")?;
        let options = PingOptions { count: 10, size: 1000, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        let mut pings = 0;
        let mut last_sequence = None;
        let pool = collector.receive(LIMIT, "ten samples of pings", |bytes| {
            let datagram = Datagram::parse(bytes)?;
            if let Some(last) = last_sequence {
                ensure!(datagram.sequence == last + 1, "{last}, then {}", datagram.sequence);
            }
            last_sequence = Some(datagram.sequence);
            ensure!(datagram.agent == Some("10.10.1.1".parse()?), "agent {:?}", datagram.agent);
            let mut pool = 0;
            for seen in flow_samples(bytes)? {
                ensure!(seen.source == index && seen.rate == 1 && seen.drops == 0, "{seen:?}");
                ensure!(seen.input == Interface::Index(index), "{seen:?}");
                pool = seen.pool;
                if seen.frame_length == 1042 {
                    // Ethernet, IPv4 and ICMP headers, and the ping's own pattern behind its time.
                    ensure!(seen.header.len() == 128, "{seen:?}");
                    ensure!(seen.header[26..34] == [10, 10, 1, 2, 10, 10, 2, 2], "{seen:?}");
                    ensure!(seen.header[100] == 100 - 42, "{seen:?}");
                    pings += 1;
                }
            }
            Ok((pings == 10).then_some(pool))
        })?;
        let received = router.interface_counter("host-eth0", "rx_packets")?;
        ensure!(u64::from(pool) == received, "pool {pool}, received {received}");
        let shown = router.json("show sflow")?;
        ensure!(shown["samples"]["sent"].as_u64() == Some(received), "{received}: {shown}");
        router.stop().map(drop)
    }

    /// Outputs of packets: the interface, the next hop, the lengths of both routes; those for the
    /// router itself; and those that it sends.
    fn samples_tell_where_packets_went() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &sampling(1).commands("sflow direction both"))?;
        let [left, right] = ["host-eth0", "host-eth1"].map(|name| index_of(&router, name));
        let (left, right) = (left?, right?);
        router.cli("sflow enable host-eth1")?;
        ping(&lab.left.ns, lab.right.addr, &PingOptions { count: 3, ..PingOptions::default() })?
            .all_answered()?;
        let gateway: std::net::Ipv4Addr = "10.10.1.1".parse()?;
        ping(&lab.left.ns, gateway, &PingOptions { count: 3, ..PingOptions::default() })?
            .all_answered()?;
        let (mut through, mut sent, mut own) = (0, 0, 0);
        collector.receive(LIMIT, "samples of each way", |bytes| {
            let datagram = Datagram::parse(bytes)?;
            datagram.check_end()?;
            for sample in datagram.samples() {
                let Sample::Flow(sample) = sample? else { continue };
                let mut router = None;
                let mut header = Vec::new();
                for record in sample.records.clone() {
                    match record? {
                        FlowRecord::Router(r) => router = Some(r),
                        FlowRecord::RawHeader(raw) => header = raw.header.to_vec(),
                        other => anyhow::bail!("{other:?}"),
                    }
                }
                // ICMP echo requests of the left host.
                if header.get(12..14) != Some(&[8, 0]) || header.get(34) != Some(&8) {
                    continue;
                }
                if header[30..34] == [10, 10, 1, 1] {
                    ensure!(sample.output == Interface::INTERNAL, "{sample:?}");
                    own += 1;
                    continue;
                }
                // The first may wait for its neighbour's address, and is reported without an
                // output.
                if sample.output == Interface::UNKNOWN {
                    continue;
                }
                let ways = (sample.input, sample.output);
                ensure!(ways == (Interface::Index(left), Interface::Index(right)), "{sample:?}");
                let router = router.context("no word of its route")?;
                ensure!(router.next_hop.0 == Some(lab.right.addr.into()), "{router:?}");
                let masks = [router.source_mask, router.destination_mask];
                ensure!(masks.iter().all(|m| (24..=32).contains(m)), "{router:?}");
                match sample.source.index {
                    index if index == left => through += 1,
                    index if index == right => sent += 1,
                    _ => anyhow::bail!("{sample:?}"),
                }
            }
            Ok((through >= 2 && sent >= 2 && own == 3).then_some(()))
        })?;
        router.stop().map(drop)
    }

    /// Packets that are dropped are reported with the reason, their first bytes and the node's
    /// name; an agent's receiver and Wireshark read them.
    fn dropped_packets_are_told_of() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let config = sampling(1).commands("sflow drop-monitoring enable");
        let router = Router::start(&lab.router, &config)?;
        let index = index_of(&router, "host-eth0")?;
        let pcap = router.dir().join("drops.pcap");
        let capture = capture_sflow(&lab.router, &pcap)?;
        let expired = ["-c", "2", "-i", "0.2", "-W", "1", "-t", "1", "10.10.2.2"];
        // The ping reports no answer, as is right.
        let _ = lab.left.ns.command("ping").args(expired).run()?;
        let mut flow = false;
        let mut reported = false;
        collector.receive(LIMIT, "an expired packet", |bytes| {
            let datagram = Datagram::parse(bytes)?;
            datagram.check_end()?;
            for sample in datagram.samples() {
                match sample? {
                    Sample::Flow(sample) => flow |= sample.output == Interface::Discarded(257),
                    Sample::Discard(discard) => {
                        ensure!(discard.input == index && discard.reason.0 == 257, "{discard:?}");
                        let mut trap = String::new();
                        for record in discard.records.clone() {
                            match record? {
                                FlowRecord::HardwareTrap(t) => {
                                    trap = String::from_utf8_lossy(t.name.0).into_owned();
                                }
                                FlowRecord::RawHeader(raw) => {
                                    // Headers are sampled from the Ethernet header on.
                                    ensure!(raw.header[12..15] == [8, 0, 0x45], "{raw:?}");
                                    ensure!(raw.header[26..30] == [10, 10, 1, 2], "{raw:?}");
                                    ensure!(raw.frame_length == 98, "{raw:?}");
                                }
                                other => anyhow::bail!("{other:?}"),
                            }
                        }
                        ensure!(trap == "vpp_ip4_ttl_<=_1", "{trap}");
                        reported = true;
                    }
                    _ => {}
                }
            }
            Ok((flow && reported).then_some(()))
        })?;
        capture.stop()?;
        let kinds = dissected(&pcap, "sflow_245.sampletype")?;
        ensure!(kinds.iter().any(|kind| kind == "5"), "{kinds:?}");
        let shown = router.json("show sflow")?;
        ensure!(shown["drop_samples"]["sent"].as_u64() >= Some(1), "{shown}");
        router.stop().map(drop)
    }

    /// The length of a jumbo frame is reported in full, not that of its first buffer.
    fn jumbo_frames_have_their_length() {
        let lab = Lab::build(&LabOptions { mtu: 9000, ..LabOptions::default() })?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &sampling(1))?;
        let options = PingOptions { count: 1, size: 8972, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        collector.receive(LIMIT, "a sample of 9014 bytes", |bytes| {
            Ok(flow_samples(bytes)?.iter().any(|seen| seen.frame_length == 9014).then_some(()))
        })?;
        router.stop().map(drop)
    }

    /// Counters of each interface, each second, with its name.
    fn counters_are_exported() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &sampling(1000))?;
        let index = index_of(&router, "host-eth0")?;
        let options = PingOptions { count: 20, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        router.await_rest()?;
        let received = router.interface_counter("host-eth0", "rx_bytes")?;
        collector.receive(LIMIT, "counters that have caught up", |bytes| {
            let datagram = Datagram::parse(bytes)?;
            for sample in datagram.samples() {
                let Sample::Counters(sample) = sample? else { continue };
                if sample.source == DataSource::HOST {
                    continue;
                }
                ensure!(sample.source.index == index, "counters of {:?}", sample.source);
                let (mut octets, mut name) = (None, None);
                for record in sample.records.clone() {
                    match record? {
                        CounterRecord::Interface(counters) => octets = Some(counters.in_octets),
                        CounterRecord::PortName(port) => {
                            name = Some(String::from_utf8_lossy(port.name.0).into_owned());
                        }
                        _ => {}
                    }
                }
                ensure!(name.as_deref() == Some("host-eth0"), "name {name:?}");
                if octets == Some(received) {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })?;
        router.stop().map(drop)
    }

    /// Wireshark reads what we send as we mean it, and `thalweg sflow decode` prints it.
    fn wireshark_and_our_own_decoder_agree() {
        let lab = Lab::new()?;
        let _collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &exporting(1))?;
        let index = index_of(&router, "host-eth0")?.to_string();
        let pcap = router.dir().join("sflow.pcap");
        let capture = capture_sflow(&lab.router, &pcap)?;
        router.cli("sflow enable-disable host-eth0")?;
        let options = PingOptions { count: 20, size: 400, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        let decoded = || Cmd::new(thalweg()?).args(["sflow", "decode", "-r"]).arg(&pcap).output();
        let count = |text: &str, line: &str| text.lines().filter(|l| *l == line).count();
        // A datagram waits for more for a moment. Counters follow within a second of the polling
        // interval, and the host's may come before these.
        thalweg_testkit::wait_until_seen(LIMIT, "all pings and the interface's counters", || {
            let text = decoded().map_err(|e| format!("{e:#}"))?;
            let all = count(&text, "sampledPacketSize 446") >= 20 && text.contains("ifName host-eth0");
            if all { Ok(()) } else { Err(text) }
        })?;
        // No more samples: the capture has as many as were taken.
        router.cli("sflow enable-disable host-eth0 disable")?;
        let taken = thalweg_testkit::wait_until_seen(LIMIT, "all samples to be sent", || {
            let shown = router.json("show sflow").map_err(|e| format!("{e:#}"))?;
            let taken = shown["samples"]["taken"].as_u64().filter(|taken| *taken >= 20);
            taken.filter(|_| shown["samples"]["sent"].as_u64() == taken).ok_or(shown.to_string())
        })?;
        capture.stop()?;

        no_complaints(&pcap)?;
        let samples: u64 =
            dissected(&pcap, "sflow_245.numsamples")?.iter().filter_map(|n| n.parse::<u64>().ok()).sum();
        ensure!(samples > taken, "Wireshark sees {samples} samples, {taken} packets were sampled");
        let agents = dissected(&pcap, "sflow_245.agent")?;
        ensure!(agents.iter().all(|agent| agent == "10.10.1.1"), "{agents:?}");

        let text = decoded()?;
        let count = |line: &str| count(&text, line);
        ensure!(count("sampledPacketSize 446") == 20, "{text}");
        ensure!(count("dstIP 10.10.2.2") >= 20 && count("srcIP 10.10.1.2") >= 20, "{text}");
        ensure!(count(&format!("inputPort {index}")) as u64 == taken, "{text}");
        ensure!(count("meanSkipCount 1") as u64 == taken, "{text}");
        ensure!(text.contains("sampleType COUNTERSSAMPLE"), "{text}");
        router.stop().map(drop)
    }

    /// The decoder takes datagrams at a port, and looks on as they pass by an interface.
    fn the_decoder_listens_and_looks_on() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair().commands(
            "sflow collector add 127.0.0.1 port 7343
             sflow agent-address 10.10.1.1
             sflow sampling-rate 1
             sflow enable host-eth0",
        ))?;
        let program = thalweg()?;
        let program = program.to_str().context("a path")?;
        let words = ["sflow", "decode", "-p", "7343", "-l"];
        let mut port = lab.router.spawn(program, &words)?;
        let mut aside = lab.router.spawn(program, &[&words[..], &["-i", "lo"]].concat())?;
        lab.ping_all()?;
        let flow =
            thalweg_smoke::Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(20))?;
        for decoder in [&mut port, &mut aside] {
            decoder.wait_for_output(LIMIT, "sampled packets", |out, _| {
                let is_flow =
                    |l: &&str| l.starts_with("FLOW,10.10.1.1,") && l.contains(",10.10.1.2,10.10.2.2,");
                (out.lines().filter(is_flow).count() > 3).then_some(())
            })?;
        }
        flow.stop()?;
        for decoder in [port, aside] {
            decoder.stop(LIMIT)?.success()?;
        }
        router.stop().map(drop)
    }

    /// The number of samples times the rate estimates the packets at 1:100.
    fn sampling_estimates_traffic() {
        let lab = Lab::build(&LabOptions { offloads: Offloads::ON, ..LabOptions::default() })?;
        let _collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &sampling(100))?;
        lab.ping_all()?;
        iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &IperfOptions::default())?;
        router.await_rest()?;
        // Counters are as on the wire: a GSO packet is the frames that it is cut into.
        let on_wire = || -> Result<(u64, u64)> {
            let gso = router.interface_counter("host-eth0", "rx_gso_packets")?;
            Ok((router.interface_counter("host-eth0", "rx_packets")? + gso, gso))
        };
        let (before, _) = on_wire()?;
        let shown = router.json("show sflow")?;
        let packets = shown["interfaces"][0]["pool"].as_u64().with_context(|| shown.to_string())?;
        let (after, gso) = on_wire()?;
        ensure!((before..=after).contains(&packets), "{before}, then {packets}, then {after}");
        ensure!(gso > 1000, "{gso} packets in GSO packets");
        let packets = packets as f64;
        let taken = shown["samples"]["taken"].as_u64().with_context(|| shown.to_string())? as f64;
        let expected = packets / 100.0;
        // Six standard deviations of a sample of this size.
        ensure!(
            (taken - expected).abs() < 6.0 * expected.sqrt() + 1.0,
            "{taken} samples of {packets} packets"
        );
        ensure!(shown["samples"]["dropped"].as_u64() == Some(0), "{shown}");
        let errors = router.cli("show errors")?;
        ensure!(errors.contains("sflow packets sampled"), "{errors}");
        let runtime = router.cli("show runtime")?;
        ensure!(runtime.lines().any(|line| line.trim_start().starts_with("sflow ")), "{runtime}");
        router.stop().map(drop)
    }

    /// Switching, changing rates and deleting the interface under traffic disturbs no packet.
    fn settings_change_under_traffic() {
        let lab = Lab::new()?;
        let _collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let mut flow =
            thalweg_smoke::Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(2))?;
        for command in [
            "sflow collector add 127.0.0.1",
            "sflow enable-disable host-eth0",
            "sflow sampling-rate 1",
            "sflow enable-disable host-eth1 10",
            "sflow header-bytes 64",
            "sflow sampling-rate 100",
            "sflow enable-disable host-eth0 disable",
            "sflow polling-interval 1",
            "sflow enable host-eth0",
            "sflow collector del 127.0.0.1",
            "sflow enable host-eth0 disable",
            "sflow enable host-eth1 disable",
        ] {
            router.cli(command)?;
            flow.await_answers(5)?;
        }
        flow.stop()?.without_loss()?;
        router.stop().map(drop)
    }
}
