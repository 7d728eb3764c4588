//! Nodes by which packets enter an arc, or end on one, and that do nothing else to them.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{ArcId, BuildCx, Built, ErrorCode, Node, NodeCx, Verdict};

/// Describes a packet in a trace: `thalweg_wire::fmt::ip4` or `ip6`.
type Describe = fn(&[u8], &mut dyn Write, usize) -> std::fmt::Result;

/// Passes packets to the first feature of an arc, or to its end.
pub struct Start {
    arc: ArcId,
    end: Verdict,
    /// True if any interface has features on the arc.
    used: bool,
    describe: Describe,
}

impl Start {
    /// Builds the node that begins an arc, whose end is the node's next node `end`.
    pub fn build(cx: &BuildCx<'_>, arc: &str, end: Verdict, describe: Describe) -> Built {
        Built::node(Start { arc: cx.arc(arc), end, used: false, describe })
    }
}

impl Node for Start {
    const TOUCHES_DATA: bool = false;

    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.used = cx.arcs().is_used(self.arc);
    }

    #[inline]
    fn whole(&self) -> Option<Verdict> {
        (!self.used).then_some(self.end)
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        cx.arcs().first(self.arc, p.rx_if()).map_or(self.end, Verdict::node)
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = (self.describe)(frame.data(i), out, 0);
    }
}

/// Drops packets.
pub struct End {
    reason: ErrorCode,
    describe: Describe,
}

impl End {
    /// Builds the node that drops packets for a reason.
    pub fn build(reason: ErrorCode, describe: Describe) -> Built {
        Built::node(End { reason, describe })
    }
}

impl Node for End {
    const TOUCHES_DATA: bool = false;

    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::drop(self.reason)
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = (self.describe)(frame.data(i), out, 0);
    }
}
