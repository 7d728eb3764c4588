//! IPv6 addresses that hosts and routers give themselves, with the kernel's stack on the other
//! side.

use anyhow::{Result, ensure};
use thalweg_smoke::{Config, Router, host_pair};
use thalweg_testkit::{
    Capture, Cmd, Lab, PingOptions, Side, WAIT_LIMIT, lab_test, ping, wait_until_seen,
};

/// Has a host of the lab speak IPv6, and test addresses before it uses them.
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
        shows(&router, "show ip6 interface host-eth1", "2001:db8:2::")?;
        shows(&router, "show ip6 fib ::/0", "IPv6-nd")?;
        // Once the address is tested.
        shows(&router, "show ip6 dad", "Active DAD entries: 0")?;
        let text = router.cli("ping 2001:db8:99::1 repeat 3 interval 0.01")?;
        ensure!(text.contains("3 sent, 3 received"), "{text}");
        // It is no part of what a restart brings back.
        let text = router.cli("show configuration")?;
        ensure!(text.contains("ip6-autoconfig: default-route"), "{text}");
        ensure!(!text.contains("2001:db8:2::"), "{text}");
        provider.stop()?;
        router.stop().map(drop)
    }

    /// Whoever comes second hears of it: the kernel, and the router.
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
}
