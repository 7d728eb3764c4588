//! Why IPv6 packets are punted.

use std::sync::Arc;
use thalweg_engine::punt::{self, Class, Reason, ReasonDecl};
use thalweg_graph::Control;

/// Packets per second and worker, and at once, that a feature gets by each reason.
const RATE: u32 = 10_000;
const BURST: u32 = 1_000;

const fn reason(name: &'static str) -> ReasonDecl {
    ReasonDecl { name, from: "ip6", class: Class::Host, rate: RATE, burst: BURST }
}

static UNKNOWN_PROTOCOL: ReasonDecl = reason("ip6-unknown-protocol");
static NO_UDP_LISTENER: ReasonDecl = reason("ip6-no-udp-listener");
static NO_TCP_LISTENER: ReasonDecl = reason("ip6-no-tcp-listener");
static ICMP_MESSAGE: ReasonDecl = reason("ip6-icmp-message");

/// The reasons.
pub(crate) struct Reasons {
    /// No node takes the IP protocol.
    pub(crate) unknown_protocol: Reason,
    /// No node takes the UDP port.
    pub(crate) no_udp_listener: Reason,
    /// No node takes TCP.
    pub(crate) no_tcp_listener: Reason,
    /// An ICMP message other than those that the router handles itself.
    pub(crate) icmp_message: Reason,
}

pub(crate) fn init(c: &mut Control) {
    let reasons = Reasons {
        unknown_protocol: punt::add(c, &UNKNOWN_PROTOCOL),
        no_udp_listener: punt::add(c, &NO_UDP_LISTENER),
        no_tcp_listener: punt::add(c, &NO_TCP_LISTENER),
        icmp_message: punt::add(c, &ICMP_MESSAGE),
    };
    c.share(Arc::new(reasons));
}
