//! ICMP errors (RFC 792, RFC 1812 section 4.3).

use crate::tables::Tables;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, PktMut};
use thalweg_feat_ip::icmp_errors::{About, Ends, Rules, WayOut};
use thalweg_fib::DpoTable;
use thalweg_graph::{BuildCx, Verdict};
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::icmpv4::{IcmpRepr, may_answer_with_error};
use thalweg_wire::ipv4::Ipv4View;

pub use thalweg_buffer::IcmpCause as Cause;
pub use thalweg_feat_ip::icmp_errors::request_error;

/// The way out of errors whose calling node looks their destination up by its next node `lookup`.
#[must_use]
pub fn way_out(cx: &BuildCx<'_>, lookup: Verdict) -> WayOut {
    WayOut::new(cx, "ip4-icmp-error-reply", lookup)
}

/// Hosts, which alone are answered by errors (RFC 1812 section 4.3.2.7), and the sources of these.
pub struct Hosts {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
}

impl Hosts {
    /// Creates it for a node, in its `build` function.
    #[must_use]
    pub fn new(cx: &BuildCx<'_>) -> Hosts {
        Hosts { tables: cx.shared(), dpos: cx.shared() }
    }
}

impl Rules for Hosts {
    type Packet<'p> = Ipv4View<'p>;
    type Address = Ipv4Addr;

    fn may_answer(&self, guard: &Guard<'_>, p: &PktMut<'_>, about: &About<Ipv4View<'_>>) -> bool {
        let tables = self.tables.load(guard);
        // Broadcast addresses of another router's links are not known here.
        let is_host = |address| {
            about.ends == Ends::Elsewhere || tables.is_host(&self.dpos, p.rx_if(), address)
        };
        let packet = &about.packet;
        !p.flags().contains(Flags::GROUP)
            && may_answer_with_error(packet)
            && is_host(packet.src())
            && is_host(packet.dst())
    }

    fn source(
        &self,
        guard: &Guard<'_>,
        p: &PktMut<'_>,
        _packet: &Ipv4View<'_>,
    ) -> Option<Ipv4Addr> {
        self.tables.load(guard).address(p.rx_if())
    }
}

/// The message for a cause.
pub(crate) fn repr(cause: Cause) -> IcmpRepr {
    match (cause.kind, cause.code) {
        (3, 4) => IcmpRepr::fragmentation_needed(cause.mtu),
        (3, code) => IcmpRepr::unreachable(code),
        _ => IcmpRepr::ttl_exceeded(),
    }
}
