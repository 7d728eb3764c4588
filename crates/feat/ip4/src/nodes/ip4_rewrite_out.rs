//! `ip4-rewrite-out`: the link header of packets that have passed the features of `ip4-output`.
//!
//! Reads: aux (the adjacency), tx interface. Next: the adjacency's output node; `ip4-frag` for
//! packets that exceed the MTU. An adjacency that has changed since is not resolved again: these
//! packets would pass the features twice.

use crate::link::{Ipv4Packets, Length, too_long};
use thalweg_buffer::PktMut;
use thalweg_feat_ip::rewrite_out::{Leaving, RewriteOut};
use thalweg_graph::{ErrorCode, NodeDecl, Verdict};

thalweg_graph::next_nodes! { FRAG => "ip4-frag" }
thalweg_graph::errors! {
    TOO_BIG: Error, FRAG_NEEDED, "ip4 MTU exceeded and DF set";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    LOST: Error, DEV_READY, "next hop lost during output features";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-rewrite-out",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: RewriteOut::<Ipv4Packets>::build,
    ..NodeDecl::DEFAULT
};

impl Leaving for Ipv4Packets {
    const HAS_GROUPS: bool = true;
    const NO_ROOM: ErrorCode = NO_ROOM;
    const LOST: ErrorCode = LOST;

    #[inline]
    fn exceeding(p: &PktMut<'_>, mtu: u16) -> Option<Verdict> {
        match too_long(p, mtu) {
            Length::Suits => None,
            Length::Fragment => Some(FRAG),
            Length::Refused => Some(Verdict::drop(TOO_BIG)),
        }
    }
}
