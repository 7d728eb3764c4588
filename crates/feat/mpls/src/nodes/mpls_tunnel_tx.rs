//! `mpls-tunnel-tx`: transmit node of all MPLS tunnels. Passes packets on to the adjacency that
//! puts the tunnel's labels before them.
//!
//! Reads: tx interface (the tunnel, or a sub-interface of it); aux (the adjacency of the tunnel,
//! for packets that were routed). Writes: aux (that of the tunnel's path). Next: `mpls-output`;
//! `ip4-frag`, `ip4-icmp-error` and `ip6-icmp-error` for IP packets that are too long with the
//! labels.

use crate::nodes::mpls_label_imposition_uniform::note_pushed;
use crate::nodes::mpls_lookup::hash as labels_hash;
use crate::tunnels::{Wire, Wires};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, IcmpCause, PktMut, SwIfIndex};
use thalweg_device::{IfTable, Interfaces};
use thalweg_feat_ip4::icmp::request_error;
use thalweg_feat_ip6::icmp as icmp6;
use thalweg_fib::{Dpo, DpoTable, Entry, Kind, MAX_REWRITE};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::flow::five_tuple;
use thalweg_wire::mpls::ENTRY_LEN;

thalweg_graph::next_nodes! {
    OUTPUT => "mpls-output",
    INCOMPLETE => "mpls-adj-incomplete",
    FRAG => "ip4-frag",
    ICMP_ERROR => "ip4-icmp-error",
    ICMP6_ERROR => "ip6-icmp-error",
}
thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "no path of the tunnel is up";
    TOO_LONG: Error, FRAG_NEEDED, "packet too long for the tunnel's path";
    DONT_FRAGMENT: Error, FRAG_NEEDED, "packet too long for the tunnel's path and DF set";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for a control word";
    TOO_BIG: Error, FRAG_NEEDED, "ip6 packet too long for the tunnel's path";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-tunnel-tx",
    kind: thalweg_graph::Kind::Tx,
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        Built::node(TunnelTx {
            dpos: cx.shared(),
            wires: cx.shared(),
            interfaces: Interfaces::table(cx),
        })
    },
    ..NodeDecl::DEFAULT
};

/// Length of a control word (RFC 4385 section 3).
pub(crate) const CONTROL_WORD: usize = 4;

struct TunnelTx {
    dpos: Arc<DpoTable>,
    wires: Arc<Snapshot<Wires>>,
    interfaces: Arc<Snapshot<IfTable>>,
}

/// Hash of a frame by its MAC addresses and, if there is one, the IP packet in it.
fn frame_hash(frame: &[u8]) -> u32 {
    let addresses = frame.get(..12).unwrap_or_default();
    let mix = |h: u32, b: &u8| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193);
    let hash = addresses.iter().fold(0x811c_9dc5, mix);
    let inner = match frame.get(12..14) {
        Some([0x08, 0] | [0x86, 0xdd]) => five_tuple(&frame[14..]).map_or(0, |t| t.hash32()),
        _ => 0,
    };
    hash ^ hash >> 15 ^ inner
}

impl TunnelTx {
    /// The wire by which an interface sends, if it carries Ethernet frames.
    fn wire(&self, guard: &Guard<'_>, tx_if: SwIfIndex) -> Option<Wire> {
        let wires = self.wires.load(guard);
        let parent = || self.interfaces.load(guard).get(tx_if).parent;
        wires.get(tx_if).or_else(|| wires.get(parent()))
    }

    /// Returns whether an adjacency's labels are the whole stack of what it sends.
    #[cold]
    fn has_bottom(&self, entry: Entry<'_>, len: usize) -> bool {
        let mut header = [0; MAX_REWRITE];
        let Some(header) = header.get_mut(..len) else { return false };
        self.dpos.copy_rewrite(entry, header);
        header.last_chunk::<ENTRY_LEN>().is_some_and(|label| label[2] & 1 != 0)
    }

    /// Handles a packet above the MTU of the path.
    #[cold]
    fn too_long(
        &self,
        cx: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        is_frame: bool,
        (routed, dpo): (Entry<'_>, Dpo),
    ) -> Verdict {
        let entry = self.dpos.get(dpo);
        let state = entry.state();
        if is_frame {
            return Verdict::drop(TOO_LONG);
        }
        if !self.has_bottom(entry, usize::from(state.len)) {
            // Packets that are labelled already are fragmented behind their labels, or answered.
            note_pushed(p, usize::from(routed.state().len));
            return OUTPUT;
        }
        match p.data().first_chunk::<20>() {
            Some(h) if h[0] >> 4 == 4 && h[6] & 0x40 == 0 => FRAG,
            Some(h) if h[0] >> 4 == 4 => {
                let cause = IcmpCause::frag_needed(state.mtu);
                request_error(cx, p, cause, DONT_FRAGMENT, ICMP_ERROR)
            }
            Some(h) if h[0] >> 4 == 6 => {
                let cause = icmp6::packet_too_big(state.mtu);
                icmp6::request_error(cx, p, cause, TOO_BIG, ICMP6_ERROR)
            }
            _ => Verdict::drop(TOO_LONG),
        }
    }
}

impl Node for TunnelTx {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let routed = self.dpos.get(Dpo(p.aux()));
        let wire = self.wire(cx.guard(), p.tx_if());
        let dpo = if let Some(wire) = wire {
            let dpo = self.dpos.resolve(wire.frames, || frame_hash(p.data()));
            if wire.control_word {
                // No sequence numbers: all zeros (RFC 4448 section 4.6).
                match p.push(CONTROL_WORD) {
                    Some(word) => word.fill(0),
                    None => return Verdict::drop(NO_ROOM),
                }
            }
            dpo
        } else {
            let is_labelled = routed.state().len > 0;
            self.dpos.resolve(routed.stacked(), || match five_tuple(p.data()) {
                Some(tuple) if !is_labelled => tuple.hash32(),
                _ => labels_hash(p.data()),
            })
        };
        p.set_aux(dpo.get());
        let state = self.dpos.get(dpo).state();
        match state.kind {
            kind if !kind.is_sent() => Verdict::drop(DOWN),
            _ if p.total_len() > usize::from(state.mtu) => {
                self.too_long(cx, &mut p, wire.is_some(), (routed, dpo))
            }
            Kind::INCOMPLETE => INCOMPLETE,
            kind if kind.is_complete() => OUTPUT,
            _ => Verdict::drop(DOWN),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "MPLS: tunnel, adj-idx {}", frame.aux()[usize::from(i)]);
    }
}
