//! `ip6-local`: packets to the router itself, by the protocol behind their extension headers.
//!
//! Reads: rx interface. Next: `ip6-icmp-input`, or the node that takes the protocol or the UDP
//! port; without one, `ip6-punt` if a feature wants these packets, or an ICMP error. Features of
//! the `ip6-local` arc come before; `ip6-local-end-of-arc` goes on after the last.

use crate::icmp;
use crate::punt::Reasons;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_engine::punt::Punt;
use thalweg_feat_ip::local::{self, Takers};
use thalweg_graph::{ArcId, BuildCx, Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View, Transport};

thalweg_graph::next_nodes! {
    DEMUX_NODES {
        ICMP => "ip6-icmp-input",
        ICMP_ERROR => "ip6-icmp-error",
        PUNT => "ip6-punt",
    }
    END => "ip6-local-end-of-arc",
}
thalweg_graph::errors! {
    DEMUX_ERRORS {
        NO_PORT: Info, PORT_UNREACHABLE, "no listener for dst port";
        NO_PROTOCOL: Info, PROTOCOL_UNREACHABLE, "unknown ip protocol";
        EXTENSION: Error, IPV6_BAD_EXTHDR, "ip6 extension headers cannot be read";
        UDP_LENGTH: Error, UDP_PARSING, "ip6 udp length is wrong";
        UDP_CHECKSUM: Error, IP_HEADER_CORRUPTED, "ip6 udp checksum is wrong or missing";
    }
    FRAGMENT: Error, UNKNOWN, "ip6 fragments to local address not reassembled";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-local",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let arc = cx.arc("ip6-local");
        Built::node(Ip6Local { arc, used: false, demux: Demux::new(cx) })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6Local {
    /// The arc `ip6-local`.
    arc: ArcId,
    /// Whether any interface has features on it.
    used: bool,
    demux: Demux,
}

/// Finds the node for a packet to the router itself. Its verdicts and errors are [`DEMUX_NODES`]
/// and [`DEMUX_ERRORS`].
pub(super) struct Demux {
    takers: Arc<Snapshot<Takers<u128>>>,
    punt: Punt,
    reasons: Arc<Reasons>,
}

/// The transport of a packet; `None` if its extension headers cannot be read.
fn transport(data: &[u8]) -> Option<Transport<'_>> {
    Ipv6View::parse_prefix(data).ok()?.transport().ok()
}

/// What becomes of a packet with an option that it may not have, or a route that goes on.
fn refused(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Option<Verdict> {
    let refusal = Ipv6View::parse_prefix(p.data()).ok()?.refusal()?;
    Some(match refusal.code {
        Some(code) => {
            let cause = icmp::parameter_problem(code, refusal.pointer as u16);
            icmp::request_error(cx, p, cause, EXTENSION, ICMP_ERROR)
        }
        None => Verdict::drop(EXTENSION),
    })
}

/// Offset of the byte that says what the last header is: where an unknown one is reported.
fn pointer(data: &[u8], transport: &Transport<'_>) -> u16 {
    if transport.offset == 0 {
        return 6;
    }
    // The extension header before it: each is found from the one before.
    let (mut at, mut next) = (HEADER_LEN, data.get(6).copied().unwrap_or(0));
    let end = HEADER_LEN + transport.offset;
    loop {
        let Some(h) = data.get(at..).and_then(<[u8]>::first_chunk::<2>) else { return 6 };
        let len = match next {
            protocol::FRAGMENT => 8,
            protocol::AH => (usize::from(h[1]) + 2) * 4,
            _ => (usize::from(h[1]) + 1) * 8,
        };
        if at + len >= end {
            return at as u16;
        }
        (at, next) = (at + len, h[0]);
    }
}

/// The port that a datagram is for (RFC 8200 section 8.1: its checksum is not optional).
fn udp_port(p: &PktMut<'_>, transport: &Transport<'_>) -> Result<u16, Verdict> {
    let Some(udp) = transport.payload.first_chunk::<8>() else {
        return Err(Verdict::drop(UDP_LENGTH));
    };
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    let at = HEADER_LEN + transport.offset;
    if !(8..=p.total_len().saturating_sub(at)).contains(&length) {
        return Err(Verdict::drop(UDP_LENGTH));
    }
    let offload = p.flags().contains(Flags::OFFLOAD).then(|| p.meta().offload);
    let is_known = offload.is_some_and(|o| o.needs_csum || o.data_valid);
    if !is_known {
        let pseudo = Ipv6View::parse_prefix(p.data())
            .map(|ip| ip.pseudo_header(protocol::UDP, length as u32));
        let Ok(mut sum) = pseudo else { return Err(Verdict::drop(EXTENSION)) };
        super::ip6_icmp_input::add_from(p, at, length, &mut sum);
        if udp[6..8] == [0, 0] || !sum.is_valid() {
            return Err(Verdict::drop(UDP_CHECKSUM));
        }
    }
    Ok(u16::from_be_bytes([udp[2], udp[3]]))
}

impl Demux {
    pub(super) fn new(cx: &BuildCx<'_>) -> Demux {
        Demux { takers: local::takers(cx), punt: Punt::new(cx), reasons: cx.shared() }
    }

    pub(super) fn packet(&self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if let Some(verdict) = refused(cx, &mut p) {
            return verdict;
        }
        let Some(transport) = transport(p.data()) else { return Verdict::drop(EXTENSION) };
        let protocol = transport.protocol;
        if protocol == protocol::ICMPV6 {
            return ICMP;
        }
        let takers = self.takers.load(cx.guard());
        let mut set = false;
        let (taker, reason) = match protocol {
            protocol::UDP => match udp_port(&p, &transport) {
                Ok(port) => {
                    let taker = takers.udp_port(port);
                    set = taker.is_none() && self.punt.is_port_punted(cx.guard(), true, port);
                    (taker, self.reasons.no_udp_listener)
                }
                Err(dropped) => return dropped,
            },
            protocol::TCP => (takers.protocol(protocol), self.reasons.no_tcp_listener),
            _ => (takers.protocol(protocol), self.reasons.unknown_protocol),
        };
        if let Some(node) = taker {
            return Verdict::node(node);
        }
        let pointer = pointer(p.data(), &transport);
        if set || self.punt.is_wanted(cx.guard(), reason, p.rx_if()) {
            reason.mark(&mut p);
            return PUNT;
        }
        match protocol {
            protocol::UDP => {
                icmp::request_error(cx, &mut p, icmp::PORT_UNREACHABLE, NO_PORT, ICMP_ERROR)
            }
            protocol::TCP => Verdict::drop(NO_PORT),
            protocol::NO_NEXT => Verdict::drop(NO_PROTOCOL),
            _ => {
                let cause = icmp::unrecognized_header(pointer);
                icmp::request_error(cx, &mut p, cause, NO_PROTOCOL, ICMP_ERROR)
            }
        }
    }
}

impl Node for Ip6Local {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.used = cx.arcs().is_used(self.arc);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let Some(transport) = transport(p.data()) else { return Verdict::drop(EXTENSION) };
        if transport.fragment.is_some_and(|f| !f.is_atomic()) {
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
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_wire::ipv6::Ipv6Repr;

    #[test]
    fn an_unknown_header_is_pointed_at() {
        let at: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mut data = vec![0; 40];
        Ipv6Repr::new(at, at, 0, 24).emit(&mut data).unwrap();
        data.extend([60, 0, 1, 4, 0, 0, 0, 0]);
        data.extend([200, 0, 1, 4, 0, 0, 0, 0]);
        data.extend([0; 8]);
        let found = transport(&data).unwrap();
        assert_eq!((found.protocol, pointer(&data, &found)), (200, 48));
        data[40] = 201;
        let found = transport(&data).unwrap();
        assert_eq!((found.protocol, pointer(&data, &found)), (201, 40));
        data[6] = 202;
        assert_eq!(pointer(&data, &transport(&data).unwrap()), 6);
    }

    proptest! {
        #[test]
        fn pointers_are_in_the_packet(
            next in prop_oneof![Just(0u8), Just(43), Just(44), Just(51), Just(60), any::<u8>()],
            mut data in prop::collection::vec(any::<u8>(), 40..120),
        ) {
            (data[0], data[6]) = (0x60, next);
            let length = (data.len() - 40) as u16;
            data[4..6].copy_from_slice(&length.to_be_bytes());
            if let Some(found) = transport(&data) {
                prop_assert!(usize::from(pointer(&data, &found)) < data.len());
            }
        }
    }
}
