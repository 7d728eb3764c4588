//! `ip4-local`: packets to the router itself, by protocol.
//!
//! Reads: rx interface. Next: `ip4-icmp-input`, the node that takes the protocol or the UDP port,
//! or an ICMP error if there is none.

use crate::icmp::{self, Cause};
use crate::local::{self, Takers};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
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
    build: |cx| Built::node(Ip4Local { takers: local::takers(cx) }),
    ..NodeDecl::DEFAULT
};

struct Ip4Local {
    takers: Arc<Snapshot<Takers>>,
}

/// The port that a datagram is for; `None` if its length is wrong (RFC 768).
fn udp_port(p: &PktMut<'_>) -> Option<u16> {
    let header = p.data().first().map_or(0, |b| usize::from(b & 15) * 4);
    let udp = p.data().get(header..)?.first_chunk::<8>()?;
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    let is_sound = (8..=p.total_len() - header).contains(&length);
    is_sound.then(|| u16::from_be_bytes([udp[2], udp[3]]))
}

impl Node for Ip4Local {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(h) = p.data().first_chunk::<20>() else { return Verdict::drop(NO_PROTOCOL) };
        // Fragment offset or "more fragments".
        if u16::from_be_bytes([h[6], h[7]]) & 0x3fff != 0 {
            return Verdict::drop(FRAGMENT);
        }
        let protocol = h[9];
        if protocol == protocol::ICMP {
            return ICMP;
        }
        let takers = self.takers.load(cx.guard());
        let taker = match protocol {
            protocol::UDP => udp_port(&p).and_then(|port| takers.udp_port(port)),
            _ => takers.protocol(protocol),
        };
        match (taker, protocol) {
            (Some(node), _) => Verdict::node(node),
            (None, protocol::UDP) => {
                icmp::request_error(cx, &mut p, Cause::PORT_UNREACHABLE, NO_PORT, ICMP_ERROR)
            }
            (None, protocol::TCP) => Verdict::drop(NO_PORT),
            (None, _) => icmp::request_error(
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
