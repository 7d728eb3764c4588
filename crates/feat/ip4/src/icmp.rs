//! ICMP errors: requests by nodes (RFC 792, RFC 1812 section 4.3).

use thalweg_buffer::PktMut;
use thalweg_feat_ip::icmp_errors::WayOut;
use thalweg_graph::{BuildCx, ErrorCode, NodeCx, Verdict};
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

/// The way out of errors whose calling node looks their destination up by its next node `lookup`.
#[must_use]
pub fn way_out(cx: &BuildCx<'_>, lookup: Verdict) -> WayOut {
    WayOut::new(cx, "ip4-icmp-error-reply", lookup)
}

/// The message for a cause.
pub(crate) fn repr(cause: Cause) -> IcmpRepr {
    match (cause.kind, cause.code) {
        (3, 4) => IcmpRepr::fragmentation_needed(cause.mtu),
        (3, code) => IcmpRepr::unreachable(code),
        _ => IcmpRepr::ttl_exceeded(),
    }
}
