//! `ip4-icmp-error`: answers a packet with an ICMP error, then passes the packet on to be dropped.
//!
//! Reads: rx interface (its address becomes the source), tx interface (if the packet would have
//! left by one), the cause in the meta. Keeps: aux (the drop reason of the requesting node). Next:
//! the `ip4-icmp-error-reply` arc or `ip4-lookup` for the message, `ip4-drop` for the packet.

use crate::icmp::{self, Hosts};
use crate::link::Ipv4Packets;
use std::net::Ipv4Addr;
use thalweg_buffer::PktMut;
use thalweg_feat_ip::icmp_errors::{Answers, COUNTERS, IcmpError};
use thalweg_graph::NodeDecl;
use thalweg_wire::icmpv4::emit_error;
use thalweg_wire::ipv4::Ipv4View;

/// Maximum length of an ICMP error (RFC 1812 section 4.3.2.3).
const MAX_ERROR: usize = 576;

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup", DROP => "ip4-drop" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-icmp-error",
    next: NEXT_NODES,
    errors: COUNTERS,
    drop: "ip4-drop",
    build: |cx| IcmpError::<Errors>::build(Hosts::new(cx), icmp::way_out(cx, LOOKUP), DROP),
    ..NodeDecl::DEFAULT
};

struct Errors;

impl Answers for Errors {
    type Packets = Ipv4Packets;
    type Rules = Hosts;
    type Message = [u8; MAX_ERROR];

    const BLANK: [u8; MAX_ERROR] = [0; MAX_ERROR];
    const PROTOCOL: &'static str = "icmp";

    fn view(packet: &[u8]) -> Option<Ipv4View<'_>> {
        Ipv4View::parse_prefix(packet).ok()
    }

    fn write(from: Ipv4Addr, p: &PktMut<'_>, message: &mut [u8]) -> Option<usize> {
        let original = Ipv4View::parse_prefix(p.data()).ok()?;
        emit_error(icmp::repr(p.meta().icmp), from, &original, message).ok()
    }
}
