//! Reason why labelled packets are punted.

use std::sync::Arc;
use thalweg_engine::punt::{self, Class, Reason, ReasonDecl};
use thalweg_graph::Control;

/// Packets per second and worker, and at once, that a feature gets by each reason.
const RATE: u32 = 10_000;
const BURST: u32 = 1_000;

const fn reason(name: &'static str) -> ReasonDecl {
    ReasonDecl { name, from: "mpls", class: Class::Host, rate: RATE, burst: BURST }
}

static ROUTER_ALERT: ReasonDecl = reason("mpls-router-alert");
static LOCAL: ReasonDecl = reason("mpls-local");

pub(crate) struct Reasons {
    /// The label says that the router has to look at the packet (RFC 3032 section 2.1).
    pub(crate) router_alert: Reason,
    /// The label is bound to the router itself.
    pub(crate) local: Reason,
}

pub(crate) fn init(c: &mut Control) {
    let reasons =
        Reasons { router_alert: punt::add(c, &ROUTER_ALERT), local: punt::add(c, &LOCAL) };
    c.share(Arc::new(reasons));
}
