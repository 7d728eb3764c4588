//! Every form of host interface: versions, several queues, small rings.

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Router, host_pair_with};
use thalweg_testkit::{
    Lab, LabOptions, Offloads, PingOptions, WAIT_LIMIT, lab_test, ping, wait_until_seen,
};

use crate::throughput::{WORKING_BITS_PER_S, tcp_both_ways, tcp_reaches};

fn works_with(words: &str, lab: &LabOptions, stanza: &str) -> Result<()> {
    let lab = Lab::build(lab)?;
    let config = host_pair_with(words).stanza(stanza);
    let router = Router::start(&lab.router, &config)?;
    lab.ping_all().with_context(|| format!("with `{words}'"))?;
    tcp_both_ways(&lab).with_context(|| format!("with `{words}'"))?;
    let hardware = router.cli("show hardware-interfaces host-eth0")?;
    let version = if words.contains("v3") { "V3" } else { "V2" };
    ensure!(hardware.to_uppercase().contains(version), "{words}: {hardware}");
    router.stop().map(drop)
}

fn plain() -> LabOptions {
    LabOptions { offloads: Offloads::ON, ..LabOptions::measured() }
}

lab_test! {
    fn version_2() {
        works_with("v2", &plain(), "")
    }

    fn version_3() {
        works_with("v3", &plain(), "")
    }

    fn small_rings() {
        let words = "rx-size 2048 tx-size 2048 rx-per-block 32 tx-per-block 32";
        works_with(words, &LabOptions::default(), "")
    }

    fn through_the_queueing_discipline() {
        works_with("qdisc-bypass-disable", &plain(), "")
    }

    fn without_offloads() {
        works_with("cksum-gso-disable", &LabOptions::default(), "")
    }

    fn several_queues() {
        works_with("num-rx-queues 2 num-tx-queues 2", &LabOptions { queues: 2, ..plain() }, "")
    }

    /// However the worker waits for them, packets pass.
    fn receive_modes() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair_with(""))?;
        for mode in ["polling", "interrupt", "adaptive"] {
            for interface in ["host-eth0", "host-eth1"] {
                router.cli(&format!("set interface rx-mode {interface} {mode}"))?;
            }
            let placement = router.cli("show interface rx-placement")?;
            ensure!(placement.matches(mode).count() == 2, "{mode}: {placement}");
            // `ping` waits for its last answer for twice the longest time seen only, and a worker
            // that polls is in the scheduler's hands where others want its processor.
            let what = format!("answers to all pings, {mode}");
            wait_until_seen(WAIT_LIMIT, &what, || lab.ping_all())?;
        }
        let refused = router.refused("set interface rx-mode host-eth0 queue 1 polling")?;
        ensure!(refused.contains("between 0 and 0, not 1"), "{refused}");
        router.stop().map(drop)
    }

    /// Each worker takes a queue of each interface, and flows keep their order.
    fn several_queues_and_workers() {
        let options = LabOptions { queues: 2, ..LabOptions::default() };
        let lab = Lab::build(&options)?;
        let config = host_pair_with("num-rx-queues 2").stanza("cpu { workers 2 }");
        let router = Router::start(&lab.router, &config)?;
        let threads = router.cli("show threads")?;
        ensure!(threads.lines().filter(|line| line.contains("workers")).count() == 2, "{threads}");
        let placement = router.cli("show interface rx-placement")?;
        ensure!(placement.matches("host-eth0").count() >= 2, "{placement}");
        lab.ping_all()?;
        let parallel = thalweg_testkit::IperfOptions { parallel: 8, ..Default::default() };
        tcp_reaches(WORKING_BITS_PER_S, (&lab.left.ns, &lab.right), &parallel)?;
        let runtime = router.json("show runtime")?;
        let busy = runtime.to_string().matches("\"af-packet-input\"").count();
        ensure!(busy >= 2, "only {busy} workers receive: {runtime}");
        router.stop().map(drop)
    }

    /// A device without Ethernet headers: the router at one end of a tunnel, a host at the other.
    fn bare_ip() {
        let lab = Lab::new()?;
        let words = ["TUN,tun-name=tun0,iff-no-pi,iff-up", "TUN,tun-name=tun1,iff-no-pi,iff-up"];
        let _tunnel = lab.router.spawn("socat", &words)?;
        wait_until_seen(WAIT_LIMIT, "the tunnel", || {
            lab.router.ip("link show dev tun0")?;
            lab.router.ip("link show dev tun1").map(drop)
        })?;
        let far = &lab.right.ns;
        lab.router.ip(&format!("link set tun1 netns {}", far.path().display()))?;
        far.ip("address add 10.30.0.2/24 dev tun1")?;
        far.ip("link set tun1 up")?;
        far.ip("route replace 10.10.1.0/24 via 10.30.0.1")?;
        lab.left.ns.ip("route replace 10.30.0.0/24 via 10.10.1.1")?;
        let config = host_pair_with("").commands(
            "create host-interface name tun0 mode ip
             set interface ip address host-tun0 10.30.0.1/24
             set interface state host-tun0 up
             trace add af-packet-input 4",
        );
        let router = Router::start(&lab.router, &config)?;
        let peer = std::net::Ipv4Addr::new(10, 30, 0, 2);
        ping(&lab.left.ns, peer, &PingOptions::default())?.all_answered()?;
        let trace = router.cli("show trace")?;
        ensure!(trace.contains("ip4-input") && trace.contains("host-tun0"), "{trace}");
        let result = thalweg_testkit::iperf3(&lab.left.ns, far, peer, &Default::default())?;
        ensure!(result.bits_per_s > 1e6, "{result:?}");
        // Big packets of the host's own making come back as they left.
        let big = PingOptions { size: 1400, ..PingOptions::default() };
        ping(&lab.left.ns, peer, &big)?.all_answered()?;
        for (words, why) in [
            ("name eth0 mode ip", "carries Ethernet frames"),
            ("name tun0", "does not carry Ethernet frames"),
        ] {
            let refused = router.refused(&format!("create host-interface {words}"))?;
            ensure!(refused.contains(why), "{words}: {refused}");
        }
        router.stop().map(drop)
    }

    /// A hardware address of the user's choice.
    fn another_hardware_address() {
        let lab = Lab::new()?;
        let config = host_pair_with("").commands(
            "delete host-interface name eth0
             create host-interface name eth0 hw-addr 02:fe:12:34:56:78
             set interface ip address host-eth0 10.10.1.1/24
             set interface state host-eth0 up",
        );
        let router = Router::start(&lab.router, &config)?;
        ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
        let neighbours = lab.left.ns.ip("neighbor show dev eth0")?;
        ensure!(neighbours.contains("02:fe:12:34:56:78"), "{neighbours}");
        router.stop().map(drop)
    }
}
