//! `ip4-icmp-echo-request`: turns an echo request into its reply.
//!
//! Writes: marks the packet as locally originated. Next: `ip4-lookup`.

use std::fmt::Write;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::checksum::update_u16;

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup" }
thalweg_graph::errors! {
    REPLIED: Info, 256, "icmp echo replies sent";
    SHORT: Error, 336, "icmp message too short";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-icmp-echo-request",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |_| Built::node(EchoRequest),
    ..NodeDecl::DEFAULT
};

struct EchoRequest;

impl Node for EchoRequest {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let data = p.data_mut();
        let header = usize::from(data.first().map_or(0, |b| b & 15)) * 4;
        if header < 20 || data.len() < header + 8 {
            return Verdict::drop(SHORT);
        }
        // Swapping source and destination leaves checksums unchanged.
        for i in 12..16 {
            data.swap(i, i + 4);
        }
        set_word(data, 8, 10, u16::from_be_bytes([64, data[9]]));
        set_word(data, header, header + 2, u16::from_be_bytes([0, data[header + 1]]));
        p.mark(Flags::LOCAL);
        cx.count(REPLIED, 1);
        LOOKUP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}

/// Changes the 16-bit word at `at` and updates the checksum at `sum_at` (RFC 1624).
fn set_word(data: &mut [u8], at: usize, sum_at: usize, new: u16) {
    let word = |d: &[u8], i: usize| u16::from_be_bytes([d[i], d[i + 1]]);
    let sum = update_u16(word(data, sum_at), word(data, at), new);
    data[at..at + 2].copy_from_slice(&new.to_be_bytes());
    data[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}
