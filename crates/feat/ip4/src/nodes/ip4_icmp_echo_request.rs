//! `ip4-icmp-echo-request`: turns an echo request into its reply. A source route that has been
//! followed to its end is reversed (RFC 1122 section 3.2.2.6).
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
    SOURCE_ROUTE: Error, 5, "icmp echo request with a source route that does not end here";
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
        if header > 20 && reverse_source_route(&mut data[..header]).is_none() {
            return Verdict::drop(SOURCE_ROUTE);
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

/// Reverses the source route of a header, if it has one (RFC 791 section 3.1): the reply goes to
/// the last router on the way here first. To be called before the addresses are swapped. `None` if
/// the route is malformed, or goes on from here.
fn reverse_source_route(header: &mut [u8]) -> Option<()> {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    /// Kind, length and pointer come before the addresses.
    const BEFORE: usize = 3;
    let mut at = 20;
    while at < header.len() {
        let kind = header[at];
        let len = match kind {
            0 => return Some(()),
            1 => 1,
            _ => usize::from(*header.get(at + 1)?),
        };
        if kind == 1 {
            at += 1;
            continue;
        }
        let option = header.get_mut(at..at + len).filter(|_| len >= 2)?;
        at += len;
        if kind != LOOSE && kind != STRICT {
            continue;
        }
        let is_followed = usize::from(*option.get(2)?) > len;
        let (before, rest) = option.split_at_mut(BEFORE);
        let (hops, []) = rest.as_chunks_mut::<4>() else { return None };
        if !is_followed {
            return None;
        }
        before[2] = BEFORE as u8 + 1;
        hops.reverse();
        if let Some((&mut first, _)) = hops.split_first_mut() {
            // Its place is taken by the next one, and the sender comes last.
            hops.rotate_left(1);
            let sender = [header[12], header[13], header[14], header[15]];
            let last = at - 4;
            header[last..at].copy_from_slice(&sender);
            // Swapped with the destination, it will be where the reply goes.
            header[12..16].copy_from_slice(&first);
            header[10..12].fill(0);
            let sum = thalweg_wire::checksum::checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        return Some(());
    }
    Some(())
}

/// Changes the 16-bit word at `at` and updates the checksum at `sum_at` (RFC 1624).
fn set_word(data: &mut [u8], at: usize, sum_at: usize, new: u16) {
    let word = |d: &[u8], i: usize| u16::from_be_bytes([d[i], d[i + 1]]);
    let sum = update_u16(word(data, sum_at), word(data, at), new);
    data[at..at + 2].copy_from_slice(&new.to_be_bytes());
    data[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A header from 10.0.0.9 to 10.0.0.1 with options.
    fn header(options: &[u8]) -> Vec<u8> {
        let mut h = vec![0; 20];
        h[0] = 0x40 | (5 + options.len() / 4) as u8;
        h[12..16].copy_from_slice(&[10, 0, 0, 9]);
        h[16..20].copy_from_slice(&[10, 0, 0, 1]);
        h.extend(options);
        h
    }

    #[test]
    fn a_source_route_leads_back_the_way_it_came() {
        let (first, second) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let route = |pointer: u8, hops: &[[u8; 4]]| {
            let mut option = vec![1, 131, 3 + 4 * hops.len() as u8, pointer];
            hops.iter().for_each(|hop| option.extend(hop));
            option
        };
        let mut h = header(&route(12, &[first, second]));
        assert_eq!(reverse_source_route(&mut h), Some(()));
        // The source, which becomes the destination, is the last router on the way here.
        assert_eq!(h[12..20], [second, [10, 0, 0, 1]].concat());
        assert_eq!(h[20..], route(4, &[first, [10, 0, 0, 9]]));
        assert!(thalweg_wire::checksum::verify(&h));
        // One that goes on from here is not ours to answer; broken ones are not either.
        for bad in [route(8, &[first, second]), vec![131, 40, 4, 0], vec![137, 5, 9, 1, 1, 0, 0, 0]]
        {
            assert_eq!(reverse_source_route(&mut header(&bad)), None, "{bad:?}");
        }
        for plain in [&[][..], &[1, 1, 1, 0], &[7, 3, 4, 0], &[0, 131, 3, 9]] {
            let before = header(plain);
            let mut h = before.clone();
            assert_eq!((reverse_source_route(&mut h), h), (Some(()), before));
        }
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic(options in prop::collection::vec(any::<u8>(), 0..=40)) {
            let mut h = header(&options);
            let _ = reverse_source_route(&mut h);
            prop_assert_eq!(h.len(), 20 + options.len());
        }
    }
}
