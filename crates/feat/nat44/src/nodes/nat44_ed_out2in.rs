//! `nat44-ed-out2in`: gives what comes back to hosts inside their own addresses.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: on along the
//! `ip4-unicast` arc; `nat44-ed-out2in` for what comes back in; an ICMP error for what is refused.

use crate::node::{self, build};
use crate::translate::{Direction, NEED};
use thalweg_graph::{FeatureDecl, NodeDecl};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-out2in",
    FeatureDecl { arc: "ip4-unicast", before: &["nat44-ed-in2out"], after: &[] },
    build::<{ Direction::Out2In as u8 }, NEED>,
);
