//! `ip4-mpls-label-disposition-pipe`: checks IPv4 packets whose last label was popped, and passes
//! them to their adjacency. Their TTL is what it was (the pipe model of RFC 3443).
//!
//! Reads: aux (an adjacency or a group). Writes: aux (the adjacency). Next: `ip4-rewrite`, which
//! decrements the TTL; `ip4-arp`.

use crate::disposition;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut};
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::flow::five_tuple;

thalweg_graph::next_nodes! {
    REWRITE => "ip4-rewrite",
    ARP => "ip4-arp",
    GLEAN => "ip4-glean",
}
disposition::reasons!();

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-mpls-label-disposition-pipe",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Disposition { dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Disposition {
    dpos: Arc<DpoTable>,
}

impl Node for Disposition {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if let Err(reason) = disposition::check(cx, &mut p, REASONS) {
            return Verdict::drop(reason);
        }
        let hash = || five_tuple(p.data()).map_or(0, |t| t.hash32());
        let dpo = self.dpos.resolve(Dpo(p.aux()), hash);
        p.set_aux(dpo.get());
        match self.dpos.get(dpo).state().kind {
            kind if kind.is_complete() => REWRITE,
            Kind::INCOMPLETE => ARP,
            Kind::GLEAN => GLEAN,
            _ => Verdict::drop(DOWN),
        }
    }

    /// Fast path for sound packets in one segment, to adjacencies.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let Some(mut rest) = disposition::check_all::<V>(frame) else {
            return FrameVerdict::PerPacket;
        };
        for (i, aux) in frame.aux_mut().iter_mut().enumerate() {
            let state = self.dpos.get(Dpo(*aux)).state();
            match state.kind {
                Kind::REWRITE => {}
                Kind::REDIRECT_COMPLETE if !rest.contains(i as u8) => *aux = state.value,
                _ => rest.insert(i as u8),
            }
        }
        disposition::verdict(frame, each, rest, REWRITE)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
