//! `nat44-ed-in2out`: translates packets from inside to external addresses.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: along the
//! `ip4-unicast` arc; `nat44-ed-out2in` for hairpinned packets; an ICMP error for refused sessions.

use crate::direction::Direction;
use crate::node::{self, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-in2out",
    FeatureDecl::on("ip4-unicast").at(Stage::Translation),
    build::<{ Direction::In2Out as u8 }>,
);
