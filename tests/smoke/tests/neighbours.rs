//! ARP: entries age, are refreshed, follow a host's new hardware address, and are bounded.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, ensure};
use thalweg_smoke::{Flow, RawLink, Router, host_pair};
use thalweg_testkit::{Lab, WAIT_LIMIT, lab_test, wait_until_seen};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::{ArpView, Operation};
use thalweg_wire::build::Packet;

/// An ARP request that the router sends, and to which hardware address.
fn request(frame: &[u8], router: MacAddr) -> Option<(MacAddr, Ipv4Addr)> {
    let ether = thalweg_wire::ethernet::EthernetView::parse(frame).ok()?;
    let arp = ArpView::parse(frame.get(14..)?).ok()?;
    let asked = ether.src() == router && arp.operation() == Operation::Request;
    asked.then(|| (ether.dst(), arp.target_ip()))
}

lab_test! {
    /// An entry in use is asked for again, to its own address, before it goes; traffic never stops.
    fn an_entry_in_use_is_refreshed() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli("set ip neighbor-config ip4 age 300")?;
        let right = RawLink::open(&lab.right.ns, "eth0")?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(5))?;
        let (own, mac) = (router.mac("host-eth1")?, lab.right.mac.parse::<MacAddr>()?);
        flow.await_answers(10)?;
        for n in 1..=3 {
            router.cli("set clock adjust 301")?;
            right.receive(WAIT_LIMIT, &format!("refresh {n}"), |frame| {
                let (to, target) = request(frame, own)?;
                (to == mac && target == lab.right.addr).then_some(())
            })?;
            flow.await_answers(10)?;
        }
        flow.stop()?.without_loss()?;
        router.stop().map(drop)
    }

    /// The host announces its new hardware address.
    fn an_announced_new_address_is_followed() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.right.ns.set_sysctl("net/ipv4/conf/eth0/arp_notify", "1")?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(5))?;
        flow.await_answers(10)?;
        lab.right.ns.ip("link set eth0 address 02:00:00:00:02:77")?;
        flow.await_answers(20)?;
        wait_until_seen(WAIT_LIMIT, "the new address", || {
            let shown = router.cli("show ip neighbors").map_err(|e| format!("{e:#}"))?;
            if shown.contains("02:00:00:00:02:77") { Ok(()) } else { Err(shown) }
        })?;
        flow.stop()?;
        router.stop().map(drop)
    }

    /// The host changes its hardware address without a word: the entry fails its refresh, and is
    /// asked for again.
    fn a_silent_new_address_is_found() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli("set ip neighbor-config ip4 age 1")?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(10))?;
        flow.await_answers(10)?;
        lab.right.ns.set_sysctl("net/ipv4/conf/eth0/arp_notify", "0")?;
        lab.right.ns.ip("link set eth0 address 02:00:00:00:02:78")?;
        flow.await_answers(20)?;
        let shown = router.cli("show ip neighbors host-eth1")?;
        ensure!(shown.contains("02:00:00:00:02:78"), "{shown}");
        flow.stop()?;
        router.stop().map(drop)
    }

    /// A static entry is believed without question.
    fn a_static_entry() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let right = RawLink::open(&lab.right.ns, "eth0")?;
        router.cli("ip neighbor host-eth1 10.10.2.50 02:00:00:00:02:50 static")?;
        let frame = Packet::new()
            .ether(lab.left.mac.parse()?, router.mac("host-eth0")?)
            .ipv4(lab.left.addr, [10, 10, 2, 50].into())
            .udp(1000, 2000)
            .payload(b"to a static neighbour")
            .build();
        RawLink::open(&lab.left.ns, "eth0")?.send(&frame)?;
        let own = router.mac("host-eth1")?;
        let (to, asked) = right.receive(WAIT_LIMIT, "the packet", {
            let mut asked = false;
            move |frame| {
                asked |= request(frame, own).is_some();
                frame.ends_with(b"to a static neighbour").then(|| (frame[..6].to_vec(), asked))
            }
        })?;
        ensure!(to == [2, 0, 0, 0, 2, 0x50] && !asked, "sent to {to:02x?}, asked: {asked}");
        let shown = router.json("show ip neighbors")?;
        ensure!(shown.to_string().contains("10.10.2.50"), "{shown}");
        router.cli("set ip neighbor del host-eth1 10.10.2.50 02:00:00:00:02:50")?;
        router.stop().map(drop)
    }

    /// More senders than the table may hold ask for the router: it stays within its limit, counts
    /// what it refuses, and serves those it knows.
    fn a_flood_of_senders() {
        let lab = Lab::new()?;
        let config = host_pair().commands(
            "set interface ip address host-eth0 10.40.0.1/16
             set ip neighbor-config ip4 limit 100 norecycle",
        );
        let router = Router::start(&lab.router, &config)?;
        lab.ping_all()?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(5))?;
        flow.await_answers(5)?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let received = router.interface_counter("host-eth0", "rx_packets")?;
        for n in 0u32..20_000 {
            // The packets at once fit into the ring, even on a busy machine.
            if n.is_multiple_of(250) {
                router.await_received("host-eth0", received + u64::from(n))?;
            }
            let [_, _, c, d] = n.to_be_bytes();
            let mac = MacAddr::new(2, 0xaa, 0, 0, c, d);
            let ip = Ipv4Addr::new(10, 40, c.max(1), d);
            left.send(&Packet::arp_request(mac, ip, [10, 40, 0, 1].into()).build())?;
        }
        flow.await_answers(50)?;
        let shown = router.json("show ip neighbors")?;
        let entries = shown.as_array().map(Vec::len).or_else(|| {
            shown["neighbors"].as_array().map(Vec::len)
        });
        let entries = entries.with_context(|| format!("no list: {shown}"))?;
        ensure!(entries > 2 && entries <= 100, "{entries} entries");
        flow.stop()?.without_loss()?;
        lab.ping_all()?;
        router.stop().map(drop)
    }
}
