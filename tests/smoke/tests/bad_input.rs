//! Mistakes on the command line and nonsense on the wire: a clear message or a counted drop, and
//! nothing else is disturbed.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Flow, RawLink, Router, hex, host_pair};
use thalweg_testkit::{Lab, WAIT_LIMIT, lab_test, wait_until_seen};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;

/// A command that is wrong, and words that its answer needs.
const MISTAKES: &[(&str, &[&str])] = &[
    ("frobnicate the bits", &["frobnicate"]),
    ("show interfaze", &["interfaze"]),
    ("set interface state host-eth7 up", &["host-eth7"]),
    ("set interface state host-eth0 sideways", &["sideways"]),
    ("set interface state", &["interface"]),
    ("create host-interface name eth7", &["eth7"]),
    ("create host-interface name eth0", &["eth0"]),
    ("create host-interface", &["name"]),
    ("create host-interface name eth0 num-rx-queues 0", &["0"]),
    ("create host-interface name eth0 hw-addr 02:00", &["02:00"]),
    ("delete host-interface name eth7", &["eth7"]),
    ("set interface ip address host-eth0 10.10.1.0/33", &["33"]),
    ("set interface ip address host-eth0 10.10.1.300/24", &["10.10.1.300"]),
    ("set interface ip address host-eth1 10.10.1.5/24", &["10.10.1"]),
    ("set interface ip address host-eth1 10.10.0.5/16", &["10.10"]),
    ("set interface ip address del host-eth1 10.9.9.9/24", &["10.9.9.9"]),
    ("ip route add 16.0.0.0/24 via 192.0.2.99 host-eth9", &["host-eth9"]),
    ("ip route add 16.0.0.0/24", &["via"]),
    ("ip route add 16.0.0.0 via", &[]),
    ("ip route add nonsense via 10.10.2.2", &["nonsense"]),
    ("ip route add 16.0.0.0/24 table 77 via 10.10.2.2", &["77"]),
    ("ip route del 17.0.0.0/24 via 10.10.2.2", &["17.0.0.0/24"]),
    ("ip neighbor host-eth0 10.10.1.77 zz:00:00:00:00:00 static", &["zz:00"]),
    ("set interface mtu 20 host-eth0", &["20"]),
    ("set interface mtu 999999 host-eth0", &["999999"]),
    ("set interface l2 xconnect host-eth0 host-eth0", &["host-eth0"]),
    ("set interface l2 xconnect host-eth0 nowhere", &["nowhere"]),
    ("sflow enable-disable local0", &["physical"]),
    ("sflow enable-disable nowhere", &["nowhere"]),
    ("sflow sampling-rate", &["sampling rate"]),
    ("sflow polling-interval 0", &["0"]),
    ("sflow direction sideways", &["sideways"]),
    ("sflow collector add 10.9.9.999", &["10.9.9.999", "host"]),
    ("trace add ip4-lookup", &[]),
    ("trace add no-such-node 5", &["no-such-node"]),
    ("ping 10.10.2.2 repeat zero", &["zero"]),
    ("ping nobody", &["nobody"]),
    ("ping", &[]),
    ("exec /no/such/file", &["/no/such/file"]),
    ("show interface | json | grep", &[]),
    ("show trace max many", &["many"]),
    ("set host-interface qdisc-bypass host-eth7 enable", &["host-eth7"]),
];

/// Frames that no host should send.
fn nonsense(lab: &Lab, router: MacAddr) -> Result<Vec<Vec<u8>>> {
    let host = lab.left.mac.parse()?;
    let (src, dst) = (lab.left.addr, lab.right.addr);
    let ether = || Packet::new().ether(host, router);
    let good = ether().ipv4(src, dst).udp(1, 2).payload(&[1; 32]).build();
    let with = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        frame
    };
    let mut frames = vec![
        // A header alone, and one byte more.
        good[..14].to_vec(),
        good[..15].to_vec(),
        // Version 5, header lengths of 4 and 60 bytes, total lengths of 5 and 65535 bytes.
        with(14, 0x55),
        with(14, 0x41),
        with(14, 0x4f),
        {
            let mut f = good.clone();
            f[16..18].copy_from_slice(&[0, 5]);
            f
        },
        {
            let mut f = good.clone();
            f[16..18].copy_from_slice(&[0xff, 0xff]);
            f
        },
        // A wrong checksum, no time to live, nonsense addresses.
        with(24, good[24] ^ 0xff),
        ether().ipv4(src, dst).ttl(0).udp(1, 2).build(),
        ether().ipv4([127, 0, 0, 1].into(), dst).udp(1, 2).build(),
        ether().ipv4([224, 0, 0, 1].into(), dst).udp(1, 2).build(),
        ether().ipv4([255, 255, 255, 255].into(), dst).udp(1, 2).build(),
        ether().ipv4(src, [127, 0, 0, 1].into()).udp(1, 2).build(),
        ether().ipv4(src, [240, 0, 0, 1].into()).udp(1, 2).build(),
        ether().ipv4([0, 0, 0, 0].into(), dst).udp(1, 2).build(),
        ether().ipv4(dst, lab.left.gateway).icmp_echo_request(1, 1).build(),
        ether().ipv4(lab.left.gateway, lab.left.gateway).icmp_echo_request(1, 1).build(),
        // Fragments that overlap the end of what a packet can hold.
        ether().ipv4(src, lab.left.gateway).fragment(65_528, false).payload(&[0; 100]).build(),
        ether().ipv4(src, dst).fragment(8, true).payload(&[0; 7]).build(),
        // Options that end too early, or have no length.
        ether().ipv4(src, dst).ip_options(&[7, 39, 4, 0]).udp(1, 2).build(),
        ether().ipv4(src, dst).ip_options(&[0x83, 0, 0, 0]).udp(1, 2).build(),
        // Types without a node, tags, another version under the wrong type. (A tag cut short does
        // not get as far as the router: the kernel, which takes tags off, drops it.)
        ether().ethertype(0xffff).payload(&[0; 46]).build(),
        ether().ethertype(0x0000).payload(&[0; 46]).build(),
        ether().ethertype(0x86dd).payload(&[0x60; 46]).build(),
        ether().ethertype(0x86dd).payload(&good[14..]).build(),
        ether().vlan(4095).vlan(0).vlan(1).ipv4(src, dst).udp(1, 2).build(),
        ether().mpls(3).ipv4(src, dst).udp(1, 2).build(),
        // ARP of odd kinds.
        ether().ethertype(0x0806).payload(&[0; 1]).build(),
        ether().ethertype(0x0806).payload(&[0xff; 28]).build(),
        Packet::arp_request(MacAddr::BROADCAST, src, lab.left.gateway).build(),
        Packet::arp_request(host, lab.left.gateway, lab.left.gateway).build(),
        Packet::arp_request(host, Ipv4Addr::BROADCAST, lab.left.gateway).build(),
        // Packets from nobody, to nobody, from the router itself.
        Packet::new().ether(MacAddr::ZERO, router).ipv4(src, dst).udp(1, 2).build(),
        Packet::new().ether(MacAddr::BROADCAST, router).ipv4(src, dst).udp(1, 2).build(),
        Packet::new().ether(router, router).ipv4(src, dst).udp(1, 2).build(),
        Packet::new().ether(host, MacAddr::BROADCAST).ipv4(src, dst).udp(1, 2).build(),
        // ICMP to the router: cut off, with a wrong checksum, of unknown kinds.
        ether().ipv4(src, lab.left.gateway).protocol(1).payload(&[8]).build(),
        ether().ipv4(src, lab.left.gateway).protocol(1).payload(&[8, 0, 0, 0, 0, 0, 0, 0]).build(),
        ether().ipv4(src, lab.left.gateway).protocol(1).payload(&[200; 64]).build(),
        ether().ipv4(src, lab.left.gateway).protocol(17).payload(&[0, 1]).build(),
        ether().ipv4(src, lab.left.gateway).protocol(255).payload(&[]).build(),
    ];
    // Every prefix of a good packet, whose length field promises more.
    frames.extend((14..good.len()).map(|end| good[..end].to_vec()));
    // The same bytes of noise on every machine.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for n in 0..2000usize {
        let mut frame = good.clone();
        for _ in 0..=n % 5 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = 12 + (state >> 8) as usize % (frame.len() - 12);
            frame[at] = state as u8;
        }
        frames.push(frame);
    }
    Ok(frames)
}

lab_test! {
    /// Each mistake gets an answer that names it; pings go on without a loss meanwhile.
    fn mistakes_are_explained_and_disturb_nothing() {
        let lab = Lab::new()?;
        let mut router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let before = settings(&router)?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(2))?;
        flow.await_answers(5)?;
        for (command, words) in MISTAKES {
            let text = router.refused(command)?;
            for word in *words {
                ensure!(text.contains(word), "`{command}' does not mention {word:?}: {text}");
            }
            ensure!(text.trim().len() > 8, "`{command}' says only {text:?}");
            ensure!(text.lines().count() <= 12, "`{command}' says too much: {text}");
        }
        router.alive()?;
        let after = settings(&router)?;
        ensure!(before == after, "a mistake changed something:\n{before}\nbecame\n{after}");
        flow.await_answers(5)?;
        flow.stop()?.without_loss()?;
        router.stop().map(drop)
    }

    /// The router drops what it must, counts it, answers nothing wild, and forwards the rest.
    fn nonsense_on_the_wire_is_dropped_and_counted() {
        let lab = Lab::new()?;
        let mut router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(2))?;
        flow.await_answers(5)?;
        let received = router.interface_counter("host-eth0", "rx_packets")?;
        let frames = nonsense(&lab, router.mac("host-eth0")?)?;
        let mut sent = received;
        // The packets at once fit into the ring, even on a busy machine.
        for some in frames.chunks(250) {
            for frame in some {
                left.send(frame).with_context(|| format!("send {}", hex(frame)))?;
            }
            sent += some.len() as u64;
            router.await_received("host-eth0", sent)?;
        }
        router.alive()?;
        flow.await_answers(20)?;
        flow.stop()?.without_loss()?;
        router.await_rest()?;
        let errors = router.cli("show errors")?;
        for reason in ["checksum", "length", "version", "ethernet type"] {
            ensure!(errors.contains(reason), "no {reason:?} among the errors:\n{errors}");
        }
        lab.ping_all()?;
        router.stop().map(drop)
    }

    /// The same on an interface that only cross-connects: everything passes, nothing breaks.
    fn nonsense_passes_a_cross_connect() {
        let lab = Lab::new()?;
        let config = thalweg_smoke::Config::empty().commands(
            "create host-interface name eth0
             create host-interface name eth1
             set interface l2 xconnect host-eth0 host-eth1
             set interface l2 xconnect host-eth1 host-eth0
             set interface state host-eth0 up
             set interface state host-eth1 up",
        );
        let mut router = Router::start(&lab.router, &config)?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let frames = nonsense(&lab, router.mac("host-eth0")?)?;
        for (n, some) in frames.chunks(250).enumerate() {
            some.iter().try_for_each(|frame| left.send(frame))?;
            router.await_received("host-eth0", (n * 250 + some.len()) as u64)?;
        }
        wait_until_seen(WAIT_LIMIT, "all frames on the other side", || {
            match router.interface_counter("host-eth1", "tx_packets") {
                Ok(sent) if sent >= frames.len() as u64 => Ok(()),
                other => Err(format!("{other:?} of {}", frames.len())),
            }
        })?;
        router.alive()?;
        router.stop().map(drop)
    }

    /// A second attachment of a device, and a device that vanishes while it is being attached.
    fn one_device_is_attached_once() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let text = router.refused("create host-interface name eth0")?;
        ensure!(text.contains("already"), "{text}");
        let missing = router.refused("create host-interface name ehto")?;
        ensure!(missing.contains("ehto") && missing.contains("eth0"), "{missing}");
        lab.ping_all()?;
        router.stop().map(drop)
    }
}

/// All that is set, in the form in which it is shown, without counters and neighbours' ages.
fn settings(router: &Router) -> Result<String> {
    let mut text = String::new();
    for command in ["show int addr", "show ip fib", "show interface features host-eth0"] {
        text.push_str(&router.cli(command)?);
    }
    let shown = router.json("show interface")?;
    for row in shown.as_array().context("a list")? {
        let row = [&row["name"], &row["admin_up"], &row["mtu"], &row["promiscuous"]];
        text.push_str(&format!("{row:?}\n"));
    }
    Ok(text)
}
