//! `nat44-ed-classify`: translates packets of interfaces that are both inside and outside.
//!
//! A packet of a session goes the way of its session; of the others, those for an external address
//! are from outside, and the rest from inside. Each is translated once.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: along the
//! `ip4-unicast` arc; `nat44-ed-out2in` for hairpinned packets; an ICMP error for refused sessions.

use crate::direction::Direction;
use crate::node::{self, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-classify",
    FeatureDecl::on("ip4-unicast").at(Stage::Translation).after(&["nat44-ed-out2in"]),
    build::<{ Direction::Both as u8 }>,
);
