//! ICMP errors: requests by nodes, and their rate limit (RFC 792, RFC 1812 section 4.3).

use thalweg_buffer::PktMut;
use thalweg_graph::{ErrorCode, NodeCx, Verdict};
use thalweg_tables::limit::RateLimit;
use thalweg_wire::icmpv4::IcmpRepr;

/// Type, code and rest of header of an ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// Next-hop MTU, for "fragmentation needed" (RFC 1191).
    pub mtu: u16,
}

impl Cause {
    const fn new(kind: u8, code: u8) -> Cause {
        Cause { kind, code, mtu: 0 }
    }
    /// Time exceeded in transit.
    pub const TTL_EXCEEDED: Cause = Cause::new(11, 0);
    /// No route.
    pub const NET_UNREACHABLE: Cause = Cause::new(3, 0);
    /// The destination host does not answer.
    pub const HOST_UNREACHABLE: Cause = Cause::new(3, 1);
    /// Unknown protocol at this router.
    pub const PROTOCOL_UNREACHABLE: Cause = Cause::new(3, 2);
    /// No listener on this port.
    pub const PORT_UNREACHABLE: Cause = Cause::new(3, 3);
    /// Communication administratively prohibited.
    pub const PROHIBITED: Cause = Cause::new(3, 13);
    /// The packet exceeds the MTU and must not be fragmented.
    pub const fn frag_needed(mtu: u16) -> Cause {
        Cause { kind: 3, code: 4, mtu }
    }
}

/// Requests an ICMP error from `ip4-icmp-error` (the calling node's next `to`) before the packet is
/// dropped for `reason` of the calling node.
pub fn request_error(
    cx: &mut NodeCx<'_>,
    p: &mut PktMut<'_>,
    cause: Cause,
    reason: ErrorCode,
    to: Verdict,
) -> Verdict {
    p.set_aux(cx.error_id(reason));
    let meta = p.meta_mut();
    meta.opaque[0] = u16::from_be_bytes([cause.kind, cause.code]);
    meta.opaque[1] = cause.mtu;
    to
}

/// Cause stored by [`request_error`].
pub(crate) fn requested(p: &PktMut<'_>) -> Cause {
    let meta = p.meta();
    let [kind, code] = meta.opaque[0].to_be_bytes();
    Cause { kind, code, mtu: meta.opaque[1] }
}

impl Cause {
    pub(crate) fn repr(self) -> IcmpRepr {
        match (self.kind, self.code) {
            (3, 4) => IcmpRepr::fragmentation_needed(self.mtu),
            (3, code) => IcmpRepr::unreachable(code),
            _ => IcmpRepr::ttl_exceeded(),
        }
    }
}

/// Errors per second and worker, and burst size.
const RATE: u32 = 1000;
const BURST: u32 = 100;

/// The limit of a worker's ICMP errors.
pub(crate) fn limit() -> RateLimit {
    RateLimit::steady(RATE, BURST, thalweg_graph::clock::hz() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_and_recovers() {
        thalweg_graph::clock::init();
        let mut l = limit();
        let second = thalweg_graph::clock::hz() as u64;
        let granted = (0..1000).filter(|_| l.allow(second)).count();
        assert_eq!(granted, 100);
        let granted = (0..1000).filter(|_| l.allow(2 * second)).count();
        assert_eq!(granted, 100);
    }
}
