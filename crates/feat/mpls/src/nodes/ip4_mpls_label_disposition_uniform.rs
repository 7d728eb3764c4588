//! `ip4-mpls-label-disposition-uniform`: pops the last label, and gives the IPv4 packet behind it
//! the label's TTL and traffic class (the uniform model of RFC 3443 and RFC 3270).
//!
//! Reads: aux (an adjacency or a group). Writes: aux (the adjacency). Next: `ip4-rewrite`, which
//! decrements the TTL; `ip4-arp`.

use crate::disposition;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::checksum::checksum;
use thalweg_wire::flow::five_tuple;
use thalweg_wire::mpls::{ENTRY_LEN, Entry};

thalweg_graph::next_nodes! {
    REWRITE => "ip4-rewrite",
    ARP => "ip4-arp",
    GLEAN => "ip4-glean",
}
disposition::reasons!();

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-mpls-label-disposition-uniform",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Disposition { dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Disposition {
    dpos: Arc<DpoTable>,
}

/// Gives a packet TTL and class of a label. Its TTL never grows: another router may have put the
/// label before it with a TTL of its own. What else the DSCP says stays if the class is the same;
/// ECN always does.
pub(crate) fn take_over(packet: &mut [u8], entry: Entry) {
    let len = packet.first().map_or(0, |b| usize::from(b & 15) * 4);
    let Some(header) = packet.get_mut(..len).filter(|header| header.len() >= 20) else { return };
    let class = entry.traffic_class();
    if header[1] >> 5 != class {
        header[1] = class << 5 | header[1] & 3;
    }
    header[8] = header[8].min(entry.ttl());
    header[10..12].fill(0);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

impl Node for Disposition {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Ok((entry, _)) = Entry::parse(p.data()) else { return Verdict::drop(NOT_IP4) };
        p.pull(ENTRY_LEN);
        if let Err(reason) = disposition::check(cx, &mut p, REASONS) {
            return Verdict::drop(reason);
        }
        take_over(p.data_mut(), entry);
        let hash = || five_tuple(p.data()).map_or(0, |t| t.hash32());
        let dpo = self.dpos.resolve(Dpo(p.aux()), hash);
        p.set_aux(dpo.get());
        match self.dpos.get(dpo).state().kind {
            kind if kind.is_complete() => REWRITE,
            Kind::INCOMPLETE => ARP,
            Kind::GLEAN => GLEAN,
            _ => Verdict::drop(DOWN),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::mpls::Label;

    #[test]
    fn ecn_and_finer_classes_stay() {
        let header = |tos, ttl| {
            let mut h = [0u8; 20];
            (h[0], h[1], h[8]) = (0x45, tos, ttl);
            let sum = checksum(&h);
            h[10..12].copy_from_slice(&sum.to_be_bytes());
            h
        };
        for (tos, class, want) in [(0x2b, 1, 0x2b), (0x2b, 5, 0xa3), (0xb8, 0, 0), (1, 7, 0xe1)] {
            let mut packet = header(tos, 64);
            take_over(&mut packet, Entry::new(Label(16), class, true, 9));
            assert_eq!(packet, header(want, 9));
        }
        let mut packet = header(0, 5);
        take_over(&mut packet, Entry::new(Label(16), 0, true, 200));
        assert_eq!(packet, header(0, 5), "a TTL does not grow");
        take_over(&mut [0x45, 0], Entry::new(Label(16), 0, true, 200));
    }
}
