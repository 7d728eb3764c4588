//! `pw-cw-pop`: removes the control word of a pseudowire (RFC 4385).
//!
//! Reads: rx interface, the pseudowire's. Next: `interface-rx-dpo-l2`.

use crate::nodes::mpls_tunnel_tx::CONTROL_WORD;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { RECEIVE => "interface-rx-dpo-l2" }
thalweg_graph::errors! {
    SHORT: Error, MPLS_PARSING, "pseudowire packet shorter than its control word";
    NO_DATA: Error, IP_HEADER_CORRUPTED, "pseudowire control word of no data packet";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "pw-cw-pop",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |_| Built::node(Pop),
    ..NodeDecl::DEFAULT
};

struct Pop;

impl Node for Pop {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        match p.data().first_chunk::<CONTROL_WORD>() {
            None => Verdict::drop(SHORT),
            // The first nibble of others is 1, that of a channel associated with the pseudowire.
            Some(word) if word[0] >> 4 != 0 => Verdict::drop(NO_DATA),
            Some(_) => {
                p.pull(CONTROL_WORD);
                RECEIVE
            }
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "pw-cw-pop: {} bytes behind it", frame.total_len(i));
    }
}
