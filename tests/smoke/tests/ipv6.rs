//! IPv6, with the kernel's stack on both sides.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_sflow::{Datagram, FlowRecord, Interface, Sample};
use thalweg_smoke::{Collector, Config, RawLink, Router, host_pair};
use thalweg_testkit::{IperfOptions, Lab, PingOptions, Side, WAIT_LIMIT, iperf3, lab_test, ping};
use thalweg_wire::ipv6::Ipv6Repr;

use crate::sflow::index_of;
use crate::throughput::WORKING_BITS_PER_S;

/// The host on side `n`.
pub(crate) fn host(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, 2)
}

/// The router's address on side `n`.
pub(crate) fn gateway(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, 1)
}

/// Lets a host of the lab speak IPv6, by an address that is not tested before it is used.
fn speak(side: &Side, n: u16) -> Result<()> {
    // Its link-local address, too, is used at once.
    for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
        for dev in ["all", "eth0"] {
            side.ns.set_sysctl(&format!("net/ipv6/conf/{dev}/{what}"), value)?;
        }
    }
    side.ns.ip(&format!("-6 address add {}/64 dev eth0 nodad", host(n)))?;
    side.ns.ip(&format!("-6 route add default via {}", gateway(n)))?;
    Ok(())
}

/// A router of both versions between both hosts.
pub(crate) fn start(lab: &Lab) -> Result<Router> {
    speak(&lab.left, 1)?;
    speak(&lab.right, 2)?;
    Router::start(&lab.router, &both())
}

fn both() -> Config {
    host_pair().commands(&format!(
        "set interface ip address host-eth0 {}/64
         set interface ip address host-eth1 {}/64",
        gateway(1),
        gateway(2)
    ))
}

lab_test! {
    /// Neighbours are found both ways, and not even the first packet is lost.
    fn hosts_ping_each_other_and_the_router() {
        let lab = Lab::new()?;
        let router = start(&lab)?;
        let once = PingOptions { count: 1, ..PingOptions::default() };
        ping(&lab.left.ns, host(2), &once)?.all_answered()?;
        let result = ping(&lab.right.ns, host(1), &PingOptions::default())?;
        result.all_answered()?;
        ensure!(result.ttls.iter().all(|ttl| *ttl == 63), "hop limits {:?}", result.ttls);
        for size in [0, 1, 56, 511, 1452] {
            let options = PingOptions { size, ..PingOptions::default() };
            ping(&lab.left.ns, host(2), &options)?.all_answered()?;
        }
        for to in [gateway(1), gateway(2)] {
            ping(&lab.left.ns, to, &PingOptions::default())?.all_answered()?;
        }
        let text = router.cli("show ip6 neighbors")?;
        ensure!(text.contains("2001:db8:1::2") && text.contains("2001:db8:2::2"), "{text}");
        router.stop().map(drop)
    }

    /// The router's own ping, to an address of its tables and to one of a link.
    fn the_router_pings() {
        let lab = Lab::new()?;
        let router = start(&lab)?;
        let text = router.cli("ping 2001:db8:2::2 repeat 5 interval 0.01")?;
        ensure!(text.contains("5 sent, 5 received, 0% packet loss"), "{text}");
        ensure!(text.contains("116 bytes from 2001:db8:2::2: icmp_seq=1 ttl=64"), "{text}");
        let own = lab.left.ns.ip("-6 -o address show dev eth0 scope link")?;
        let own = own.split_whitespace().find_map(|word| word.strip_suffix("/64"));
        let own = own.context("the host has no link-local address")?;
        let text = router.cli(&format!("ping {own} source host-eth0 repeat 5 interval 0.01"))?;
        ensure!(text.contains("5 sent, 5 received, 0% packet loss"), "{text}");
        let text = router.refused(&format!("ping {own} repeat 1"))?;
        ensure!(text.contains("source <interface>"), "{text}");
        // The other way round works as well.
        let text = router.cli("show ip6 interface host-eth0")?;
        let ours = text.lines().map(str::trim).find(|line| line.starts_with("fe80::"));
        let ours = format!("{}%eth0", ours.context("the router has no link-local address")?);
        let ping = lab.left.ns.command("ping").args(["-c", "1", "-W", "5", &ours]);
        let text = ping.output()?;
        ensure!(text.contains("1 received"), "{text}");
        router.stop().map(drop)
    }

    /// A packet that is too long for the next link is answered, and TCP finds its size.
    fn the_mtu_of_the_path_is_found() {
        let lab = Lab::new()?;
        let router = start(&lab)?;
        router.cli("set interface mtu packet 1400 host-eth1")?;
        let long = PingOptions { size: 1400, dont_fragment: true, count: 1, ..PingOptions::default() };
        let result = ping(&lab.left.ns, host(2), &long)?;
        ensure!(result.received == 0, "{result:?}");
        let route = lab.left.ns.ip(&format!("-6 route get {}", host(2)))?;
        ensure!(route.contains("mtu 1400"), "{route}");
        let options = IperfOptions { duration: Duration::from_secs(1), ..IperfOptions::default() };
        let result = iperf3(&lab.left.ns, &lab.right.ns, host(2), &options)?;
        ensure!(result.bits_per_s > WORKING_BITS_PER_S, "{result:?}");
        router.stop().map(drop)
    }

    /// TCP works with offloads on, both ways.
    fn tcp_works() {
        let lab = Lab::new()?;
        let router = start(&lab)?;
        for reverse in [false, true] {
            let duration = Duration::from_secs(1);
            let options = IperfOptions { duration, reverse, ..IperfOptions::default() };
            let result = iperf3(&lab.left.ns, &lab.right.ns, host(2), &options)?;
            ensure!(result.bits_per_s > WORKING_BITS_PER_S, "{result:?}");
        }
        router.stop().map(drop)
    }

    /// RFC 8950, as routing daemons use it on links without IPv4 addresses.
    fn ipv4_goes_by_ipv6_next_hops() {
        let lab = Lab::new()?;
        let router = start(&lab)?;
        lab.right.ns.ip("address add 198.51.100.9/32 dev lo")?;
        // The host asks for its gateway from the address of that link.
        lab.right.ns.set_sysctl("net/ipv4/conf/all/arp_announce", "2")?;
        let own = lab.right.ns.ip("-6 -o address show dev eth0 scope link")?;
        let own = own.split_whitespace().find_map(|word| word.strip_suffix("/64"));
        let own = own.context("the host has no link-local address")?;
        router.cli(&format!("ip route add 198.51.100.0/24 via {own} host-eth1"))?;
        let to = std::net::Ipv4Addr::new(198, 51, 100, 9);
        ping(&lab.left.ns, to, &PingOptions::default())?.all_answered()?;
        let text = router.cli("show ip fib 198.51.100.9")?;
        ensure!(text.contains(own), "{text}");
        router.stop().map(drop)
    }

    /// Each hop of a path says where it is.
    fn a_traceroute_shows_the_router() {
        let lab = Lab::new()?;
        let router = start(&lab)?;
        let to = host(2).to_string();
        let expired = lab.left.ns.command("ping").args(["-c", "1", "-t", "1", "-W", "5", &to]);
        let text = expired.run()?.stdout;
        let want = format!("From {}", gateway(1));
        ensure!(text.contains(&want) && text.contains("Hop limit"), "{text}");
        router.stop().map(drop)
    }

    /// sFlow tells of IPv6 what it tells of IPv4: ways, next hops, lengths of both prefixes, why
    /// packets were dropped, and an agent with an IPv6 address.
    fn samples_tell_of_ipv6() {
        let lab = Lab::new()?;
        speak(&lab.left, 1)?;
        speak(&lab.right, 2)?;
        let collector = Collector::listen(&lab.router)?;
        let config = both().commands(
            "sflow collector add 127.0.0.1
             sflow agent-address 2001:db8:1::1
             sflow sampling-rate 1
             sflow enable-disable host-eth0
             sflow drop-monitoring enable",
        );
        let router = Router::start(&lab.router, &config)?;
        let right = index_of(&router, "host-eth1")?;
        ping(&lab.left.ns, host(2), &PingOptions { count: 3, ..PingOptions::default() })?
            .all_answered()?;
        let expired = ["-c", "1", "-t", "1", "-W", "1", "2001:db8:2::2"];
        // The ping reports no answer, as is right.
        let _ = lab.left.ns.command("ping").args(expired).run()?;
        // A solicitation that may have passed a router.
        let (src, dst): (Ipv6Addr, Ipv6Addr) = ("fe80::9".parse()?, "ff02::1:ff00:1".parse()?);
        let mut message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &gateway(1).octets()].concat();
        thalweg_wire::icmpv6::fill_checksum(&src, &dst, &mut message)?;
        let mut header = [0; 40];
        let fields = Ipv6Repr { hop_limit: 64, ..Ipv6Repr::new(src, dst, 58, 24) };
        fields.emit(&mut header)?;
        let ether = [0x33, 0x33, 0xff, 0, 0, 1, 2, 0, 0, 0, 0x99, 9, 0x86, 0xdd];
        RawLink::open(&lab.left.ns, "eth0")?.send(&[&ether[..], &header, &message].concat())?;
        let (mut through, mut reasons) = (0, BTreeSet::new());
        collector.receive(WAIT_LIMIT, "samples and discards", |bytes| {
            let datagram = Datagram::parse(bytes)?;
            datagram.check_end()?;
            ensure!(datagram.agent == Some(gateway(1).into()), "{datagram:?}");
            for sample in datagram.samples() {
                match sample? {
                    Sample::Flow(flow) if flow.output == Interface::Index(right) => {
                        let all = flow.records.clone();
                        for record in all.collect::<Result<Vec<_>, _>>()? {
                            if let FlowRecord::Router(route) = record {
                                ensure!(route.next_hop.0 == Some(host(2).into()), "{route:?}");
                                let masks = [route.source_mask, route.destination_mask];
                                ensure!(masks == [64, 64], "{route:?}");
                                through += 1;
                            }
                        }
                    }
                    Sample::Discard(discard) => _ = reasons.insert(discard.reason.0),
                    _ => {}
                }
            }
            let all = [257, 359].iter().all(|reason| reasons.contains(reason));
            Ok((through >= 2 && all).then_some(()))
        })?;
        router.stop().map(drop)
    }
}
