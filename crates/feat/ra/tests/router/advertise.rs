//! The router advertises itself.

use crate::lab::{HOST, Hosts, frame, message, router};
use std::net::Ipv6Addr;
use thalweg_device::testing::ip6::at;

/// A host asks for routers: with its MAC address, if it has an address.
fn solicitation(src: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![133, 0, 0, 0, 0, 0, 0, 0];
    if !src.is_unspecified() {
        message.extend([1, 1]);
        message.extend(HOST.0);
    }
    message
}

const ALL: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

#[test]
fn nothing_is_sent_until_it_is_configured() {
    let mut lab = router();
    lab.wait(5000);
    lab.hear(0, at("fe80::9"), at("ff02::2"), &solicitation(at("fe80::9")));
    assert!(lab.messages(0, 134).is_empty());
    let text = "router solicitation where no advertisements are sent";
    assert_eq!(lab.count("icmp6-router-solicitation", text), 1);
    lab.close();
}

#[test]
fn the_router_advertises_itself_and_its_prefixes() {
    let mut lab = router();
    lab.ok("ip6 nd test0 prefix 2001:db8::/64 3600 1800 no-autoconfig");
    lab.wait(1000);
    assert!(lab.messages(0, 134).is_empty(), "a prefix alone has nothing sent");
    lab.ok("ip6 nd test0 ra-managed-config-flag ra-lifetime 1800 ra-interval 20 10");
    lab.wait(500);
    let sent = lab.messages(0, 134);
    assert_eq!((sent.len(), &sent[0][..6]), (1, &ALL[..]));
    let (src, ra) = message(&sent[0]);
    assert_eq!(src, thalweg_feat_ip6::link_local::of(&lab.c, lab.sw_if(0)).unwrap());
    assert_eq!(ra[4..8], [64, 0x80, 0x07, 0x08]);
    // MAC address, MTU, prefix.
    assert_eq!((ra[16], ra[24], &ra[32..36]), (1, 5, &[3, 4, 64, 0x80][..]));
    assert_eq!(ra[36..44], [0, 0, 0x0e, 0x10, 0, 0, 0x07, 0x08]);
    // Two more in at most 16 seconds each, then one in 10 to 20 seconds.
    lab.wait(33_000);
    let early = lab.messages(0, 134).len();
    assert!((2..=3).contains(&early), "{early}");
    lab.wait(100_000);
    let usual = lab.messages(0, 134).len();
    assert!((4..=10).contains(&usual), "{usual}");
    // Hosts hear once that it stops.
    lab.ok("ip6 nd test0 ra-suppress");
    lab.wait(30_000);
    let last = lab.messages(0, 134);
    assert_eq!((last.len(), &message(&last[0]).1[6..8]), (1, &[0, 0][..]));
    let text = lab.cli("show ip6 interface test0");
    assert!(text.contains("prefix 2001:db8::, length 64"), "{text}");
    lab.close();
}

#[test]
fn solicitations_are_answered_at_once_but_not_too_often() {
    let mut lab = router();
    lab.ok("ip6 nd test0 no ra-suppress");
    let host = at("fe80::9");
    // The answer comes before the first regular one, and to the host by its MAC address.
    lab.hear(0, host, at("ff02::2"), &solicitation(host));
    let sent = lab.messages(0, 134);
    assert_eq!(
        (sent.len(), &sent[0][..6], &sent[0][38..54]),
        (1, &HOST.0[..], &at("ff02::1").octets()[..])
    );
    // The next comes within three seconds, and then once for all.
    for _ in 0..5 {
        lab.hear(0, host, at("ff02::2"), &solicitation(host));
    }
    lab.wait(2000);
    let before = lab.messages(0, 134).len();
    assert!(before <= 1, "{before}");
    lab.wait(2000);
    assert_eq!(lab.messages(0, 134).len() + before, 1);
    let text = lab.cli("show ip6 interface test0");
    assert!(text.contains("router solicitations received 6"), "{text}");
    // The answer goes to the host alone if that is set; a host without an address is answered to
    // all.
    lab.ok("ip6 nd test0 ra-send-unicast");
    lab.wait(4000);
    lab.messages(0, 134);
    lab.hear(0, host, at("ff02::2"), &solicitation(host));
    let sent = lab.messages(0, 134);
    assert_eq!((sent.len(), &sent[0][38..54]), (1, &host.octets()[..]));
    lab.ok("ip6 nd test0 ra-send-unicast");
    lab.hear(0, Ipv6Addr::UNSPECIFIED, at("ff02::2"), &solicitation(Ipv6Addr::UNSPECIFIED));
    let sent = lab.messages(0, 134);
    assert_eq!((sent.len(), &sent[0][..6]), (1, &ALL[..]));
    lab.close();
}

#[test]
fn bad_solicitations_are_dropped() {
    let mut lab = router();
    lab.ok("ip6 nd test0 no ra-suppress");
    let host = at("fe80::9");
    let named = solicitation(host);
    let none = Ipv6Addr::UNSPECIFIED;
    for (src, hops, message, reason) in [
        (host, 254, named.clone(), "router solicitation with a hop limit below 255"),
        (none, 255, named.clone(), "router solicitation without source that names a MAC address"),
        (at("2001:db8::9"), 255, named.clone(), "router solicitations from source not on link"),
        (
            host,
            255,
            [&named[..8], &[1, 0, 0, 0, 0, 0, 0, 0]].concat(),
            "router solicitation too short, or with malformed options",
        ),
        (host, 255, [&[133, 1][..], &named[2..]].concat(), "router solicitation with a code"),
    ] {
        lab.receive(0, vec![frame(src, at("ff02::2"), hops, &message)]);
        lab.turn();
        assert!(lab.messages(0, 134).is_empty(), "{reason}");
        assert_eq!(lab.count("icmp6-router-solicitation", reason), 1, "{reason}");
    }
    lab.close();
}

#[test]
fn mistakes_are_refused() {
    let mut lab = router();
    for (line, why) in [
        ("ip6 nd test0 ra-lifetime 100", "at least the longest interval"),
        ("ip6 nd test0 ra-interval 20 19", "at most 3/4 of the longest"),
        ("ip6 nd test0 ra-initial 4 16", "up to 3 advertisements"),
        ("ip6 nd test0 prefix fe80::/64", "link-local"),
        ("ip6 nd test0 prefix 2001:db8::/64 10 20", "at most the valid lifetime"),
        ("ip6 nd test0 no prefix 2001:db8::/64", "does not advertise"),
        ("ip6 nd test0 dnssl a..b", "labels with dots"),
        ("ip6 nd test0 rdnss ff02::1", "address of a host"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(why), "{line}: {text}");
    }
    lab.ok("disable ip6 interface test2");
    let text = lab.cli("ip6 nd test2 no ra-suppress");
    assert!(text.contains("IPv6 is not enabled on `test2`"), "{text}");
    for n in 0..16 {
        lab.ok(&format!("ip6 nd test0 prefix 2001:db8:{n}::/64"));
    }
    let text = lab.cli("ip6 nd test0 prefix 2001:db8:99::/64");
    assert!(text.contains("no room for another prefix"), "{text}");
    lab.close();
}

#[test]
fn settings_go_with_the_interfaces_version() {
    let mut lab = router();
    lab.ok("ip6 nd test0 no ra-suppress");
    lab.wait(1000);
    assert_eq!(lab.messages(0, 134).len(), 1);
    // Advertising is off for a moment, as between two addresses, and goes on.
    lab.ok("disable ip6 interface test0\nenable ip6 interface test0");
    lab.wait(40_000);
    assert!(!lab.messages(0, 134).is_empty());
    lab.ok("disable ip6 interface test0");
    lab.wait(4000);
    lab.ok("enable ip6 interface test0");
    lab.messages(0, 134);
    lab.wait(40_000);
    assert!(lab.messages(0, 134).is_empty());
    lab.close();
}
