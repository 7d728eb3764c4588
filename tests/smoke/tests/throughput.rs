//! TCP and UDP through the router, with and without the kernel's offloads.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use thalweg_smoke::{Router, host_pair};
use thalweg_testkit::{
    IperfOptions, IperfResult, Lab, LabOptions, Netns, Offloads, Side, iperf3, lab_test,
    set_offloads,
};

/// Far below what the slowest machine forwards, far above what a broken path lets through: a
/// connection whose every segment has to be sent twice makes less than a megabit.
pub const WORKING_BITS_PER_S: f64 = 50e6;

/// Number of times that a rate or a loss is measured before it counts as bad. A run may have a bad
/// moment when other programs keep the processors busy; a broken path has no good one.
const RUNS: usize = 6;

/// TCP from left to right and from right to left.
pub fn tcp_both_ways(lab: &Lab) -> Result<()> {
    for reverse in [false, true] {
        let options = IperfOptions { reverse, ..IperfOptions::default() };
        tcp_reaches(WORKING_BITS_PER_S, (&lab.left.ns, &lab.right), &options)?;
    }
    Ok(())
}

/// TCP from a client to a host, until a run has at least this rate.
pub fn tcp_reaches(
    bits_per_s: f64,
    (client, server): (&Netns, &Side),
    options: &IperfOptions,
) -> Result<IperfResult> {
    let mut found = Vec::new();
    for _ in 0..RUNS {
        let result = iperf3(client, &server.ns, server.addr, options)?;
        if result.bits_per_s > bits_per_s {
            return Ok(result);
        }
        let rate = format!("{:.1} Mbit/s", result.bits_per_s / 1e6);
        found.push(format!("{rate}, {:?} retransmits", result.retransmits));
    }
    bail!("not {:.1} Mbit/s but {found:?}, reverse: {}", bits_per_s / 1e6, options.reverse)
}

/// Returns the rate of a path that works while something else goes on, in bits per second:
/// [`WORKING_BITS_PER_S`], or a fourth of what it carries alone where the processors are too busy
/// for that.
pub fn working_rate(lab: &Lab) -> Result<f64> {
    let options = IperfOptions::default();
    let alone = iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &options)?.bits_per_s;
    Ok(WORKING_BITS_PER_S.min(alone / 4.0))
}

/// UDP from a client to a host, until a run loses at most one of `one_of` datagrams between the
/// two; none at all with `None`.
pub fn udp_arrives(
    one_of: Option<u64>,
    (client, server): (&Netns, &Side),
    options: &IperfOptions,
) -> Result<u64> {
    let mut found = Vec::new();
    for _ in 0..RUNS {
        let result = iperf3(client, &server.ns, server.addr, options)?;
        let packets = result.packets.context("iperf3 tells packets")?;
        // The generator sends in bursts; what is lost is counted by the router or by nobody.
        let lost = result.lost_on_the_way().context("iperf3 tells what was lost")?;
        if lost == 0 || one_of.is_some_and(|share| lost * share <= packets) {
            return Ok(packets);
        }
        found.push(format!("{lost} of {packets}"));
    }
    bail!("datagrams lost, reverse: {}: {found:?}", options.reverse)
}

fn tcp_with(offloads: Offloads) -> Result<()> {
    let lab = Lab::build(&LabOptions { offloads, ..LabOptions::measured() })?;
    let router = Router::start(&lab.router, &host_pair())?;
    tcp_both_ways(&lab)?;
    if offloads == Offloads::OFF {
        // The kernel cut them into what they were, as the checksums tell.
        for side in [&lab.left, &lab.right] {
            let node = format!("host-{}-tx", side.router_dev);
            let joined = router.error_count(&node, "TCP segments coalesced (GRO)")?;
            ensure!(joined > 0, "{node}: no segments went together");
        }
    }
    for side in [&lab.left, &lab.right] {
        let snmp = side.ns.snmp()?;
        ensure!(snmp["Tcp.InErrs"] == 0, "{}: TCP input errors", side.ns.label());
        ensure!(snmp["Tcp.InCsumErrors"] == 0, "{}: bad TCP checksums", side.ns.label());
        ensure!(snmp["Ip.InHdrErrors"] == 0, "{}: bad IP headers", side.ns.label());
    }
    router.stop().map(drop)
}

lab_test! {
    /// Hosts on veth have the same offloads: checksums left to the receiver, segments of up to 64
    /// KiB.
    fn tcp_with_offloads_on() {
        tcp_with(Offloads::ON)
    }

    fn tcp_with_offloads_off() {
        tcp_with(Offloads::OFF)
    }

    /// The left host sends GSO packets, and the router's device on the right cuts none: it did
    /// when the router took it, but was set otherwise since.
    fn tcp_from_offloads_on_to_off() {
        let lab = Lab::build(&LabOptions { offloads: Offloads::ON, ..LabOptions::measured() })?;
        let router = Router::start(&lab.router, &host_pair())?;
        tcp_both_ways(&lab)?;
        for bypass in ["enable", "disable", "enable"] {
            set_offloads(&lab.right.ns, lab.right.dev, Offloads::OFF)?;
            set_offloads(&lab.router, lab.right.router_dev, Offloads::OFF)?;
            router.cli(&format!("set host-interface qdisc-bypass host-eth1 {bypass}"))?;
            tcp_both_ways(&lab).with_context(|| format!("offloads off, bypass {bypass}"))?;
            set_offloads(&lab.right.ns, lab.right.dev, Offloads::ON)?;
            set_offloads(&lab.router, lab.right.router_dev, Offloads::ON)?;
        }
        tcp_both_ways(&lab)?;
        router.stop().map(drop)
    }

    /// Frame kernels of every level, and none. One that the processor lacks is replaced by the
    /// next.
    fn tcp_on_every_level_of_kernels() {
        for level in ["per-packet", "scalar", "avx2", "avx512"] {
            let lab = Lab::build(&LabOptions { offloads: Offloads::OFF, ..LabOptions::measured() })?;
            let router = Router::start(&lab.router, &host_pair().kernels(level))?;
            let cpu = router.cli("show cpu")?;
            ensure!(cpu.contains(level) || level.starts_with("avx"), "{level}: {cpu}");
            tcp_both_ways(&lab).with_context(|| level)?;
            router.stop()?;
        }
        Ok(())
    }

    fn udp_without_loss() {
        let lab = Lab::build(&LabOptions::measured())?;
        let router = Router::start(&lab.router, &host_pair())?;
        for (length, reverse) in [(1400, false), (64, false), (1400, true)] {
            let options = IperfOptions {
                udp_bits_per_s: Some(u64::from(length) * 8 * 5000),
                length: Some(length),
                reverse,
                ..IperfOptions::default()
            };
            let packets = udp_arrives(Some(1000), (&lab.left.ns, &lab.right), &options)?;
            ensure!(packets > 2000, "{packets} datagrams of {length} bytes sent");
        }
        router.stop().map(drop)
    }

    fn many_connections_at_once() {
        let lab = Lab::build(&LabOptions { offloads: Offloads::ON, ..LabOptions::measured() })?;
        let router = Router::start(&lab.router, &host_pair())?;
        let options = IperfOptions {
            parallel: 16,
            duration: Duration::from_secs(2),
            ..IperfOptions::default()
        };
        let result = tcp_reaches(WORKING_BITS_PER_S, (&lab.left.ns, &lab.right), &options)?;
        let streams = result.report["end"]["streams"].as_array().context("streams")?.clone();
        ensure!(streams.len() == 16, "{} streams", streams.len());
        for stream in &streams {
            let bytes = stream["receiver"]["bytes"].as_u64().unwrap_or(0);
            ensure!(bytes > 0, "a connection starved: {stream}");
        }
        router.stop().map(drop)
    }
}
