//! Features that take packets to the router itself.

use crate::router;
use thalweg_buffer::PktMut;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, udp};
use thalweg_engine::Feature;
use thalweg_feat_ip::local::{self, LocalError};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::build::Packet;

thalweg_graph::errors! { HEARD: Info, UNKNOWN, "datagrams heard"; }

/// A feature that listens on UDP port 4789.
pub static LISTENER: Feature = Feature {
    name: "listener",
    nodes: &[&NODE],
    init: |c| local::take_udp_port::<u32>(c, 4789, "listener").expect("the port"),
    ..Feature::DEFAULT
};

static NODE: NodeDecl = NodeDecl {
    name: "listener",
    errors: ERRORS,
    build: |_| Built::node(Listener),
    ..NodeDecl::DEFAULT
};

struct Listener;

impl Node for Listener {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, kept) = cx.take(p);
        assert_eq!(packet.data()[9], 17);
        cx.count(HEARD, 1);
        cx.deliver(packet);
        kept
    }
}

fn to(port: u16) -> Packet {
    Packet::new().ipv4(ip(0, 2), ip(0, 1)).udp(9, port).payload(&[1; 20])
}

#[test]
fn a_port_has_one_listener() {
    let mut lab = router();
    lab.receive_packet(0, 2, to(4789));
    lab.receive_packet(0, 2, to(4789));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("listener", "datagrams heard"), 2);
    // Others are refused, and so is one whose length is a lie.
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(0, 1), 32));
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 3);
    let mut long = to(4789).build();
    long[24..26].copy_from_slice(&500u16.to_be_bytes());
    lab.receive(0, vec![framed(0, 2, &long)]);
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 3);
    assert_eq!(lab.count("listener", "datagrams heard"), 2);

    let taken = local::take_udp_port::<u32>(&mut lab.c, 4789, "error-drop");
    let LocalError::Taken { what, node } = taken.expect_err("it has a listener");
    assert_eq!((what.as_str(), node), ("UDP port 4789", "listener"));
    assert_eq!(local::take_udp_port::<u32>(&mut lab.c, 4789, "listener"), Ok(()));
    local::release_udp_port::<u32>(&mut lab.c, 4789);
    lab.receive_packet(0, 2, to(4789));
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 3);
    lab.close();
}

#[test]
fn a_protocol_has_one_listener() {
    let mut lab = router();
    for own in [1, 17] {
        assert!(local::take_protocol::<u32>(&mut lab.c, own, "listener").is_err());
    }
    let gre = || Packet::new().ipv4(ip(0, 2), ip(0, 1)).protocol(47).payload(&[0; 30]);
    lab.receive_packet(0, 2, gre());
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 2);
    local::take_protocol::<u32>(&mut lab.c, 47, "error-drop").expect("nobody has it");
    let before = lab.dropped();
    lab.receive_packet(0, 2, gre());
    assert!(lab.sent().is_empty());
    assert_eq!(lab.dropped(), before + 1);
    local::release_protocol::<u32>(&mut lab.c, 47);
    lab.receive_packet(0, 2, gre());
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 2);
    lab.close();
}
