//! The main thread's side of forwarding objects.

use crate::TableId;
use crate::adjacency::{Adjacency, AdjacencyKey, Imposed, Midchain, Peer};
use crate::buckets::Runs;
use crate::counters::{Counts, ObjectCounters};
use crate::dpo::{CAPACITY, Dpo, DpoTable, EntryState, MAX_BUCKETS, MAX_REWRITE, REWRITE_BYTES};
use crate::group::Group;
use crate::kind::{Kind, KindDecl, Kinds, LinkType};
use crate::rib::Labels;
use crate::routes::RouteBook;
use crate::via_label::ViaLabels;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, InterfaceView, MacAddr, SwIfIndex, interface};
use thalweg_graph::{Control, NodeId};
use thalweg_tables::IndexPool;
use thalweg_wire::mpls::ENTRY_LEN;

/// Error of creating a forwarding object.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FibError {
    /// The table is full.
    #[error("adjacency table full: {0} entries are the limit")]
    Full(usize),
    /// The interface does not exist.
    #[error("no interface with index {0}")]
    NoInterface(SwIfIndex),
    /// A load balance has no members or too many.
    #[error("a route takes 1 to {MAX_BUCKETS} paths, not {0}")]
    Members(usize),
    /// A group, or a tunnel's destination, leads back to itself.
    #[error("the forwarding object would lead to itself")]
    Loop,
    /// The row of groups is too long.
    #[error("too many levels of recursive routes: {} are the limit", crate::MAX_DEPTH)]
    Depth,
    /// The header is too long.
    #[error("a header of {0} bytes: {MAX_REWRITE} are the limit")]
    Rewrite(usize),
    /// The table of kinds is full.
    #[error("no room for another kind of forwarding object: the limit is {}", Kind::LIMIT)]
    Kinds,
}

/// Content of an entry.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Adjacency {
        key: AdjacencyKey,
        mac: Option<MacAddr>,
        second: Option<u32>,
    },
    Midchain {
        key: AdjacencyKey,
        state: EntryState,
        stacked: Dpo,
        second: Option<u32>,
    },
    Group(Group),
    /// An object of a kind that has no more to it than its state.
    Plain,
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) refs: u32,
    pub(crate) object: Object,
}

/// Maximum number of neighbours that subscribers are notified of at once.
const MAX_UNRESOLVED: usize = 64;

/// New adjacencies lead to these neighbours, which were not known then. Lists of many are cut.
#[derive(Clone, Debug)]
pub struct Unresolved(pub Vec<(SwIfIndex, IpAddr)>);

/// Reference counts and owners of entries.
pub struct Forwarding {
    pub(crate) table: Arc<DpoTable>,
    pool: IndexPool,
    /// Second lines of long headers.
    seconds: IndexPool,
    pub(crate) runs: Runs,
    pub(crate) objects: HashMap<Dpo, Slot>,
    /// Adjacencies of interfaces that exist: a new interface of the same index must not find those
    /// of a deleted one, which may still be in use.
    adjacencies: HashMap<AdjacencyKey, Dpo>,
    by_interface: BTreeSet<(SwIfIndex, Dpo)>,
    /// Route tables with paths over an interface.
    pub(crate) tables_over: BTreeSet<(SwIfIndex, LinkType, TableId)>,
    /// Adjacencies that impose labels, by neighbour.
    imposing: BTreeSet<(SwIfIndex, Peer, Dpo)>,
    /// Objects with the groups and midchains that depend on them.
    pub(crate) dependents: BTreeSet<(Dpo, Dpo)>,
    /// Groups that have been given a number.
    pub(crate) numbered: BTreeMap<u32, Dpo>,
    /// Objects that follow the route of an address, by link type, table and address.
    pub(crate) tracked: HashMap<(LinkType, TableId, IpAddr, Labels), Dpo>,
    pub(crate) via_labels: ViaLabels,
    /// Objects of packets that an interface without a link has sent: a tunnel's outer headers.
    tunnels: HashMap<(SwIfIndex, LinkType), Dpo>,
    kinds: Kinds,
    /// Nodes that handle kinds of objects, by name until all nodes exist.
    exits: Vec<(LinkType, Kind, &'static str)>,
    /// Node that sets what labels have of the packet, and its name until all nodes exist.
    imposer: (Option<&'static str>, Option<NodeId>),
    /// Neighbours of new adjacencies, until subscribers are notified.
    unresolved: Vec<(SwIfIndex, IpAddr)>,
    /// Number of state words stored so far.
    pub(crate) stores: u64,
    /// Number of objects looked at so far, as something that they depend on has changed.
    pub(crate) visits: u64,
    counters: Arc<ObjectCounters>,
    /// Counts, by worker, of earlier objects with the same index.
    counted_before: HashMap<Dpo, Box<[Counts]>>,
}

/// Maximum length of a link header: Ethernet with two tags.
const LONGEST_LINK: usize = 22;

/// Entry of addresses that are delivered to the router by a route.
pub const LOCAL: Dpo = Dpo(1);
/// Entry of "drop silently".
pub const DROP: Dpo = Dpo(2);
/// Entry of "unreachable".
pub const UNREACHABLE: Dpo = Dpo(3);
/// Entry of "prohibited".
pub const PROHIBIT: Dpo = Dpo(4);
/// Entry of "next hops lead nowhere".
pub const UNRESOLVED: Dpo = Dpo(5);
/// Entry of an interface's own address.
pub const OWN: Dpo = Dpo(6);

impl Forwarding {
    pub(crate) fn init(c: &mut Control) {
        // Reserving address space fails only if the process is out of it; nothing works then.
        let table = match DpoTable::new() {
            Ok(t) => Arc::new(t),
            Err(e) => return c.refuse_start(format_args!("adjacency table: {e}")),
        };
        let counters = match ObjectCounters::new(c.config().workers.len(), CAPACITY) {
            Ok(counters) => Arc::new(counters),
            Err(e) => return c.refuse_start(format_args!("counters of adjacencies: {e}")),
        };
        c.share(table.clone());
        c.share(counters.clone());
        c.share(Arc::new(RouteBook::default()));
        let mut f = Forwarding {
            table,
            pool: IndexPool::new(CAPACITY as u32),
            seconds: IndexPool::new(CAPACITY as u32),
            runs: Runs::new(CAPACITY as u32 * 16),
            objects: HashMap::new(),
            adjacencies: HashMap::new(),
            by_interface: BTreeSet::new(),
            tables_over: BTreeSet::new(),
            imposing: BTreeSet::new(),
            dependents: BTreeSet::new(),
            numbered: BTreeMap::new(),
            tracked: HashMap::new(),
            via_labels: ViaLabels::default(),
            tunnels: HashMap::new(),
            kinds: Kinds::default(),
            exits: Vec::new(),
            imposer: (None, None),
            unresolved: Vec::new(),
            stores: 0,
            visits: 0,
            counters,
            counted_before: HashMap::new(),
        };
        let special = [Kind::MISS, Kind::LOCAL, Kind::DROP, Kind::UNREACHABLE, Kind::PROHIBIT];
        for kind in special.into_iter().chain([Kind::UNRESOLVED, Kind::LOCAL]) {
            // The first entries have fixed indices, and stay.
            if let Ok(i) = f.pool.alloc(c.domain()) {
                f.set_state(Dpo(i), EntryState::of(kind));
            }
        }
        c.insert(f);
        c.subscribe(|c, &e: &InterfaceEvent| {
            let (InterfaceEvent::Created(i)
            | InterfaceEvent::State(i)
            | InterfaceEvent::Mac(i)
            | InterfaceEvent::Mtu(i)
            | InterfaceEvent::Deleted(i)) = e
            else {
                return;
            };
            let view = interface::view(c, i).ok().filter(|_| e != InterfaceEvent::Deleted(i));
            c.state::<Forwarding>().borrow_mut().interface_changed(c, i, view.as_ref());
        });
    }

    pub(crate) fn ready(c: &mut Control) {
        let f = c.state::<Forwarding>();
        let mut f = f.borrow_mut();
        for (link, kind, name) in std::mem::take(&mut f.exits) {
            let by = format_args!("the exit of {} packets", link.name());
            if let Some(node) = c.named_node(name, by) {
                f.table.set_exit(link, kind, node);
            }
        }
        f.imposer.1 = f.imposer.0.and_then(|name| c.named_node(name, "imposition of labels"));
    }

    /// Sets the node of labels in uniform mode, which gives them TTL and class of what they were
    /// put before. To be called from the `init` of the feature that has the node.
    pub fn set_imposer(&mut self, node: &'static str) {
        self.imposer.0 = Some(node);
    }

    pub(crate) fn imposer(&self) -> Option<NodeId> {
        self.imposer.1
    }

    /// Returns the table that workers read.
    pub fn table(&self) -> &Arc<DpoTable> {
        &self.table
    }

    /// Returns the tables of routes of a protocol that have paths over an interface.
    #[must_use]
    pub fn tables_over(&self, sw_if: SwIfIndex, link: LinkType) -> Vec<TableId> {
        let all = self.tables_over.range((sw_if, link, TableId(0))..);
        all.take_while(|over| (over.0, over.1) == (sw_if, link)).map(|over| over.2).collect()
    }

    /// Adds a kind of objects. To be called from a feature's `init`.
    ///
    /// # Errors
    /// If there are too many.
    pub fn register(&mut self, decl: KindDecl) -> Result<Kind, FibError> {
        self.kinds.add(decl).ok_or(FibError::Kinds)
    }

    /// Sets the node that handles the objects of a kind for packets of a protocol. To be called
    /// from the `init` of the feature that has the node.
    pub fn set_exit(&mut self, link: LinkType, kind: Kind, node: &'static str) {
        self.exits.push((link, kind, node));
    }

    /// Returns the declaration of a kind.
    #[must_use]
    pub fn kind(&self, kind: Kind) -> &KindDecl {
        self.kinds.get(kind)
    }

    pub(crate) fn alloc(&mut self, c: &Control) -> Result<Dpo, FibError> {
        let fresh = self.pool.high_water();
        let dpo = self.pool.alloc(c.domain()).map_err(|_| FibError::Full(CAPACITY))?;
        let (is_new, dpo) = (dpo >= fresh, Dpo(dpo));
        if !is_new {
            self.counted_before.remove(&dpo);
            let all: Box<[Counts]> =
                (0..self.counters.workers()).map(|w| self.counters.read(w, dpo)).collect();
            if all.iter().any(|counts| *counts != Counts::default()) {
                self.counted_before.insert(dpo, all);
            }
        }
        Ok(dpo)
    }

    /// Makes protocols count packets by object, or not: those that do not always.
    pub fn set_counting(&mut self, on: bool) {
        self.counters.set(on);
    }

    /// Returns whether they do.
    #[must_use]
    pub fn counting(&self) -> bool {
        self.counters.is_on()
    }

    /// Returns what each worker has counted for an object.
    pub fn counts_by_worker(&self, dpo: Dpo) -> impl Iterator<Item = Counts> + '_ {
        let before = self.counted_before.get(&dpo);
        (0..self.counters.workers()).map(move |worker| {
            let base = before.and_then(|all| all.get(worker)).copied().unwrap_or_default();
            self.counters.read(worker, dpo).since(base)
        })
    }

    /// Returns what was counted for an object.
    #[must_use]
    pub fn counts(&self, dpo: Dpo) -> Counts {
        self.counts_by_worker(dpo).fold(Counts::default(), Counts::plus)
    }

    /// Returns one more than the highest index that an object has had.
    #[must_use]
    pub fn high_water(&self) -> u32 {
        self.pool.high_water()
    }

    pub(crate) fn insert(&mut self, dpo: Dpo, object: Object) {
        self.objects.insert(dpo, Slot { refs: 1, object });
    }

    /// Stores an entry's state, the word that workers go by.
    pub(crate) fn set_state(&mut self, dpo: Dpo, state: EntryState) {
        let entry = self.table.get(dpo);
        if entry.state() != state {
            entry.set_state(state);
            self.stores += 1;
        }
    }

    /// Returns how many state words were stored so far.
    #[must_use]
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// Returns how many objects were looked at so far, as something that they depend on had
    /// changed.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// Adds a reference to an object.
    pub fn retain(&mut self, dpo: Dpo) {
        if let Some(slot) = self.objects.get_mut(&dpo) {
            slot.refs += 1;
        }
    }

    /// Returns the number of references to an object.
    pub(crate) fn refs(&self, dpo: Dpo) -> u32 {
        self.objects.get(&dpo).map_or(0, |slot| slot.refs)
    }

    /// Returns an adjacency, created if needed; the caller holds a reference until
    /// [`release`](Self::release).
    ///
    /// # Errors
    /// If the interface does not exist or the table is full.
    pub fn adjacency(
        &mut self,
        c: &Control,
        sw_if: SwIfIndex,
        link: LinkType,
        peer: Peer,
    ) -> Result<Dpo, FibError> {
        self.imposing(c, AdjacencyKey { sw_if, link, peer, imposed: Imposed::NONE })
    }

    /// Like [`adjacency`](Self::adjacency), for one that may impose labels.
    ///
    /// # Errors
    /// See there; also if there are too many labels for a header.
    pub fn imposing(&mut self, c: &Control, key: AdjacencyKey) -> Result<Dpo, FibError> {
        if let Some(&dpo) = self.adjacencies.get(&key) {
            self.retain(dpo);
            return Ok(dpo);
        }
        let AdjacencyKey { sw_if, peer, imposed, .. } = key;
        let view = interface::view(c, sw_if).map_err(|_| FibError::NoInterface(sw_if))?;
        let len = LONGEST_LINK + (imposed.labels.as_slice().len() + 1) * ENTRY_LEN;
        let second = match imposed != Imposed::NONE && len > REWRITE_BYTES {
            true => {
                let index = self.seconds.alloc(c.domain());
                Some(index.map_err(|_| FibError::Full(CAPACITY))?)
            }
            false => None,
        };
        let dpo = self.alloc(c).inspect_err(|_| {
            second.map(|index| self.seconds.free_unused(index));
        })?;
        // Others of the neighbour know it.
        let plain = |link| AdjacencyKey { link, imposed: Imposed::NONE, ..key };
        let others = LinkType::ALL.into_iter().filter_map(|l| Some(self.find_key(plain(l))?.mac));
        // All of them do, or none does: one of up to `CAPACITY` is asked.
        let mac = others.chain(self.imposing_to(sw_if, peer).map(|d| self.mac(d))).next().flatten();
        self.adjacencies.insert(key, dpo);
        self.by_interface.insert((sw_if, dpo));
        if imposed != Imposed::NONE {
            self.imposing.insert((sw_if, peer, dpo));
        }
        self.insert(dpo, Object::Adjacency { key, mac, second });
        self.write(dpo, key, mac, &view, second);
        if let (None, Peer::Neighbor(ip), true) = (mac, peer, view.ethernet && view.is_up()) {
            self.note_unresolved(c, sw_if, ip);
        }
        Ok(dpo)
    }

    /// Notifies subscribers of an unknown neighbour, with others of the same turn.
    fn note_unresolved(&mut self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) {
        if self.unresolved.is_empty() {
            c.remote().submit(|c| {
                let f = c.state::<Forwarding>();
                let all = std::mem::take(&mut f.borrow_mut().unresolved);
                c.publish(Unresolved(all));
            });
        }
        // Packets ask for the others.
        if self.unresolved.len() < MAX_UNRESOLVED {
            self.unresolved.push((sw_if, ip));
        }
    }

    /// Adjacencies to a neighbour that impose labels.
    fn imposing_to(&self, sw_if: SwIfIndex, peer: Peer) -> impl Iterator<Item = Dpo> + '_ {
        let all = (sw_if, peer, Dpo::MIN)..=(sw_if, peer, Dpo::MAX);
        self.imposing.range(all).map(|(.., dpo)| *dpo)
    }

    fn mac(&self, dpo: Dpo) -> Option<MacAddr> {
        match self.objects.get(&dpo)?.object {
            Object::Adjacency { mac, .. } => mac,
            _ => None,
        }
    }

    /// Returns the object of a subnet on an interface, with a reference as for an adjacency: that
    /// of the one peer where nothing has to be resolved.
    ///
    /// # Errors
    /// See [`adjacency`](Self::adjacency).
    pub fn glean(
        &mut self,
        c: &Control,
        sw_if: SwIfIndex,
        link: LinkType,
    ) -> Result<Dpo, FibError> {
        let view = interface::view(c, sw_if).map_err(|_| FibError::NoInterface(sw_if))?;
        let peer = if view.ethernet { Peer::Glean } else { Peer::PointToPoint };
        self.adjacency(c, sw_if, link, peer)
    }

    /// Creates an object of a kind that a feature or this crate handles by its node; `value` is for
    /// that node ([`EntryState::tx_if`]).
    ///
    /// # Errors
    /// If the table is full.
    pub fn plain(&mut self, c: &Control, kind: Kind, value: u32) -> Result<Dpo, FibError> {
        let dpo = self.alloc(c)?;
        self.insert(dpo, Object::Plain);
        self.set_state(dpo, EntryState { value, ..EntryState::of(kind) });
        Ok(dpo)
    }

    /// Creates a midchain, which takes over the caller's reference to what it is stacked on. The
    /// midchain is down while nothing can be sent there.
    ///
    /// # Errors
    /// If the header is too long, the interface does not exist, or the table is full; the reference
    /// is released then.
    pub fn midchain(&mut self, c: &Control, new: &Midchain<'_>) -> Result<Dpo, FibError> {
        let made = self.new_midchain(c, new);
        if made.is_err() {
            self.release(c, new.stacked);
        }
        made
    }

    fn new_midchain(&mut self, c: &Control, new: &Midchain<'_>) -> Result<Dpo, FibError> {
        let Midchain { sw_if, link, header, node, stacked } = *new;
        if header.len() > MAX_REWRITE {
            return Err(FibError::Rewrite(header.len()));
        }
        let view = interface::view(c, sw_if).map_err(|_| FibError::NoInterface(sw_if))?;
        let second = match header.get(REWRITE_BYTES..) {
            Some(rest) if !rest.is_empty() => {
                let index = self.seconds.alloc(c.domain());
                let index = index.map_err(|_| FibError::Full(CAPACITY))?;
                self.table.set_second(index, rest);
                Some(index)
            }
            _ => None,
        };
        let dpo = self.alloc(c).inspect_err(|_| {
            // The caller has not seen it.
            second.map(|index| self.seconds.free_unused(index));
        })?;
        let entry = self.table.get(dpo);
        entry.set_rewrite(&header[..header.len().min(REWRITE_BYTES)]);
        entry.set_next_hop(None);
        entry.set_next(node, stacked, second.unwrap_or(0));
        let (len, mtu) = (header.len() as u8, link.mtu(&view));
        let state = EntryState { kind: midchain_kind(&view), len, mtu, value: sw_if.get() };
        let peer = Peer::PointToPoint;
        let key = AdjacencyKey { sw_if, link, peer, imposed: Imposed::NONE };
        self.insert(dpo, Object::Midchain { key, state, stacked, second });
        self.by_interface.insert((sw_if, dpo));
        self.dependents.insert((stacked, dpo));
        self.refresh_midchain(dpo);
        Ok(dpo)
    }

    /// Sets the state of a midchain by what it is stacked on.
    pub(crate) fn refresh_midchain(&mut self, dpo: Dpo) {
        let Some(Slot { object: Object::Midchain { state, stacked, .. }, .. }) =
            self.objects.get(&dpo)
        else {
            return;
        };
        let (mut state, stacked) = (*state, *stacked);
        let end = self.table.get(self.table.resolve(stacked, || 0)).state().kind;
        if !end.is_sent() {
            state.kind = Kind::DOWN;
        }
        self.set_state(dpo, state);
    }

    /// Releases a reference to an entry; the last one frees it (after a grace period).
    pub fn release(&mut self, c: &Control, dpo: Dpo) {
        let Some(slot) = self.objects.get_mut(&dpo) else { return };
        slot.refs -= 1;
        if slot.refs > 0 {
            return;
        }
        let Some(slot) = self.objects.remove(&dpo) else { return };
        match slot.object {
            Object::Adjacency { key, second, .. } => {
                self.by_interface.remove(&(key.sw_if, dpo));
                self.imposing.remove(&(key.sw_if, key.peer, dpo));
                if let Some(index) = second {
                    let _ = self.seconds.free_after(index, c.domain().tag());
                }
                if self.adjacencies.get(&key) == Some(&dpo) {
                    self.adjacencies.remove(&key);
                }
            }
            Object::Midchain { key, stacked, second, .. } => {
                self.by_interface.remove(&(key.sw_if, dpo));
                self.dependents.remove(&(stacked, dpo));
                if let Some(index) = second {
                    let _ = self.seconds.free_after(index, c.domain().tag());
                }
                self.release(c, stacked);
            }
            Object::Group(group) => self.drop_group(c, dpo, group),
            Object::Plain => {}
        }
        self.table.forget(dpo);
        let _ = self.pool.free_after(dpo.get(), c.domain().tag());
    }

    /// Sets a neighbour's MAC address: its adjacencies of all link types, if there are any, become
    /// complete or incomplete in place.
    pub fn set_neighbor(
        &mut self,
        c: &Control,
        sw_if: SwIfIndex,
        nh: IpAddr,
        mac: Option<MacAddr>,
    ) {
        let Ok(view) = interface::view(c, sw_if) else { return };
        let peer = Peer::Neighbor(nh);
        let key = |link| AdjacencyKey { sw_if, link, peer, imposed: Imposed::NONE };
        let plain =
            LinkType::ALL.into_iter().filter_map(|l| self.adjacencies.get(&key(l)).copied());
        let all: Vec<Dpo> = plain.chain(self.imposing_to(sw_if, peer)).collect();
        for &dpo in &all {
            let Some(Slot { object: Object::Adjacency { key, mac: known, second }, .. }) =
                self.objects.get_mut(&dpo)
            else {
                continue;
            };
            *known = mac;
            let (key, second) = (*key, *second);
            self.write(dpo, key, mac, &view, second);
            self.refresh_dependents(c, &[dpo]);
        }
    }

    /// Writes an adjacency's entry: the header first, then the state that makes it valid.
    fn write(
        &mut self,
        dpo: Dpo,
        key: AdjacencyKey,
        mac: Option<MacAddr>,
        view: &InterfaceView,
        second: Option<u32>,
    ) {
        let e = self.table.get(dpo);
        e.set_next_hop(key.peer.address());
        let labelled = !key.imposed.labels.as_slice().is_empty();
        let carried = if labelled { LinkType::Mpls } else { key.link };
        let below = self.tunnels.get(&(key.sw_if, carried)).copied();
        e.set_next(view.output, below.unwrap_or_default(), second.unwrap_or(0));
        let (kind, to) = match (view.is_up(), view.ethernet, key.peer, mac) {
            (false, ..) => (Kind::DOWN, None),
            // No resolution: whatever is at the other end receives it.
            (true, false, ..) => (Kind::REWRITE, None),
            (true, true, Peer::Glean, _) => (Kind::GLEAN, None),
            (true, true, Peer::AsWritten, _) => (Kind::AS_WRITTEN, None),
            (true, true, Peer::Multicast, _) => (Kind::MULTICAST, Some(key.link.multicast_mac())),
            (true, true, _, None) => (Kind::INCOMPLETE, None),
            (true, true, _, Some(mac)) => (Kind::REWRITE, Some(mac)),
        };
        if view.shares_output && to.is_some() && view.tags.as_slice().is_empty() {
            self.table.set_names_senders();
        }
        let mut header = match to {
            Some(mac) => {
                let tags = view.tags.as_slice();
                [&mac.0[..], &view.mac.0, tags, &key.link.ethertype()].concat()
            }
            None => Vec::new(),
        };
        let labels = key.imposed.bytes();
        let mtu = key.link.mtu(view).saturating_sub(labels.len() as u16);
        header.extend(labels);
        let len = header.len() as u8;
        // The label to swap lies behind the header.
        header.extend(key.imposed.swap.iter().flat_map(|l| (l.get() << 12).to_be_bytes()));
        if !header.is_empty() {
            e.set_rewrite(&header[..header.len().min(REWRITE_BYTES)]);
            if let (Some(index), Some(rest)) = (second, header.get(REWRITE_BYTES..)) {
                self.table.set_second(index, rest);
            }
        }
        self.set_state(dpo, EntryState { kind, len, mtu, value: view.sw_if.get() });
    }

    /// Sets what packets of a type meet that a tunnel's interface has sent: its adjacencies name it
    /// ([`Entry::stacked`](crate::Entry::stacked)). The caller has a reference to it, until it sets
    /// another one or the interface is deleted.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn set_tunnel(
        &mut self,
        c: &Control,
        sw_if: SwIfIndex,
        link: LinkType,
        below: Dpo,
    ) -> Result<(), FibError> {
        let view = interface::view(c, sw_if).map_err(|_| FibError::NoInterface(sw_if))?;
        self.tunnels.insert((sw_if, link), below);
        self.interface_changed(c, sw_if, Some(&view));
        Ok(())
    }

    /// Updates the objects of an interface: up, down, another MAC address or MTU, deleted (`None`).
    fn interface_changed(&mut self, c: &Control, sw_if: SwIfIndex, view: Option<&InterfaceView>) {
        let all = self.by_interface.range((sw_if, Dpo::MIN)..=(sw_if, Dpo::MAX));
        let all: Vec<Dpo> = all.map(|(_, dpo)| *dpo).collect();
        if view.is_none() {
            LinkType::ALL.into_iter().for_each(|link| _ = self.tunnels.remove(&(sw_if, link)));
        }
        for &dpo in &all {
            self.visits += 1;
            let Some(slot) = self.objects.get_mut(&dpo) else { continue };
            match (&mut slot.object, view) {
                (Object::Adjacency { key, mac, second }, Some(view)) => {
                    let (key, mac, second) = (*key, *mac, *second);
                    self.write(dpo, key, mac, view, second);
                }
                (Object::Midchain { key, state, .. }, Some(view)) => {
                    (state.kind, state.mtu) = (midchain_kind(view), key.link.mtu(view));
                    self.refresh_midchain(dpo);
                }
                (Object::Adjacency { key, .. }, None) => {
                    self.adjacencies.remove(key);
                    self.imposing.remove(&(key.sw_if, key.peer, dpo));
                    self.orphan(dpo, sw_if);
                }
                (Object::Midchain { state, .. }, None) => {
                    state.kind = Kind::DOWN;
                    self.orphan(dpo, sw_if);
                }
                (Object::Group(_) | Object::Plain, _) => {}
            }
        }
        self.refresh_dependents(c, &all);
    }

    /// Sets the object of a deleted interface down; it may still be in use.
    fn orphan(&mut self, dpo: Dpo, sw_if: SwIfIndex) {
        self.by_interface.remove(&(sw_if, dpo));
        self.set_state(dpo, EntryState { mtu: 0, ..EntryState::of(Kind::DOWN) });
    }

    fn key(&self, dpo: Dpo) -> Option<AdjacencyKey> {
        match self.objects.get(&dpo)?.object {
            Object::Adjacency { key, .. } | Object::Midchain { key, .. } => Some(key),
            Object::Group(_) | Object::Plain => None,
        }
    }

    /// Returns the neighbour or interface of an entry.
    pub fn owner(&self, dpo: Dpo) -> Option<(SwIfIndex, Option<IpAddr>)> {
        self.key(dpo).map(|key| (key.sw_if, key.peer.address()))
    }

    /// Returns the labels that an adjacency puts before packets.
    #[must_use]
    pub fn imposed(&self, dpo: Dpo) -> Imposed {
        self.key(dpo).map_or(Imposed::NONE, |key| key.imposed)
    }

    /// Returns what an adjacency carries.
    #[must_use]
    pub fn link(&self, dpo: Dpo) -> Option<LinkType> {
        self.key(dpo).map(|key| key.link)
    }

    fn find_key(&self, key: AdjacencyKey) -> Option<Adjacency> {
        let dpo = *self.adjacencies.get(&key)?;
        match self.objects.get(&dpo) {
            Some(Slot { refs, object: Object::Adjacency { mac, .. } }) => {
                Some(Adjacency { dpo, refs: *refs, mac: *mac })
            }
            _ => None,
        }
    }

    /// Returns a neighbour's adjacency, if there is one.
    pub fn find(&self, sw_if: SwIfIndex, link: LinkType, nh: IpAddr) -> Option<Adjacency> {
        let (peer, imposed) = (Peer::Neighbor(nh), Imposed::NONE);
        self.find_key(AdjacencyKey { sw_if, link, peer, imposed })
    }

    /// Returns the number of entries in use.
    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// Returns false: the special entries always exist.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Describes an entry, as `show ip fib` prints it.
    pub fn describe(&self, c: &Control, dpo: Dpo) -> String {
        let kind = self.table.get(dpo).state().kind;
        (self.kind(kind).describe)(self, c, dpo)
    }
}

fn midchain_kind(view: &InterfaceView) -> Kind {
    if view.is_up() { Kind::MIDCHAIN } else { Kind::DOWN }
}
