//! Verdicts for packets whose destination has been looked up. The look-up itself, and the choice of
//! paths for whole frames, are each version's own.

use crate::icmp_errors::request_error;
use crate::link::Packets;
use std::sync::Arc;
use thalweg_buffer::{Frame, IcmpCause, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_engine::punt::Punt;
use thalweg_fib::{Counted, Dpo, DpoTable, Kind, ObjectCounters, TableId};
use thalweg_graph::{BuildCx, ErrorCode, FrameVerdict, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;

/// Maximum number of further tables in which a packet is looked up.
pub const MAX_LOOKUPS: usize = 4;

/// An ICMP error, and the drop reason of the packet that it is about.
pub type Refusal = (IcmpCause, ErrorCode);

/// Types and constants of a version's look-ups. Verdicts and drop reasons are those of its node.
pub trait Routed: Packets {
    /// Tables as workers read them.
    type Tables: Send + Sync + 'static;

    /// Verdict for forwarded packets: to the node that writes the link header.
    const REWRITE: Verdict;
    /// Verdict for refused packets: to the node that answers by an ICMP error.
    const ICMP_ERROR: Verdict;
    /// Verdict for packets that another interface receives: to the node for that.
    const RECEIVED: Verdict;
    /// No route.
    const NO_ROUTE: Refusal;
    /// The next hop's interface is down.
    const DOWN: Refusal;
    /// The next hop leads nowhere.
    const UNRESOLVED: Refusal;
    /// A route of kind `unreachable`.
    const UNREACHABLE: Refusal;
    /// A route of kind `prohibit`.
    const PROHIBITED: Refusal;
    /// A route that drops.
    const BLACKHOLE: ErrorCode;
    /// Tables or interfaces that lead to each other.
    const DEPTH: ErrorCode;
    /// A redirect that leads to the router itself.
    const BACK: ErrorCode;
    /// Offset of the TTL or hop limit.
    const HOPS_AT: usize;

    /// Returns the hash that selects one of several paths for a packet.
    fn hash(packet: &[u8]) -> u32;

    /// Returns what the route of a packet in a table leads to.
    fn leaf_in(tables: &Self::Tables, table: TableId, packet: &[u8]) -> Dpo;

    /// Returns the table of an interface.
    fn table_of(tables: &Self::Tables, rx_if: SwIfIndex) -> TableId;

    /// Returns the interface by which what a tunnel brings into a table is treated as received.
    fn member(tables: &Self::Tables, table: TableId) -> Option<SwIfIndex>;

    /// Returns whether senders hear that no route of an interface's table leads on (RFC 1812
    /// section 5.2.7.1, RFC 4443 section 3.1): nobody has asked for that as by an `unreachable`
    /// route.
    fn answers(tables: &Self::Tables, rx_if: SwIfIndex) -> bool;

    /// Returns the verdict of a packet without a route that leads on, if its destination is not
    /// one that routes are for.
    fn unrouted(packet: &[u8]) -> Option<Verdict>;

    /// Returns whether a packet is to all hosts of its link, whatever the routes are.
    fn is_for_all(_packet: &[u8]) -> bool {
        false
    }

    /// Returns whether the route that drops a packet stands for none.
    fn is_missed(_tables: &Self::Tables, _rx_if: SwIfIndex, _packet: &[u8]) -> bool {
        false
    }
}

/// Sends packets where the routes of their destinations lead.
pub struct Lookup<V: Routed> {
    /// The tables.
    pub tables: Arc<Snapshot<V::Tables>>,
    /// The forwarding objects.
    pub dpos: Arc<DpoTable>,
    counters: Arc<ObjectCounters>,
    punt: Punt,
    /// Packets of the frame are counted one by one.
    pub counting: bool,
}

impl<V: Routed> Lookup<V> {
    /// Creates it for a node, in its `build` function.
    #[must_use]
    pub fn new(cx: &BuildCx<'_>) -> Lookup<V> {
        let (tables, dpos, counters) = (cx.shared(), cx.shared(), cx.shared());
        Lookup { tables, dpos, counters, punt: Punt::new(cx), counting: false }
    }

    /// Looks a packet up in the table with this id.
    #[inline]
    pub fn leaf_in(&self, cx: &NodeCx<'_>, p: &PktMut<'_>, table: TableId) -> Dpo {
        V::leaf_in(self.tables.load(cx.guard()), table, p.data())
    }

    /// Takes note of whether packets are counted.
    #[inline]
    pub fn begin_counting(&mut self) {
        self.counting = self.counters.is_on();
    }

    /// Counts a packet whose route leads to `dpo`.
    #[cold]
    fn count(&self, cx: &NodeCx<'_>, p: &PktMut<'_>, dpo: Dpo) {
        self.counters.count(cx.worker(), Counted::To, [(dpo, p.total_len())]);
    }

    /// Counts all packets of a frame, which has their leaves.
    #[cold]
    pub fn count_all(&self, cx: &NodeCx<'_>, frame: &Frame) {
        let all = frame.aux().iter().zip(0..).map(|(dpo, i)| (Dpo(*dpo), frame.total_len(i)));
        self.counters.count(cx.worker(), Counted::To, all);
    }

    /// [`follow`](Self::follow) for what must not come back to the router.
    pub fn redirect(&self, cx: &mut NodeCx<'_>, p: PktMut<'_>, dpo: Dpo) -> Verdict {
        let here = self.dpos.exit(V::LINK, Kind::LOCAL).map(Verdict::node);
        match self.follow(cx, p, dpo) {
            verdict if here == Some(verdict) => Verdict::drop(V::BACK),
            verdict => verdict,
        }
    }

    /// Resolves a packet's leaf to one of its paths.
    #[inline(always)]
    pub fn follow(&self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>, mut dpo: Dpo) -> Verdict {
        if self.counting {
            self.count(cx, &p, dpo);
        }
        let mut kind = self.dpos.get(dpo).state().kind;
        if kind != Kind::REWRITE && kind.is_group() {
            dpo = self.dpos.resolve(dpo, || V::hash(p.data()));
            kind = self.dpos.get(dpo).state().kind;
        }
        p.set_aux(dpo.0);
        if kind.is_complete() { V::REWRITE } else { self.special(cx, &mut p, kind) }
    }

    /// Returns the verdict of a frame whose packets but `rest` are sent.
    #[inline(always)]
    pub fn sent(frame: &Frame, each: &mut [Verdict], rest: Rows) -> FrameVerdict {
        if rest.is_empty() {
            return FrameVerdict::Whole(V::REWRITE);
        }
        each[..frame.len()].fill(V::REWRITE);
        FrameVerdict::Each(rest)
    }

    /// [`follow`](Self::follow) for a packet that a tunnel has brought into a table: if it may
    /// be answered, it is treated as received by an interface of that table.
    pub fn follow_tunneled(
        &self,
        cx: &mut NodeCx<'_>,
        mut p: PktMut<'_>,
        dpo: Dpo,
        table: TableId,
    ) -> Verdict {
        let met = self.dpos.get(self.dpos.resolve(dpo, || V::hash(p.data()))).state();
        let ends = p.data().get(V::HOPS_AT).is_none_or(|hops| *hops <= 1);
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
        V::member(tables, table).filter(|_| V::table_of(tables, p.rx_if()) != table)
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
            p.set_aux(self.dpos.resolve(leaf, || V::hash(p.data())).get());
            let kind = self.dpos.get(Dpo(p.aux())).state().kind;
            if kind != Kind::LOOKUP {
                return kind;
            }
        }
        Kind::LOOKUP
    }

    /// Makes the interface of its route receive a packet, unless too many have received it.
    #[cold]
    fn received(&self, p: &mut PktMut<'_>) -> Verdict {
        p.set_rx_if(self.dpos.get(Dpo(p.aux())).state().tx_if());
        let entered = &mut p.meta_mut().entered;
        if usize::from(*entered) == MAX_LOOKUPS {
            return Verdict::drop(V::DEPTH);
        }
        *entered += 1;
        V::RECEIVED
    }

    /// Returns whether the route that drops a packet stands for none.
    fn is_missed(&self, cx: &NodeCx<'_>, p: &PktMut<'_>) -> bool {
        V::is_missed(self.tables.load(cx.guard()), p.rx_if(), p.data())
    }

    /// Handles packets that are not simply forwarded.
    #[cold]
    fn special(&self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, kind: Kind) -> Verdict {
        let kind = if kind == Kind::LOOKUP { self.look_on(cx, p) } else { kind };
        if kind.is_complete() {
            return V::REWRITE;
        }
        if kind == Kind::INTERFACE_RX {
            return self.received(p);
        }
        let leads_nowhere = kind == Kind::MISS || kind == Kind::DROP;
        if leads_nowhere
            && V::is_for_all(p.data())
            && self.punt.has_host(cx.guard(), p.rx_if())
            && let Some(local) = self.dpos.exit(V::LINK, Kind::LOCAL)
        {
            return Verdict::node(local);
        }
        if leads_nowhere && let Some(verdict) = V::unrouted(p.data()) {
            return verdict;
        }
        let ((cause, reason), always) = match kind {
            Kind::DOWN => (V::DOWN, false),
            Kind::UNRESOLVED => (V::UNRESOLVED, false),
            Kind::MISS => (V::NO_ROUTE, false),
            Kind::DROP if self.is_missed(cx, p) => (V::NO_ROUTE, false),
            Kind::UNREACHABLE => (V::UNREACHABLE, true),
            Kind::PROHIBIT => (V::PROHIBITED, true),
            // The tables lead to each other.
            Kind::LOOKUP => return Verdict::drop(V::DEPTH),
            _ => {
                let exit = self.dpos.exit(V::LINK, kind);
                return exit.map_or(Verdict::drop(V::BLACKHOLE), Verdict::node);
            }
        };
        match always || V::answers(self.tables.load(cx.guard()), p.rx_if()) {
            true => request_error(cx, p, cause, reason, V::ICMP_ERROR),
            false => Verdict::drop(reason),
        }
    }
}
