//! `nat44-ed-hairpin`: takes what hosts inside send to each other by their names outside, where an
//! interface inside has `output-feature`: nothing else of what they send is translated on its way in.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: on along the
//! `ip4-unicast` arc for all that is for others; `nat44-ed-out2in`.

use crate::node::{self, build};
use crate::translate::{Direction, NEED};
use thalweg_graph::{FeatureDecl, NodeDecl};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-hairpin",
    FeatureDecl { arc: "ip4-unicast", before: &[], after: &["nat44-ed-out2in"] },
    build::<{ Direction::Hairpin as u8 }, NEED>,
);
