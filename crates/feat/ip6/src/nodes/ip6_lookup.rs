//! `ip6-lookup`: longest prefix match and path selection.
//!
//! Reads: rx interface (its table). Writes: aux (the forwarding object). Next: by the object's
//! kind.

use crate::icmp;
use crate::tables::{Fib, MAX_LOOKUPS, Tables};
use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Frame, Iface, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_fib::{Counted, Dpo, DpoTable, Kind, LinkType, ObjectCounters, TableId};
use thalweg_graph::{BuildCx, Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
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
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    /// Table of the frame's packets, if they share one. The handle is cloned, as the snapshot may
    /// be replaced between frames.
    fib: Option<Fib>,
    uniform: bool,
    counters: Arc<ObjectCounters>,
    /// Packets of the frame are counted one by one.
    counting: bool,
}

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

/// Offset of the hop limit.
const HOPS_AT: usize = 7;

/// The flow label's share of a hash (RFC 6438): fragments of a flow, and what it carries hidden
/// from us, go its way.
#[inline(always)]
fn label(word: u32) -> u32 {
    (word & 0xf_ffff).wrapping_mul(FACTORS[1])
}

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

impl Ip6Lookup {
    pub(super) fn new(cx: &BuildCx<'_>) -> Ip6Lookup {
        Ip6Lookup {
            tables: cx.shared(),
            dpos: cx.shared(),
            fib: None,
            uniform: false,
            counters: cx.shared(),
            counting: false,
        }
    }

    /// Looks a packet up in the table with this id.
    pub(super) fn leaf_in(&self, cx: &NodeCx<'_>, p: &PktMut<'_>, table: TableId) -> Dpo {
        let tables = self.tables.load(cx.guard());
        tables.fib_of(table).map_or(Dpo(0), |fib| Dpo(fib.routes.lookup(dst(p.data()))))
    }

    /// Takes note of whether packets are counted.
    #[inline]
    pub(super) fn begin_counting(&mut self) {
        self.counting = self.counters.is_on();
    }

    /// Counts a packet whose route leads to `dpo`.
    #[cold]
    fn count(&self, cx: &NodeCx<'_>, p: &PktMut<'_>, dpo: Dpo) {
        self.counters.count(cx.worker(), Counted::To, [(dpo, p.total_len())]);
    }

    /// Counts all packets of a frame, which has their leaves.
    #[cold]
    fn count_all(&self, cx: &NodeCx<'_>, frame: &Frame) {
        let all = frame.aux().iter().zip(0..).map(|(dpo, i)| (Dpo(*dpo), frame.total_len(i)));
        self.counters.count(cx.worker(), Counted::To, all);
    }

    /// As [`follow`](Self::follow), for what must not come back to the router.
    pub(super) fn redirect(&self, cx: &mut NodeCx<'_>, p: PktMut<'_>, dpo: Dpo) -> Verdict {
        let here = self.dpos.exit(LinkType::Ip6, Kind::LOCAL).map(Verdict::node);
        match self.follow(cx, p, dpo) {
            verdict if here == Some(verdict) => Verdict::drop(BACK),
            verdict => verdict,
        }
    }

    /// Resolves a packet's leaf to one of its paths.
    #[inline(always)]
    pub(super) fn follow(&self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>, mut dpo: Dpo) -> Verdict {
        if self.counting {
            self.count(cx, &p, dpo);
        }
        let mut kind = self.dpos.get(dpo).state().kind;
        if kind != Kind::REWRITE && kind.is_group() {
            dpo = self.dpos.resolve(dpo, || hash(p.data()));
            kind = self.dpos.get(dpo).state().kind;
        }
        p.set_aux(dpo.0);
        if kind.is_complete() { REWRITE } else { self.special(cx, &mut p, kind) }
    }

    /// As [`follow`](Self::follow), for a packet that a tunnel has brought into a table: if it may
    /// be answered, it is treated as received by an interface of that table.
    pub(super) fn follow_tunneled(
        &self,
        cx: &mut NodeCx<'_>,
        mut p: PktMut<'_>,
        dpo: Dpo,
        table: TableId,
    ) -> Verdict {
        let met = self.dpos.get(self.dpos.resolve(dpo, || hash(p.data()))).state();
        let ends = p.data().get(HOPS_AT).is_none_or(|hops| *hops <= 1);
        if (ends || !met.kind.is_complete() || p.total_len() > usize::from(met.mtu))
            && let Some(member) = self.member_elsewhere(cx, &p, table)
        {
            p.set_rx_if(member);
        }
        self.follow(cx, p, dpo)
    }

    /// Returns an interface of a table that is not the one of the interface that a packet came by.
    fn member_elsewhere(
        &self,
        cx: &NodeCx<'_>,
        p: &PktMut<'_>,
        table: TableId,
    ) -> Option<SwIfIndex> {
        let tables = self.tables.load(cx.guard());
        tables.member(table).filter(|_| tables.fib_id(p.rx_if()) != table)
    }

    /// Looks a packet up in the tables that its routes name, one after the other; returns the kind
    /// of what it finds: that of a look-up in one more table if they are too many.
    #[cold]
    fn look_on(&self, cx: &NodeCx<'_>, p: &mut PktMut<'_>) -> Kind {
        for _ in 0..MAX_LOOKUPS {
            let state = self.dpos.get(Dpo(p.aux())).state();
            let leaf = self.leaf_in(cx, p, TableId(state.value));
            if self.counters.is_on() {
                self.count(cx, p, leaf);
            }
            p.set_aux(self.dpos.resolve(leaf, || hash(p.data())).get());
            let kind = self.dpos.get(Dpo(p.aux())).state().kind;
            if kind != Kind::LOOKUP {
                return kind;
            }
        }
        Kind::LOOKUP
    }

    /// Has the interface of its route receive a packet, unless too many have received it.
    #[cold]
    fn received(&self, p: &mut PktMut<'_>) -> Verdict {
        p.set_rx_if(self.dpos.get(Dpo(p.aux())).state().tx_if());
        let entered = &mut p.meta_mut().entered;
        if usize::from(*entered) == MAX_LOOKUPS {
            return Verdict::drop(DEPTH);
        }
        *entered += 1;
        RECEIVED
    }

    /// Returns whether senders hear that no route leads on (RFC 4443 section 3.1): nobody has asked
    /// for that as by an `unreachable` route.
    fn answers(&self, cx: &NodeCx<'_>, p: &PktMut<'_>) -> bool {
        self.tables.load(cx.guard()).fib(p.rx_if()).is_some_and(|fib| fib.unreachables)
    }

    /// Handles packets that are not simply forwarded.
    #[cold]
    fn special(&self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, kind: Kind) -> Verdict {
        let kind = if kind == Kind::LOOKUP { self.look_on(cx, p) } else { kind };
        if kind.is_complete() {
            return REWRITE;
        }
        if kind == Kind::INTERFACE_RX {
            return self.received(p);
        }
        let to = Ipv6Addr::from_bits(dst(p.data()));
        // The default route that every table begins with is none.
        let is_miss = kind == Kind::MISS || kind == Kind::DROP && !self.is_configured(cx, p);
        let mut answer = |cause, reason| match self.answers(cx, p) {
            true => icmp::request_error(cx, p, cause, reason, ICMP_ERROR),
            false => Verdict::drop(reason),
        };
        match kind {
            Kind::MISS | Kind::DROP if to.is_unicast_link_local() => LINK_LOCAL,
            Kind::DOWN => answer(icmp::ADDRESS_UNREACHABLE, DOWN),
            Kind::UNRESOLVED => answer(icmp::ADDRESS_UNREACHABLE, UNRESOLVED),
            Kind::MISS | Kind::DROP if to.is_multicast() => Verdict::drop(MULTICAST),
            _ if is_miss => answer(icmp::NO_ROUTE, NO_ROUTE),
            Kind::UNREACHABLE => {
                icmp::request_error(cx, p, icmp::NO_ROUTE, UNREACHABLE, ICMP_ERROR)
            }
            Kind::PROHIBIT => icmp::request_error(cx, p, icmp::PROHIBITED, PROHIBITED, ICMP_ERROR),
            // The tables lead to each other.
            Kind::LOOKUP => Verdict::drop(DEPTH),
            _ => match self.dpos.exit(LinkType::Ip6, kind) {
                Some(node) => Verdict::node(node),
                None => Verdict::drop(BLACKHOLE),
            },
        }
    }

    /// Returns whether the route of a packet is longer than the default one.
    fn is_configured(&self, cx: &NodeCx<'_>, p: &PktMut<'_>) -> bool {
        let fib = self.tables.load(cx.guard()).fib(p.rx_if());
        let route = fib.and_then(|fib| fib.routes.lookup_route(dst(p.data())));
        route.is_some_and(|(_, len)| len > 0)
    }

    /// Chooses what the packets of a frame meet, whose leaves it has; returns those left.
    #[inline(always)]
    fn choose<V: Lanes>(&self, frame: &mut Frame) -> Rows {
        if !V::WIDE {
            return self.choose_each(frame);
        }
        let mut rest = Rows::NONE;
        for (at, exist) in frame.lane_groups() {
            let met = self.dpos.met(frame.aux_lanes::<V>(at));
            if met.balanced & exist != 0 {
                // What has been chosen already is chosen again.
                return self.choose_each(frame);
            }
            frame.set_aux_lanes(at, met.dpos);
            rest.insert_lanes(at, exist & !met.complete);
        }
        rest
    }

    /// As [`choose`](Self::choose), one by one.
    #[inline(always)]
    fn choose_each(&self, frame: &mut Frame) -> Rows {
        let mut leaves = [0; FRAME_SIZE];
        leaves[..frame.len()].copy_from_slice(frame.aux());
        let mut rest = Rows::NONE;
        for (i, (leaf, head)) in leaves.iter_mut().zip(frame.heads::<44>()).enumerate() {
            let state = self.dpos.get(Dpo(*leaf)).state();
            let member = match state.kind {
                Kind::REWRITE => continue,
                Kind::REDIRECT_COMPLETE => Some(Dpo(state.value)),
                Kind::LOAD_BALANCE_COMPLETE => {
                    plain_hash(head).map(|hash| self.dpos.pick(state, hash))
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
                let fib = self.tables.load(cx.guard()).fib(p.rx_if());
                fib.map_or(0, |f| f.routes.lookup(dst(p.data())))
            }
        }
    }
}

impl Node for Ip6Lookup {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.counting = self.counters.is_on();
        let tables = self.tables.load(cx.guard());
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
        if std::mem::take(&mut self.counting) {
            self.count_all(cx, frame);
        }
        let leaves = frame.aux();
        let Some(first) = leaves.first().copied() else { return FrameVerdict::PerPacket };
        if (one.is_some() || leaves.iter().fold(0, |differ, l| differ | (l ^ first)) == 0)
            && self.dpos.get(Dpo(first)).is(Kind::REWRITE)
        {
            return FrameVerdict::Whole(REWRITE);
        }
        let rest = self.choose::<V>(frame);
        if rest.is_empty() {
            return FrameVerdict::Whole(REWRITE);
        }
        each[..frame.len()].fill(REWRITE);
        FrameVerdict::Each(rest)
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let dpo = self.leaf(cx, &p);
        self.follow(cx, p, Dpo(dpo))
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let dpo = frame.aux()[usize::from(i)];
        let id = self.tables.load(cx.guard()).fib_id(frame.rx_if(i));
        let _ = writeln!(out, "fib {id} dpo-idx {dpo}");
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
