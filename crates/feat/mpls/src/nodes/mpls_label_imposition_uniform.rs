//! `mpls-label-imposition-uniform`: gives labels that were just put before a packet the TTL and
//! traffic class of what they were put before (the uniform model of RFC 3443 and RFC 3270).
//!
//! Reads: aux (the midchain whose header the labels are). Writes: aux (what it is stacked on).
//! Next: `mpls-output`.

use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::mpls::{ENTRY_LEN, Entry};

thalweg_graph::next_nodes! {
    OUTPUT => "mpls-output",
    INCOMPLETE => "mpls-adj-incomplete",
}
thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "next-hop interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-label-imposition-uniform",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| Built::node(Imposition { dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Imposition {
    dpos: Arc<DpoTable>,
}

/// Returns traffic class and TTL of what lies behind the labels; `None` if that cannot be known.
fn inner(labels: &[u8], behind: &[u8]) -> Option<(u8, u8)> {
    let last = Entry(u32::from_be_bytes(*labels.last_chunk()?));
    if !last.is_bottom() {
        let (entry, _) = Entry::parse(behind).ok()?;
        return Some((entry.traffic_class(), entry.ttl()));
    }
    match behind.first_chunk::<9>()? {
        h if h[0] >> 4 == 4 => Some((h[1] >> 5, h[8])),
        h if h[0] >> 4 == 6 => Some((h[0] << 4 >> 5, h[7])),
        _ => None,
    }
}

/// Sets class and TTL of all these labels.
pub(crate) fn set(packet: &mut [u8], len: usize) {
    let Some((labels, behind)) = packet.split_at_mut_checked(len) else { return };
    let Some((class, ttl)) = inner(labels, behind) else { return };
    for word in labels.as_chunks_mut::<ENTRY_LEN>().0 {
        let entry = Entry(u32::from_be_bytes(*word));
        let entry = Entry::new(entry.label(), class, entry.is_bottom(), ttl);
        *word = entry.0.to_be_bytes();
    }
}

/// Takes note of labels that a router has put before a packet, which is too long with them.
#[cold]
pub(crate) fn note_pushed(p: &mut PktMut<'_>, len: usize) {
    let labels = &mut p.meta_mut().labels;
    labels.pushed = labels.pushed.saturating_add((len / ENTRY_LEN) as u8);
}

impl Node for Imposition {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.dpos.get(Dpo(p.aux()));
        let len = usize::from(entry.state().len);
        set(p.data_mut(), len);
        let dpo = entry.stacked();
        p.set_aux(dpo.get());
        let state = self.dpos.get(dpo).state();
        if p.total_len() > usize::from(state.mtu) {
            note_pushed(&mut p, len);
        }
        match state.kind {
            kind if kind.is_complete() => OUTPUT,
            Kind::INCOMPLETE => INCOMPLETE,
            _ => Verdict::drop(DOWN),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::mpls(frame.data(i), out, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::mpls::{Label, Stack};

    #[test]
    fn labels_are_like_what_they_are_before() {
        let label =
            |n, class, bottom, ttl| Entry::new(Label(n), class, bottom, ttl).0.to_be_bytes();
        let ip4 = [0x45, 0xb9, 0, 20, 0, 0, 0, 0, 33, 17];
        let ip6 = [0x6b, 0x90, 0, 0, 0, 0, 17, 44, 0, 0];
        let mpls = label(99, 6, true, 22);
        for (behind, bottom, want) in
            [(&ip4[..], true, (5, 33)), (&ip6, true, (5, 44)), (&mpls, false, (6, 22))]
        {
            let mut packet = [&label(16, 0, false, 64), &label(17, 0, bottom, 64), behind].concat();
            set(&mut packet, 8);
            let all: Vec<_> =
                Stack::new(&packet).take(2).map(|e| (e.traffic_class(), e.ttl())).collect();
            assert_eq!(all, [want; 2]);
            assert_eq!(&packet[8..], behind);
        }
        // The packet is too short, or nothing is known.
        for behind in [&[][..], &[0x45; 8], &[0x10; 20]] {
            let mut packet = [&label(16, 0, true, 64), behind].concat();
            let before = packet.clone();
            set(&mut packet, 4);
            assert_eq!(packet, before);
        }
        set(&mut [1, 2], 4);
    }
}
