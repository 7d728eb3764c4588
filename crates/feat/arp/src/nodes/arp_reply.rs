//! `arp-reply`: as `arp-input`, for packets that have passed the features of the arc `arp`.

use super::arp_input::{ERRORS, build};
use thalweg_graph::NodeDecl;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "arp-reply",
    errors: ERRORS,
    build: |cx| build(cx, None),
    ..NodeDecl::DEFAULT
};
