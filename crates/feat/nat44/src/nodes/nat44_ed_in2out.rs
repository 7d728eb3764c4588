//! `nat44-ed-in2out`: gives what hosts inside send an address outside.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: on along the
//! `ip4-unicast` arc; `nat44-ed-out2in` for what comes back in; an ICMP error for what is refused.

use crate::translate::{Direction, NEED, Names, QUEUES, Translator};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { ICMP_ERROR => "ip4-icmp-error", OUT2IN => "nat44-ed-out2in" }
thalweg_graph::errors! {
    NO_TRANSLATION: Error, 258, "no session and no mapping";
    NOT_SYN: Error, 340, "tcp packet that opens no connection and belongs to none";
    NO_PORT: Error, 259, "no address with a free port";
    FULL: Error, 259, "as many sessions as there may be";
    TAKEN: Error, 259, "another session has that tuple";
    LIMIT: Error, 259, "as many sessions of a host or table as there may be";
    FRAGMENT: Error, 289, "fragment whose first part was not seen";
    UNKNOWN: Error, 289, "packet without ports or of an unknown icmp type";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "nat44-ed-in2out",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl { arc: "ip4-unicast", before: &[], after: &[] }),
    build: |cx| {
        let names = Names {
            icmp_error: ICMP_ERROR,
            out2in: OUT2IN,
            no_translation: NO_TRANSLATION,
            not_syn: NOT_SYN,
            no_port: NO_PORT,
            full: FULL,
            taken: TAKEN,
            limit: LIMIT,
            fragment: FRAGMENT,
            unknown: UNKNOWN,
        };
        Built::node(NatIn2Out(Translator::new(cx, Direction::In2Out, QUEUES[0].0, names)))
    },
    ..NodeDecl::DEFAULT
};

struct NatIn2Out(Translator);

impl Node for NatIn2Out {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.0.begin(cx, frame);
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        self.0.packet(cx, p)
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        self.0.frame::<NEED>(cx, frame, each)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
