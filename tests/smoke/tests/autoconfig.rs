//! IPv6 addresses that hosts and routers give themselves, with the kernel's stack on the other
//! side.

use anyhow::{Context, Result, ensure};
use std::net::Ipv6Addr;
use thalweg_smoke::{Config, Peer, Router, host_pair};
use thalweg_testkit::{
    Capture, Cmd, Lab, Netns, PingOptions, Running, Side, WAIT_LIMIT, lab_test, ping,
    wait_until_seen,
};

/// Lets a host of the lab speak IPv6, and test addresses before it uses them.
fn speak(side: &Side, sysctls: &[(&str, &str)]) -> Result<()> {
    let usual = [("accept_dad", "1"), ("dad_transmits", "1"), ("disable_ipv6", "0")];
    for (what, value) in sysctls.iter().chain(&usual) {
        side.ns.set_sysctl(&format!("net/ipv6/conf/eth0/{what}"), value)?;
    }
    Ok(())
}

/// A router with an address of both sides.
fn both() -> Config {
    host_pair().commands(
        "set interface ip address host-eth0 2001:db8:1::1/64
         set interface ip address host-eth1 2001:db8:2::1/64",
    )
}

/// Waits until `show` has a text.
fn shows(router: &Router, command: &str, text: &str) -> Result<()> {
    wait_until_seen(WAIT_LIMIT, &format!("{text} in {command}"), || {
        let shown = router.cli(command).map_err(|e| e.to_string())?;
        if shown.contains(text) { Ok(()) } else { Err(shown) }
    })
}

/// Runs radvd on `eth0` of a host that forwards, with a configuration of that interface.
fn radvd(side: &Side, dir: &std::path::Path, config: &str) -> Result<Running> {
    side.ns.set_sysctl("net/ipv6/conf/all/forwarding", "1")?;
    let file = dir.join("radvd.conf");
    std::fs::write(&file, format!("interface eth0 {{ AdvSendAdvert on; {config} }};\n"))
        .context("write radvd's configuration")?;
    let program = Peer::find("radvd", &["usr/sbin/radvd"])?;
    program
        .command(Some(&side.ns), "usr/sbin/radvd")
        .args(["-n", "-m", "stderr", "-C"])
        .arg(&file)
        .arg("-p")
        .arg(dir.join("radvd.pid"))
        .spawn()
}

/// Waits until a bridge has a multicast group on a port.
fn is_member(bridge: &Netns, port: &str, group: Ipv6Addr, there: bool) -> Result<()> {
    let want = format!("port {port} grp {group} ");
    wait_until_seen(WAIT_LIMIT, &format!("`{want}' in the bridge's table: {there}"), || {
        let text = bridge.command("bridge").args(["mdb", "show"]).output();
        let text = text.map_err(|e| e.to_string())?;
        if text.contains(&want) == there { Ok(()) } else { Err(text) }
    })
}

lab_test! {
    /// A host that knows nothing asks, and gets an address and a default route; both go when the
    /// router stops. Wireshark finds nothing odd about the messages.
    fn hosts_configure_themselves() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &both())?;
        let pcap = router.dir().join("left.pcap");
        let filter = format!("ether src {}", router.mac("host-eth0")?);
        let capture = Capture::start(&lab.left.ns, "eth0", &pcap, &filter)?;
        router.cli("ip6 nd host-eth0 prefix 2001:db8:1::/64 3600 1800")?;
        router.cli(
            "ip6 nd host-eth0 ra-lifetime 1800 ra-interval 8 4 ra-preference high \
             rdnss 2001:db8:1::53 dnssl lab.example route 2001:db8:9::/48 lifetime 600",
        )?;
        speak(&lab.left, &[("accept_ra", "1"), ("autoconf", "1")])?;
        let own = wait_until_seen(WAIT_LIMIT, "an address by advertisement", || {
            let text = lab.left.ns.ip("-6 -o address show dev eth0 scope global dynamic -tentative");
            let text = text.map_err(|e| e.to_string())?;
            let own = text.split_whitespace().find(|word| word.starts_with("2001:db8:1:"));
            own.map(str::to_owned).ok_or(text)
        })?;
        ensure!(own.ends_with("/64"), "{own}");
        let route = wait_until_seen(WAIT_LIMIT, "a default route", || {
            let text = lab.left.ns.ip("-6 route show default").map_err(|e| e.to_string())?;
            if text.contains("proto ra") { Ok(text.clone()) } else { Err(text) }
        })?;
        ensure!(route.contains("pref high"), "{route}");
        // The other host is there in the usual way.
        lab.right.ns.set_sysctl("net/ipv6/conf/eth0/disable_ipv6", "0")?;
        lab.right.ns.ip("-6 address add 2001:db8:2::2/64 dev eth0 nodad")?;
        lab.right.ns.ip("-6 route add default via 2001:db8:2::1")?;
        let to: std::net::Ipv6Addr = "2001:db8:2::2".parse()?;
        ping(&lab.left.ns, to, &PingOptions::default())?.all_answered()?;
        router.cli("ip6 nd host-eth0 ra-suppress")?;
        wait_until_seen(WAIT_LIMIT, "no default route", || {
            let text = lab.left.ns.ip("-6 route show default").map_err(|e| e.to_string())?;
            if text.contains("proto ra") { Err(text) } else { Ok(()) }
        })?;
        capture.stop()?;
        let odd = Cmd::new("tshark")
            .args(["-n", "-r"])
            .arg(&pcap)
            .arg("-Y")
            .arg(
                "_ws.malformed || icmpv6.checksum.status == 0 \
                 || _ws.expert.severity == warning || _ws.expert.severity == error",
            )
            .output()?;
        ensure!(odd.trim().is_empty(), "tshark objects to what the router sent:\n{odd}");
        router.stop().map(drop)
    }

    /// A router takes an address and a default route from another one, and forwards by it.
    fn a_router_configures_itself() {
        let lab = Lab::new()?;
        let provider = Router::start(
            &lab.right.ns,
            &Config::empty().commands(
                "create host-interface name eth0
                 set interface state host-eth0 up
                 set interface ip address host-eth0 2001:db8:2::1/64
                 create loopback interface instance 0
                 set interface state loop0 up
                 set interface ip address loop0 2001:db8:99::1/64
                 ip6 nd host-eth0 prefix 2001:db8:2::/64
                 ip6 nd host-eth0 no ra-suppress",
            ),
        )?;
        let router = Router::start(
            &lab.router,
            &host_pair().commands(
                "enable ip6 interface host-eth1
                 set ip6 dad enable
                 ip6 nd address autoconfig host-eth1 default-route",
            ),
        )?;
        shows(&router, "show ip6 interface host-eth1", "2001:db8:2:")?;
        shows(&router, "show ip6 fib ::/0", "IPv6-nd")?;
        // Wait until the address is tested.
        shows(&router, "show ip6 dad", "Active DAD entries: 0")?;
        let text = router.cli("ping 2001:db8:99::1 repeat 3 interval 0.01")?;
        ensure!(text.contains("3 sent, 3 received"), "{text}");
        // The address is no part of a saved configuration.
        let text = router.cli("show configuration")?;
        ensure!(text.contains("ip6-autoconfig: default-route"), "{text}");
        ensure!(!text.contains("2001:db8:2:"), "{text}");
        provider.stop()?;
        router.stop().map(drop)
    }

    /// The second to come is notified: the kernel, and the router.
    fn duplicate_addresses_are_found() {
        let lab = Lab::new()?;
        speak(&lab.left, &[])?;
        let router = Router::start(&lab.router, &both())?;
        lab.left.ns.ip("-6 address add 2001:db8:1::1/64 dev eth0")?;
        wait_until_seen(WAIT_LIMIT, "the kernel to find the router's address", || {
            let text = lab.left.ns.ip("-6 address show dev eth0").map_err(|e| e.to_string())?;
            if text.contains("dadfailed") { Ok(()) } else { Err(text) }
        })?;
        lab.left.ns.ip("-6 address add 2001:db8:1::7/64 dev eth0 nodad")?;
        router.cli("set ip6 dad enable")?;
        router.cli("set interface ip address host-eth0 2001:db8:1::7/64")?;
        shows(&router, "show ip6 dad", "state=DUPLICATE")?;
        router.await_log("2001:db8:1::7 is not used")?;
        // One that nobody has is used after its test.
        router.cli("set interface ip address host-eth0 2001:db8:1::8/64")?;
        lab.left.ns.ip("-6 address del 2001:db8:1::1/64 dev eth0")?;
        let to: std::net::Ipv6Addr = "2001:db8:1::8".parse()?;
        wait_until_seen(WAIT_LIMIT, "the tested address to answer", || {
            let once = PingOptions { count: 1, ..PingOptions::default() };
            let result = ping(&lab.left.ns, to, &once).map_err(|e| e.to_string())?;
            if result.received == 1 { Ok(()) } else { Err(format!("{result:?}")) }
        })?;
        router.stop().map(drop)
    }

    /// radvd advertises, the router listens: addresses by two prefixes, a default route that goes
    /// when radvd stops, and nothing from prefixes that are not for hosts.
    fn radvd_configures_the_router() {
        let lab = Lab::new()?;
        speak(&lab.right, &[])?;
        lab.right.ns.set_sysctl("net/ipv6/conf/lo/disable_ipv6", "0")?;
        lab.right.ns.ip("-6 address add 2001:db8:99::1/128 dev lo nodad")?;
        let router = Router::start(
            &lab.router,
            &host_pair().commands(
                "enable ip6 interface host-eth1
                 ip6 nd address autoconfig host-eth1 default-route",
            ),
        )?;
        let daemon = radvd(
            &lab.right,
            router.dir(),
            "MinRtrAdvInterval 3; MaxRtrAdvInterval 4; AdvDefaultLifetime 30; AdvLinkMTU 1480;
             AdvDefaultPreference high; AdvReachableTime 30000; AdvRetransTimer 1000;
             prefix 2001:db8:2::/64 { AdvValidLifetime 300; AdvPreferredLifetime 200; };
             prefix 2001:db8:3::/64 { AdvOnLink off; };
             prefix 2001:db8:4::/64 { AdvAutonomous off; };
             route 2001:db8:9::/48 { AdvRouteLifetime 60; };
             RDNSS 2001:db8:99::53 { AdvRDNSSLifetime 60; };
             DNSSL lab.example { AdvDNSSLLifetime 60; };",
        )?;
        for prefix in ["2001:db8:2::", "2001:db8:3::"] {
            shows(&router, "show ip6 nd autoconfig", &prefix[..prefix.len() - 1])?;
        }
        shows(&router, "show ip6 nd autoconfig", "preference high")?;
        let text = router.cli("show ip6 nd autoconfig")?;
        ensure!(!text.contains("2001:db8:4:"), "{text}");
        shows(&router, "show ip6 fib ::/0", "IPv6-nd")?;
        // The host finds the router by its new address.
        lab.right.ns.ip("-6 route add 2001:db8:2::/64 dev eth0")?;
        let text = router.cli("ping 2001:db8:99::1 repeat 3 interval 0.01")?;
        ensure!(text.contains("3 sent, 3 received"), "{text}");
        daemon.stop(WAIT_LIMIT)?;
        wait_until_seen(WAIT_LIMIT, "no default route", || {
            let text = router.cli("show ip6 fib ::/0").map_err(|e| e.to_string())?;
            if text.contains("IPv6-nd") { Err(text) } else { Ok(()) }
        })?;
        shows(&router, "show ip6 nd autoconfig", "2001:db8:2:")?;
        router.stop().map(drop)
    }

    /// A host's tool for advertisements reads ours, asked for: flags, times, and all options.
    fn rdisc6_reads_advertisements() {
        let lab = Lab::new()?;
        speak(&lab.left, &[])?;
        let router = Router::start(&lab.router, &both())?;
        router.cli("ip6 nd host-eth0 prefix 2001:db8:1::/64 3600 1800 no-onlink")?;
        router.cli("ip6 nd host-eth0 prefix 2001:db8:7::/64 infinite no-autoconfig")?;
        router.cli(
            "ip6 nd host-eth0 ra-managed-config-flag ra-lifetime 1800 ra-interval 8 4 \
             ra-preference low ra-hop-limit 61 ra-reachable-time 30000 ra-retransmit-time 1500 \
             rdnss 2001:db8:1::53 dnssl lab.example route 2001:db8:9::/48 lifetime 600",
        )?;
        wait_until_seen(WAIT_LIMIT, "a tested address", || {
            let text = lab.left.ns.ip("-6 -o address show dev eth0 scope link -tentative");
            let text = text.map_err(|e| e.to_string())?;
            if text.contains("fe80::") { Ok(()) } else { Err(text) }
        })?;
        let tool = Peer::find("radvd", &["bin/rdisc6"])?.command(Some(&lab.left.ns), "bin/rdisc6");
        let text = tool.args(["-1", "eth0"]).output()?;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for want in [
            "Hop limit : 61 ",
            "Stateful address conf. : Yes",
            "Stateful other conf. : No",
            "Router preference : low",
            "Router lifetime : 1800 ",
            "Reachable time : 30000 ",
            "Retransmit time : 1500 ",
            "Prefix : 2001:db8:1::/64 On-link : No Autonomous address conf.: Yes \
             Valid time : 3600 (0x00000e10) seconds Pref. time : 1800 ",
            "Prefix : 2001:db8:7::/64 On-link : Yes Autonomous address conf.: No \
             Valid time : infinite ",
            "Route : 2001:db8:9::/48 Route preference : medium Route lifetime : 600 ",
            "Recursive DNS server : 2001:db8:1::53 DNS server lifetime : 24 ",
            "DNS search list : lab.example DNS search list lifetime: 24 ",
            "MTU : 1500 bytes",
        ] {
            ensure!(words.contains(want), "no `{want}' in {words}");
        }
        let mac = router.mac("host-eth0")?.to_string().to_uppercase();
        ensure!(words.contains(&format!("Source link-layer address: {mac}")), "{words}");
        router.stop().map(drop)
    }

    /// A switch that snoops passes solicitations only where listeners have reported, and forgets
    /// those that do not answer its queries.
    fn a_snooping_bridge_learns_the_routers_groups() {
        let lab = Lab::kernel_bridge()?;
        let switch = &lab.router;
        switch.set_sysctl("net/ipv6/conf/br0/disable_ipv6", "0")?;
        // Times in hundredths of a second.
        switch.ip(
            "link set br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_mld_version 2 \
             mcast_query_interval 100 mcast_query_response_interval 50 \
             mcast_startup_query_interval 50 mcast_membership_interval 300",
        )?;
        lab.left.ns.set_sysctl("net/ipv6/conf/eth0/disable_ipv6", "0")?;
        lab.left.ns.ip("-6 address add 2001:db8:1::2/64 dev eth0 nodad")?;
        let config = Config::empty().commands(
            "create host-interface name eth0
             set interface state host-eth0 up
             set interface ip address host-eth0 2001:db8:1::aa:1/64",
        );
        let router = Router::start(&lab.right.ns, &config)?;
        let group: Ipv6Addr = "ff02::1:ffaa:1".parse()?;
        is_member(switch, "eth1", group, true)?;
        // The bridge has begun to ask, and goes on.
        wait_until_seen(WAIT_LIMIT, "three queries", || {
            let text = router.cli("show ip6 mld").map_err(|e| e.to_string())?;
            let heard = text.lines().find_map(|line| {
                line.trim().strip_prefix("queries received: ")?.split(',').next()?.parse::<u32>().ok()
            });
            if heard >= Some(3) { Ok(()) } else { Err(text) }
        })?;
        let to: Ipv6Addr = "2001:db8:1::aa:1".parse()?;
        ping(&lab.left.ns, to, &PingOptions::default())?.all_answered()?;
        is_member(switch, "eth1", group, true)?;
        // Another address, and no more this one.
        router.cli("set interface ip address host-eth0 2001:db8:1::bb:1/64")?;
        is_member(switch, "eth1", "ff02::1:ffbb:1".parse()?, true)?;
        router.cli("set interface ip address del host-eth0 2001:db8:1::aa:1/64")?;
        is_member(switch, "eth1", group, false)?;
        // A querier of version 1 is answered in its words.
        switch.ip("link set br0 type bridge mcast_mld_version 1")?;
        shows(&router, "show ip6 mld", "MLDv1")?;
        wait_until_seen(WAIT_LIMIT, "reports of version 1", || {
            let text = router.cli("show ip6 mld").map_err(|e| e.to_string())?;
            if text.contains("of version 1: 0, leaves") { Err(text) } else { Ok(()) }
        })?;
        is_member(switch, "eth1", "ff02::1:ffbb:1".parse()?, true)?;
        router.stop().map(drop)
    }
}
