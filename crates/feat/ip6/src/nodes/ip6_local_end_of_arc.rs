//! `ip6-local-end-of-arc`: packets to the router itself that have passed the features of the
//! `ip6-local` arc.
//!
//! Reads: rx interface. Next: as `ip6-local` without features.

use super::ip6_local::{DEMUX_ERRORS, DEMUX_NODES};
use crate::link::Ipv6Packets;
use thalweg_feat_ip::demux::EndOfArc;
use thalweg_graph::NodeDecl;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-local-end-of-arc",
    next: DEMUX_NODES,
    errors: DEMUX_ERRORS,
    drop: "ip6-drop",
    build: EndOfArc::<Ipv6Packets>::build,
    ..NodeDecl::DEFAULT
};
