//! A tunnel from end to end: a midchain imposes a header that follows the route of its destination.

use crate::router;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, PktMut};
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, ip, prefix, sound, udp};
use thalweg_engine::Feature;
use thalweg_fib::{Dpo, DpoTable, Forwarding, Kind, LinkType, Member, Midchain, TableId};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::{checksum, ipv4};

thalweg_graph::next_nodes! {
    REWRITE => "ip4-rewrite",
    ARP => "ip4-arp",
}
thalweg_graph::errors! {
    NOWHERE: Error, DEV_READY, "the tunnel leads nowhere";
}

static NODE: NodeDecl = NodeDecl {
    name: "test-tunnel",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Tunnel(cx.shared())),
    ..NodeDecl::DEFAULT
};

/// Completes the outer header, and sends the packet where the tunnel leads.
struct Tunnel(Arc<DpoTable>);

impl Node for Tunnel {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let len = p.total_len() as u16;
        if let Some(header) = p.data_mut().first_chunk_mut::<20>() {
            header[2..4].copy_from_slice(&len.to_be_bytes());
            let sum = checksum::checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let end = self.0.resolve(self.0.get(Dpo(p.aux())).stacked(), || 0);
        p.set_aux(end.get());
        // The router is where the tunnel begins.
        p.mark(Flags::LOCAL);
        match self.0.get(end).state().kind {
            kind if kind.is_complete() => REWRITE,
            Kind::INCOMPLETE => ARP,
            _ => Verdict::drop(NOWHERE),
        }
    }
}

/// The feature of the tunnel.
pub static FEATURE: Feature =
    Feature { name: "test-tunnel", about: "tunnels", nodes: &[&NODE], ..Feature::DEFAULT };

const DESTINATION: Ipv4Addr = Ipv4Addr::new(99, 1, 0, 1);

/// An outer header of IPv4 in IPv4 (RFC 2003) without length and checksum.
fn outer() -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[8] = 64;
    header[9] = 4;
    header[12..16].copy_from_slice(&ip(2, 1).octets());
    header[16..].copy_from_slice(&DESTINATION.octets());
    header
}

/// Routes 48.0.0.0/8 into a tunnel, in the place of interface `test2`, that follows the route of
/// its destination; returns the midchain.
fn tunnel(lab: &mut Lab) -> Dpo {
    let stacked = thalweg_feat_ip::track(&mut lab.c, TableId(0), DESTINATION.to_bits())
        .expect("a route to follow");
    let node = lab.c.node("test-tunnel").expect("a node");
    let (sw_if, header) = (lab.sw_if(2), &outer());
    let new = Midchain { sw_if, link: LinkType::Ip4, header, node, stacked };
    let f = lab.c.state::<Forwarding>();
    let midchain = f.borrow_mut().midchain(&lab.c, &new).expect("a midchain");
    f.borrow_mut().retain(midchain);
    f.borrow_mut().set_numbered(&lab.c, 7, vec![Member::of(midchain)]).expect("a group");
    let path = thalweg_feat_ip::Path::special(thalweg_feat_ip::PathKind::Group(7));
    thalweg_feat_ip::add_route(&mut lab.c, TableId(0), prefix("48.0.0.0/8"), vec![path], true)
        .expect("a route");
    midchain
}

/// Sends packets into the tunnel; they leave by `testN` to that host.
fn pass(lab: &mut Lab, n: u8, host: u8) {
    for count in [1, 20] {
        let inner = udp(ip(0, 2), Ipv4Addr::new(48, 0, 0, 1), 30).ttl(17).build();
        lab.receive(0, vec![framed(0, 2, &inner); count]);
        let sent = lab.sent();
        assert_eq!(sent.len(), count, "{}", lab.cli("show errors"));
        for (sw_if, frame) in sent {
            assert_eq!(sw_if, lab.sw_if(n));
            let whole = sound(n, host, &frame);
            assert_eq!((whole.ttl(), whole.protocol(), whole.dst()), (64, 4, DESTINATION));
            let passed = ipv4::check(whole.payload()).expect("the packet inside");
            assert_eq!((passed.ttl(), passed.payload()), (16, &inner[20..]));
        }
    }
}

/// Packets go nowhere, and come back from nowhere.
fn stop(lab: &mut Lab) {
    let before = lab.count("ip4-lookup", "next-hop interface is down");
    let inner = udp(ip(0, 2), Ipv4Addr::new(48, 0, 0, 1), 30).ttl(17).build();
    lab.receive(0, vec![framed(0, 2, &inner); 10]);
    let sent = lab.sent();
    assert!(sent.iter().all(|(sw_if, _)| *sw_if == lab.sw_if(0)), "{sent:02x?}");
    assert_eq!(lab.count("ip4-lookup", "next-hop interface is down") - before, 10);
}

#[test]
fn packets_follow_the_route_of_the_tunnels_destination() {
    let mut lab = router();
    lab.ok("ip route add 99.1.0.0/16 via 10.0.1.2 test1");
    let before = objects(&lab);
    let midchain = tunnel(&mut lab);
    pass(&mut lab, 1, 2);
    lab.ok("ip route replace 99.1.0.0/16 via 10.0.0.3 test0");
    pass(&mut lab, 0, 3);
    lab.up(0, false);
    lab.up(0, true);
    pass(&mut lab, 0, 3);
    // The way changes by a longer prefix, and recursively.
    lab.ok("ip route add 99.1.0.1/32 via 10.0.1.4");
    pass(&mut lab, 1, 4);
    // The destination lies behind the tunnel: a loop.
    lab.ok("ip route replace 99.1.0.1/32 via 48.0.0.9");
    stop(&mut lab);
    lab.ok("ip route del 99.1.0.1/32");
    pass(&mut lab, 0, 3);
    lab.ok("ip route del 99.1.0.0/16");
    stop(&mut lab);
    lab.ok("ip route add 99.0.0.0/8 via 10.0.1.3 test1");
    pass(&mut lab, 1, 3);
    // An interface that is down stops packets.
    lab.up(2, false);
    stop(&mut lab);
    lab.up(2, true);
    pass(&mut lab, 1, 3);
    lab.ok("ip route del 48.0.0.0/8\nip route replace 99.1.0.0/16 via 10.0.1.2 test1");
    let f = lab.c.state::<Forwarding>();
    assert!(f.borrow_mut().remove_numbered(&lab.c, 7));
    f.borrow_mut().release(&lab.c, midchain);
    drop(f);
    lab.ok("ip route del 99.0.0.0/8");
    lab.until("nobody follows the destination", |lab| objects(lab) == before);
    lab.close();
}

fn objects(lab: &Lab) -> usize {
    lab.c.state::<Forwarding>().borrow().len()
}
