//! Changes of a device while the router uses it.

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{RawLink, Router, host_pair};
use thalweg_testkit::{Lab, Netns, PingOptions, WAIT_LIMIT, lab_test, ping, wait_until_seen};

/// Returns how often a device's promiscuous mode is wanted.
fn promiscuity(ns: &Netns, device: &str) -> Result<u32> {
    let text = ns.ip(&format!("-d link show dev {device}"))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "promiscuity");
    words.nth(1).and_then(|n| n.parse().ok()).with_context(|| format!("{device}: {text}"))
}

fn own_mac(ns: &Netns, device: &str) -> Result<String> {
    let text = ns.ip(&format!("link show dev {device}"))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "link/ether");
    words.nth(1).map(str::to_owned).with_context(|| format!("{device}: {text}"))
}

lab_test! {
    /// The device goes on under its new name.
    fn renamed() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        lab.router.ip("link set eth1 down")?;
        lab.router.ip("link set eth1 name wan0")?;
        wait_until_seen(WAIT_LIMIT, "the new name", || {
            let shown = router.json("show hardware-interfaces host-eth1")?.to_string();
            ensure!(shown.contains("wan0"), "{shown}");
            Ok(())
        })?;
        router.cli("set interface state host-eth1 down")?;
        router.cli("set interface state host-eth1 up")?;
        wait_until_seen(WAIT_LIMIT, "answers to all pings", || lab.ping_all())?;
        router.stop().map(drop)
    }

    /// Its MTU is the interface's limit, whoever sets it.
    fn with_another_mtu() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let l3_mtu = |want: &str| {
            wait_until_seen(WAIT_LIMIT, "the MTU", || {
                let shown = router.cli("show interface host-eth1")?;
                ensure!(shown.contains(want), "{shown}");
                Ok(())
            })
        };
        let big = PingOptions { size: 1472, dont_fragment: true, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &big)?.all_answered()?;
        lab.router.ip("link set eth1 mtu 1280")?;
        l3_mtu("1280/")?;
        ensure!(ping(&lab.left.ns, lab.right.addr, &big)?.all_answered().is_err(), "it went through");
        let route = lab.left.ns.ip(&format!("route get {}", lab.right.addr))?;
        ensure!(route.contains("mtu 1280"), "{route}");
        lab.router.ip("link set eth1 mtu 1500")?;
        l3_mtu("1500/")?;
        lab.left.ns.ip("route flush cache")?;
        ping(&lab.left.ns, lab.right.addr, &big)?.all_answered()?;
        ensure!(router.interface_counter("host-eth1", "tx_error")? == 0, "frames were refused");
        router.stop().map(drop)
    }

    /// Promiscuous while another address, or all frames, are wanted; not longer.
    fn promiscuous() {
        let lab = Lab::new()?;
        let config = host_pair();
        let mut router = Router::start(&lab.router, &config)?;
        let is = |want: u32, why: &str| {
            let found = promiscuity(&lab.router, "eth1")?;
            ensure!(found == want, "{why}: promiscuity {found}, not {want}");
            Ok(())
        };
        is(1, "another address than the device's")?;
        let own = own_mac(&lab.router, "eth1")?;
        router.cli(&format!("set interface mac address host-eth1 {own}"))?;
        is(0, "the device's own address")?;
        router.cli("set interface promiscuous on host-eth1")?;
        is(1, "promiscuous on")?;
        router.cli("set interface promiscuous off host-eth1")?;
        is(0, "promiscuous off")?;
        router.cli("set interface mac address host-eth1 02:fe:00:00:00:77")?;
        is(1, "another address again")?;
        router.cli("set interface promiscuous on host-eth1")?;
        router.cli("set interface promiscuous off host-eth1")?;
        is(1, "the other address stays")?;
        router.cli(&format!("set interface mac address host-eth1 {own}"))?;
        router.cli("set interface promiscuous on host-eth1")?;
        router.kill_and_start(&config)?;
        is(1, "once, after a crash")?;
        router.stop()?;
        is(0, "without the router")
    }

    /// Frames that come to an interface that is down are neither received nor lost.
    fn flooded_while_down() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        router.cli("set interface state host-eth0 down")?;
        let before = router.interface_counter("host-eth0", "rx_packets")?;
        let frame: Vec<u8> = [[0xff; 6].as_slice(), &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5], &[0; 46]].concat();
        let link = RawLink::open(&lab.left.ns, "eth0")?;
        for _ in 0..20_000 {
            // A full queue of the sender does not matter.
            let _ = link.send(&frame);
        }
        router.cli("set interface state host-eth0 up")?;
        wait_until_seen(WAIT_LIMIT, "answers to all pings", || lab.ping_all())?;
        let missed = router.interface_counter("host-eth0", "rx_miss")?;
        ensure!(missed == 0, "{missed} frames counted as lost");
        let unknown = router.error_count("ethernet-input", "unknown ethernet type")?;
        ensure!(unknown == 0, "{unknown} stale frames received");
        let after = router.interface_counter("host-eth0", "rx_packets")?;
        ensure!(after > before, "nothing was received");
        router.stop().map(drop)
    }

    /// A frame that the device does not take is an error, not sent as well.
    fn without_a_carrier() {
        const FRAMES: u64 = 50;
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli("set interface l2 xconnect host-eth0 host-eth1")?;
        lab.right.ns.ip("link set eth0 down")?;
        let count = |name| router.interface_counter("host-eth1", name);
        let [errors, packets, bytes] = ["tx_error", "tx_packets", "tx_bytes"].map(count);
        let (errors, packets, bytes) = (errors?, packets?, bytes?);
        let frame: Vec<u8> = [[0xff; 6].as_slice(), &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5], &[0; 46]].concat();
        let link = RawLink::open(&lab.left.ns, "eth0")?;
        for _ in 0..FRAMES {
            link.send(&frame)?;
        }
        wait_until_seen(WAIT_LIMIT, "the errors", || {
            let more = count("tx_error")? - errors;
            ensure!(more >= FRAMES, "{more} errors");
            Ok(())
        })?;
        ensure!(count("tx_packets")? == packets, "{} counted as sent", count("tx_packets")? - packets);
        ensure!(count("tx_bytes")? == bytes, "bytes counted as sent");
        let refused = router.error_count("host-eth1-tx", "frame rejected by device")?;
        ensure!(refused >= FRAMES, "{refused} dropped for that reason");
        router.stop().map(drop)
    }
}
