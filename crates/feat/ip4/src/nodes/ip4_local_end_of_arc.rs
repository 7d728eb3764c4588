//! `ip4-local-end-of-arc`: packets to the router itself that have passed the features of the
//! `ip4-local` arc.
//!
//! Reads: rx interface. Next: as `ip4-local` without features.

use super::ip4_local::{DEMUX_ERRORS, DEMUX_NODES};
use crate::link::Ipv4Packets;
use thalweg_feat_ip::demux::EndOfArc;
use thalweg_graph::NodeDecl;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-local-end-of-arc",
    next: DEMUX_NODES,
    errors: DEMUX_ERRORS,
    drop: "ip4-drop",
    build: EndOfArc::<Ipv4Packets>::build,
    ..NodeDecl::DEFAULT
};
