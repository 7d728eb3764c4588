//! `ip4-not-enabled`: drops IPv4 packets of an interface that does not speak IPv4: one without an
//! address, unless it is said otherwise.
//!
//! The first feature of the arcs `ip4-unicast` and `ip4-multicast` there, so that others pay
//! nothing for it.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};

thalweg_graph::errors! {
    DISABLED: Error, UNKNOWN_L3_EXCEPTION, "ip4 is not enabled on the interface";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-not-enabled",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-unicast").at(Stage::Admission)),
    also_on: &["ip4-multicast"],
    build: |_| Built::node(NotEnabled),
    ..NodeDecl::DEFAULT
};

struct NotEnabled;

impl Node for NotEnabled {
    const TOUCHES_DATA: bool = false;

    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::drop(DISABLED)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
