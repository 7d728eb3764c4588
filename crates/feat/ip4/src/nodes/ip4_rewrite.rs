//! `ip4-rewrite`: one hop less to live, the MTU, and the new link header.
//!
//! Reads: aux (the forwarding entry). Next: the adjacency's output node; `ip4-frag` for packets
//! that are too long. Packets that the router made keep their time to live.

use crate::icmp::{self, Cause};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, GsoKind, PktMut};
use thalweg_fib::{DpoTable, Entry, EntryState, Kind};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, NodeId, Verdict};

thalweg_graph::next_nodes! {
    FRAG => "ip4-frag",
    ARP => "ip4-arp",
    ICMP_ERROR => "ip4-icmp-error",
}
thalweg_graph::errors! {
    TTL: Error, 257, "ip4 ttl <= 1";
    TOO_BIG: Error, 4, "ip4 packet exceeds the MTU and must not be fragmented";
    NO_ROOM: Error, 287, "no room for the link header";
    DOWN: Error, 331, "next hop's interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-rewrite",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4Rewrite { dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Ip4Rewrite {
    dpos: Arc<DpoTable>,
}

/// Writes the link header in front of a packet and says where it goes.
#[inline]
pub(crate) fn link_header(p: &mut PktMut<'_>, entry: Entry<'_>, state: EntryState) -> Verdict {
    let bytes = entry.rewrite();
    let len = usize::from(state.len);
    match p.push(len) {
        Some(room) if len == 14 => room.copy_from_slice(&bytes[..14]),
        Some(room) => room.copy_from_slice(&bytes[..len]),
        None => return Verdict::drop(NO_ROOM),
    }
    Verdict::node(NodeId(entry.next() as u16))
}

/// Length of the headers that each segment of a super-packet repeats. What the device says of it is
/// only a hint.
fn segment_headers(packet: &[u8], gso: GsoKind) -> usize {
    let ip = usize::from(packet.first().map_or(0, |b| b & 15)) * 4;
    match gso {
        GsoKind::Udp => ip + 8,
        _ => ip + usize::from(packet.get(ip + 12).map_or(0, |b| b >> 4)) * 4,
    }
}

impl Ip4Rewrite {
    /// What to do with a packet longer than the interface carries.
    #[cold]
    fn too_long(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, mtu: u16) -> Verdict {
        if p.flags().contains(Flags::OFFLOAD) {
            let o = p.meta().offload;
            // A super-packet is as long as its segments: the sender has sized them.
            if o.gso != GsoKind::None
                && segment_headers(p.data(), o.gso) + usize::from(o.gso_size) <= usize::from(mtu)
            {
                return Verdict::CONTINUE;
            }
        }
        let dont_fragment = p.data().get(6).is_some_and(|b| b & 0x40 != 0);
        if dont_fragment {
            return icmp::ask(cx, p, Cause::frag_needed(mtu), TOO_BIG, ICMP_ERROR);
        }
        FRAG
    }

    /// One hop less: decrements the time to live and follows it in the checksum (RFC 1624).
    #[inline]
    fn decrement_ttl(p: &mut PktMut<'_>) -> bool {
        let Some(h) = p.data_mut().first_chunk_mut::<20>() else { return false };
        if h[8] <= 1 {
            return false;
        }
        h[8] -= 1;
        let old = u16::from_be_bytes([h[10], h[11]]);
        h[10..12].copy_from_slice(&thalweg_wire::checksum::ttl_decrement(old).to_be_bytes());
        true
    }
}

impl Node for Ip4Rewrite {
    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.dpos.get(p.aux());
        let state = entry.state();
        if state.kind != Kind::Rewrite {
            return match state.kind {
                Kind::Incomplete => ARP,
                _ => Verdict::drop(DOWN),
            };
        }
        let local = p.may_have_flags() && p.flags().contains(Flags::LOCAL);
        if !local && !Self::decrement_ttl(&mut p) {
            return icmp::ask(cx, &mut p, Cause::TTL_EXCEEDED, TTL, ICMP_ERROR);
        }
        if p.total_len() > usize::from(state.mtu) {
            let v = Self::too_long(cx, &mut p, state.mtu);
            if v != Verdict::CONTINUE {
                return v;
            }
        }
        link_header(&mut p, entry, state)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (dpo, data) = (frame.aux()[i as usize], frame.data(i));
        let entry = self.dpos.get(dpo);
        let s = entry.state();
        // What does not go on has a reason for an index, and its IP header in front still.
        if s.kind != Kind::Rewrite || !data.starts_with(&entry.rewrite()[..usize::from(s.len)]) {
            let _ = writeln!(out, "not rewritten");
            let _ = thalweg_wire::fmt::ip4(data, out, 0);
            return;
        }
        let _ = writeln!(out, "tx {} dpo-idx {dpo}", interface_token(s.tx_if));
        let _ = thalweg_wire::fmt::packet(data, out, 0);
    }
}
