//! `ip4-icmp-echo-request`: turns an echo request into its reply, a packet of its own: without the
//! options of the request, except for a source route that has been followed to its end, which is
//! reversed (RFC 1122 section 3.2.2.6). One to a group is answered from the interface's address;
//! one from an address that no host has is not answered.
//!
//! Writes: marks the packet as locally originated. Next: `ip4-lookup`.

use crate::tables::Tables;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_fib::DpoTable;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::checksum::{checksum, update_u16};

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup" }
thalweg_graph::errors! {
    REPLIED: Info, UNKNOWN, "icmp echo replies sent";
    SHORT: Error, ICMP_PARSING, "icmp message too short";
    SOURCE_ROUTE: Error, SRC_ROUTE_FAILED, "icmp echo request with a source route that does not end here";
    NO_HOST: Error, SIP_IS_MC, "icmp echo request from an address that no host has";
    NO_ADDRESS: Warning, UNKNOWN, "icmp echo request to a group: interface without address";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-icmp-echo-request",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(EchoRequest { tables: cx.shared(), dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct EchoRequest {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
}

impl Node for EchoRequest {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let rx_if = p.rx_if();
        let data = p.data_mut();
        let header = usize::from(data.first().map_or(0, |b| b & 15)) * 4;
        if header < 20 || data.len() < header + 8 {
            return Verdict::drop(SHORT);
        }
        let tables = self.tables.load(cx.guard());
        if !tables.is_host(&self.dpos, rx_if, address(data, 12)) {
            return Verdict::drop(NO_HOST);
        }
        let to = address(data, 16);
        if to.is_multicast() || to.is_broadcast() {
            let Some(own) = tables.address(rx_if) else { return Verdict::drop(NO_ADDRESS) };
            for (at, word) in [(16, 0), (18, 2)] {
                let [a, b] = [own.octets()[word], own.octets()[word + 1]];
                set_word(data, at, 10, u16::from_be_bytes([a, b]));
            }
        }
        let mut options = 0;
        if header > 20 {
            let Some(route) = reverse_source_route(&mut data[..header]) else {
                return Verdict::drop(SOURCE_ROUTE);
            };
            options = keep_options(data, header, route);
        }
        let data = &mut data[options..];
        let header = usize::from(data[0] & 15) * 4;
        // Swapping source and destination leaves checksums unchanged.
        for i in 12..16 {
            data.swap(i, i + 4);
        }
        set_word(data, 8, 10, u16::from_be_bytes([64, data[9]]));
        set_word(data, header, header + 2, u16::from_be_bytes([0, data[header + 1]]));
        p.pull(options);
        p.unmark(Flags::GROUP);
        p.mark(Flags::LOCAL);
        cx.count(REPLIED, 1);
        LOOKUP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}

/// The address at a place of a header.
fn address(header: &[u8], at: usize) -> Ipv4Addr {
    header.get(at..).and_then(<[u8]>::first_chunk::<4>).copied().unwrap_or_default().into()
}

/// Takes all options but one out of a packet with a header of this length; returns where the packet
/// begins then.
fn keep_options(packet: &mut [u8], header: usize, kept: Range<usize>) -> usize {
    const MOST: usize = 60;
    let len = 20 + kept.len().next_multiple_of(4);
    let mut new = [0; MOST];
    new[..20].copy_from_slice(&packet[..20]);
    new[20..20 + kept.len()].copy_from_slice(&packet[kept]);
    let gone = header - len;
    let total = u16::from_be_bytes([new[2], new[3]]).saturating_sub(gone as u16);
    new[0] = 0x40 | (len / 4) as u8;
    new[2..4].copy_from_slice(&total.to_be_bytes());
    new[10..12].fill(0);
    let sum = checksum(&new[..len]);
    new[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[gone..header].copy_from_slice(&new[..len]);
    gone
}

/// Reverses the source route of a header, if it has one (RFC 791 section 3.1): the reply goes to
/// the last router on the way here first. To be called before the addresses are swapped. Returns
/// where the route is in the header, nowhere if there is none; `None` if it is malformed, or goes
/// on from here.
fn reverse_source_route(header: &mut [u8]) -> Option<Range<usize>> {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    /// Kind, length and pointer come before the addresses.
    const BEFORE: usize = 3;
    let mut at = 20;
    while at < header.len() {
        let kind = header[at];
        let len = match kind {
            0 => return Some(0..0),
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
            let sum = checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        return Some(at - len..at);
    }
    Some(0..0)
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
        assert_eq!(reverse_source_route(&mut h), Some(21..32));
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
            assert_eq!((reverse_source_route(&mut h), h), (Some(0..0), before));
        }
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic(options in prop::collection::vec(any::<u8>(), 0..=40)) {
            let mut h = header(&options);
            let len = h.len() / 4 * 4;
            h.truncate(len);
            if let Some(route) = reverse_source_route(&mut h) {
                let kept = route.len();
                let begin = keep_options(&mut h, len, route);
                prop_assert_eq!(len - begin, 20 + kept.next_multiple_of(4));
                prop_assert!(thalweg_wire::checksum::verify(&h[begin..]));
            }
            prop_assert_eq!(h.len(), len);
        }
    }
}
