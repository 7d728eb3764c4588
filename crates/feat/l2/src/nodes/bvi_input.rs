//! `bvi-input`: passes frames that a bridge domain forwards to its BVI on to layer 3, as received
//! by the BVI.
//!
//! Reads: tx interface, the BVI. Writes: rx and tx interface. Next: the BVI's features for what it
//! receives, or `ethernet-input`.

use crate::trace::addresses;
use thalweg_device::entry::{self, Way};
use thalweg_graph::NodeDecl;
use thalweg_graph::trace::interface_token;

thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "BVI is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "bvi-input",
    next: &["ethernet-input"],
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        entry::build(cx, Way::FromBridge, DOWN, |frame, i, out| {
            let bvi = interface_token(frame.tx_if(i));
            let _ = writeln!(out, "bvi-input: {bvi} {}", addresses(frame, i));
        })
    },
    ..NodeDecl::DEFAULT
};
