//! IP packets whose last label was popped: what is checked of them (RFC 1812 section 5.2.2, RFC
//! 8200 section 3), and the nodes that send them or look them up.

use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_feat_ip4::tables::Tables;
use thalweg_feat_ip6::tables::Tables as Tables6;
use thalweg_fib::{Dpo, DpoTable, Kind, Version};
use thalweg_graph::{BuildCx, ErrorCode, FrameVerdict, Node, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::checksum::update_u16;
use thalweg_wire::flow::five_tuple;
use thalweg_wire::ipv4;
use thalweg_wire::ipv6::HEADER_LEN;
use thalweg_wire::mpls::{ENTRY_LEN, Entry};

/// Drop reasons of nodes for IPv4 packets.
pub(crate) mod ip4 {
    thalweg_graph::errors! {
        NOT_IP: Error, IP_HEADER_CORRUPTED, "no ip4 packet after the last mpls label";
        BAD: Error, IP_HEADER_CORRUPTED, "bad ip4 header after the last mpls label";
        DOWN: Error, DEV_READY, "next-hop interface is down";
    }
}

/// The same for IPv6, in the same order.
pub(crate) mod ip6 {
    thalweg_graph::errors! {
        NOT_IP: Error, IP_HEADER_CORRUPTED, "no ip6 packet after the last mpls label";
        BAD: Error, IP_HEADER_CORRUPTED, "bad ip6 header after the last mpls label";
        DOWN: Error, DEV_READY, "next-hop interface is down";
    }
}

use ip4::{BAD, DOWN, NOT_IP};

/// Checks the header, and removes the padding of the link layer.
fn check<const V6: bool>(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Result<(), ErrorCode> {
    let total = if V6 { check_ip6(p)? } else { check_ip4(p)? };
    if total < p.total_len() {
        p.truncate(total, cx.cache());
    }
    Ok(())
}

/// Checks an IPv4 header as without labels; returns the length of the packet.
fn check_ip4(p: &mut PktMut<'_>) -> Result<usize, ErrorCode> {
    match p.data().first() {
        Some(first) if first >> 4 == 4 && p.data().len() >= ipv4::HEADER_LEN => {}
        _ => return Err(NOT_IP),
    }
    thalweg_feat_ip4::check_header(p).ok_or(BAD)
}

/// Checks an IPv6 header, and marks a packet from a link-local address, which is not forwarded;
/// returns the length of the packet.
fn check_ip6(p: &mut PktMut<'_>) -> Result<usize, ErrorCode> {
    let head = p.data().first_chunk::<HEADER_LEN>().filter(|h| h[0] >> 4 == 6);
    let Some(h) = head.copied() else { return Err(NOT_IP) };
    let payload = usize::from(u16::from_be_bytes([h[4], h[5]]));
    let total = HEADER_LEN + payload;
    let address = |at: usize| {
        let bytes = h.get(at..).and_then(<[u8]>::first_chunk::<16>);
        bytes.map_or(Ipv6Addr::UNSPECIFIED, |a| Ipv6Addr::from(*a))
    };
    let (src, dst) = (address(8), address(24));
    let odd = src.is_multicast()
        || src.is_loopback()
        || src.is_unspecified() && !dst.is_multicast()
        || dst.is_loopback()
        || dst.is_unspecified();
    // A jumbogram (RFC 2675) has its length elsewhere, and longer ones do not come.
    if total > p.total_len() || payload == 0 && h[6] == 0 || odd {
        return Err(BAD);
    }
    if src.is_unicast_link_local() {
        p.mark(Flags::LINK_LOCAL);
    }
    Ok(total)
}

/// Checks all packets of a frame like [`check`]; returns those that need a closer look. `None`,
/// with nothing done, if some packet is in several segments.
#[inline(always)]
fn check_all<V: Lanes>(frame: &mut Frame) -> Option<Rows> {
    let chained = frame.flags().contains(Flags::CHAINED);
    (!chained).then(|| thalweg_feat_ip4::check_usual::<V>(frame))
}

/// Returns the verdict of a frame whose packets but `rest` go to one node.
#[inline(always)]
fn verdict(frame: &Frame, each: &mut [Verdict], rest: Rows, to: Verdict) -> FrameVerdict {
    if rest.is_empty() {
        return FrameVerdict::Whole(to);
    }
    each[..frame.len()].fill(to);
    FrameVerdict::Each(rest)
}

/// Gives a packet TTL and class of a label. Its TTL never grows: another router may have put the
/// label before it with a TTL of its own. The rest of the DSCP stays if the class is the same; ECN
/// always does. A wrong checksum stays wrong.
pub(crate) fn take_over(packet: &mut [u8], entry: Entry) {
    let class = entry.traffic_class();
    match packet {
        [first, ..] if *first >> 4 == 4 => {
            let Some(h) = packet.first_chunk_mut::<20>() else { return };
            let word = |h: &[u8; 20], at: usize| u16::from_be_bytes([h[at], h[at + 1]]);
            let before = [word(h, 0), word(h, 8)];
            if h[1] >> 5 != class {
                h[1] = class << 5 | h[1] & 3;
            }
            h[8] = h[8].min(entry.ttl());
            let sum = update_u16(word(h, 10), before[0], word(h, 0));
            let sum = update_u16(sum, before[1], word(h, 8));
            h[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        [first, second, _, _, _, _, _, hops, ..] if *first >> 4 == 6 => {
            if *first >> 1 & 7 != class {
                // The upper three bits of eight that are in two bytes; the lower two stay.
                *first = 0x60 | class << 1;
                *second &= 0x3f;
            }
            *hops = (*hops).min(entry.ttl());
        }
        _ => {}
    }
}

/// The IP tables of interfaces: who knows the sender of a packet behind labels.
pub(crate) struct Homes {
    ip4: Arc<Snapshot<Tables>>,
    ip6: Arc<Snapshot<Tables6>>,
}

impl Homes {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Homes {
        Homes { ip4: cx.shared(), ip6: cx.shared() }
    }

    /// Makes an answer come from the interface by which the packet would have left without labels,
    /// if that is in another table than the one that it came by.
    #[cold]
    pub(crate) fn answer_at(
        &self,
        cx: &NodeCx<'_>,
        p: &mut PktMut<'_>,
        version: Version,
        tx_if: SwIfIndex,
    ) {
        let (ip4, ip6) = (self.ip4.load(cx.guard()), self.ip6.load(cx.guard()));
        let differ = match version {
            Version::V4 => ip4.fib_id(p.rx_if()) != ip4.fib_id(tx_if),
            Version::V6 => ip6.fib_id(p.rx_if()) != ip6.fib_id(tx_if),
        };
        if differ {
            p.set_rx_if(tx_if);
        }
    }

    /// Returns whether all IPv4 packets of a frame, which has their adjacencies, leave within the
    /// table of the interface that they came by.
    #[inline]
    fn stay(&self, cx: &NodeCx<'_>, frame: &Frame, dpos: &DpoTable) -> bool {
        let tables = self.ip4.load(cx.guard());
        if tables.is_single() {
            return true;
        }
        let stays = |(i, dpo): (usize, &u32)| {
            let to = dpos.get(Dpo(*dpo)).state();
            let tx_if = match to.kind {
                Kind::REDIRECT_COMPLETE => dpos.get(Dpo(to.value)).state().tx_if(),
                _ => to.tx_if(),
            };
            tables.fib_id(frame.rx_if(i as u8)) == tables.fib_id(tx_if)
        };
        frame.aux().iter().enumerate().all(stays)
    }
}

/// Passes packets to their adjacency: the node's next nodes are those for a complete one, an
/// incomplete one and a connected subnet.
pub(crate) struct Sent<const V6: bool, const UNIFORM: bool> {
    dpos: Arc<DpoTable>,
    homes: Homes,
}

impl<const V6: bool, const UNIFORM: bool> Sent<V6, UNIFORM> {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Self {
        Sent { dpos: cx.shared(), homes: Homes::new(cx) }
    }

    const REWRITE: Verdict = Verdict::next(0);
    const INCOMPLETE: Verdict = Verdict::next(1);
    const GLEAN: Verdict = Verdict::next(2);
}

impl<const V6: bool, const UNIFORM: bool> Node for Sent<V6, UNIFORM> {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let label =
            if UNIFORM { Entry::parse(p.data()).ok().map(|(entry, _)| entry) } else { None };
        if UNIFORM {
            p.pull(ENTRY_LEN);
        }
        if let Err(reason) = check::<V6>(cx, &mut p) {
            return Verdict::drop(reason);
        }
        if let Some(entry) = label {
            take_over(p.data_mut(), entry);
        }
        let hash = || five_tuple(p.data()).map_or(0, |t| t.hash32());
        let dpo = self.dpos.resolve(Dpo(p.aux()), hash);
        p.set_aux(dpo.get());
        let state = self.dpos.get(dpo).state();
        let ends = p.data().get(if V6 { 7 } else { 8 }).is_none_or(|ttl| *ttl <= 1);
        if ends || !state.kind.is_complete() || p.total_len() > usize::from(state.mtu) {
            let version = if V6 { Version::V6 } else { Version::V4 };
            self.homes.answer_at(cx, &mut p, version, state.tx_if());
        }
        match state.kind {
            kind if kind.is_complete() => Self::REWRITE,
            Kind::INCOMPLETE => Self::INCOMPLETE,
            Kind::GLEAN => Self::GLEAN,
            _ => Verdict::drop(DOWN),
        }
    }

    /// Fast path for sound IPv4 packets in one segment, to adjacencies.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if V6 || UNIFORM || !self.homes.stay(cx, frame, &self.dpos) {
            return FrameVerdict::PerPacket;
        }
        let Some(mut rest) = check_all::<V>(frame) else {
            return FrameVerdict::PerPacket;
        };
        let first = frame.aux().first().copied().unwrap_or_default();
        let alike = frame.aux().iter().fold(0, |differ, aux| differ | (aux ^ first)) == 0;
        let state = self.dpos.get(Dpo(first)).state();
        // Most frames have one next hop.
        match state.kind {
            Kind::REWRITE if alike => return verdict(frame, each, rest, Self::REWRITE),
            Kind::REDIRECT_COMPLETE if alike && rest.is_empty() => {
                frame.aux_mut().fill(state.value);
                return FrameVerdict::Whole(Self::REWRITE);
            }
            _ => {}
        }
        for (i, aux) in frame.aux_mut().iter_mut().enumerate() {
            let state = self.dpos.get(Dpo(*aux)).state();
            match state.kind {
                Kind::REWRITE => {}
                Kind::REDIRECT_COMPLETE if !rest.contains(i as u8) => *aux = state.value,
                _ => rest.insert(i as u8),
            }
        }
        verdict(frame, each, rest, Self::REWRITE)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        trace::<V6>(frame, i, out);
    }
}

/// Passes packets to a node that looks them up, the node's only next node.
pub(crate) struct LookUp<const V6: bool>;

impl<const V6: bool> Node for LookUp<V6> {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        match check::<V6>(cx, &mut p) {
            Ok(()) => Verdict::next(0),
            Err(reason) => Verdict::drop(reason),
        }
    }

    /// Fast path for sound IPv4 packets in one segment.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if V6 {
            return FrameVerdict::PerPacket;
        }
        match check_all::<V>(frame) {
            Some(rest) => verdict(frame, each, rest, Verdict::next(0)),
            None => FrameVerdict::PerPacket,
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace::<V6>(frame, i, out);
    }
}

fn trace<const V6: bool>(frame: &Frame, i: u8, out: &mut dyn Write) {
    let _ = match V6 {
        true => thalweg_wire::fmt::ip6(frame.data(i), out, 0),
        false => thalweg_wire::fmt::ip4(frame.data(i), out, 0),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::checksum::{checksum, verify};
    use thalweg_wire::mpls::Label;

    fn header(tos: u8, ttl: u8) -> [u8; 20] {
        let mut h = [0u8; 20];
        (h[0], h[1], h[8]) = (0x45, tos, ttl);
        let sum = checksum(&h);
        h[10..12].copy_from_slice(&sum.to_be_bytes());
        h
    }

    #[test]
    fn ecn_and_finer_classes_stay() {
        for (tos, class, want) in [(0x2b, 1, 0x2b), (0x2b, 5, 0xa3), (0xb8, 0, 0), (1, 7, 0xe1)] {
            let mut packet = header(tos, 64);
            take_over(&mut packet, Entry::new(Label(16), class, true, 9));
            assert_eq!(packet, header(want, 9));
            let mut packet = [0x60 | tos >> 4, tos << 4 | 0xc, 1, 2, 0, 0, 17, 64];
            take_over(&mut packet, Entry::new(Label(16), class, true, 9));
            assert_eq!(packet, [0x60 | want >> 4, want << 4 | 0xc, 1, 2, 0, 0, 17, 9]);
        }
        let mut packet = header(0, 5);
        take_over(&mut packet, Entry::new(Label(16), 0, true, 200));
        assert_eq!(packet, header(0, 5), "a TTL does not grow");
        for short in [&mut [0x45, 0][..], &mut [0x60; 7], &mut []] {
            let before = short.to_vec();
            take_over(short, Entry::new(Label(16), 0, true, 200));
            assert_eq!(short, before);
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = header(0, 64);
        packet[10] ^= 1;
        take_over(&mut packet, Entry::new(Label(16), 5, true, 9));
        assert!(!verify(&packet));
    }
}
