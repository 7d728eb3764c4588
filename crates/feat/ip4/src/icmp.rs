//! ICMP errors (RFC 792, RFC 1812 section 4.3).

use thalweg_feat_ip::icmp_errors::WayOut;
use thalweg_graph::{BuildCx, Verdict};
use thalweg_wire::icmpv4::IcmpRepr;

pub use thalweg_buffer::IcmpCause as Cause;
pub use thalweg_feat_ip::icmp_errors::request_error;

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
