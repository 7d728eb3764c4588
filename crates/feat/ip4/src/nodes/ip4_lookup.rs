//! `ip4-lookup`: longest prefix match and path selection.
//!
//! Reads: rx interface (its table). Writes: aux (the forwarding object). Next: by the object's
//! kind.

use crate::icmp::Cause;
use crate::link::Ipv4Packets;
use crate::tables::{Fib, Tables};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, Iface, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::lookup::{self, Refusal, Routed};
use thalweg_fib::{Dpo, Kind, TableId};
use thalweg_graph::{BuildCx, Built, ErrorCode, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::flow::{FACTORS, five_tuple, hash_v4};

thalweg_graph::next_nodes! {
    REWRITE => "ip4-rewrite",
    LOCAL => "ip4-local",
    ARP => "ip4-arp",
    GLEAN => "ip4-glean",
    ICMP_ERROR => "ip4-icmp-error",
    RECEIVED => "interface-rx-dpo-ip4",
}
thalweg_graph::errors! {
    LOOKUP_ERRORS {
        NO_ROUTE: Error, NET_UNREACHABLE, "no route";
        UNREACHABLE: Error, HOST_UNREACHABLE, "unreachable route";
        PROHIBITED: Error, DST_HOST_PROHIBITED, "prohibited route";
        BLACKHOLE: Error, BLACKHOLE_ROUTE, "drop route";
        DOWN: Error, DEV_READY, "next-hop interface is down";
        MULTICAST: Error, UNKNOWN_L3, "multicast routing not supported";
        UNRESOLVED: Error, HOST_UNREACHABLE, "next hop of the route leads nowhere";
        DEPTH: Error, TTL_EXCEEDED, "too many ip4 look-ups of one packet";
    }
    BACK: Error, BLACKHOLE_ROUTE, "punt redirect leads to the router itself";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-lookup",
    next: NEXT_NODES,
    errors: LOOKUP_ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4Lookup::new(cx)),
    ..NodeDecl::DEFAULT
};

pub(super) struct Ip4Lookup {
    pub(super) lookup: Lookup,
    /// Table of the frame's packets, if they share one. The handle is cloned, as the snapshot may
    /// be replaced between frames.
    fib: Option<Fib>,
    uniform: bool,
}

/// Sends packets where routes lead.
pub(super) type Lookup = lookup::Lookup<Ipv4Packets>;

#[inline]
fn dst(data: &[u8]) -> u32 {
    match data.first_chunk::<20>() {
        Some(h) => u32::from_be_bytes([h[16], h[17], h[18], h[19]]),
        None => 0,
    }
}

#[inline]
fn hash(packet: &[u8]) -> u32 {
    packet.first_chunk().and_then(plain_hash).unwrap_or_else(|| other_hash(packet))
}

#[inline(never)]
fn other_hash(packet: &[u8]) -> u32 {
    five_tuple(packet).map_or(0, |t| t.hash32())
}

/// Returns the hash of a packet with ports right after its 20 bytes of header, and `None` for any
/// other, or one too short for a whole TCP header.
#[inline(always)]
fn plain_hash(head: &[u8; 24]) -> Option<u32> {
    let word = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let is_plain = head[0] == 0x45
        && word(4) & 0x3fff == 0
        && matches!(head[9], 6 | 17)
        && word(0) & 0xffff >= 40;
    let ports = word(20);
    let [src, dst] = [word(12).into(), word(16).into()];
    is_plain.then(|| hash_v4(src, dst, head[9], (ports >> 16) as u16, ports as u16))
}

/// Hashes of sixteen packets as [`hash`] returns them, for those with ports right after 20 bytes of
/// header, whose mask comes first.
#[inline(always)]
fn plain_hashes<V: Lanes>(frame: &Frame, at: usize) -> (u16, V) {
    let [w0, w1, w2, src, dst, ports] = frame.words6::<V>(at);
    let byte = V::splat(0xff);
    let protocol = w2.shr::<8>() & byte;
    let total_len = w0.shr::<24>() | (w0.shr::<8>() & V::splat(0xff00));
    // Zero if the packet is simple: no options, no fragment, TCP or UDP, and long enough for either
    // header.
    let differs = (w0 & byte) ^ V::splat(0x45)
        | w1 & V::splat(u32::from_le_bytes([0, 0, 0x3f, 0xff]))
        | ((protocol - V::splat(6)) * (protocol - V::splat(17)))
        | (total_len - V::splat(40)) & V::splat(1 << 31);
    let plain = differs.eq(V::splat(0));
    let [a, b, c, d] = FACTORS;
    let h = (src ^ protocol) * V::splat(a);
    let h = (h ^ h.shr::<15>() ^ dst) * V::splat(b);
    let h = (h ^ h.shr::<13>() ^ ports) * V::splat(c);
    let h = (h ^ h.shr::<15>()) * V::splat(d);
    (plain, h ^ h.shr::<16>())
}

impl Routed for Ipv4Packets {
    type Tables = Tables;

    const REWRITE: Verdict = REWRITE;
    const ICMP_ERROR: Verdict = ICMP_ERROR;
    const RECEIVED: Verdict = RECEIVED;
    const NO_ROUTE: Refusal = (Cause::NET_UNREACHABLE, NO_ROUTE);
    const DOWN: Refusal = (Cause::HOST_UNREACHABLE, DOWN);
    const UNRESOLVED: Refusal = (Cause::HOST_UNREACHABLE, UNRESOLVED);
    const UNREACHABLE: Refusal = (Cause::HOST_UNREACHABLE, UNREACHABLE);
    const PROHIBITED: Refusal = (Cause::PROHIBITED, PROHIBITED);
    const BLACKHOLE: ErrorCode = BLACKHOLE;
    const DEPTH: ErrorCode = DEPTH;
    const BACK: ErrorCode = BACK;
    const HOPS_AT: usize = 8;

    #[inline(always)]
    fn hash(packet: &[u8]) -> u32 {
        hash(packet)
    }

    #[inline(always)]
    fn leaf_in(tables: &Tables, table: TableId, packet: &[u8]) -> Dpo {
        tables.fib_of(table).map_or(Dpo(0), |fib| Dpo(fib.routes.lookup(dst(packet))))
    }

    fn table_of(tables: &Tables, rx_if: SwIfIndex) -> TableId {
        tables.fib_id(rx_if)
    }

    fn member(tables: &Tables, table: TableId) -> Option<SwIfIndex> {
        tables.member(table)
    }

    fn answers(tables: &Tables, rx_if: SwIfIndex) -> bool {
        tables.fib(rx_if).is_some_and(|fib| fib.unreachables)
    }

    fn is_for_all(packet: &[u8]) -> bool {
        packet.get(16..20) == Some(&[255; 4])
    }

    fn unrouted(packet: &[u8]) -> Option<Verdict> {
        let is_multicast = packet.get(16).is_some_and(|b| b & 0xf0 == 0xe0);
        is_multicast.then_some(Verdict::drop(MULTICAST))
    }
}

impl Ip4Lookup {
    pub(super) fn new(cx: &BuildCx<'_>) -> Ip4Lookup {
        Ip4Lookup { lookup: Lookup::new(cx), fib: None, uniform: false }
    }

    /// Chooses what the packets of a frame meet, whose leaves it has; returns those left.
    #[inline(always)]
    fn choose<V: Lanes>(&self, frame: &mut Frame) -> Rows {
        if !V::WIDE {
            return self.choose_each(frame);
        }
        let mut rest = Rows::NONE;
        for (at, exist) in frame.lane_groups() {
            let met = self.lookup.dpos.met(frame.aux_lanes::<V>(at));
            let (mut dpos, mut done) = (met.dpos, met.complete);
            if met.balanced & exist != 0 {
                let (plain, hashes) = plain_hashes::<V>(frame, at);
                dpos = self.lookup.dpos.pick_all(&met, hashes);
                done |= met.balanced & plain;
            }
            frame.set_aux_lanes(at, dpos);
            rest.insert_lanes(at, exist & !done);
        }
        rest
    }

    /// Does the work of [`choose`](Self::choose) one by one.
    #[inline(always)]
    fn choose_each(&self, frame: &mut Frame) -> Rows {
        let mut leaves = [0; FRAME_SIZE];
        leaves[..frame.len()].copy_from_slice(frame.aux());
        let mut rest = Rows::NONE;
        for (i, (leaf, head)) in leaves.iter_mut().zip(frame.heads::<24>()).enumerate() {
            let state = self.lookup.dpos.get(Dpo(*leaf)).state();
            let member = match state.kind {
                Kind::REWRITE => continue,
                Kind::REDIRECT_COMPLETE => Some(Dpo(state.value)),
                Kind::LOAD_BALANCE_COMPLETE => {
                    plain_hash(head).map(|hash| self.lookup.dpos.pick(state, hash))
                }
                _ => None,
            };
            match member {
                Some(member) => *leaf = member.0,
                None => rest.insert(i as u8),
            }
        }
        frame.aux_mut().iter_mut().zip(leaves).for_each(|(aux, leaf)| *aux = leaf);
        rest
    }

    /// Looks up all destinations of a frame in one table, as [`Lookup::follow_tunneled`] does of
    /// one packet after the other; returns those left, which keep the table's id. `None`, with
    /// nothing done, if the packets are of several tables, in several segments, or counted.
    #[inline(always)]
    pub(super) fn follow_tunneled_all<V: Lanes>(
        &self,
        cx: &NodeCx<'_>,
        frame: &mut Frame,
    ) -> Option<Rows> {
        let table = *frame.aux().first()?;
        let one_table = frame.aux().iter().fold(0, |differ, id| differ | (id ^ table)) == 0;
        if !one_table || self.lookup.counting || frame.flags().contains(Flags::CHAINED) {
            return None;
        }
        let fib = self.lookup.tables.load(cx.guard()).fib_of(TableId(table))?;
        let mut addrs = [0; FRAME_SIZE];
        for (addr, h) in addrs.iter_mut().zip(frame.long_heads::<20>()?) {
            let [.., a, b, c, d] = *h;
            *addr = u32::from_be_bytes([a, b, c, d]);
        }
        fib.routes.lookup_batch(&addrs, frame.aux_mut());
        let mut rest = self.choose::<V>(frame);
        // Packets that may be answered are received by an interface of the table.
        for i in 0..frame.len() as u8 {
            let met = self.lookup.dpos.get(Dpo(frame.aux()[usize::from(i)])).state();
            let data = frame.data(i);
            let ends = data.get(Ipv4Packets::HOPS_AT).is_none_or(|ttl| *ttl <= 1);
            if ends || data.len() > usize::from(met.mtu) {
                rest.insert(i);
            }
        }
        for i in rest.iter() {
            frame.aux_mut()[usize::from(i)] = table;
        }
        Some(rest)
    }

    #[inline]
    fn leaf(&self, cx: &NodeCx<'_>, p: &PktMut<'_>) -> u32 {
        match &self.fib {
            Some(fib) if self.uniform => fib.routes.lookup(dst(p.data())),
            _ => {
                let fib = self.lookup.tables.load(cx.guard()).fib(p.rx_if());
                fib.map_or(0, |f| f.routes.lookup(dst(p.data())))
            }
        }
    }
}

impl Node for Ip4Lookup {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.lookup.begin_counting();
        let tables = self.lookup.tables.load(cx.guard());
        self.uniform = false;
        let one_table = match frame.rx() {
            Iface::Uniform(rx_if) => Some(tables.fib(rx_if)),
            Iface::Mixed => tables.fib_of_all(frame),
        };
        if let Some(fib) = one_table {
            let serial = |f: Option<&Fib>| f.map(|f| f.serial);
            if serial(self.fib.as_ref()) != serial(fib) {
                let old = std::mem::replace(&mut self.fib, fib.cloned());
                // The last holder of a deleted table unmaps it, which workers must not do.
                if let Some(old) = old
                    && tables.fibs.iter().all(|f| f.serial != old.serial)
                {
                    cx.discard(Box::new(old));
                }
            }
            self.uniform = self.fib.is_some();
        }
    }

    #[inline]
    fn prefetch(&self, _cx: &NodeCx<'_>, frame: &Frame, i: usize) {
        if let (true, Some(fib)) = (self.uniform, &self.fib) {
            fib.routes.prefetch(dst(frame.data(i as u8)));
        }
    }

    /// Looks up all destinations of a frame together; leaves packets without an adjacency.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let (true, Some(fib)) = (self.uniform, &self.fib) else { return FrameVerdict::PerPacket };
        let mut addrs = [0; FRAME_SIZE];
        // `ip4-input` passes nothing shorter, but a feature in between might.
        let Some(heads) = frame.long_heads::<20>() else { return FrameVerdict::PerPacket };
        for (addr, h) in addrs.iter_mut().zip(heads) {
            let [.., a, b, c, d] = *h;
            *addr = u32::from_be_bytes([a, b, c, d]);
        }
        let leaves = frame.aux_mut();
        fib.routes.lookup_batch(&addrs, leaves);
        if std::mem::take(&mut self.lookup.counting) {
            self.lookup.count_all(cx, frame);
        }
        let leaves = frame.aux();
        let Some(first) = leaves.first().copied() else { return FrameVerdict::PerPacket };
        if leaves.iter().fold(0, |differ, l| differ | (l ^ first)) == 0
            && self.lookup.dpos.get(Dpo(first)).is(Kind::REWRITE)
        {
            return FrameVerdict::Whole(REWRITE);
        }
        let rest = self.choose::<V>(frame);
        Lookup::sent(frame, each, rest)
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let dpo = self.leaf(cx, &p);
        self.lookup.follow(cx, p, Dpo(dpo))
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let dpo = frame.aux()[i as usize];
        let id = self.lookup.tables.load(cx.guard()).fib_id(frame.rx_if(i));
        let _ = writeln!(out, "fib {id} dpo-idx {dpo}");
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
