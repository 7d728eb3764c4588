//! `ip4-icmp-error`: answers a packet with an ICMP error, then passes the packet on to be dropped.
//!
//! Reads: rx interface (its address becomes the source), tx interface (if the packet would have
//! left by one), the cause in the meta. Keeps: aux (the drop reason of the requesting node). Next:
//! the `ip4-icmp-error-reply` arc or `ip4-lookup` for the message, `ip4-drop` for the packet.

use crate::icmp;
use crate::link::Ipv4Packets;
use crate::tables::Tables;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, PktMut};
use thalweg_feat_ip::icmp_errors::{Answers, COUNTERS, IcmpError};
use thalweg_fib::DpoTable;
use thalweg_graph::NodeDecl;
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::icmpv4::{emit_error, may_answer_with_error};
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
    build: |cx| {
        let errors = Errors { tables: cx.shared(), dpos: cx.shared() };
        IcmpError::build(errors, icmp::way_out(cx, LOOKUP), DROP)
    },
    ..NodeDecl::DEFAULT
};

struct Errors {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
}

impl Answers for Errors {
    type Packets = Ipv4Packets;
    type Source = Ipv4Addr;
    type Message = [u8; MAX_ERROR];

    const BLANK: [u8; MAX_ERROR] = [0; MAX_ERROR];
    const PROTOCOL: &'static str = "icmp";

    fn may_answer(&self, guard: &Guard<'_>, p: &PktMut<'_>) -> bool {
        let Ok(packet) = Ipv4View::parse_prefix(p.data()) else { return false };
        let tables = self.tables.load(guard);
        // Both ends are hosts.
        let is_host = |address| tables.is_host(&self.dpos, p.rx_if(), address);
        !p.flags().contains(Flags::GROUP)
            && may_answer_with_error(&packet)
            && is_host(packet.src())
            && is_host(packet.dst())
    }

    fn source(&self, guard: &Guard<'_>, p: &PktMut<'_>) -> Option<Ipv4Addr> {
        self.tables.load(guard).address(p.rx_if())
    }

    fn write(&self, from: Ipv4Addr, p: &PktMut<'_>, message: &mut [u8]) -> Option<usize> {
        let original = Ipv4View::parse_prefix(p.data()).ok()?;
        emit_error(icmp::repr(p.meta().icmp), from, &original, message).ok()
    }
}
