//! Compiled rules, as workers read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thalweg_device::SwIfIndex;

use thalweg_buffer::{Frame, Iface};
use thalweg_device::InterfaceView;
use thalweg_graph::NodeId;
use thalweg_tables::{CowTable, MapError, PagedTable};

use crate::rewrite::End;
use crate::rule::Ct;
use crate::rule::classifier::Classifier;
use crate::rule::set::Field;
use crate::spread::Spread;
use crate::subs::SubTags;
use crate::tags::Tag;

/// Maximum number of rules in all sets together.
pub const MAX_RULES: u32 = 1 << 16;

/// An interface to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) sw_if: SwIfIndex,
    /// Output node.
    pub(crate) output: NodeId,
    /// The node finds the interface in the tx column; or packets do not leave by it, as the
    /// interface may be a BVI: what goes to that port of a bridge domain goes to the router.
    pub(crate) is_indirect: bool,
    /// Tags of that one's frames, if they are known.
    pub(crate) tags: Option<SubTags>,
}

impl Port {
    pub(crate) fn of(view: &InterfaceView) -> Port {
        Port {
            sw_if: view.sw_if,
            output: view.output,
            is_indirect: view.shares_output,
            tags: SubTags::of(view),
        }
    }
}

/// A compiled action, with interfaces resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Normal,
    Output(Port),
    InPort,
    /// Table, and the in_port used for the look-up.
    Resubmit(u8, Option<SwIfIndex>),
    Ct(Ct),
    CtClear,
    SetSource([u8; 6]),
    SetDestination([u8; 6]),
    SetTos(u8),
    SetEcn(u8),
    SetTtl(u8),
    DecTtl,
    /// Field, value and mask.
    SetBits(Field, u64, u64),
    /// True for the source, and the address or port.
    Set(bool, End),
    /// The same with some bits of an IPv6 address: their value, and which they are.
    SetSome6(bool, u128, u128),
    Tag(Tag),
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    /// Counter slot.
    pub(crate) slot: u32,
    pub(crate) steps: Vec<Step>,
}

/// A table of a set. A copy shares the rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) classifier: Classifier,
    /// Rules by counter slot, which is their number in the classifier.
    pub(crate) rules: CowTable<Option<Arc<Compiled>>>,
}

impl Table {
    /// A rule that the classifier has found.
    #[inline]
    pub(crate) fn rule(&self, number: u32) -> Option<&Compiled> {
        self.rules.get(number)?.as_deref()
    }
}

/// A compiled rule set. A copy shares the rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compilation {
    /// Tables by number. Packets without a rule are dropped.
    pub(crate) tables: Vec<Option<Arc<Table>>>,
    /// A number unique to this compilation; the following 255 are reserved for its tables.
    pub(crate) generation: u64,
    /// True if any rule tracks connections.
    pub(crate) tracks: bool,
    /// True if any rule tracks connections of IPv6.
    pub(crate) tracks_ipv6: bool,
    /// True if any rule looks at more than the [narrow](crate::rule::key::NARROW) words.
    pub(crate) wide: bool,
    /// True if any rule looks at the original direction of connections.
    pub(crate) originals: bool,
    /// True if any rule sets labels.
    pub(crate) labels: bool,
    /// True if any rule translates connections.
    pub(crate) translates: bool,
    /// The zones in which connections are translated.
    pub(crate) translated_zones: Vec<u16>,
    /// Possible spread of its connections.
    pub(crate) spread: Spread,
    /// True if its rules change addresses or ports of packets before they are tracked.
    pub(crate) changed_first: bool,
    /// The zone that most rules use.
    pub(crate) zone: u16,
}

impl Compilation {
    /// A table; `None` if it has no rules.
    #[inline]
    pub(crate) fn table(&self, number: u8) -> Option<&Table> {
        self.tables.get(usize::from(number))?.as_deref()
    }
}

/// The data published to workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// Rule set of what the router sends into a bridge domain, by its BVI.
    pub(crate) into_bridge: CowTable<Option<Arc<Compilation>>>,
    /// Rule set of what an interface receives.
    pub(crate) by_interface: CowTable<Option<Arc<Compilation>>>,
    /// Interfaces by index.
    pub(crate) ports: CowTable<Option<Port>>,
    /// Spread of connections, the same in all sets: one connection may pass several.
    pub(crate) spread: Spread,
    /// The zones in which any set translates connections.
    pub(crate) translated_zones: Vec<u16>,
}

impl Published {
    /// The rule set of packets from an interface; those that the router sends into a bridge domain
    /// have its BVI as the interface of transmission, too.
    #[inline]
    pub(crate) fn set(&self, rx_if: SwIfIndex, tx_if: SwIfIndex) -> Option<&Compilation> {
        let sets = if tx_if == rx_if { &self.into_bridge } else { &self.by_interface };
        sets.get(rx_if)?.as_deref()
    }

    /// The rule set of all packets of a frame, if it is the same one.
    pub(crate) fn common_set(&self, frame: &Frame) -> Option<&Compilation> {
        if frame.is_empty() {
            return None;
        }
        let from = |i: usize| (frame.rx_if(i as u8), frame.tx_if(i as u8));
        let mut last = from(0);
        let set = self.set(last.0, last.1)?;
        if matches!((frame.rx(), frame.tx()), (Iface::Mixed, _) | (_, Iface::Mixed)) {
            let is_same = |s: &Compilation| s.generation == set.generation;
            for i in 1..frame.len() {
                let (rx_if, tx_if) = from(i);
                if (rx_if, tx_if) != last && !self.set(rx_if, tx_if).is_some_and(is_same) {
                    return None;
                }
                last = (rx_if, tx_if);
            }
        }
        Some(set)
    }

    /// An interface to send to.
    pub(crate) fn port(&self, sw_if: SwIfIndex) -> Option<Port> {
        self.ports.get(sw_if).copied().flatten()
    }
}

/// Packet and byte counters by rule, written by one worker.
#[derive(Debug)]
pub(crate) struct Tally(PagedTable<[AtomicU64; 2]>);

impl Tally {
    pub(crate) fn new() -> Result<Tally, MapError> {
        PagedTable::new(MAX_RULES as usize).map(Tally)
    }

    /// Maps the memory of a slot, so that the worker does not fault on it.
    fn make_ready(&self, slot: u32) {
        self.0.make_ready(slot as usize..slot as usize + 1);
    }

    #[inline]
    pub(crate) fn add(&self, slot: u32, bytes: u64) {
        self.add_many(slot, 1, bytes);
    }

    #[inline]
    pub(crate) fn add_many(&self, slot: u32, more: u64, bytes: u64) {
        let [packets, sum] = &self.0.as_slice()[slot as usize];
        packets.store(packets.load(Relaxed) + more, Relaxed);
        sum.store(sum.load(Relaxed) + bytes, Relaxed);
    }

    pub(crate) fn get(&self, slot: u32) -> [u64; 2] {
        let [packets, bytes] = &self.0.as_slice()[slot as usize];
        [packets.load(Relaxed), bytes.load(Relaxed)]
    }
}

/// The counters of all workers.
#[derive(Debug)]
pub(crate) struct Tallies(pub(crate) Vec<Tally>);

impl Tallies {
    /// Prepares a slot for use.
    pub(crate) fn make_ready(&self, slot: u32) {
        self.0.iter().for_each(|tally| tally.make_ready(slot));
    }

    pub(crate) fn get(&self, slot: u32) -> [u64; 2] {
        let add = |[a, b]: [u64; 2], [c, d]: [u64; 2]| [a + c, b + d];
        self.0.iter().map(|tally| tally.get(slot)).fold([0; 2], add)
    }
}
