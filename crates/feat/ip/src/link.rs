//! The link header of IP packets, from their adjacency, and what goes with it: the TTL or hop
//! limit, and the length.

use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Frame, Iface, LOCAL_IF, PktMut, Rows};
use thalweg_fib::{Dpo, DpoTable, ETHERNET_HEADER, Entry, EntryState, Kind, LinkRewrite, LinkType};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{BuildCx, FrameVerdict, NodeId, Verdict};
use thalweg_tables::Address;

/// Constants of a version's packets. They begin with 20 bytes of header at least.
pub trait Packets: 'static {
    /// Addresses, as numbers.
    type Address: Address;

    /// Type of the packets on links.
    const LINK: LinkType;

    /// Decrements the TTL or hop limit of a header; returns false, with nothing done, if it has
    /// expired.
    fn decrement(header: &mut [u8]) -> bool;

    /// Describes a packet.
    fn describe(packet: &[u8], out: &mut dyn Write);
}

/// Writes link headers.
pub struct Link<P> {
    /// The forwarding objects.
    pub dpos: Arc<DpoTable>,
    packets: PhantomData<fn() -> P>,
}

/// Writes the header of a packet; with `TTL`, decrements it, and returns false, with nothing done,
/// if it has expired.
#[inline(always)]
fn send<P: Packets, const LEN: usize, const WINDOW: usize, const TTL: bool>(
    header: [u64; 3],
    window: &mut [u8; WINDOW],
) -> bool {
    let (link, ip) = window.split_at_mut(LEN);
    if TTL && !P::decrement(ip) {
        return false;
    }
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

/// Completes the MAC address of a packet to a group, whose IP header is behind a link header of
/// `len` bytes.
#[cold]
pub fn to_group(link: LinkType, packet: &mut [u8], len: usize) {
    let Some((header, ip)) = packet.split_at_mut_checked(len) else { return };
    let group = if link == LinkType::Ip6 { ip.get(24..40) } else { ip.get(16..20) };
    link.complete_multicast_mac(header, group.unwrap_or_default());
}

impl<P: Packets> Link<P> {
    /// Creates it for a node, in its `build` function.
    #[must_use]
    pub fn new(cx: &BuildCx<'_>) -> Link<P> {
        Link { dpos: cx.shared(), packets: PhantomData }
    }

    /// Prepends the link header and returns the next node; `None` without headroom.
    #[inline(always)]
    pub fn write(
        &self,
        p: &mut PktMut<'_>,
        entry: Entry<'_>,
        state: EntryState,
    ) -> Option<Verdict> {
        let len = usize::from(state.len);
        let room = p.push(len)?;
        if len == ETHERNET_HEADER {
            room.copy_from_slice(&entry.rewrite()[..ETHERNET_HEADER]);
        } else {
            self.dpos.copy_rewrite(entry, room);
        }
        if state.kind == Kind::MULTICAST {
            to_group(P::LINK, p.data_mut(), len);
        }
        if self.names_sender(len) || p.tx_if() != LOCAL_IF {
            p.set_tx_if(state.tx_if());
        }
        Some(Verdict::node(NodeId(entry.next() as u16)))
    }

    /// Returns whether packets that get a header of `len` bytes may leave by an output node that
    /// several interfaces share: those of sub-interfaces with tags do, others only with BVIs or
    /// similar ports.
    #[inline(always)]
    fn names_sender(&self, len: usize) -> bool {
        len != ETHERNET_HEADER || self.dpos.names_senders()
    }

    /// Sets the tx interface of all packets but `rest`.
    #[inline(never)]
    fn name_senders(&self, frame: &mut Frame, rest: Rows) {
        let mut senders = [LOCAL_IF; FRAME_SIZE];
        for (to, dpo) in senders.iter_mut().zip(frame.aux()) {
            *to = self.dpos.get(Dpo(*dpo)).state().tx_if();
        }
        for i in rest.iter() {
            senders[usize::from(i)] = frame.tx_if(i);
        }
        frame.set_tx_each(&senders);
    }

    /// Rewrites the packets of a frame that fit the MTU and leave by an Ethernet interface; with
    /// `TTL`, decrements it. Frames must have no chained packets.
    #[inline(always)]
    pub fn frame<V: Lanes, const TTL: bool>(
        &self,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let Some(&dpo) = frame.aux().first() else { return FrameVerdict::PerPacket };
        // Packets get tags if the first one does; those whose header has another length are left.
        match self.dpos.get(Dpo(dpo)).state().len {
            18 => self.rewrite::<V, 18, 38, TTL>(Dpo(dpo), frame, each),
            22 => self.rewrite::<V, 22, 42, TTL>(Dpo(dpo), frame, each),
            _ => self.rewrite::<V, ETHERNET_HEADER, 34, TTL>(Dpo(dpo), frame, each),
        }
    }

    /// Rewrites the packets of a frame whose headers become `LEN` bytes long.
    #[inline(always)]
    fn rewrite<V: Lanes, const LEN: usize, const WINDOW: usize, const TTL: bool>(
        &self,
        dpo: Dpo,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        const { assert!(WINDOW == LEN + 20) };
        let way = self.dpos.get(dpo).link::<LEN>();
        let named = self.names_sender(LEN) || frame.tx() != Iface::Uniform(LOCAL_IF);
        let alike = frame.aux().iter().fold(0, |differ, d| differ | (d ^ dpo.0)) == 0;
        let rest = if alike { Self::one_way::<LEN, WINDOW, TTL>(&way, frame) } else { None };
        match rest {
            Some(rest) if rest.is_empty() => {
                frame.push_all(LEN as u16, rest);
                if named {
                    frame.set_tx(self.dpos.get(dpo).state().tx_if());
                }
                FrameVerdict::Whole(output(way.next))
            }
            Some(rest) => {
                if named {
                    self.name_senders(frame, rest);
                }
                frame.push_all(LEN as u16, rest);
                each[..frame.len()].fill(output(way.next));
                FrameVerdict::Each(rest)
            }
            None if V::WIDE => self.each_way::<V, LEN, WINDOW, TTL>(way.next, named, frame, each),
            None => self.each_alone::<LEN, WINDOW, TTL>(named, frame, each),
        }
    }

    /// Rewrites packets with one adjacency each, the first of which has that output node.
    #[inline(always)]
    fn each_way<V: Lanes, const LEN: usize, const WINDOW: usize, const TTL: bool>(
        &self,
        first: u32,
        named: bool,
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
                if !send::<P, LEN, WINDOW, TTL>(self.dpos.get(Dpo(dpo)).header::<LEN>(), window) {
                    rest.insert(i as u8);
                }
            }
        } else {
            let left = rest;
            for (i, (dpo, _, window)) in rows.enumerate().filter(|r| !left.contains(r.0 as u8)) {
                if !send::<P, LEN, WINDOW, TTL>(self.dpos.get(Dpo(dpo)).header::<LEN>(), window) {
                    rest.insert(i as u8);
                }
            }
        }
        if named {
            self.name_senders(frame, rest);
        }
        frame.push_all(LEN as u16, rest);
        if others == 0 && rest.is_empty() {
            return FrameVerdict::Whole(output(first));
        }
        each.iter_mut().zip(nexts).for_each(|(verdict, next)| *verdict = output(next));
        FrameVerdict::Each(rest)
    }

    /// Does the work of [`each_way`](Self::each_way) one by one.
    #[inline(always)]
    fn each_alone<const LEN: usize, const WINDOW: usize, const TTL: bool>(
        &self,
        named: bool,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let longest = u16::MAX - LEN as u16;
        let Some(rows) = frame.long_windows_with_aux::<WINDOW>(LEN, longest) else {
            return FrameVerdict::PerPacket;
        };
        let mut rest = Rows::NONE;
        for (i, ((dpo, len, window), verdict)) in rows.zip(each).enumerate() {
            let way = self.dpos.get(Dpo(dpo)).link::<LEN>();
            *verdict = output(way.next);
            if len > usize::from(way.longest) || !send::<P, LEN, WINDOW, TTL>(way.header, window) {
                rest.insert(i as u8);
            }
        }
        if named {
            self.name_senders(frame, rest);
        }
        frame.push_all(LEN as u16, rest);
        FrameVerdict::Each(rest)
    }

    /// Rewrites packets with one common adjacency; returns those left. `None`, with nothing done,
    /// if a packet has no headroom or is too long.
    #[inline(always)]
    fn one_way<const LEN: usize, const WINDOW: usize, const TTL: bool>(
        way: &LinkRewrite,
        frame: &mut Frame,
    ) -> Option<Rows> {
        let mut rest = Rows::NONE;
        for (i, window) in frame.long_windows_mut::<WINDOW>(LEN, way.longest)?.enumerate() {
            if !send::<P, LEN, WINDOW, TTL>(way.header, window) {
                rest.insert(i as u8);
            }
        }
        Some(rest)
    }

    /// Describes a packet whose link header has been written, or was not.
    pub fn trace(&self, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (dpo, data) = (frame.aux()[usize::from(i)], frame.data(i));
        let (s, header) = self.dpos.rewrite(Dpo(dpo));
        if s.kind == Kind::AS_WRITTEN && s.tx_if() == frame.tx_if(i) {
            let _ = writeln!(out, "tx {} as written", interface_token(s.tx_if()));
            let _ = thalweg_wire::fmt::packet(data, out, 0);
            return;
        }
        // A packet that is not forwarded has a drop reason in aux, and still starts with its IP
        // header.
        if !s.kind.is_complete() || !data.starts_with(&header) {
            let _ = writeln!(out, "not rewritten");
            P::describe(data, out);
            return;
        }
        let _ = writeln!(out, "tx {} dpo-idx {dpo}", interface_token(s.tx_if()));
        let _ = thalweg_wire::fmt::packet(data, out, 0);
    }
}
