//! `ip4-local`: packets to the router itself, by protocol.
//!
//! Reads: rx interface. Next: `ip4-icmp-input`, or an ICMP error if there is no listener.

use crate::icmp::{self, Cause};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ip::protocol;

thalweg_graph::next_nodes! { ICMP => "ip4-icmp-input", ICMP_ERROR => "ip4-icmp-error" }
thalweg_graph::errors! {
    FRAGMENT: Error, 256, "ip4 fragments to local address not reassembled";
    NO_PORT: Info, 3, "no listener for dst port";
    NO_PROTOCOL: Info, 2, "unknown ip protocol";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-local",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |_| Built::node(Ip4Local),
    ..NodeDecl::DEFAULT
};

struct Ip4Local;

impl Node for Ip4Local {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(h) = p.data().first_chunk::<20>() else { return Verdict::drop(NO_PROTOCOL) };
        // Fragment offset or "more fragments".
        if u16::from_be_bytes([h[6], h[7]]) & 0x3fff != 0 {
            return Verdict::drop(FRAGMENT);
        }
        match h[9] {
            protocol::ICMP => ICMP,
            protocol::UDP => {
                icmp::request_error(cx, &mut p, Cause::PORT_UNREACHABLE, NO_PORT, ICMP_ERROR)
            }
            protocol::TCP => Verdict::drop(NO_PORT),
            _ => icmp::request_error(
                cx,
                &mut p,
                Cause::PROTOCOL_UNREACHABLE,
                NO_PROTOCOL,
                ICMP_ERROR,
            ),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
