//! ICMP errors: requests by nodes, and their rate limit (RFC 792, RFC 1812 section 4.3).

use thalweg_buffer::PktMut;
use thalweg_graph::{ErrorCode, NodeCx, Verdict};
use thalweg_tables::limit::RateLimit;
use thalweg_wire::icmpv4::IcmpRepr;

pub use thalweg_buffer::IcmpCause as Cause;

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
    p.meta_mut().icmp = cause;
    to
}

/// The message for a cause.
pub(crate) fn repr(cause: Cause) -> IcmpRepr {
    match (cause.kind, cause.code) {
        (3, 4) => IcmpRepr::fragmentation_needed(cause.mtu),
        (3, code) => IcmpRepr::unreachable(code),
        _ => IcmpRepr::ttl_exceeded(),
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
