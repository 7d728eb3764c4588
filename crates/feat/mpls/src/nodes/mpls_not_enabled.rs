//! `mpls-not-enabled`: drops MPLS packets of an interface that does not take MPLS.
//!
//! The first feature of the arc `mpls-input` there, so that others pay nothing for it.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};

thalweg_graph::errors! {
    NOT_ENABLED: Error, UNKNOWN_L3_EXCEPTION, "mpls is not enabled on the interface";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-not-enabled",
    errors: ERRORS,
    drop: "error-drop",
    feature: Some(FeatureDecl::on("mpls-input").at(Stage::Admission)),
    build: |_| Built::node(NotEnabled),
    ..NodeDecl::DEFAULT
};

struct NotEnabled;

impl Node for NotEnabled {
    const TOUCHES_DATA: bool = false;

    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::drop(NOT_ENABLED)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::mpls(frame.data(i), out, 0);
    }
}
