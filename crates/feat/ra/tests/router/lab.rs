//! A router between test interfaces, and messages of other hosts.

use std::net::Ipv6Addr;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip6::{at, icmp_packet, to_group};
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;

/// The MAC address of the host.
pub const HOST: MacAddr = MacAddr([2, 0, 0, 0x99, 0, 9]);

/// Interfaces that speak IPv6, and the clock to itself.
pub fn router() -> Lab {
    let mut lab = Lab::of(&thalweg_feat_ra::FEATURE).alone().start();
    (0..3).for_each(|n| lab.ok(&format!("enable ip6 interface test{n}")));
    lab
}

/// Messages between hosts and the router.
pub trait Hosts {
    /// `testN` receives a message of a host.
    fn hear(&mut self, n: u8, src: Ipv6Addr, dst: Ipv6Addr, message: &[u8]);
    /// `testN` receives an advertisement of a router.
    fn advertise(&mut self, n: u8, router: Ipv6Addr, message: &[u8]) {
        self.hear(n, router, at("ff02::1"), message);
    }
    /// Frames sent by `testN` since the last call that are ICMPv6 messages of a type.
    fn messages(&mut self, n: u8, kind: u8) -> Vec<Vec<u8>>;
}

impl Hosts for Lab {
    fn hear(&mut self, n: u8, src: Ipv6Addr, dst: Ipv6Addr, message: &[u8]) {
        self.receive(n, vec![frame(src, dst, 255, message)]);
        self.turn();
    }
    fn messages(&mut self, n: u8, kind: u8) -> Vec<Vec<u8>> {
        let sw_if = self.sw_if(n);
        let sent = self.sent().into_iter().filter(|(i, _)| *i == sw_if).map(|(_, frame)| frame);
        sent.filter(|frame| frame.get(20) == Some(&58) && frame.get(54) == Some(&kind)).collect()
    }
}

/// An ICMPv6 message of the host, whose checksum is set.
pub fn frame(src: Ipv6Addr, dst: Ipv6Addr, hops: u8, message: &[u8]) -> Vec<u8> {
    to_group(HOST, &icmp_packet((src, dst), hops, &[], message))
}

/// The ICMPv6 message of a frame, whose checksum is right: its source and bytes.
pub fn message(frame: &[u8]) -> (Ipv6Addr, Vec<u8>) {
    let ip = Ipv6View::parse(&frame[14..]).expect("a sound header");
    assert_eq!(ip.hop_limit(), 255);
    let icmp = Icmp6View::parse(ip.payload()).expect("icmp");
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    (ip.src(), ip.payload().to_vec())
}
