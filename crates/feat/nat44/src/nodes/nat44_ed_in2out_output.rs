//! `nat44-ed-in2out-output`: translates packets to external addresses on output.
//!
//! Reads: rx interface (its table), tx interface (the table of the outside). Keeps: aux (the
//! adjacency). Rewrites addresses, ports and checksums. Next: along the `ip4-output` arc;
//! `nat44-ed-out2in` for hairpinned packets; an ICMP error for refused sessions.

use crate::direction::Direction;
use crate::node::{self, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-in2out-output",
    FeatureDecl::on("ip4-output").at(Stage::Translation),
    build::<{ Direction::Output as u8 }>,
);
