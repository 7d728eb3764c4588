//! Linux control plane: the twin of a BVI in whose bridge a pseudowire ends.
//!
//! ```text
//! here ─┐
//! plane ┴ near ═ far ─ there
//! ```

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Bird, Config, RawLink, Router};
use thalweg_testkit::{
    IperfOptions, LinkOptions, Netns, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping, veth,
    wait_until_seen,
};

/// Addresses of the BVI, and of hosts behind the pseudowire and at the bridge.
const US: [u8; 4] = [10, 9, 9, 1];
const THERE: [u8; 4] = [10, 9, 9, 2];
const HERE: [u8; 4] = [10, 9, 9, 3];
/// The core has room for frames with labels and a control word.
const CORE_MTU: u32 = 1600;

struct Wire {
    plane: Netns,
    here: Netns,
    there: Netns,
    near: Router,
    far: Router,
}

impl Wire {
    fn start(workers: usize) -> Result<Wire> {
        let of = |name: &str| Netns::new(format!("lcppw-{name}"));
        let (near, far, plane) = (of("near")?, of("far")?, of("plane")?);
        let (here, there) = (of("here")?, of("there")?);
        plane.ip("link set lo up")?;
        let (plain, core) =
            (LinkOptions::default(), LinkOptions { mtu: CORE_MTU, ..LinkOptions::default() });
        veth((&near, "core", &core), (&far, "core", &core))?;
        veth((&near, "e0", &plain), (&here, "eth0", &plain.clone().address("10.9.9.3/24")))?;
        veth((&far, "e0", &plain), (&there, "eth0", &plain.clone().address("10.9.9.2/24")))?;
        near.capture("core")?;
        let end = |n: u8, other: u8| {
            Config::empty().stanza(&format!("cpu {{ workers {workers} }}")).commands(&format!(
                "create host-interface name core
                 create host-interface name e0
                 set interface ip address host-core 10.0.1.{n}/24
                 set interface state host-core up
                 set interface state host-e0 up
                 mpls table add 0
                 set interface mpls host-core enable
                 mpls tunnel add mpls-tunnel0 l2-only control-word via 10.0.1.{other} host-core out-labels 30{other}
                 mpls local-label add 30{n} eos via l2-input-on mpls-tunnel0 pop-pw-cw
                 set interface state mpls-tunnel0 up"
            ))
        };
        let bridged = end(1, 2).commands(&format!(
            "create bridge-domain 10
             create loopback interface
             set interface mtu packet 1500 loop0
             set interface l2 bridge host-e0 10
             set interface l2 bridge mpls-tunnel0 10
             set interface l2 bridge loop0 10 bvi
             set interface ip address loop0 10.9.9.1/24
             set interface state loop0 up
             lcp lcp-sync on
             lcp default netns {}
             lcp create loop0 host-if bvi0",
            plane.descriptor_path().display()
        ));
        let joined = end(2, 1).commands(
            "set interface l2 xconnect host-e0 mpls-tunnel0
             set interface l2 xconnect mpls-tunnel0 host-e0",
        );
        let (near, far) = (Router::start(&near, &bridged)?, Router::start(&far, &joined)?);
        let wire = Wire { plane, here, there, near, far };
        wait_until_seen(WAIT_LIMIT, "the twin", || {
            let shown = wire.plane.ip("-br address show dev bvi0")?;
            ensure!(shown.contains("10.9.9.1/24") && shown.contains("UP"), "{shown}");
            Ok(())
        })?;
        Ok(wire)
    }

    /// Waits until all know each other.
    fn reach(&self) -> Result<()> {
        let one = PingOptions { count: 1, ..PingOptions::default() };
        for (from, to) in
            [(&self.there, US), (&self.here, US), (&self.plane, THERE), (&self.plane, HERE)]
        {
            wait_until_seen(WAIT_LIMIT, &format!("an answer from {to:?}"), || {
                let got = ping(from, to, &one)?;
                ensure!(got.received == 1, "{}: {}", from.label(), got.text);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn stop(self) -> Result<()> {
        self.near.stop()?;
        self.far.stop().map(drop)
    }
}

lab_test! {
    /// The router and its twin speak with hosts behind the pseudowire, in frames as long as there
    /// may be, and by TCP both ways.
    fn a_twin_speaks_through_a_pseudowire() {
        for workers in [1, 2] {
            let wire = Wire::start(workers)?;
            wire.reach()?;
            for size in [56, 1472] {
                let options = PingOptions { size, dont_fragment: true, ..PingOptions::default() };
                for (from, to) in [
                    (&wire.there, US),
                    (&wire.there, HERE),
                    (&wire.plane, THERE),
                    (&wire.plane, HERE),
                ] {
                    let who = format!("{} to {to:?}, {size} bytes", from.label());
                    ping(from, to, &options)?.all_answered().context(who)?;
                }
            }
            let long = PingOptions { size: 4000, may_fragment: true, ..PingOptions::default() };
            ping(&wire.there, US, &long)?.all_answered().context("fragments")?;
            ping(&wire.plane, THERE, &long)?.all_answered().context("fragments of the twin")?;
            for host in [&wire.there, &wire.here] {
                for reverse in [false, true] {
                    let options = IperfOptions { reverse, ..IperfOptions::default() };
                    let result = iperf3(host, &wire.plane, US, &options)?;
                    let who = host.label();
                    ensure!(result.bits_per_s > 1e6, "{who}, reverse {reverse}: {result:?}");
                }
            }
            for ns in [&wire.there, &wire.here, &wire.plane] {
                ensure!(ns.snmp()?["Tcp.InErrs"] == 0, "{}: TCP input errors", ns.label());
            }
            let why = "packet too long for the tunnel's path";
            ensure!(wire.near.error_count("mpls-tunnel-tx", why)? == 0);
            wire.stop()?;
        }
        Ok(())
    }

    /// Frames are the same on both sides, byte for byte.
    fn frames_pass_a_pseudowire_as_they_were_written() {
        let wire = Wire::start(1)?;
        wire.reach()?;
        wire.near.cli("lcp ethertype enable lldp")?;
        let there = RawLink::open(&wire.there, "eth0")?;
        let twin = RawLink::open(&wire.plane, "bvi0")?;
        let us = wire.near.mac("loop0")?;
        let passes = |from: &RawLink, to: &RawLink, frame: &[u8]| {
            from.send(frame)?;
            to.receive(WAIT_LIMIT, "the frame", |seen| (seen == frame).then_some(()))
                .with_context(|| format!("{frame:02x?}"))
        };
        let ospf = |from: [u8; 4], to: [u8; 4], n: u8| {
            let mut packet = vec![0x45, 0xc0, 0, 60, 0, n, 0, 0, 1, 89];
            packet.extend([0, 0].into_iter().chain(from).chain(to));
            let sum = thalweg_wire::checksum::checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend([7; 40]);
            packet
        };
        let (peer, group) = ([2, 0, 0, 0, 0x77, 1], [1, 0, 0x5e, 0, 0, 5]);
        for (n, (mac, to)) in [(group, [224, 0, 0, 5]), (us.0, US)].into_iter().enumerate() {
            let frame = [&mac[..], &peer, &[8, 0], &ospf(THERE, to, n as u8)].concat();
            passes(&there, &twin, &frame)?;
        }
        for (n, (mac, to)) in [(group, [224, 0, 0, 5]), (peer, THERE)].into_iter().enumerate() {
            let frame = [&mac[..], &us.0, &[8, 0], &ospf(US, to, 9 + n as u8)].concat();
            passes(&twin, &there, &frame)?;
        }
        wire.stop()
    }

    /// A routing daemon at the twin has a session and an OSPF neighbour behind the pseudowire.
    fn bird_through_a_pseudowire() {
        let wire = Wire::start(2)?;
        wire.reach()?;
        let config = |id: &str, dev: &str, local: u32, peer: &str, remote: u32| format!(
            "router id {id};\nprotocol device {{ scan time 1; }}\n\
             protocol bgp b4 {{ local as {local}; neighbor {peer} as {remote}; ttl security on; \
             connect delay time 1; connect retry time 1; error wait time 1, 2; \
             ipv4 {{ import all; export none; }}; }}\n\
             protocol ospf v2 o4 {{ ipv4 {{ import none; }}; \
             area 0 {{ interface \"{dev}\" {{ hello 1; dead 4; }}; }}; }}\n"
        );
        let us = config("10.9.9.1", "bvi0", 65_001, "10.9.9.2", 65_002);
        let ours = Bird::start(&wire.plane, &us)?;
        let them = config("10.9.9.2", "eth0", 65_002, "10.9.9.1", 65_001);
        let theirs = Bird::start(&wire.there, &them)?;
        for (command, word) in [("show protocols b4", "Established"), ("show ospf neighbors", "Full/")] {
            wait_until_seen(WAIT_LIMIT, word, || {
                let text = ours.birdc(command).map_err(|e| e.to_string())?;
                if text.contains(word) { Ok(()) } else { Err(text) }
            })
            .with_context(|| format!("{}\n{}", ours.said(), theirs.said()))?;
        }
        wire.stop()
    }
}
