//! `l2-input-vtr`: changes the VLAN tags of frames that a layer 2 interface receives.
//!
//! Reads: rx interface. Next: what `l2-input` would choose without a rewrite.

use crate::L2Table;
use crate::rewriting::apply;
use crate::table::Rewriting;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    FEW_TAGS: Error, 264, "L2 input tag rewrite drops";
    NO_PEER: Error, 267, "no cross connect";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-input-vtr",
    errors: ERRORS,
    build: |cx| Built::node(Rewrite { table: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Rewrite {
    table: Arc<Snapshot<L2Table>>,
}

#[inline]
fn one(rewriting: Option<&Rewriting>, mut p: PktMut<'_>) -> Verdict {
    // The rewrite may have gone since the packet came; where it was to go, too.
    let Some((r, next)) = rewriting.and_then(|r| Some((r, r.next?))) else {
        return Verdict::drop(NO_PEER);
    };
    if apply(&r.rx, &mut p) { Verdict::node(next) } else { Verdict::drop(FEW_TAGS) }
}

impl Node for Rewrite {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        one(self.table.load(cx.guard()).rewriting(p.rx_if()), p)
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let table = self.table.load(cx.guard());
        let mut last: Option<(SwIfIndex, Option<&Rewriting>)> = None;
        let n = frame.len();
        for (i, verdict) in each[..n].iter_mut().enumerate() {
            let p = frame.pkt(i as u8);
            let rx_if = p.rx_if();
            let rewriting = match last {
                Some((of, rewriting)) if of == rx_if => rewriting,
                _ => table.rewriting(rx_if),
            };
            last = Some((rx_if, rewriting));
            *verdict = one(rewriting, p);
        }
        FrameVerdict::Each(Rows::NONE)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let rx = interface_token(frame.rx_if(i));
        let _ = writeln!(out, "l2-input-vtr: {rx} {}", addresses(frame, i));
    }
}
