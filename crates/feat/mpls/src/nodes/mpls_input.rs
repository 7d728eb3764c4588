//! `mpls-input`: the first checks of labelled packets (RFC 3032).
//!
//! Reads: rx interface. Next: the first feature of the `mpls-input` arc, or `mpls-lookup`.

use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, Iface, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_graph::{ArcId, Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::mpls::Entry;

thalweg_graph::next_nodes! { LOOKUP => "mpls-lookup" }
thalweg_graph::errors! {
    SHORT: Error, MPLS_PARSING, "mpls packet shorter than a label";
    TTL_EXPIRED: Error, TTL_EXCEEDED, "mpls ttl expired";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-input",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        let arc = cx.arc("mpls-input");
        Built::node(MplsInput { arc, next: LOOKUP, uniform: false })
    },
    ..NodeDecl::DEFAULT
};

struct MplsInput {
    /// The arc `mpls-input`.
    arc: ArcId,
    /// Next node of the frame's packets, if they share one.
    next: Verdict,
    uniform: bool,
}

impl MplsInput {
    #[inline]
    fn start(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex) -> Verdict {
        cx.arcs().first(self.arc, rx_if).map_or(LOOKUP, Verdict::node)
    }
}

impl Node for MplsInput {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        match frame.rx() {
            Iface::Uniform(rx_if) => {
                cx.stats().interface(rx_if).mpls.add(frame.len() as u64);
                self.next = self.start(cx, rx_if);
                self.uniform = true;
            }
            Iface::Mixed => {
                let mut starts = None;
                self.uniform = true;
                for (rx_if, n) in frame.rx_runs() {
                    cx.stats().interface(rx_if).mpls.add(n as u64);
                    self.next = self.start(cx, rx_if);
                    self.uniform &= *starts.get_or_insert(self.next) == self.next;
                }
            }
        }
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let Ok((entry, _)) = Entry::parse(p.data()) else { return Verdict::drop(SHORT) };
        if entry.ttl() == 0 {
            return Verdict::drop(TTL_EXPIRED);
        }
        if self.uniform { self.next } else { self.start(cx, p.rx_if()) }
    }

    /// Fast path for packets of interfaces with the same features. The lookup checks TTLs, too.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        _: &mut [Verdict],
    ) -> FrameVerdict {
        let Some(mut heads) = frame.long_heads::<4>().filter(|_| self.uniform) else {
            return FrameVerdict::PerPacket;
        };
        match heads.all(|head| head[3] != 0) {
            true => FrameVerdict::Whole(self.next),
            false => FrameVerdict::PerPacket,
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        if let Ok((e, _)) = Entry::parse(frame.data(i)) {
            let (label, ttl, exp) = (e.label(), e.ttl(), e.traffic_class());
            let _ = writeln!(out, "MPLS: next mpls-lookup label {label} ttl {ttl} exp {exp}");
        }
    }
}
