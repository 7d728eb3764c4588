//! `l2-output`: changes the VLAN tags of frames that a layer 2 interface sends back to what its
//! peers expect, for interfaces with a tag rewrite.
//!
//! Reads: tx interface. Next: that interface's output node.

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
    FEW_TAGS: Error, 264, "L2 output tag rewrite drops";
    GONE: Error, 267, "L2 Output interface not valid";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-output",
    errors: ERRORS,
    build: |cx| Built::node(Output { table: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Output {
    table: Arc<Snapshot<L2Table>>,
}

#[inline]
fn one(rewriting: Option<&Rewriting>, mut p: PktMut<'_>) -> Verdict {
    // The rewrite may have gone since the packet was sent here.
    let Some((r, output)) = rewriting.and_then(|r| Some((r, r.output?))) else {
        return Verdict::drop(GONE);
    };
    if apply(&r.tx, &mut p) { Verdict::node(output) } else { Verdict::drop(FEW_TAGS) }
}

impl Node for Output {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        one(self.table.load(cx.guard()).rewriting(p.tx_if()), p)
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
            let tx_if = p.tx_if();
            let rewriting = match last {
                Some((of, rewriting)) if of == tx_if => rewriting,
                _ => table.rewriting(tx_if),
            };
            last = Some((tx_if, rewriting));
            *verdict = one(rewriting, p);
        }
        FrameVerdict::Each(Rows::NONE)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let tx = interface_token(frame.tx_if(i));
        let _ = writeln!(out, "l2-output: {tx} {}", addresses(frame, i));
    }
}
