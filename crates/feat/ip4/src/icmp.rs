//! ICMP errors: requests by nodes, and their rate limit (RFC 792, RFC 1812 section 4.3).

use thalweg_buffer::PktMut;
use thalweg_graph::{ErrorCode, NodeCx, Verdict};
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

/// Token bucket for the ICMP errors of a worker.
pub(crate) struct Limiter {
    tokens: f64,
    at: u64,
}

impl Limiter {
    /// Errors per second and worker, and burst size.
    const RATE: f64 = 1000.0;
    const BURST: f64 = 100.0;

    pub(crate) fn new() -> Limiter {
        Limiter { tokens: Self::BURST, at: 0 }
    }

    pub(crate) fn allow(&mut self, now: u64) -> bool {
        let passed = now.wrapping_sub(self.at) as f64 / thalweg_graph::clock::hz();
        self.at = now;
        self.tokens = (self.tokens + passed * Self::RATE).min(Self::BURST);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_and_recovers() {
        thalweg_graph::clock::init();
        let mut l = Limiter::new();
        let second = thalweg_graph::clock::hz() as u64;
        let granted = (0..1000).filter(|_| l.allow(second)).count();
        assert_eq!(granted, 100);
        let granted = (0..1000).filter(|_| l.allow(2 * second)).count();
        assert_eq!(granted, 100);
    }
}
