//! `ip6-rewrite-out`: the link header of packets that have passed the features of `ip6-output`.
//!
//! Reads: aux (the adjacency), tx interface. Next: the adjacency's output node. An adjacency that
//! has changed since is not resolved again: these packets would pass the features twice.

use crate::link::{Ipv6Packets, suits};
use thalweg_buffer::PktMut;
use thalweg_feat_ip::rewrite_out::{Leaving, RewriteOut};
use thalweg_graph::{ErrorCode, NodeDecl, Verdict};

thalweg_graph::errors! {
    TOO_BIG: Error, FRAG_NEEDED, "ip6 MTU exceeded";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    LOST: Error, DEV_READY, "next hop lost during output features";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-rewrite-out",
    errors: ERRORS,
    drop: "ip6-drop",
    build: RewriteOut::<Ipv6Packets>::build,
    ..NodeDecl::DEFAULT
};

impl Leaving for Ipv6Packets {
    const HAS_GROUPS: bool = false;
    const NO_ROOM: ErrorCode = NO_ROOM;
    const LOST: ErrorCode = LOST;

    #[inline]
    fn exceeding(p: &PktMut<'_>, mtu: u16) -> Option<Verdict> {
        (!suits(p, mtu)).then_some(Verdict::drop(TOO_BIG))
    }
}
