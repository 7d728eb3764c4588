//! `ip6-lookup`: longest prefix match and path selection.
//!
//! Reads: rx interface (its table). Writes: aux (the forwarding object). Next: by the object's
//! kind.

use crate::icmp;
use crate::link::Ipv6Packets;
use crate::tables::{Fib, Tables};
use std::fmt::Write;
use std::net::Ipv6Addr;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Frame, Iface, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::lookup::{self, Refusal, Routed};
use thalweg_fib::{Dpo, Kind, TableId};
use thalweg_graph::{BuildCx, Built, ErrorCode, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::flow::{FACTORS, five_tuple, hash_v6};

thalweg_graph::next_nodes! {
    REWRITE => "ip6-rewrite",
    LOCAL => "ip6-local",
    DISCOVER => "ip6-discover-neighbor",
    GLEAN => "ip6-glean",
    ICMP_ERROR => "ip6-icmp-error",
    LINK_LOCAL => "ip6-link-local",
    RECEIVED => "interface-rx-dpo-ip6",
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
        DEPTH: Error, TTL_EXCEEDED, "too many ip6 look-ups of one packet";
    }
    BACK: Error, BLACKHOLE_ROUTE, "punt redirect leads to the router itself";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-lookup",
    next: NEXT_NODES,
    errors: LOOKUP_ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(Ip6Lookup::new(cx)),
    ..NodeDecl::DEFAULT
};

pub(super) struct Ip6Lookup {
    pub(super) lookup: Lookup,
    /// Table of the frame's packets, if they share one. The handle is cloned, as the snapshot may
    /// be replaced between frames.
    fib: Option<Fib>,
    uniform: bool,
}

/// Sends packets where routes lead.
pub(super) type Lookup = lookup::Lookup<Ipv6Packets>;

#[inline]
fn dst(data: &[u8]) -> u128 {
    let address = data.get(24..).and_then(<[u8]>::first_chunk::<16>);
    address.map_or(0, |a| u128::from_be_bytes(*a))
}

/// The destination as it is in memory.
#[inline(always)]
fn raw_dst(head: &[u8; 40]) -> u128 {
    head.last_chunk().map_or(0, |a| u128::from_ne_bytes(*a))
}

/// Looks up the destinations of a frame, which differ in these bits; its packets have whole
/// headers.
#[inline]
fn look_up_each(fib: &Fib, differ: u128, frame: &mut Frame) {
    let mut addrs = [0; FRAME_SIZE];
    for (addr, head) in addrs.iter_mut().zip(frame.heads::<40>()) {
        *addr = u128::from_be(raw_dst(head));
    }
    let count = frame.len();
    fib.routes.lookup_unlike(&addrs[..count], differ, frame.aux_mut());
}

/// The flow label's share of a hash (RFC 6438): fragments of a flow, and what it carries hidden
/// from us, go its way.
#[inline(always)]
fn label(word: u32) -> u32 {
    (word & 0xf_ffff).wrapping_mul(FACTORS[1])
}

#[inline]
fn hash(packet: &[u8]) -> u32 {
    packet.first_chunk().and_then(plain_hash).unwrap_or_else(|| other_hash(packet))
}

#[inline(never)]
fn other_hash(packet: &[u8]) -> u32 {
    let word = packet.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
    five_tuple(packet).map_or(0, |t| t.hash32() ^ label(word))
}

/// Returns the hash of a packet with ports right after its header, and `None` for any other, or one
/// too short for a whole TCP header.
#[inline(always)]
fn plain_hash(head: &[u8; 44]) -> Option<u32> {
    let address = |at: usize| {
        let bytes = head.get(at..).and_then(<[u8]>::first_chunk::<16>);
        bytes.map_or(Ipv6Addr::UNSPECIFIED, |a| Ipv6Addr::from(*a))
    };
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let is_plain = matches!(head[6], 6 | 17) && half(4) >= 20;
    is_plain.then(|| {
        let word = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        hash_v6(address(8), address(24), head[6], half(40), half(42)) ^ label(word)
    })
}

impl Routed for Ipv6Packets {
    type Tables = Tables;

    const REWRITE: Verdict = REWRITE;
    const ICMP_ERROR: Verdict = ICMP_ERROR;
    const RECEIVED: Verdict = RECEIVED;
    const NO_ROUTE: Refusal = (icmp::NO_ROUTE, NO_ROUTE);
    const DOWN: Refusal = (icmp::ADDRESS_UNREACHABLE, DOWN);
    const UNRESOLVED: Refusal = (icmp::ADDRESS_UNREACHABLE, UNRESOLVED);
    const UNREACHABLE: Refusal = (icmp::NO_ROUTE, UNREACHABLE);
    const PROHIBITED: Refusal = (icmp::PROHIBITED, PROHIBITED);
    const BLACKHOLE: ErrorCode = BLACKHOLE;
    const DEPTH: ErrorCode = DEPTH;
    const BACK: ErrorCode = BACK;
    const HOPS_AT: usize = 7;

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

    fn unrouted(packet: &[u8]) -> Option<Verdict> {
        let to = Ipv6Addr::from_bits(dst(packet));
        if to.is_unicast_link_local() {
            return Some(LINK_LOCAL);
        }
        to.is_multicast().then_some(Verdict::drop(MULTICAST))
    }

    /// The default route that every table begins with is none.
    fn is_missed(tables: &Tables, rx_if: SwIfIndex, packet: &[u8]) -> bool {
        let route = tables.fib(rx_if).and_then(|fib| fib.routes.lookup_route(dst(packet)));
        route.is_none_or(|(_, len)| len == 0)
    }
}

impl Ip6Lookup {
    pub(super) fn new(cx: &BuildCx<'_>) -> Ip6Lookup {
        Ip6Lookup { lookup: Lookup::new(cx), fib: None, uniform: false }
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
            if met.balanced & exist != 0 {
                // Packets chosen already are chosen again.
                return self.choose_each(frame);
            }
            frame.set_aux_lanes(at, met.dpos);
            rest.insert_lanes(at, exist & !met.complete);
        }
        rest
    }

    /// Does the work of [`choose`](Self::choose) one by one.
    #[inline(always)]
    fn choose_each(&self, frame: &mut Frame) -> Rows {
        let mut leaves = [0; FRAME_SIZE];
        leaves[..frame.len()].copy_from_slice(frame.aux());
        let mut rest = Rows::NONE;
        for (i, (leaf, head)) in leaves.iter_mut().zip(frame.heads::<44>()).enumerate() {
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

impl Node for Ip6Lookup {
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
        // `ip6-input` passes nothing shorter, but a feature in between might.
        let Some(mut heads) = frame.long_heads::<40>() else { return FrameVerdict::PerPacket };
        let Some(first) = heads.next().map(raw_dst) else { return FrameVerdict::PerPacket };
        let differ = heads.fold(0, |differ, head| differ | (raw_dst(head) ^ first));
        let (first, differ) = (u128::from_be(first), u128::from_be(differ));
        let one = fib.routes.lookup_alike(first, differ);
        match one {
            Some(leaf) => frame.aux_mut().fill(leaf),
            None => look_up_each(fib, differ, frame),
        }
        if std::mem::take(&mut self.lookup.counting) {
            self.lookup.count_all(cx, frame);
        }
        let leaves = frame.aux();
        let Some(first) = leaves.first().copied() else { return FrameVerdict::PerPacket };
        if (one.is_some() || leaves.iter().fold(0, |differ, l| differ | (l ^ first)) == 0)
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
        let dpo = frame.aux()[usize::from(i)];
        let id = self.lookup.tables.load(cx.guard()).fib_id(frame.rx_if(i));
        let _ = writeln!(out, "fib {id} dpo-idx {dpo}");
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
