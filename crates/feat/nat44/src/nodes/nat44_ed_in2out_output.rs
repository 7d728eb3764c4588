//! `nat44-ed-in2out-output`: translates packets to external addresses on output.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: along the
//! `interface-output` arc; `nat44-ed-out2in` for hairpinned packets; an ICMP error for refused
//! sessions.

use crate::node::{self, build};
use crate::translate::{Direction, ETHERNET, NEED};
use thalweg_graph::{FeatureDecl, NodeDecl};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-in2out-output",
    FeatureDecl { arc: "interface-output", before: &[], after: &[] },
    build::<{ Direction::Output as u8 }, { ETHERNET + NEED }>,
);
