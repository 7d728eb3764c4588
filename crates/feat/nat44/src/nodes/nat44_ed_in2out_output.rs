//! `nat44-ed-in2out-output`: gives what leaves by an interface an address outside.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: on along the
//! `interface-output` arc; `nat44-ed-out2in` for what comes back in; an ICMP error for what is refused.

use crate::node::{self, build};
use crate::translate::{Direction, ETHERNET, NEED};
use thalweg_graph::{FeatureDecl, NodeDecl};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-in2out-output",
    FeatureDecl { arc: "interface-output", before: &[], after: &[] },
    build::<{ Direction::Output as u8 }, { ETHERNET + NEED }>,
);
