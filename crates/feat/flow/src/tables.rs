//! Rules as workers read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thalweg_buffer::{Frame, Iface};
use thalweg_graph::NodeId;
use thalweg_tables::{MapError, PagedTable};

use crate::rewrite::End;
use crate::rule::Ct;
use crate::rule::classifier::Classifier;
use crate::rule::set::Field;
use crate::tags::Tag;

/// Rules that there may be, over all sets.
pub const MAX_RULES: u32 = 1 << 16;

/// What happens to a packet, with interfaces found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Normal,
    Output(NodeId),
    InPort,
    /// A table, and the port that is looked for in place of the packet's.
    Resubmit(u8, Option<u32>),
    Ct(Ct),
    CtClear,
    SetSource([u8; 6]),
    SetDestination([u8; 6]),
    SetTos(u8),
    SetEcn(u8),
    SetTtl(u8),
    DecTtl,
    /// These bits of a field, which are in the second number, become these.
    SetBits(Field, u64, u64),
    /// The source's end, or else the destination's.
    Set(bool, End),
    Tag(Tag),
}

/// A rule as workers follow it.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    /// Where it is counted.
    pub(crate) slot: u32,
    pub(crate) steps: Vec<Step>,
}

/// A table of a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) classifier: Classifier,
    /// By the classifier's numbers.
    pub(crate) rules: Vec<Compiled>,
}

/// A set of rules.
#[derive(Debug, Default)]
pub(crate) struct Compilation {
    /// By number; without rules, all are dropped.
    pub(crate) tables: Vec<Option<Table>>,
    /// A number that no other compilation has, with room for a table's behind it.
    pub(crate) generation: u64,
    /// Whether the tracker is asked by any rule.
    pub(crate) tracks: bool,
    /// Whether connections get labels.
    pub(crate) labels: bool,
    /// Whether connections are translated.
    pub(crate) translates: bool,
    /// The zone in which it is asked first, or in most rules.
    pub(crate) zone: u16,
}

impl Compilation {
    /// A table, if it has rules.
    #[inline]
    pub(crate) fn table(&self, number: u8) -> Option<&Table> {
        self.tables.get(usize::from(number))?.as_ref()
    }
}

/// All that workers know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// By interface: its set.
    pub(crate) by_interface: Vec<Option<Arc<Compilation>>>,
    /// By interface: where packets that leave by it go.
    pub(crate) outputs: Vec<Option<NodeId>>,
}

impl Published {
    /// The rules of an interface.
    #[inline]
    pub(crate) fn set(&self, sw_if: u32) -> Option<&Compilation> {
        self.by_interface.get(sw_if as usize)?.as_deref()
    }

    /// The rules of all packets of a frame, if these are the same.
    pub(crate) fn common_set(&self, frame: &Frame) -> Option<&Compilation> {
        if frame.is_empty() {
            return None;
        }
        let mut last = frame.rx_if(0);
        let set = self.set(last)?;
        if let Iface::Mixed = frame.rx() {
            for i in 1..frame.len() {
                let rx_if = frame.rx_if(i as u8);
                if rx_if != last && self.set(rx_if).is_none_or(|s| s.generation != set.generation) {
                    return None;
                }
                last = rx_if;
            }
        }
        Some(set)
    }

    /// Where packets go that leave by an interface.
    pub(crate) fn output(&self, sw_if: u32) -> Option<NodeId> {
        self.outputs.get(sw_if as usize).copied().flatten()
    }
}

/// Packets and bytes by rule; one worker alone writes it.
#[derive(Debug)]
pub(crate) struct Tally(PagedTable<[AtomicU64; 2]>);

impl Tally {
    pub(crate) fn new() -> Result<Tally, MapError> {
        PagedTable::new(MAX_RULES as usize).map(Tally)
    }

    /// The worker need not wait for memory to count in a slot.
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

/// The tallies of all workers.
#[derive(Debug)]
pub(crate) struct Tallies(pub(crate) Vec<Tally>);

impl Tallies {
    /// A slot is going to be used.
    pub(crate) fn make_ready(&self, slot: u32) {
        self.0.iter().for_each(|tally| tally.make_ready(slot));
    }

    pub(crate) fn get(&self, slot: u32) -> [u64; 2] {
        let add = |[a, b]: [u64; 2], [c, d]: [u64; 2]| [a + c, b + d];
        self.0.iter().map(|tally| tally.get(slot)).fold([0; 2], add)
    }
}
