//! `ip6-punt-redirect`: sends punted packets by the paths of their interface's redirect.
//!
//! Reads: rx interface. Writes: aux (the forwarding object), hop limit, if it is below 2. Next: by
//! the object's kind, as `ip6-lookup`.

use super::ip6_lookup::{ERRORS, NEXT_NODES};
use crate::link::Ipv6Packets;
use thalweg_feat_ip::lookup::Routed;
use thalweg_feat_ip::punt_redirect::{PuntRedirect, Redirectable};
use thalweg_graph::{FeatureDecl, NodeDecl};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-punt-redirect",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-punt")),
    build: PuntRedirect::<Ipv6Packets>::build,
    ..NodeDecl::DEFAULT
};

impl Redirectable for Ipv6Packets {
    fn raise_hops(packet: &mut [u8], least: u8) {
        if let Some(hops) = packet.get_mut(Self::HOPS_AT) {
            *hops = (*hops).max(least);
        }
    }
}
