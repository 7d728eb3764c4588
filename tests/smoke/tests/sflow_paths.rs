//! Samples of packets that bridge domains forward and that are translated: they tell where these
//! went, and as what.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use thalweg_sflow::{Datagram, FlowRecord, Interface, Sample};
use thalweg_smoke::{Collector, Config, Router, host_pair, thalweg};
use thalweg_testkit::{
    Capture, Cmd, Lab, LabOptions, Middle, PingOptions, lab_test, ping, wait_until_seen,
};

use crate::sflow::{index_of, no_complaints};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;
const SAMPLING: &str = "sflow collector add 127.0.0.1
     sflow agent-address 10.10.1.1
     sflow sampling-rate 1
     sflow enable host-eth0";

/// A sampled packet.
#[derive(Debug, Default)]
struct Seen {
    source: u32,
    output: Option<Interface>,
    header: Vec<u8>,
    /// Destination's prefix length, if it was routed.
    routed: Option<u32>,
    /// Addresses, and ports, that it left with.
    nat: Option<(IpAddr, IpAddr)>,
    ports: Option<(u32, u32)>,
}

impl Seen {
    fn all(bytes: &[u8]) -> Result<Vec<Seen>> {
        let datagram = Datagram::parse(bytes)?;
        datagram.check_end()?;
        let mut all = Vec::new();
        for sample in datagram.samples() {
            let Sample::Flow(sample) = sample? else { continue };
            let (source, output) = (sample.source.index, Some(sample.output));
            let mut seen = Seen { source, output, ..Seen::default() };
            for record in sample.records.clone() {
                match record? {
                    FlowRecord::RawHeader(raw) => seen.header = raw.header.to_vec(),
                    FlowRecord::Router(r) => seen.routed = Some(r.destination_mask),
                    FlowRecord::Nat(n) => seen.nat = n.source.0.zip(n.destination.0),
                    FlowRecord::NatPort(p) => seen.ports = Some((p.source, p.destination)),
                    other => bail!("{other:?}"),
                }
            }
            all.push(seen);
        }
        Ok(all)
    }

    /// An ICMP echo request.
    fn is_ping(&self) -> bool {
        self.header.get(12..14) == Some(&[8, 0]) && self.header.get(34) == Some(&8)
    }

    /// Source and destination address, and ports, of UDP.
    fn udp(&self) -> Option<(IpAddr, IpAddr, u32, u32)> {
        let h = self.header.first_chunk::<38>()?;
        let address = |at: usize| IpAddr::from([h[at], h[at + 1], h[at + 2], h[at + 3]]);
        let port = |at: usize| u32::from(u16::from_be_bytes([h[at], h[at + 1]]));
        let udp = h[12..14] == [8, 0] && h[23] == 17;
        udp.then(|| (address(26), address(30), port(34), port(36)))
    }
}

/// Waits for this number of samples of pings with this output.
fn pings(collector: &Collector, count: usize, output: Interface) -> Result<()> {
    let (mut found, mut others) = (0, Vec::new());
    collector
        .receive(LIMIT, "samples of pings", |bytes| {
            for seen in Seen::all(bytes)?.into_iter().filter(Seen::is_ping) {
                ensure!(seen.routed.is_none() && seen.nat.is_none(), "{seen:?}");
                if seen.output == Some(output) { found += 1 } else { others.push(seen.output) }
            }
            Ok((found >= count).then_some(()))
        })
        .with_context(|| format!("{found} of {count} went to {output:?}, others {others:?}"))
}

/// Returns the output of a decoder of datagrams.
fn decoded(pcap: &Path) -> Result<String> {
    Cmd::new(thalweg()?).args(["sflow", "decode", "-r"]).arg(pcap).output()
}

lab_test! {
    /// Samples show bridged packets that go to one port, to several, to none.
    fn samples_tell_where_bridges_sent_packets() {
        let lab = Lab::build(&LabOptions { middle: Middle::Bridge, ..LabOptions::default() })?;
        let collector = Collector::listen(&lab.router)?;
        let config = Config::empty().commands(
            "create host-interface name eth0
             create host-interface name eth1
             create packet-generator interface pg0
             create bridge-domain 10
             set interface l2 bridge host-eth0 10
             set interface l2 bridge host-eth1 10
             set interface l2 bridge pg0 10
             set interface state host-eth0 up
             set interface state host-eth1 up
             set interface state pg0 up",
        );
        let router = Router::start(&lab.router, &config.commands(SAMPLING))?;
        let right = index_of(&router, "host-eth1")?;
        let few = PingOptions { count: 3, ..PingOptions::default() };
        // Let both hosts know each other, and the bridge know both.
        ping(&lab.left.ns, lab.right.addr, &few)?.all_answered()?;
        ping(&lab.left.ns, lab.right.addr, &few)?.all_answered()?;
        pings(&collector, 3, Interface::Index(right))?;
        let pcap = router.dir().join("flooded.pcap");
        let capture = Capture::start(&lab.router, "lo", &pcap, "udp port 6343")?;
        router.cli("set bridge-domain learn 10 disable\nclear l2fib")?;
        ping(&lab.left.ns, lab.right.addr, &few)?.all_answered()?;
        pings(&collector, 3, Interface::Multiple(2))?;
        capture.stop()?;
        no_complaints(&pcap)?;
        let text = decoded(&pcap)?;
        ensure!(text.contains("outputPort multiple 2"), "{text}");
        // One of two ports is left: that is no flood to several.
        router.cli("set interface l3 pg0")?;
        ping(&lab.left.ns, lab.right.addr, &few)?.all_answered()?;
        pings(&collector, 3, Interface::Index(right))?;
        router.cli("set bridge-domain uu-flood 10 disable")?;
        let lost = ping(&lab.left.ns, lab.right.addr, &PingOptions::unanswered(3))?;
        ensure!(lost.received == 0, "{lost:?}");
        pings(&collector, 3, Interface::Discarded(284))?;
        router.stop().map(drop)
    }

    /// Packets go out of the inside and back in, translated before the route is looked up and on
    /// the way out.
    fn samples_tell_translations() {
        for output_feature in [false, true] {
            let lab = Lab::new()?;
            let collector = Collector::listen(&lab.router)?;
            let shared: Ipv4Addr = "10.10.2.100".parse()?;
            let feature = match output_feature {
                true => "set interface nat44 out host-eth1 output-feature",
                false => "set interface nat44 in host-eth0 out host-eth1",
            };
            let config = host_pair().commands(SAMPLING).commands(&format!(
                "sflow enable host-eth1
                 nat44 plugin enable sessions 1000
                 nat44 add address {shared}
                 {feature}"
            ));
            let router = Router::start(&lab.router, &config)?;
            let pcap = router.dir().join("translated.pcap");
            let capture = Capture::start(&lab.router, "lo", &pcap, "udp port 6343")?;
            translations(&lab, &router, &collector, shared)
                .with_context(|| format!("{feature}: {:?}", router.cli("show nat44 sessions")))?;
            wait_until_seen(LIMIT, "the samples in the capture", || {
                let text = decoded(&pcap).map_err(|e| format!("{e:#}"))?;
                let there = text.contains("extendedType NAT PORT");
                if there { Ok(()) } else { Err(text) }
            })?;
            capture.stop()?;
            no_complaints(&pcap)?;
            let text = decoded(&pcap)?;
            ensure!(text.contains(&format!("nat_src {shared}")), "{text}");
            let wireshark = Cmd::new("tshark")
                .args(["-n", "-V", "-d", "udp.port==6343,sflow", "-r"])
                .arg(&pcap)
                .output()?;
            ensure!(wireshark.contains("Extended NAT data"), "{wireshark}");
            router.stop()?;
        }
        Ok(())
    }
}

fn translations(lab: &Lab, router: &Router, collector: &Collector, shared: Ipv4Addr) -> Result<()> {
    let (left, right) = (index_of(router, "host-eth0")?, index_of(router, "host-eth1")?);
    // Resolve the neighbours' addresses first.
    ping(&lab.left.ns, lab.right.addr, &PingOptions { count: 3, ..PingOptions::default() })?
        .all_answered()?;
    let server = lab.right.ns.run(|| UdpSocket::bind((lab.right.addr, 5300)))??;
    server.set_read_timeout(Some(LIMIT))?;
    let client = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
    client.set_read_timeout(Some(LIMIT))?;
    let inside = u32::from(client.local_addr()?.port());
    client.send_to(b"question", (lab.right.addr, 5300))?;
    let (_, peer) = server.recv_from(&mut [0; 100])?;
    ensure!(peer.ip() == shared, "the outside saw {peer}");
    server.send_to(b"answer", peer)?;
    client.recv_from(&mut [0; 100])?;
    let outside = u32::from(peer.port());
    let (own, far): (IpAddr, IpAddr) = (lab.left.addr.into(), lab.right.addr.into());
    let (mut question, mut answer) = (false, false);
    collector.receive(LIMIT, "both ways", |bytes| {
        for seen in Seen::all(bytes)? {
            let Some(udp) = seen.udp() else { continue };
            if udp == (own, far, inside, 5300) {
                ensure!((seen.source, seen.output) == (left, Some(Interface::Index(right))));
                ensure!(seen.nat == Some((shared.into(), far)), "{seen:?}");
                ensure!(seen.ports == Some((outside, 5300)), "{seen:?}");
                question = true;
            } else if udp == (far, shared.into(), 5300, outside) {
                ensure!((seen.source, seen.output) == (right, Some(Interface::Index(left))));
                ensure!(seen.nat == Some((far, own)), "{seen:?}");
                ensure!(seen.ports == Some((5300, inside)), "{seen:?}");
                answer = true;
            }
            ensure!(seen.routed.is_some_and(|mask| (24..=32).contains(&mask)), "{seen:?}");
        }
        Ok((question && answer).then_some(()))
    })
}
