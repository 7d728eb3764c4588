//! `ip6-icmp-error`: answers a packet with an ICMPv6 error, and drops the packet.
//!
//! Reads: aux (the drop reason), rx interface, tx interface (if the packet would have left by one),
//! `icmp` of the metadata. Next: the `ip6-icmp-error-reply` arc or `ip6-lookup` for the message,
//! `ip6-drop` for the packet.

use crate::icmp::{self, Sources};
use crate::link::Ipv6Packets;
use std::net::Ipv6Addr;
use thalweg_buffer::PktMut;
use thalweg_feat_ip::icmp_errors::{Answers, COUNTERS, IcmpError};
use thalweg_graph::NodeDecl;
use thalweg_wire::icmpv6::{MAX_ERROR_LEN, emit_error};
use thalweg_wire::ipv6::{Ipv6Mut, Ipv6View};

thalweg_graph::next_nodes! { LOOKUP => "ip6-lookup", DROP => "ip6-drop" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-icmp-error",
    next: NEXT_NODES,
    errors: COUNTERS,
    drop: "ip6-drop",
    build: |cx| IcmpError::<Errors>::build(Sources::new(cx), icmp::way_out(cx, LOOKUP), DROP),
    ..NodeDecl::DEFAULT
};

struct Errors;

impl Answers for Errors {
    type Packets = Ipv6Packets;
    type Rules = Sources;
    type Message = [u8; MAX_ERROR_LEN];

    const BLANK: [u8; MAX_ERROR_LEN] = [0; MAX_ERROR_LEN];
    const PROTOCOL: &'static str = "icmp6";

    fn view(packet: &[u8]) -> Option<Ipv6View<'_>> {
        Ipv6View::parse_prefix(packet).ok()
    }

    fn write(from: Ipv6Addr, p: &PktMut<'_>, message: &mut [u8]) -> Option<usize> {
        let length = emit_error(icmp::repr(p.meta().icmp), from, p.data(), message).ok()?;
        if let Ok(mut header) = Ipv6Mut::parse(message) {
            header.set_hop_limit(u8::MAX);
        }
        Some(length)
    }
}
