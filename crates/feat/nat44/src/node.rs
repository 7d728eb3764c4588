//! The translating nodes: one implementation and one error table, at five places in the graph.

use crate::direction::{Direction, QUEUES};
use crate::translate::{Outcomes, Translator};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{BuildCx, Built, FeatureDecl, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { ICMP_ERROR => "ip4-icmp-error", OUT2IN => "nat44-ed-out2in", LOOKUP_IN => "ip4-lookup-in" }
thalweg_graph::errors! {
    NO_TRANSLATION: Error, ACL, "no translation";
    VRF_DENIED: Error, ACL, "inter-VRF route not allowed";
    NON_SYN: Error, TCP_FLAGS, "non-SYN packet try to create session";
    OUT_OF_PORTS: Error, NO_BUFFER_SPACE, "out of ports";
    MAX_SESSIONS: Error, NO_BUFFER_SPACE, "maximum sessions exceeded";
    TUPLE_IN_USE: Error, NO_BUFFER_SPACE, "tuple in use by another session";
    USER_LIMIT: Error, NO_BUFFER_SPACE, "max user sessions exceeded";
    VRF_LIMIT: Error, NO_BUFFER_SPACE, "max VRF sessions exceeded";
    FRAGMENT: Error, UNKNOWN_L4, "drop fragment";
    BAD_ICMP_TYPE: Error, UNKNOWN_L4, "unsupported ICMP type";
    INCOMPLETE: Error, UNKNOWN_L4, "incomplete transport header";
}

const OUTCOMES: Outcomes = Outcomes {
    icmp_error: ICMP_ERROR,
    out2in: OUT2IN,
    lookup_in: LOOKUP_IN,
    no_translation: NO_TRANSLATION,
    vrf_denied: VRF_DENIED,
    non_syn: NON_SYN,
    out_of_ports: OUT_OF_PORTS,
    max_sessions: MAX_SESSIONS,
    tuple_in_use: TUPLE_IN_USE,
    user_limit: USER_LIMIT,
    vrf_limit: VRF_LIMIT,
    fragment: FRAGMENT,
    bad_icmp_type: BAD_ICMP_TYPE,
    incomplete: INCOMPLETE,
};

/// Declares a translating node at a place of an arc.
pub(crate) const fn declare(
    name: &'static str,
    place: FeatureDecl,
    build: fn(&BuildCx<'_>) -> Built,
) -> NodeDecl {
    NodeDecl {
        name,
        next: NEXT_NODES,
        errors: ERRORS,
        drop: "ip4-drop",
        feature: Some(place),
        build,
        ..NodeDecl::DEFAULT
    }
}

/// A translating node. `DIRECTION` is a [`Direction`], so that each is compiled separately.
struct NatNode<const DIRECTION: u8>(Translator);

/// Builds the node.
pub(crate) fn build<const DIRECTION: u8>(cx: &BuildCx<'_>) -> Built {
    let direction = Direction::of(DIRECTION);
    let queue = QUEUES[direction as usize].0;
    Built::node(NatNode::<DIRECTION>(Translator::new(cx, direction, queue, OUTCOMES)))
}

impl<const DIRECTION: u8> Node for NatNode<DIRECTION> {
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
        self.0.frame(cx, frame, each)
    }

    #[inline]
    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.end(cx);
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
