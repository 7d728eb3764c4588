//! `bvi-output`: passes frames that the router sends by a BVI to its bridge domain, as received
//! from that port. Frames of the BVI's sub-interfaces are dropped: these are no ports.
//!
//! Reads: tx interface, the BVI. Writes: rx interface. Next: the BVI's features for what comes by
//! it, which see both interfaces the same then, or `l2-input`.

use crate::trace::addresses;
use thalweg_device::entry::{self, Way};
use thalweg_graph::NodeDecl;
use thalweg_graph::trace::interface_token;

thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "BVI is down";
    STRAY: Error, PORT_LIST_IS_EMPTY, "sub-interface of a BVI";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "bvi-output",
    next: &["l2-input"],
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        entry::build(cx, Way::IntoBridge(STRAY), DOWN, |frame, i, out| {
            let bvi = interface_token(frame.tx_if(i));
            let _ = writeln!(out, "bvi-output: {bvi} {}", addresses(frame, i));
        })
    },
    ..NodeDecl::DEFAULT
};
