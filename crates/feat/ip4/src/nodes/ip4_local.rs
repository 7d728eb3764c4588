//! `ip4-local`: packets to the router itself, by protocol.
//!
//! Reads: rx interface. Next: `ip4-icmp-input`, or the node that takes the protocol or the UDP
//! port; without one, `ip4-punt` if a feature wants these packets, or an ICMP error. Features of
//! the `ip4-local` arc come before; `ip4-local-end-of-arc` goes on after the last.

use crate::icmp::{self, Cause};
use crate::punt::Reasons;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_engine::punt::Punt;
use thalweg_feat_ip::local::{self, Takers};
use thalweg_graph::{ArcId, BuildCx, Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;

thalweg_graph::next_nodes! {
    DEMUX_NODES {
        ICMP => "ip4-icmp-input",
        ICMP_ERROR => "ip4-icmp-error",
        PUNT => "ip4-punt",
    }
    END => "ip4-local-end-of-arc",
}
thalweg_graph::errors! {
    DEMUX_ERRORS {
        NO_PORT: Info, PORT_UNREACHABLE, "no listener for dst port";
        NO_PROTOCOL: Info, PROTOCOL_UNREACHABLE, "unknown ip protocol";
    }
    FRAGMENT: Error, UNKNOWN, "ip4 fragments to local address not reassembled";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-local",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        let arc = cx.arc("ip4-local");
        Built::node(Ip4Local { arc, used: false, demux: Demux::new(cx) })
    },
    ..NodeDecl::DEFAULT
};

struct Ip4Local {
    /// The arc `ip4-local`.
    arc: ArcId,
    /// Whether any interface has features on it.
    used: bool,
    demux: Demux,
}

/// Finds the node for a packet to the router itself. Its verdicts and errors are [`DEMUX_NODES`]
/// and [`DEMUX_ERRORS`].
pub(super) struct Demux {
    takers: Arc<Snapshot<Takers<u32>>>,
    punt: Punt,
    reasons: Arc<Reasons>,
}

/// The port that a datagram is for; `None` if its length is wrong (RFC 768).
fn udp_port(p: &PktMut<'_>) -> Option<u16> {
    let header = p.data().first().map_or(0, |b| usize::from(b & 15) * 4);
    let udp = p.data().get(header..)?.first_chunk::<8>()?;
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    let is_sound = (8..=p.total_len() - header).contains(&length);
    is_sound.then(|| u16::from_be_bytes([udp[2], udp[3]]))
}

impl Demux {
    pub(super) fn new(cx: &BuildCx<'_>) -> Demux {
        Demux { takers: local::takers(cx), punt: Punt::new(cx), reasons: cx.shared() }
    }

    pub(super) fn packet(&self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let protocol = p.data().get(9).copied().unwrap_or(0);
        if protocol == protocol::ICMP {
            return ICMP;
        }
        let takers = self.takers.load(cx.guard());
        let mut set = false;
        let (taker, reason) = match protocol {
            protocol::UDP => match udp_port(&p) {
                Some(port) => {
                    let taker = takers.udp_port(port);
                    set = taker.is_none() && self.punt.is_port_punted(cx.guard(), false, port);
                    (taker, Some(self.reasons.no_udp_listener))
                }
                None => (None, None),
            },
            protocol::TCP => (takers.protocol(protocol), Some(self.reasons.no_tcp_listener)),
            _ => (takers.protocol(protocol), Some(self.reasons.unknown_protocol)),
        };
        if let Some(node) = taker {
            return Verdict::node(node);
        }
        let rx_if = p.rx_if();
        let wanted = |r| set || self.punt.is_wanted(cx.guard(), r, rx_if);
        if let Some(reason) = reason.filter(|r| wanted(*r)) {
            reason.mark(&mut p);
            return PUNT;
        }
        match protocol {
            protocol::UDP => {
                icmp::request_error(cx, &mut p, Cause::PORT_UNREACHABLE, NO_PORT, ICMP_ERROR)
            }
            protocol::TCP => Verdict::drop(NO_PORT),
            _ => {
                let cause = Cause::PROTOCOL_UNREACHABLE;
                icmp::request_error(cx, &mut p, cause, NO_PROTOCOL, ICMP_ERROR)
            }
        }
    }
}

impl Node for Ip4Local {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.used = cx.arcs().is_used(self.arc);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let Some(h) = p.data().first_chunk::<20>() else { return Verdict::drop(NO_PROTOCOL) };
        // Fragment offset or "more fragments".
        if u16::from_be_bytes([h[6], h[7]]) & 0x3fff != 0 {
            return Verdict::drop(FRAGMENT);
        }
        if self.used
            && let Some(feature) = cx.arcs().first(self.arc, p.rx_if())
        {
            return Verdict::node(feature);
        }
        self.demux.packet(cx, p)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
