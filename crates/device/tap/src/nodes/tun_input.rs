//! `tun-input`: passes packets without an Ethernet header on by their IP version.
//!
//! Reads: the IP version. Next: `ip4-input`, `ip6-input`, as far as there are any.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thalweg_buffer::PktMut;
use thalweg_graph::{Built, Control, Node, NodeCx, NodeDecl, NodeId, Verdict};

thalweg_graph::errors! {
    UNKNOWN: Error, UNKNOWN_L3, "neither an IPv4 nor an IPv6 packet";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tun-input",
    errors: ERRORS,
    build: |cx| Built::node(TunInput(cx.shared::<Versions>())),
    ..NodeDecl::DEFAULT
};

/// The nodes of both versions, or [`NONE`].
pub(crate) struct Versions {
    ip4: AtomicU32,
    ip6: AtomicU32,
}

const NONE: u32 = u32::MAX;

pub(crate) fn init(c: &mut Control) {
    c.share(Arc::new(Versions { ip4: AtomicU32::new(NONE), ip6: AtomicU32::new(NONE) }));
}

/// Finds the nodes of both versions, once there are all.
pub(crate) fn ready(c: &mut Control) {
    let versions = c.shared::<Versions>();
    for (place, name) in [(&versions.ip4, "ip4-input"), (&versions.ip6, "ip6-input")] {
        place.store(c.node(name).map_or(NONE, |id| id.0.into()), Ordering::Relaxed);
    }
}

struct TunInput(Arc<Versions>);

impl Node for TunInput {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let to = match p.data().first().map(|b| b >> 4) {
            Some(4) => self.0.ip4.load(Ordering::Relaxed),
            Some(6) => self.0.ip6.load(Ordering::Relaxed),
            _ => NONE,
        };
        match to {
            NONE => Verdict::drop(UNKNOWN),
            id => Verdict::node(NodeId(id as u16)),
        }
    }
}
