//! `ip4-local`: packets to the router itself, by protocol.
//!
//! Reads: rx interface. Next: `ip4-icmp-input`, or the node that takes the protocol or the UDP
//! port; without one, `ip4-punt` if a feature wants these packets, or an ICMP error. Features of
//! the `ip4-local` arc come before; `ip4-local-end-of-arc` goes on after the last.

use crate::icmp::{self, Cause};
use crate::link::Ipv4Packets;
use thalweg_buffer::PktMut;
use thalweg_feat_ip::demux::{Local, ToRouter, Transport};
use thalweg_graph::{NodeCx, NodeDecl, Verdict};
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
    build: |cx| ToRouter::<Ipv4Packets>::build(cx, "ip4-local"),
    ..NodeDecl::DEFAULT
};

/// The port that a datagram is for; `None` if its length is wrong (RFC 768).
fn udp_port(p: &PktMut<'_>, header: usize) -> Option<u16> {
    let udp = p.data().get(header..)?.first_chunk::<8>()?;
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    let is_sound = (8..=p.total_len() - header).contains(&length);
    is_sound.then(|| u16::from_be_bytes([udp[2], udp[3]]))
}

impl Local for Ipv4Packets {
    const ICMP: u8 = protocol::ICMP;
    const TO_ICMP: Verdict = ICMP;
    const PUNT: Verdict = PUNT;

    fn whole(packet: &[u8]) -> Result<(), Verdict> {
        let Some(h) = packet.first_chunk::<20>() else { return Err(Verdict::drop(NO_PROTOCOL)) };
        // Fragment offset or "more fragments".
        match u16::from_be_bytes([h[6], h[7]]) & 0x3fff {
            0 => Ok(()),
            _ => Err(Verdict::drop(FRAGMENT)),
        }
    }

    fn transport(_: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Result<Transport, Verdict> {
        let data = p.data();
        let protocol = data.get(9).copied().unwrap_or(0);
        let at = data.first().map_or(0, |b| usize::from(b & 15) * 4);
        Ok(Transport { protocol, at, end: data.len() })
    }

    fn udp_port(
        cx: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        transport: Transport,
    ) -> Result<u16, Verdict> {
        udp_port(p, transport.at).ok_or_else(|| Self::refuse(cx, p, transport))
    }

    fn refuse(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, transport: Transport) -> Verdict {
        match transport.protocol {
            protocol::UDP => {
                icmp::request_error(cx, p, Cause::PORT_UNREACHABLE, NO_PORT, ICMP_ERROR)
            }
            protocol::TCP => Verdict::drop(NO_PORT),
            _ => {
                let cause = Cause::PROTOCOL_UNREACHABLE;
                icmp::request_error(cx, p, cause, NO_PROTOCOL, ICMP_ERROR)
            }
        }
    }
}
