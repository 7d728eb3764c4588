//! `nat44-ed-hairpin`: translates packets between inside hosts by external address, on inside
//! interfaces with `output-feature`, where other packets are not translated on input.
//!
//! Reads: rx interface (its table). Rewrites addresses, ports and checksums. Next: along the
//! `ip4-unicast` arc for other packets; `nat44-ed-out2in`.

use crate::direction::Direction;
use crate::node::{self, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = node::declare(
    "nat44-ed-hairpin",
    FeatureDecl::on("ip4-unicast").at(Stage::Translation).after(&["nat44-ed-out2in"]),
    build::<{ Direction::Hairpin as u8 }>,
);
