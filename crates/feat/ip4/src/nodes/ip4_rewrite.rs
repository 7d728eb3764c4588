//! `ip4-rewrite`: TTL, MTU and the new link header.
//!
//! Reads: aux (the adjacency). Next: the adjacency's output node; `ip4-frag` for packets that
//! exceed the MTU. Locally originated packets keep their TTL.

use crate::icmp::{self, Cause};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, GsoKind, PktMut, Rows};
use thalweg_fib::{
    Counted, Dpo, DpoTable, ETHERNET_HEADER, Entry, EntryState, Kind, LinkRewrite, ObjectCounters,
};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, NodeId, Verdict};
use thalweg_wire::checksum;

thalweg_graph::next_nodes! {
    FRAG => "ip4-frag",
    ARP => "ip4-arp",
    ICMP_ERROR => "ip4-icmp-error",
}
thalweg_graph::errors! {
    TTL: Error, 257, "ip4 ttl <= 1";
    TOO_BIG: Error, 4, "ip4 MTU exceeded and DF set";
    NO_ROOM: Error, 287, "no headroom for link header";
    DOWN: Error, 331, "next-hop interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-rewrite",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4Rewrite { dpos: cx.shared(), counters: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Ip4Rewrite {
    dpos: Arc<DpoTable>,
    counters: Arc<ObjectCounters>,
}

/// Prepends the link header and returns the next node.
#[inline]
fn link_header(
    dpos: &DpoTable,
    p: &mut PktMut<'_>,
    entry: Entry<'_>,
    state: EntryState,
) -> Verdict {
    let len = usize::from(state.len);
    match p.push(len) {
        Some(room) if len == ETHERNET_HEADER => {
            room.copy_from_slice(&entry.rewrite()[..ETHERNET_HEADER]);
        }
        Some(room) => dpos.copy_rewrite(entry, room),
        None => return Verdict::drop(NO_ROOM),
    }
    Verdict::node(NodeId(entry.next() as u16))
}

/// Length of the headers repeated in each segment of a GSO packet. The device's value is only a
/// hint.
fn segment_headers(packet: &[u8], gso: GsoKind) -> usize {
    let ip = usize::from(packet.first().map_or(0, |b| b & 15)) * 4;
    match gso {
        GsoKind::Udp => ip + 8,
        _ => ip + usize::from(packet.get(ip + 12).map_or(0, |b| b >> 4)) * 4,
    }
}

impl Ip4Rewrite {
    /// Counts packets by adjacency.
    #[cold]
    fn count(&self, cx: &NodeCx<'_>, frame: &Frame) {
        let all = frame.aux().iter().zip(0..).map(|(dpo, i)| (*dpo, frame.total_len(i)));
        self.counters.count(cx.worker(), Counted::Via, all);
    }

    /// Handles a packet that exceeds the interface's MTU.
    #[cold]
    fn too_long(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, mtu: u16) -> Verdict {
        if p.flags().contains(Flags::OFFLOAD) {
            let o = p.meta().offload;
            // The sender has sized the segments of a GSO packet.
            if o.gso != GsoKind::None
                && segment_headers(p.data(), o.gso) + usize::from(o.gso_size) <= usize::from(mtu)
            {
                return Verdict::CONTINUE;
            }
        }
        let dont_fragment = p.data().get(6).is_some_and(|b| b & 0x40 != 0);
        if dont_fragment {
            return icmp::request_error(cx, p, Cause::frag_needed(mtu), TOO_BIG, ICMP_ERROR);
        }
        FRAG
    }

    /// Rewrites the packets of a frame whose headers become `LEN` bytes long.
    #[inline(always)]
    fn rewrite<V: Lanes, const LEN: usize, const WINDOW: usize>(
        &self,
        dpo: Dpo,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        const { assert!(WINDOW == LEN + 20) };
        let way = self.dpos.get(dpo).link::<LEN>();
        let alike = frame.aux().iter().fold(0, |differ, d| differ | (d ^ dpo)) == 0;
        let rest = if alike { Self::one_way::<LEN, WINDOW>(&way, frame) } else { None };
        match rest {
            Some(rest) if rest.is_empty() => {
                frame.push_all(LEN as u16, rest);
                FrameVerdict::Whole(output(way.next))
            }
            Some(rest) => {
                frame.push_all(LEN as u16, rest);
                each[..frame.len()].fill(output(way.next));
                FrameVerdict::Each(rest)
            }
            None if V::WIDE => self.each_way::<V, LEN, WINDOW>(way.next, frame, each),
            None => self.each_alone::<LEN, WINDOW>(frame, each),
        }
    }

    /// Rewrites packets with one adjacency each, the first of which has that output node.
    #[inline(always)]
    fn each_way<V: Lanes, const LEN: usize, const WINDOW: usize>(
        &self,
        first: u32,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let (mut rest, mut others) = (Rows::NONE, 0);
        let mut nexts = [0; FRAME_SIZE];
        for ((at, exist), next) in frame.lane_groups().zip(nexts.as_chunks_mut().0) {
            let (dpos, lengths) = (frame.aux_lanes::<V>(at), frame.lens::<V>(at));
            let (nodes, plain) = self.dpos.ways::<V, LEN>(dpos, lengths);
            rest.insert_lanes(at, exist & !plain);
            others |= exist & !nodes.eq(V::splat(first));
            nodes.store(next);
        }
        let longest = u16::MAX - LEN as u16;
        let Some(rows) = frame.long_windows_with_aux::<WINDOW>(LEN, longest) else {
            return FrameVerdict::PerPacket;
        };
        if rest.is_empty() {
            for (i, (dpo, _, window)) in rows.enumerate() {
                if !send::<LEN, WINDOW>(self.dpos.get(dpo).header::<LEN>(), window) {
                    rest.insert(i as u8);
                }
            }
        } else {
            let left = rest;
            for (i, (dpo, _, window)) in rows.enumerate().filter(|r| !left.contains(r.0 as u8)) {
                if !send::<LEN, WINDOW>(self.dpos.get(dpo).header::<LEN>(), window) {
                    rest.insert(i as u8);
                }
            }
        }
        frame.push_all(LEN as u16, rest);
        if others == 0 && rest.is_empty() {
            return FrameVerdict::Whole(output(first));
        }
        each.iter_mut().zip(nexts).for_each(|(verdict, next)| *verdict = output(next));
        FrameVerdict::Each(rest)
    }

    /// As [`each_way`](Self::each_way), one by one.
    #[inline(always)]
    fn each_alone<const LEN: usize, const WINDOW: usize>(
        &self,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let longest = u16::MAX - LEN as u16;
        let Some(rows) = frame.long_windows_with_aux::<WINDOW>(LEN, longest) else {
            return FrameVerdict::PerPacket;
        };
        let mut rest = Rows::NONE;
        for (i, ((dpo, len, window), verdict)) in rows.zip(each).enumerate() {
            let way = self.dpos.get(dpo).link::<LEN>();
            *verdict = output(way.next);
            if len > usize::from(way.longest) || !send::<LEN, WINDOW>(way.header, window) {
                rest.insert(i as u8);
            }
        }
        frame.push_all(LEN as u16, rest);
        FrameVerdict::Each(rest)
    }

    /// Rewrites packets with one common adjacency; returns those left. `None`, with nothing done,
    /// if a packet has no headroom or is too long.
    #[inline(always)]
    fn one_way<const LEN: usize, const WINDOW: usize>(
        way: &LinkRewrite,
        frame: &mut Frame,
    ) -> Option<Rows> {
        let mut rest = Rows::NONE;
        for (i, window) in frame.long_windows_mut::<WINDOW>(LEN, way.longest)?.enumerate() {
            if !send::<LEN, WINDOW>(way.header, window) {
                rest.insert(i as u8);
            }
        }
        Some(rest)
    }

    /// Decrements the TTL and updates the checksum (RFC 1624).
    #[inline]
    fn decrement_ttl(p: &mut PktMut<'_>) -> bool {
        let Some(h) = p.data_mut().first_chunk_mut::<20>() else { return false };
        if h[8] <= 1 {
            return false;
        }
        h[8] -= 1;
        let old = u16::from_be_bytes([h[10], h[11]]);
        h[10..12].copy_from_slice(&checksum::ttl_decrement(old).to_be_bytes());
        true
    }
}

/// Rewrites a packet; returns false, with nothing done, if its TTL has expired.
#[inline(always)]
fn send<const LEN: usize, const WINDOW: usize>(
    header: [u64; 3],
    window: &mut [u8; WINDOW],
) -> bool {
    let (link, ip) = window.split_at_mut(LEN);
    // As one load: the compiler turns four single bytes into four loads.
    let Some(word) = ip[8..].first_chunk_mut() else { return false };
    let old = u32::from_le_bytes(*word);
    if old & 0xfe == 0 {
        return false;
    }
    *word = checksum::ttl_decrement_word(old).to_le_bytes();
    // Two stores that overlap, or three.
    link[..8].copy_from_slice(&header[0].to_le_bytes());
    if LEN > 16 {
        link[8..16].copy_from_slice(&header[1].to_le_bytes());
    }
    link[LEN - 8..].copy_from_slice(&header[2].to_le_bytes());
    true
}

#[inline(always)]
fn output(node: u32) -> Verdict {
    Verdict::node(NodeId(node as u16))
}

impl Node for Ip4Rewrite {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        if self.counters.is_on() {
            self.count(cx, frame);
        }
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.dpos.get(p.aux());
        let state = entry.state();
        if !state.kind.is_complete() {
            return match state.kind {
                Kind::INCOMPLETE => ARP,
                _ => Verdict::drop(DOWN),
            };
        }
        let local = p.may_have_flags() && p.flags().contains(Flags::LOCAL);
        if !local && !Self::decrement_ttl(&mut p) {
            return icmp::request_error(cx, &mut p, Cause::TTL_EXCEEDED, TTL, ICMP_ERROR);
        }
        if p.total_len() > usize::from(state.mtu) {
            let v = Self::too_long(cx, &mut p, state.mtu);
            if v != Verdict::CONTINUE {
                return v;
            }
        }
        link_header(&self.dpos, &mut p, entry, state)
    }

    /// Fast path for packets in one segment that fit the MTU and leave by an Ethernet interface.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if frame.flags().intersects(Flags::LOCAL.union(Flags::CHAINED)) {
            return FrameVerdict::PerPacket;
        }
        let Some(&dpo) = frame.aux().first() else { return FrameVerdict::PerPacket };
        // With tags if the first packet gets some; those whose header has another length are left.
        match self.dpos.get(dpo).state().len {
            18 => self.rewrite::<V, 18, 38>(dpo, frame, each),
            22 => self.rewrite::<V, 22, 42>(dpo, frame, each),
            _ => self.rewrite::<V, ETHERNET_HEADER, 34>(dpo, frame, each),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (dpo, data) = (frame.aux()[i as usize], frame.data(i));
        let (s, header) = self.dpos.rewrite(dpo);
        // A packet that is not forwarded has a drop reason in aux, and still starts with its IP
        // header.
        if !s.kind.is_complete() || !data.starts_with(&header) {
            let _ = writeln!(out, "not rewritten");
            let _ = thalweg_wire::fmt::ip4(data, out, 0);
            return;
        }
        let _ = writeln!(out, "tx {} dpo-idx {dpo}", interface_token(s.tx_if));
        let _ = thalweg_wire::fmt::packet(data, out, 0);
    }
}
