//! `nat44-ed-out2in`: translates packets from outside to inside addresses.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: along the
//! `ip4-unicast` arc; `nat44-ed-out2in` for hairpinned packets; an ICMP error for refused sessions.

use crate::direction::Direction;
use crate::node::{self, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-out2in",
    FeatureDecl::on("ip4-unicast").at(Stage::Translation).before(&["nat44-ed-in2out"]),
    build::<{ Direction::Out2In as u8 }>,
);
