//! `ip4-punt-redirect`: sends punted packets by the paths of their interface's redirect.
//!
//! Reads: rx interface. Writes: aux (the forwarding object), TTL, if it is below 2. Next: by the
//! object's kind, as `ip4-lookup`.

use super::ip4_lookup::{ERRORS, NEXT_NODES};
use crate::link::Ipv4Packets;
use thalweg_feat_ip::punt_redirect::{PuntRedirect, Redirectable};
use thalweg_graph::{FeatureDecl, NodeDecl};
use thalweg_wire::ipv4::Ipv4Mut;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-punt-redirect",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-punt")),
    build: PuntRedirect::<Ipv4Packets>::build,
    ..NodeDecl::DEFAULT
};

impl Redirectable for Ipv4Packets {
    fn raise_hops(packet: &mut [u8], least: u8) {
        if let Ok(mut header) = Ipv4Mut::parse(packet)
            && header.ttl() < least
        {
            header.set_ttl(least);
        }
    }
}
