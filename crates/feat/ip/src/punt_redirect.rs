//! The node that sends punted packets by the paths of their interface's redirect.

use crate::lookup::{Lookup, Routed};
use crate::redirect::Redirects;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{BuildCx, Built, Node, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;

/// TTL or hop limit that a packet needs to leave.
const LEAST: u8 = 2;

/// A version's packets of which the node sets the TTL or hop limit.
pub trait Redirectable: Routed {
    /// Raises the TTL or hop limit of a packet to this one, if it is below.
    fn raise_hops(packet: &mut [u8], least: u8);
}

/// The node. Its next nodes and errors are those of the version's look-up.
pub struct PuntRedirect<V: Routed> {
    lookup: Lookup<V>,
    redirects: Arc<Snapshot<Redirects<V::Address>>>,
}

impl<V: Redirectable> PuntRedirect<V> {
    /// Builds the node.
    pub fn build(cx: &BuildCx<'_>) -> Built {
        Built::node(Self { lookup: Lookup::new(cx), redirects: cx.shared() })
    }
}

impl<V: Redirectable> Node for PuntRedirect<V> {
    fn begin(&mut self, _: &mut NodeCx<'_>, _: &Frame) {
        self.lookup.begin_counting();
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        // The redirect may have been removed while the packet was on its way.
        let Some(dpo) = self.redirects.load(cx.guard()).get(p.rx_if()) else {
            return Verdict::CONTINUE;
        };
        cx.stats().interface(p.rx_if()).punt.add(1);
        // One that arrived with its last hop still gets there: the path takes one off.
        V::raise_hops(p.data_mut(), LEAST);
        self.lookup.redirect(cx, p, dpo)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        V::describe(frame.data(i), out);
    }
}
