//! `ip6-not-enabled`: drops IPv6 packets of an interface that does not speak IPv6: one without an
//! address, unless it is said otherwise.
//!
//! The first feature of the arcs `ip6-unicast` and `ip6-multicast` there, so that others pay
//! nothing for it.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};

thalweg_graph::errors! {
    DISABLED: Error, IPV6DISABLED, "ip6 is not enabled on the interface";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-not-enabled",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-unicast").at(Stage::Admission)),
    also_on: &["ip6-multicast"],
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
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
