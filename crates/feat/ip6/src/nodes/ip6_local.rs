//! `ip6-local`: packets to the router itself, by the protocol behind their extension headers.
//!
//! Reads: rx interface. Next: `ip6-icmp-input`, or the node that takes the protocol or the UDP
//! port; without one, `ip6-punt` if a feature wants these packets, or an ICMP error. Features of
//! the `ip6-local` arc come before; `ip6-local-end-of-arc` goes on after the last.

use crate::icmp;
use crate::link::Ipv6Packets;
use thalweg_buffer::{Flags, PktMut};
use thalweg_feat_ip::demux::{Local, ToRouter, Transport};
use thalweg_graph::{NodeCx, NodeDecl, Verdict};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{self, HEADER_LEN, Ipv6View};

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
    build: |cx| ToRouter::<Ipv6Packets>::build(cx, "ip6-local"),
    ..NodeDecl::DEFAULT
};

/// The transport of a packet; `None` if its extension headers cannot be read.
fn read(data: &[u8]) -> Option<ipv6::Transport<'_>> {
    Ipv6View::parse_prefix(data).ok()?.transport().ok()
}

/// Returns the verdict on a packet with an option that it may not have, or a route that goes on.
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
fn pointer(data: &[u8], transport: Transport) -> u16 {
    let end = transport.at;
    if end <= HEADER_LEN {
        return 6;
    }
    // The extension header before it: each is found from the one before.
    let (mut at, mut next) = (HEADER_LEN, data.get(6).copied().unwrap_or(0));
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
fn udp_port(p: &PktMut<'_>, Transport { at, end, .. }: Transport) -> Result<u16, Verdict> {
    let Some(udp) = p.data().get(at..end).and_then(<[u8]>::first_chunk::<8>) else {
        return Err(Verdict::drop(UDP_LENGTH));
    };
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
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

/// The transport that was read from a packet.
fn found(transport: &ipv6::Transport<'_>) -> Transport {
    let at = HEADER_LEN + transport.offset;
    Transport { protocol: transport.protocol, at, end: at + transport.payload.len() }
}

impl Local for Ipv6Packets {
    const ICMP: u8 = protocol::ICMPV6;
    const TO_ICMP: Verdict = ICMP;
    const PUNT: Verdict = PUNT;

    fn whole(packet: &[u8]) -> Result<(), Verdict> {
        let Some(transport) = read(packet) else { return Err(Verdict::drop(EXTENSION)) };
        match transport.fragment {
            Some(fragment) if !fragment.is_atomic() => Err(Verdict::drop(FRAGMENT)),
            _ => Ok(()),
        }
    }

    fn transport(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Result<Transport, Verdict> {
        if let Some(verdict) = refused(cx, p) {
            return Err(verdict);
        }
        let transport = read(p.data()).ok_or(Verdict::drop(EXTENSION))?;
        Ok(found(&transport))
    }

    fn udp_port(
        _: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        transport: Transport,
    ) -> Result<u16, Verdict> {
        udp_port(p, transport)
    }

    fn refuse(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, transport: Transport) -> Verdict {
        match transport.protocol {
            protocol::UDP => {
                icmp::request_error(cx, p, icmp::PORT_UNREACHABLE, NO_PORT, ICMP_ERROR)
            }
            protocol::TCP => Verdict::drop(NO_PORT),
            protocol::NO_NEXT => Verdict::drop(NO_PROTOCOL),
            _ => {
                let cause = icmp::unrecognized_header(pointer(p.data(), transport));
                icmp::request_error(cx, p, cause, NO_PROTOCOL, ICMP_ERROR)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_wire::ipv6::Ipv6Repr;

    #[test]
    fn an_unknown_header_is_pointed_at() {
        let host: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mut data = vec![0; 40];
        Ipv6Repr::new(host, host, 0, 24).emit(&mut data).unwrap();
        data.extend([60, 0, 1, 4, 0, 0, 0, 0]);
        data.extend([200, 0, 1, 4, 0, 0, 0, 0]);
        data.extend([0; 8]);
        let at = found(&read(&data).unwrap());
        assert_eq!((at.protocol, pointer(&data, at)), (200, 48));
        data[40] = 201;
        let at = found(&read(&data).unwrap());
        assert_eq!((at.protocol, pointer(&data, at)), (201, 40));
        data[6] = 202;
        assert_eq!(pointer(&data, found(&read(&data).unwrap())), 6);
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
            if let Some(transport) = read(&data) {
                prop_assert!(usize::from(pointer(&data, found(&transport))) < data.len());
            }
        }
    }
}
