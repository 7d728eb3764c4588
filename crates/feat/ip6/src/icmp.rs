//! ICMPv6 errors, and what may be answered (RFC 4443 section 2.4).

use crate::tables::Tables;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, IcmpCause, PktMut};
use thalweg_feat_ip::icmp_errors::{About, Rules, WayOut};
use thalweg_feat_nd::IfAddrs;
use thalweg_graph::{BuildCx, Verdict};
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::icmpv6::{Icmp6Repr, kind};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::Ipv6View;

pub use thalweg_feat_ip::icmp_errors::request_error;

const fn cause(kind: u8, code: u8) -> IcmpCause {
    IcmpCause { kind, code, mtu: 0 }
}

/// No route.
pub(crate) const NO_ROUTE: IcmpCause = cause(kind::DESTINATION_UNREACHABLE, 0);
/// Communication with the destination is administratively prohibited.
pub(crate) const PROHIBITED: IcmpCause = cause(kind::DESTINATION_UNREACHABLE, 1);
/// The source address means nothing beyond its link.
pub(crate) const BEYOND_SCOPE: IcmpCause = cause(kind::DESTINATION_UNREACHABLE, 2);
/// The destination does not answer.
pub(crate) const ADDRESS_UNREACHABLE: IcmpCause = cause(kind::DESTINATION_UNREACHABLE, 3);
/// No listener on this port.
pub(crate) const PORT_UNREACHABLE: IcmpCause = cause(kind::DESTINATION_UNREACHABLE, 4);
/// The hop limit was exceeded in transit.
pub(crate) const HOP_LIMIT_EXCEEDED: IcmpCause = cause(kind::TIME_EXCEEDED, 0);

/// The packet exceeds the MTU.
#[must_use]
pub const fn packet_too_big(mtu: u16) -> IcmpCause {
    IcmpCause { mtu, ..cause(kind::PACKET_TOO_BIG, 0) }
}

/// Nobody takes the header whose type is at `pointer`.
pub(crate) const fn unrecognized_header(pointer: u16) -> IcmpCause {
    parameter_problem(1, pointer)
}

/// Returns the cause for a field at byte `pointer` that must not be there, or is unknown.
pub(crate) const fn parameter_problem(code: u8, pointer: u16) -> IcmpCause {
    IcmpCause { mtu: pointer, ..cause(kind::PARAMETER_PROBLEM, code) }
}

/// Hosts that are answered by errors, and the sources of these.
pub struct Sources {
    tables: Arc<Snapshot<Tables>>,
    addrs: Arc<Snapshot<IfAddrs>>,
}

impl Sources {
    /// Creates it for a node, in its `build` function.
    #[must_use]
    pub fn new(cx: &BuildCx<'_>) -> Sources {
        Sources { tables: cx.shared(), addrs: cx.shared() }
    }
}

impl Rules for Sources {
    type Packet<'p> = Ipv6View<'p>;
    type Address = Ipv6Addr;

    // IPv6 has no broadcast addresses, which only a table would know.
    fn may_answer(&self, _: &Guard<'_>, p: &PktMut<'_>, about: &About<Ipv6View<'_>>) -> bool {
        may_answer(&about.packet, p.flags().contains(Flags::GROUP), about.cause)
    }

    /// Returns the address of the rx interface that is nearest to the asker, or else one of another
    /// interface (RFC 4443 section 2.2).
    fn source(&self, guard: &Guard<'_>, p: &PktMut<'_>, packet: &Ipv6View<'_>) -> Option<Ipv6Addr> {
        let own = self.addrs.load(guard).source_for(p.rx_if(), packet.src());
        own.or_else(|| self.tables.load(guard).source(p.rx_if()))
    }
}

/// The message for a cause.
pub(crate) fn repr(cause: IcmpCause) -> Icmp6Repr {
    Icmp6Repr { kind: cause.kind, code: cause.code, rest: u32::from(cause.mtu) }
}

/// Returns whether a packet may be answered by an error (RFC 4443 section 2.4 (e)). `by_group`: it
/// came to a link-layer group address.
fn may_answer(packet: &Ipv6View<'_>, by_group: bool, cause: IcmpCause) -> bool {
    let (src, dst) = (packet.src(), packet.dst());
    let to_group = by_group || dst.is_multicast();
    // Errors for multicast let senders find the MTU, and refuse options that all must know.
    let for_groups = cause.kind == kind::PACKET_TOO_BIG
        || (cause.kind, cause.code) == (kind::PARAMETER_PROBLEM, 2);
    let is_one = !src.is_unspecified() && !src.is_multicast() && src != Ipv6Addr::LOCALHOST;
    is_one && (!to_group || for_groups) && !is_error(packet)
}

/// Returns whether a packet is an error or a redirect, or may be one.
fn is_error(packet: &Ipv6View<'_>) -> bool {
    let Ok(transport) = packet.transport() else { return false };
    let later = transport.fragment.is_some_and(|f| f.offset > 0);
    let of = |kind: u8| kind < 128 || kind == kind::REDIRECT;
    transport.protocol == protocol::ICMPV6
        && (later || transport.payload.first().is_none_or(|first| of(*first)))
}

/// The way out of errors whose calling node looks their destination up by its next node `lookup`.
#[must_use]
pub fn way_out(cx: &BuildCx<'_>, lookup: Verdict) -> WayOut {
    WayOut::new(cx, "ip6-icmp-error-reply", lookup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::build::Packet;

    #[test]
    fn errors_answer_what_they_may() {
        let at = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let may =
            |bytes: &[u8], group, cause| may_answer(&Ipv6View::parse(bytes).unwrap(), group, cause);
        let udp = |src, dst| Packet::new().ipv6(at(src), at(dst)).udp(1, 2).build();
        let plain = udp("2001:db8::1", "2001:db8::2");
        assert!(may(&plain, false, NO_ROUTE) && !may(&plain, true, NO_ROUTE));
        assert!(may(&plain, true, packet_too_big(1280)));
        for (src, dst) in [("::", "2001:db8::2"), ("ff02::1", "2001:db8::2")] {
            assert!(!may(&udp(src, dst), false, NO_ROUTE), "{src}");
        }
        let group = udp("2001:db8::1", "ff05::2");
        assert!(
            !may(&group, false, HOP_LIMIT_EXCEEDED) && may(&group, false, packet_too_big(1280))
        );
        let mut error = vec![0; 48];
        let header = thalweg_wire::ipv6::Ipv6Repr::new(
            at("2001:db8::1"),
            at("2001:db8::2"),
            protocol::ICMPV6,
            8,
        );
        header.emit(&mut error).unwrap();
        for (kind, answered) in [(1, false), (127, false), (128, true), (137, false), (135, true)] {
            error[40] = kind;
            assert_eq!(may(&error, false, NO_ROUTE), answered, "{kind}");
        }
    }
}
