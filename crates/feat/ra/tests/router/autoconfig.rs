//! The router hears others.

use crate::lab::{HOST, Hosts, frame, router};
use std::net::Ipv6Addr;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip6::at;

/// An advertisement with a lifetime, flags and prefixes: each with flags and valid lifetime.
fn advertisement(lifetime: u16, flags: u8, prefixes: &[(&str, u8, u32)]) -> Vec<u8> {
    let mut ra = vec![134, 0, 0, 0, 64, flags];
    ra.extend(lifetime.to_be_bytes());
    ra.extend([0; 8]);
    ra.extend([1, 1]);
    ra.extend(HOST.0);
    for (prefix, flags, valid) in prefixes {
        ra.extend([3, 4, 64, *flags]);
        ra.extend(valid.to_be_bytes());
        ra.extend(valid.to_be_bytes());
        ra.extend([0; 4]);
        ra.extend(at(prefix).octets());
    }
    ra
}

#[test]
fn addresses_and_routes_come_and_go() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0 default-route");
    lab.turn();
    assert_eq!(lab.messages(0, 133).len(), 1, "it asks");
    let (a, b) = (at("fe80::a"), at("fe80::b"));
    lab.advertise(0, a, &advertisement(1800, 0, &[("2001:db8::", 0xc0, 3600)]));
    let own = thalweg_feat_ip6::link_local::of(&lab.c, lab.sw_if(0)).unwrap();
    let ip = Ipv6Addr::from_bits(at("2001:db8::").to_bits() | u128::from(own.to_bits() as u64));
    let text = lab.cli("show ip6 interface test0");
    assert!(text.contains(&format!("{ip}/64")), "{text}");
    let route = |lab: &mut Lab| lab.cli("show ip6 fib ::/0");
    let text = route(&mut lab);
    assert!(text.contains("IPv6-nd") && text.contains("fe80::a"), "{text}");
    // A second router of the same preference shares; a better one replaces both.
    lab.advertise(0, b, &advertisement(1800, 0, &[]));
    let text = route(&mut lab);
    assert!(text.contains("fe80::a") && text.contains("fe80::b"), "{text}");
    lab.advertise(0, b, &advertisement(1800, 0x08, &[]));
    let text = route(&mut lab);
    assert!(!text.contains("fe80::a") && text.contains("fe80::b"), "{text}");
    // The router announces that it stops; the other one just falls silent.
    lab.advertise(0, b, &advertisement(0, 0, &[]));
    assert!(route(&mut lab).contains("fe80::a"));
    lab.wait(1_801_000);
    let text = route(&mut lab);
    assert!(!text.contains("IPv6-nd"), "{text}");
    assert!(lab.cli("show ip6 interface test0").contains(&ip.to_string()));
    lab.wait(1_801_000);
    assert!(!lab.cli("show ip6 interface test0").contains(&ip.to_string()));
    lab.close();
}

/// A default route is in the table of its interface, at once.
#[test]
fn default_routes_follow_their_interface() {
    let mut lab = router();
    lab.ok("ip6 table add 7\nip6 nd address autoconfig test0 default-route");
    lab.advertise(0, at("fe80::a"), &advertisement(1800, 0, &[]));
    let is_in = |lab: &mut Lab, table: u32| {
        lab.cli(&format!("show ip6 fib table {table} ::/0")).contains("IPv6-nd")
    };
    assert_eq!((is_in(&mut lab, 0), is_in(&mut lab, 7)), (true, false));
    lab.ok("set interface ip6 table test0 7");
    assert_eq!((is_in(&mut lab, 0), is_in(&mut lab, 7)), (false, true));
    lab.ok("ip6 nd address autoconfig test0 disable\nset interface ip6 table test0 0");
    assert_eq!((is_in(&mut lab, 0), is_in(&mut lab, 7)), (false, false));
    lab.ok("ip6 table del 7");
    lab.close();
}

#[test]
fn what_comes_by_itself_is_no_configuration() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0");
    let ra = advertisement(1800, 0, &[("2001:db8::", 0xc0, 3600)]);
    lab.advertise(0, at("fe80::a"), &ra);
    let sw_if = lab.sw_if(0);
    let found = |lab: &Lab| {
        let ip6 = lab.c.state::<thalweg_feat_ip::Ip6>();
        let ip6 = ip6.borrow();
        ip6.addresses(sw_if).iter().map(|a| ip6.is_found(sw_if, *a)).collect::<Vec<_>>()
    };
    assert_eq!(found(&lab), [true]);
    // No default route was wanted.
    assert!(!lab.cli("show ip6 fib ::/0").contains("IPv6-nd"));
    // A user takes it over: it stays when the interface takes none any more.
    let text = lab.cli("show ip6 interface test0");
    let own = text.lines().map(str::trim).find(|line| line.starts_with("2001:db8::")).unwrap();
    lab.ok(&format!("set interface ip address test0 {own}"));
    assert_eq!(found(&lab), [false]);
    lab.ok("ip6 nd address autoconfig test0 disable");
    assert_eq!(found(&lab), [false]);
    lab.ok(&format!("set interface ip address del test0 {own}\nip6 nd address autoconfig test0"));
    lab.advertise(0, at("fe80::a"), &ra);
    assert_eq!(found(&lab), [true]);
    lab.ok("ip6 nd address autoconfig test0 disable");
    assert_eq!(found(&lab), [false; 0]);
    lab.close();
}

#[test]
fn advertisements_that_lie_do_little() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0 default-route");
    let router = at("fe80::a");
    let good = advertisement(1800, 0, &[("2001:db8::", 0xc0, 3600)]);
    for (src, hops, message, reason) in [
        (router, 254, good.clone(), "router advertisement with a hop limit below 255"),
        (at("2001:db8::a"), 255, good.clone(), "router advertisement source not link-local"),
        (
            router,
            255,
            good[..good.len() - 8].to_vec(),
            "router advertisement too short, or with malformed options",
        ),
        (
            router,
            255,
            good[..12].to_vec(),
            "router advertisement too short, or with malformed options",
        ),
    ] {
        let before = lab.count("icmp6-router-advertisement", reason);
        lab.receive(0, vec![frame(src, at("ff02::1"), hops, &message)]);
        lab.turn();
        assert_eq!(lab.count("icmp6-router-advertisement", reason), before + 1, "{reason}");
    }
    // Prefixes are ignored that are not for hosts, or longer preferred than valid.
    let odd = [("2001:db8:1::", 0x80, 3600), ("fe80::", 0xc0, 3600), ("ff02::", 0xc0, 3600)];
    lab.advertise(0, router, &advertisement(0, 0, &odd));
    let addresses = |lab: &Lab| {
        let ip6 = lab.c.state::<thalweg_feat_ip::Ip6>();
        ip6.borrow().addresses(lab.sw_if(0)).len()
    };
    assert_eq!(addresses(&lab), 0);
    // Room for prefixes and routers is bounded, and a full table is logged.
    for n in 0..40 {
        let prefix = format!("2001:db8:{n:x}::");
        let router = at(&format!("fe80::1:{n:x}"));
        lab.advertise(0, router, &advertisement(1800, 0, &[(&prefix, 0xc0, 3600)]));
    }
    assert_eq!(addresses(&lab), 16);
    let text = lab.cli("show ip6 nd autoconfig");
    assert_eq!(text.matches("router fe80::").count(), 8, "{text}");
    assert!(text.contains("56 addresses and routers did not find room"), "{text}");
    // Prefixes of few are not believed where more is left.
    lab.advertise(0, router, &advertisement(0, 0, &[("2001:db8::", 0xc0, 1)]));
    lab.wait(2000);
    assert_eq!(addresses(&lab), 16);
    // The interface goes down, and with it what was of its link.
    let name = "test0";
    lab.ok(&format!("set interface state {name} down"));
    lab.turn();
    assert_eq!(addresses(&lab), 0);
    lab.close();
}

/// Any MTU may be advertised; a router believes none, as its user sets the MTUs.
#[test]
fn odd_mtus_change_nothing() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0 default-route");
    let shown = lab.cli("show interface test0");
    let with = |option: &[u8]| {
        let mut ra = advertisement(1800, 0, &[("2001:db8::", 0xc0, 3600)]);
        ra.extend(option);
        ra
    };
    let mtu = |mtu: u32| [&[5, 1, 0, 0][..], &mtu.to_be_bytes()].concat();
    for said in [0, 1, 576, 1279, 1280, 1500, 9000, 65_535, 65_536, u32::MAX] {
        lab.advertise(0, at("fe80::a"), &with(&[mtu(said), mtu(!said)].concat()));
    }
    let heard = lab.count("icmp6-router-advertisement", "router advertisements received");
    assert_eq!(heard, 10);
    // One of the wrong length spoils its message.
    for bad in [&[5, 0, 0, 0, 0, 0, 5, 0][..], &[5, 2, 0, 0, 0, 0, 5, 0]] {
        lab.advertise(0, at("fe80::b"), &with(bad));
    }
    let text = lab.cli("show ip6 nd autoconfig");
    assert!(text.contains("fe80::a") && !text.contains("fe80::b"), "{text}");
    let first = |text: &str| text.lines().nth(1).and_then(|line| line.get(..60).map(str::to_owned));
    assert_eq!(first(&lab.cli("show interface test0")), first(&shown));
    lab.close();
}

/// A flood of others' advertisements does not take away what a router says again and again.
#[test]
fn floods_do_not_displace_a_router() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0 default-route");
    let router = at("fe80::a");
    let good = advertisement(1800, 0x08, &[("2001:db8::", 0xc0, 7200)]);
    lab.advertise(0, router, &good);
    for some in 0..20u16 {
        let one = |n: u16| {
            let from =
                Ipv6Addr::from_bits(at("fe80::1:0:0").to_bits() + u128::from(some * 200 + n));
            let prefix = format!("2001:db8:{:x}::", some * 200 + n + 1);
            let ra = advertisement(9000, 0x18, &[(&*prefix, 0xc0, 7200); 3]);
            frame(from, at("ff02::1"), 255, &ra)
        };
        lab.deliver(0, (0..200).map(one).collect());
        lab.turn();
    }
    let limited = "router advertisements not reported: rate limit";
    assert!(lab.count("icmp6-router-advertisement", limited) > 0);
    let text = lab.cli("show ip6 nd autoconfig");
    assert!(text.matches("router fe80::").count() <= 8, "{text}");
    assert!(lab.cli("show ip6 fib ::/0").contains("fe80::a"));
    assert!(lab.cli("show ip6 interface test0").contains("2001:db8::"));
    // The others fall silent; this one goes on.
    for _ in 0..6 {
        lab.wait(1_700_000);
        lab.advertise(0, router, &good);
    }
    let text = lab.cli("show ip6 nd autoconfig");
    assert_eq!(text.matches("router fe80::").count(), 1, "{text}");
    lab.close();
}

#[test]
fn routers_are_asked_in_growing_intervals() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0");
    lab.wait(70_000);
    // Messages come at 0, about 4, 12, 28 and 60 seconds.
    assert_eq!(lab.messages(0, 133).len(), 5);
    lab.advertise(0, at("fe80::a"), &advertisement(1800, 0, &[]));
    lab.wait(200_000);
    assert!(lab.messages(0, 133).is_empty());
    lab.close();
}

/// A configured route to the prefix, or around it, leads elsewhere: it stays, whatever came first.
#[test]
fn prefixes_of_configured_routes_are_not_taken() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0");
    let ra = advertisement(1800, 0, &[("2001:db8:5::", 0xc0, 3600)]);
    let has = |lab: &mut Lab| lab.cli("show ip6 interface test0").contains("2001:db8:5::");
    for route in ["2001:db8:5::/64 via fe80::9 test1", "2001:db8::/32 via drop"] {
        lab.ok(&format!("ip route add {route}"));
        lab.advertise(0, at("fe80::a"), &ra);
        assert!(!has(&mut lab), "{route}");
        lab.ok(&format!("ip route del {route}"));
        lab.advertise(0, at("fe80::a"), &ra);
        assert!(has(&mut lab), "{route}");
        lab.ok(&format!("ip route add {route}"));
        lab.wait(1000);
        assert!(!has(&mut lab), "{route}");
        lab.ok(&format!("ip route del {route}"));
    }
    // A default route leaves room, as does one to the link itself.
    lab.ok("ip route add ::/0 via fe80::9 test1\nip route add 2001:db8::/32 via test0");
    lab.advertise(0, at("fe80::a"), &ra);
    lab.wait(1000);
    assert!(has(&mut lab));
    lab.close();
}

/// Advertisements of others do not keep users from writing an address for another interface, or
/// from moving the interface to a table.
#[test]
fn prefixes_of_configured_addresses_are_given_up() {
    let mut lab = router();
    lab.ok("ip6 table add 7\nip6 nd address autoconfig test0");
    let ra = advertisement(1800, 0, &[("2001:db8:5::", 0xc0, 3600)]);
    let has = |lab: &mut Lab| lab.cli("show ip6 interface test0").contains("2001:db8:5::");
    let shown = |lab: &mut Lab| lab.cli("show ip6 nd autoconfig").contains("2001:db8:5::");
    for address in ["2001:db8:5::1/64", "2001:db8:5::1/112", "2001:db8::1/32"] {
        lab.advertise(0, at("fe80::a"), &ra);
        assert!(has(&mut lab) && shown(&mut lab), "{address}");
        lab.ok(&format!("set interface ip address test1 {address}"));
        lab.c.sync();
        assert!(!has(&mut lab) && !shown(&mut lab), "{address}");
        lab.advertise(0, at("fe80::a"), &ra);
        assert!(!has(&mut lab), "{address}");
        lab.ok(&format!("set interface ip address del test1 {address}"));
    }
    // One in a subnet of another length on the interface itself.
    lab.advertise(0, at("fe80::a"), &ra);
    lab.ok("set interface ip address test0 2001:db8:5::1/48");
    assert!(!shown(&mut lab));
    lab.ok("set interface ip address del test0 2001:db8:5::1/48");
    lab.advertise(0, at("fe80::a"), &ra);
    assert!(has(&mut lab));
    // One that two have found stays where it was first.
    lab.ok("ip6 nd address autoconfig test1");
    lab.advertise(1, at("fe80::b"), &ra);
    assert!(has(&mut lab) && !lab.cli("show ip6 interface test1").contains("2001:db8:5::"));
    lab.ok("ip6 nd address autoconfig test1 disable\nset interface ip6 table test0 7");
    lab.c.sync();
    assert!(!has(&mut lab) && !shown(&mut lab));
    lab.advertise(0, at("fe80::a"), &ra);
    assert!(has(&mut lab));
    assert!(lab.cli("show ip6 fib table 7").contains("2001:db8:5::/64"));
    lab.close();
}

/// A router that once advertised itself without end does not keep others out.
#[test]
fn silent_routers_and_prefixes_make_room() {
    let mut lab = router();
    lab.ok("ip6 nd address autoconfig test0 default-route");
    for n in 0..16 {
        let prefix = format!("2001:db8:{:x}::", n + 1);
        let ra = advertisement(9000, 0, &[(&*prefix, 0xc0, u32::MAX)]);
        lab.advertise(0, at(&format!("fe80::1:{n:x}")), &ra);
    }
    let new = advertisement(9000, 0, &[("2001:db8:99::", 0xc0, u32::MAX)]);
    let has = |lab: &mut Lab| {
        let addresses = lab.cli("show ip6 interface test0");
        let routers = lab.cli("show ip6 nd autoconfig");
        assert_eq!(routers.matches("router fe80::").count(), 8, "{routers}");
        [addresses.contains("2001:db8:99::"), routers.contains("fe80::99")]
    };
    lab.advertise(0, at("fe80::99"), &new);
    assert_eq!(has(&mut lab), [false, false]);
    // One goes on, the others do not.
    let first = advertisement(9000, 0, &[("2001:db8:1::", 0xc0, u32::MAX)]);
    for _ in 0..3 {
        lab.wait(1_300_000);
        lab.advertise(0, at("fe80::1:0"), &first);
    }
    lab.advertise(0, at("fe80::99"), &new);
    assert_eq!(has(&mut lab), [true, true]);
    assert!(lab.cli("show ip6 interface test0").contains("2001:db8:1::"));
    assert!(lab.cli("show ip6 fib ::/0").contains("fe80::1:0"));
    lab.close();
}
