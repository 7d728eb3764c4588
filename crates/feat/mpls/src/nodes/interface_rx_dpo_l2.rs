//! `interface-rx-dpo-l2`: lets an interface receive the Ethernet frames of a pseudowire.
//!
//! Reads: rx interface, the pseudowire's. Next: that interface's features for what it receives, or
//! `ethernet-input`.

use thalweg_device::entry::{self, Way};
use thalweg_graph::NodeDecl;
use thalweg_graph::trace::interface_token;

thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "interface of the pseudowire is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "interface-rx-dpo-l2",
    next: &["ethernet-input"],
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        entry::build(cx, Way::Frames, DOWN, |frame, i, out| {
            let _ = writeln!(out, "interface-rx-dpo: {}", interface_token(frame.rx_if(i)));
        })
    },
    ..NodeDecl::DEFAULT
};
