//! Actions that change fields: the result equals a packet built with the new values.

use proptest::prelude::*;
use std::net::Ipv4Addr;

use crate::lab::{CLIENT_MAC, Lab, SERVER_MAC};
use crate::{CLIENT, SERVER};
use thalweg_wire::build::Packet;

/// The fields of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    eth: [u64; 2],
    ip: [u32; 2],
    ports: [u16; 2],
    tos: u8,
    ttl: u8,
}

impl Fields {
    fn build(&self) -> Vec<u8> {
        let mac = |value: u64| {
            let [_, _, mac @ ..] = value.to_be_bytes();
            thalweg_load::MacAddr(mac)
        };
        let [src, dst] = self.ip.map(Ipv4Addr::from_bits);
        let packet = Packet::new().ether(mac(self.eth[0]), mac(self.eth[1])).ipv4(src, dst);
        packet
            .tos(self.tos)
            .ttl(self.ttl)
            .udp(self.ports[0], self.ports[1])
            .payload(b"abcdefg")
            .build()
    }
}

const EACH: Fields = Fields {
    eth: [0x0200_0000_0001, 0x0200_0000_0002],
    ip: [0x1000_0001, 0x3000_0001],
    ports: [5000, 53],
    tos: 0,
    ttl: 64,
};

/// A masked change, as text and applied to fields.
fn change(kind: u8, value: u64, mask: u64, fields: &mut Fields) -> String {
    let mac = |v: u64| {
        format!(
            "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
            v >> 40 & 255,
            v >> 32 & 255,
            v >> 24 & 255,
            v >> 16 & 255,
            v >> 8 & 255,
            v & 255
        )
    };
    let which = usize::from(kind & 1);
    let part = ["src", "dst"][which];
    match kind >> 1 {
        0 => {
            let (value, mask) = (value & 0xffff_ffff_ffff, mask & 0xffff_ffff_ffff);
            fields.eth[which] = fields.eth[which] & !mask | value & mask;
            format!("set_field:{}/{}->eth_{part}", mac(value), mac(mask))
        }
        1 => {
            let (value, mask) = (value as u32, mask as u32);
            fields.ip[which] = fields.ip[which] & !mask | value & mask;
            let [value, mask] = [value, mask].map(Ipv4Addr::from_bits);
            format!("set_field:{value}/{mask}->nw_{part}")
        }
        2 => {
            let (value, mask) = (value as u16, mask as u16);
            fields.ports[which] = fields.ports[which] & !mask | value & mask;
            format!("set_field:{value}/{mask:#x}->udp_{part}")
        }
        3 => {
            // Some bits of an address.
            let first = (mask % 32) as u32;
            let last = first + ((mask >> 8) % u64::from(32 - first)) as u32;
            let bits = u32::MAX >> (31 - (last - first));
            let value = value as u32 & bits;
            fields.ip[which] = fields.ip[which] & !(bits << first) | value << first;
            let name = ["NXM_OF_IP_SRC", "NXM_OF_IP_DST"][which];
            format!("load:{value}->{name}[{first}..{last}]")
        }
        4 => {
            let (value, mask) = (value as u8 & 0xfc, mask as u8 & 0xfc);
            fields.tos = fields.tos & !mask | value & mask;
            if which == 0 {
                format!("set_field:{value}/{mask}->nw_tos")
            } else {
                format!("set_field:{}/{}->ip_dscp", value >> 2, mask >> 2)
            }
        }
        5 => {
            let ecn = value as u8 & 3;
            fields.tos = fields.tos & 0xfc | ecn;
            if which == 0 {
                format!("mod_nw_ecn:{ecn}")
            } else {
                format!("set_field:{ecn}->nw_ecn")
            }
        }
        _ => {
            fields.ttl = fields.ttl.saturating_sub(1);
            "dec_ttl".into()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn changed_fields_equal_built_ones(
        changes in prop::collection::vec((0u8..14, any::<u64>(), any::<u64>()), 1..8),
        tos: u8, ttl in 9u8..=255,
    ) {
        let before = Fields { tos, ttl, ..EACH };
        let mut after = before;
        let actions: Vec<String> =
            changes.iter().map(|(kind, value, mask)| change(*kind, *value, *mask, &mut after)).collect();
        let mut lab = Lab::new(1, 512);
        let right = lab.ports[1];
        lab.ok(&format!("flow add 7 udp,actions={},normal
             set interface flow port0 7", actions.join(",")));
        let seen = lab.pass(0, &[before.build()]);
        prop_assert_eq!(seen, vec![(right, after.build())], "{:?}", actions);
        lab.close();
    }
}

#[test]
fn ttl_expires() {
    let mut lab = Lab::new(1, 512);
    let [left, right] = lab.ports;
    lab.ok("flow add 7 ip,actions=in_port,dec_ttl,resubmit(,1)
         flow add 7 table=1,ip,nw_ttl=8,actions=normal
         flow add 7 table=1,ip,nw_ttl=0,actions=in_port,in_port
         set interface flow port0 7");
    let with = |ttl| Fields { ttl, ..EACH }.build();
    let mut seen = lab.pass(0, &[with(9)]);
    seen.sort();
    assert_eq!(seen, [(left, with(9)), (right, with(8))]);
    // Outputs that precede a failed action are sent, later ones are not.
    assert_eq!(lab.pass(0, &[with(1)]), [(left, with(1))]);
    lab.ok("flow add 7 ip,actions=dec_ttl,normal");
    assert!(lab.pass(0, &[with(1), with(0)]).is_empty());
    let errors = lab.cli("show errors");
    let line = errors.lines().find(|line| line.contains("TTL expired")).expect("a reason");
    assert!(line.trim_start().starts_with('2'), "{line}");
    lab.close();
}

/// A look-up as if from another port; `in_port` itself is unchanged.
#[test]
fn resubmits_from_other_ports() {
    let mut lab = Lab::new(1, 512);
    let [left, right] = lab.ports;
    lab.ok("flow add 7 in_port=port0,actions=resubmit(port1,1)
         flow add 7 table=1,in_port=port1,actions=in_port,resubmit(,2)
         flow add 7 table=1,in_port=port0,actions=drop
         flow add 7 table=2,in_port=port0,actions=output:port1
         flow add 7 in_port=port1,actions=drop
         set interface flow port0 7");
    let frame = EACH.build();
    let mut seen = lab.pass(0, std::slice::from_ref(&frame));
    seen.sort();
    assert_eq!(seen, [(left, frame.clone()), (right, frame.clone())]);
    // Leave the table out: the same one is used.
    lab.ok("flow del 7
         flow add 7 in_port=port0,actions=resubmit:port1
         flow add 7 in_port=port1,actions=in_port");
    assert_eq!(lab.pass(0, std::slice::from_ref(&frame)), [(left, frame)]);
    assert!(lab.cli("flow dump 7").contains("actions=resubmit:port1"));
    lab.close();
}

#[test]
fn matches_of_headers_and_arp() {
    let mut lab = Lab::new(1, 512);
    let right = lab.ports[1];
    lab.ok("flow add 7 priority=0,actions=drop
         flow add 7 ip,ip_dscp=46,actions=normal
         flow add 7 ip,nw_ecn=3,actions=normal
         flow add 7 ip,nw_ttl=7,actions=normal
         flow add 7 udp,nw_frag=first,actions=normal
         flow add 7 arp,arp_sha=02:00:00:00:00:01,arp_tha=00:00:00:00:00:00,actions=normal
         set interface flow port0 7");
    let part = |bits: u8| {
        let mut frame = EACH.build();
        frame[20] = bits;
        frame
    };
    let tos = |tos| Fields { tos, ..EACH }.build();
    let ttl = |ttl| Fields { ttl, ..EACH }.build();
    let arp = |mac| Packet::arp_request(mac, CLIENT, SERVER).build();
    let some = [tos(184), tos(185), tos(3), ttl(7), part(0x20), arp(CLIENT_MAC)];
    let others = [tos(180), tos(1), ttl(8), part(0), part(0x40), arp(SERVER_MAC)];
    let want: Vec<_> = some.iter().cloned().map(|frame| (right, frame)).collect();
    assert_eq!(lab.pass(0, &[&some[..], &others[..]].concat()), want);
    lab.close();
}

/// Copies that find no buffer are counted.
#[test]
fn copies_without_buffers_are_counted() {
    let mut lab = Lab::new(1, 64);
    lab.ok("flow add 7 actions=in_port,in_port,in_port,in_port,normal
         set interface flow port0 7");
    let frames = vec![EACH.build(); 32];
    let seen = lab.pass(0, &frames).len() as u64;
    lab.c.sync();
    let errors = lab.cli("show errors");
    let line = errors.lines().find(|line| line.contains("flow: no buffers for copies"));
    let missing: u64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    assert!(missing > 0, "{errors}");
    assert_eq!(seen + missing, 32 * 5, "{errors}");
    lab.close();
}

/// Rules name an interface by its tag while it has it; interfaces that no rule names compile
/// nothing.
#[test]
fn rules_follow_what_interfaces_are_called() {
    let mut lab = Lab::new(1, 2048);
    assert!(lab.cli("create loopback interface").starts_with("loop0"));
    lab.ok("set interface tag port0 wan
         flow add 7 priority=2,in_port=wan,actions=normal
         flow add 7 priority=2,in_port=loop0,actions=drop
         flow add 7 priority=1,in_port=1,udp,actions=drop
         flow add 8 actions=normal
         set interface flow port0 7
         set interface flow port1 8");
    let frame = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER).udp(1, 2).build();
    let passes = |lab: &mut Lab| lab.pass(0, std::slice::from_ref(&frame)).len() == 1;
    assert!(passes(&mut lab));
    lab.ok("set interface tag port0 lan");
    assert!(!passes(&mut lab));
    lab.ok("set interface tag port0 wan");
    assert!(passes(&mut lab));
    // Two of that name.
    lab.ok("set interface tag port1 wan");
    assert!(!passes(&mut lab));
    lab.ok("set interface tag port1 dmz");
    assert!(passes(&mut lab));
    let before = thalweg_feat_flow::compilations(&lab.c);
    for _ in 0..30 {
        assert!(lab.cli("create loopback interface").starts_with("loop"));
    }
    assert_eq!(thalweg_feat_flow::compilations(&lab.c), before);
    lab.ok("delete loopback interface intfc loop0");
    assert!(lab.cli("create loopback interface").starts_with("loop0"));
    assert_eq!(thalweg_feat_flow::compilations(&lab.c), before + 2);
    assert!(passes(&mut lab));
    lab.close();
}
