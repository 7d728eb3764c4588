//! `mpls-frag`: fragments the IPv4 packet behind the labels of a packet that exceeds the MTU, or
//! answers it (RFC 3032 section 3). Each fragment gets the stack. An IPv6 packet is always
//! answered. Work that the sender's stack left to the device is done before.
//!
//! Reads: aux (the adjacency), tx interface (a tunnel). Next: the adjacency's output node;
//! `mpls-icmp-error` for packets that must not be fragmented, with the MTU that is left after the
//! labels.

use crate::behind::{IpBehind, ip_behind};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, GsoKind, IcmpCause, LOCAL_IF, Packet, PktMut};
use thalweg_device::offload::complete_checksum;
use thalweg_feat_ip4::{Failure, fragments, segments};
use thalweg_fib::{Dpo, DpoTable};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, NodeId, Verdict};
use thalweg_wire::mpls::{ENTRY_LEN, Stack};

thalweg_graph::next_nodes! { ICMP_ERROR => "mpls-icmp-error" }
thalweg_graph::errors! {
    DONT_FRAGMENT_SET: Error, FRAG_NEEDED, "mpls MTU exceeded and DF set";
    NOT_IP4: Error, FRAG_NEEDED, "mpls MTU exceeded and no ip packet behind the labels";
    SMALL_MTU: Error, FRAG_NEEDED, "MTU too small for fragments";
    NO_BUFFERS: Error, UNKNOWN_BUFFER, "no buffers for fragments";
    TOO_BIG: Error, FRAG_NEEDED, "mpls MTU exceeded by an ip6 packet";
    BAD_GSO: Error, MPLS_PARSING, "bad GSO packet behind the labels";
    FRAGMENTS: Info, UNKNOWN, "fragments of mpls packets sent";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-frag",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        let room = || Vec::with_capacity(1 << 16);
        let (whole, segment, pieces) = (room(), room(), Vec::with_capacity(1 << 10));
        Built::node(MplsFrag { dpos: cx.shared(), whole, segment, pieces })
    },
    ..NodeDecl::DEFAULT
};

struct MplsFrag {
    dpos: Arc<DpoTable>,
    whole: Vec<u8>,
    /// A segment of a GSO packet.
    segment: Vec<u8>,
    pieces: Vec<Packet>,
}

impl Node for MplsFrag {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let mut size = None;
        if p.flags().contains(Flags::OFFLOAD) {
            match p.meta().offload {
                // Segments get checksums of their own.
                o if o.gso != GsoKind::None => size = Some(o.gso_size),
                _ => {
                    let labels = Stack::new(p.data()).count() * ENTRY_LEN;
                    complete_checksum(&mut p, labels);
                }
            }
        }
        self.whole.clear();
        p.segments().for_each(|s| self.whole.extend_from_slice(s));
        let mut stack = Stack::new(&self.whole);
        stack.by_ref().for_each(drop);
        let packet = stack.payload();
        let labels = &self.whole[..self.whole.len() - packet.len()];
        let behind = stack.reached_bottom().then(|| ip_behind(packet, packet.len())).flatten();
        let (is_ip6, may_cut) = match behind {
            Some(IpBehind::V4(ip)) => (false, !ip.dont_fragment()),
            Some(IpBehind::V6(_)) => (true, false),
            None => return Verdict::drop(NOT_IP4),
        };
        let dpo = Dpo(p.aux());
        let entry = self.dpos.get(dpo);
        let state = entry.state();
        let room = usize::from(state.mtu).saturating_sub(labels.len()) as u16;
        if !may_cut {
            let reason = if is_ip6 { TOO_BIG } else { DONT_FRAGMENT_SET };
            if p.tx_if() == LOCAL_IF {
                // Without a tunnel, the packet would have left by the route's interface.
                p.set_tx_if(state.tx_if());
            }
            p.set_aux(cx.error_id(reason));
            p.meta_mut().path = dpo.get();
            p.meta_mut().icmp = IcmpCause::frag_needed(room);
            return ICMP_ERROR;
        }
        let (from, dpos, pieces) = (p.lineage(), &self.dpos, &mut self.pieces);
        let mut one = |packet: &[u8]| {
            let mut ok = true;
            let cut = fragments(packet, usize::from(room), |header, payload| {
                let Some(mut piece) = ok.then(|| cx.derive(from)).flatten() else {
                    ok = false;
                    return;
                };
                piece.set_tx_if(state.tx_if());
                ok = piece.fill(labels, cx.cache())
                    && piece.append(header, cx.cache())
                    && piece.append(payload, cx.cache());
                let header = piece.push(usize::from(state.len));
                ok &= header.map(|room| dpos.copy_rewrite(entry, room)).is_some();
                pieces.push(piece);
            });
            cut.and(if ok { Ok(()) } else { Err(Failure::NoBuffers) })
        };
        let done = match size {
            None => one(packet),
            Some(size) => segments(packet, size, &mut self.segment, one),
        };
        if let Err(failure) = done {
            self.pieces.drain(..).for_each(|piece| cx.consume(piece));
            return Verdict::drop(match failure {
                Failure::NoBuffers => NO_BUFFERS,
                Failure::SmallMtu => SMALL_MTU,
                Failure::Gso => BAD_GSO,
                Failure::NotIp4 => NOT_IP4,
            });
        }
        let to = Verdict::node(NodeId(entry.next() as u16));
        cx.count(FRAGMENTS, self.pieces.len() as u64);
        let (mut packet, kept) = cx.take(p);
        if let Some(first) = self.pieces.first_mut() {
            cx.replaces(&mut packet, first);
        }
        self.pieces.drain(..).for_each(|piece| cx.send(piece, to));
        cx.consume(packet);
        kept
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::mpls(frame.data(i), out, 0);
    }
}
