//! The parts of a tracker: what each family has, and what both share.

use thalweg_tables::flow::{FlowTable, Millis};
use thalweg_tables::{MapError, PagedTable, Pages};

use super::events::Events;
use super::zones::Zones;
use super::{Counts, Live, Tracker, WhenFull};
use crate::entry::Entry;
use crate::{IPV4, IPV6};

/// The connections of a family.
#[derive(Debug)]
pub struct Part<const W: usize> {
    pub(super) table: FlowTable<W, Entry>,
    /// Labels by flow. Memory is used only once labels are in use or requested.
    pub(super) labels: PagedTable<[u64; 2]>,
}

impl<const W: usize> Part<W> {
    pub(super) fn new(capacity: u32, keys: usize, now: Millis) -> Result<Self, MapError> {
        Ok(Part {
            table: FlowTable::new(capacity, keys, now)?,
            labels: PagedTable::with_pages(capacity as usize, Pages::Huge)?,
        })
    }

    pub(super) fn prepare(&mut self, name: &str, labels: bool) -> std::io::Result<()> {
        self.table.prepare_with(name, &self.labels, labels)
    }
}

/// Settings and counters of both families.
#[derive(Debug)]
pub struct Common {
    pub(super) has_labels: bool,
    pub(super) zones: Zones,
    pub(super) check_windows: bool,
    pub(super) when_full: WhenFull,
    pub(super) limit: u32,
    pub(super) counts: Counts,
    pub(super) live: Live,
    pub(super) events: Events,
}

impl Common {
    pub(super) fn new(limit: u32) -> Common {
        Common {
            has_labels: false,
            zones: Zones::new(),
            check_windows: true,
            when_full: WhenFull::default(),
            limit,
            counts: Counts::default(),
            live: Live::default(),
            events: Events::default(),
        }
    }
}

/// Access to the part for keys of `W` words.
pub trait Parts<const W: usize> {
    /// The part.
    fn part(&self) -> &Part<W>;
    /// The part.
    fn part_mut(&mut self) -> &mut Part<W>;
    /// The part, and what both families share.
    fn split(&mut self) -> (&mut Part<W>, &mut Common);
}

impl Parts<IPV4> for Tracker {
    #[inline(always)]
    fn part(&self) -> &Part<IPV4> {
        &self.v4
    }
    #[inline(always)]
    fn part_mut(&mut self) -> &mut Part<IPV4> {
        &mut self.v4
    }
    #[inline(always)]
    fn split(&mut self) -> (&mut Part<IPV4>, &mut Common) {
        (&mut self.v4, &mut self.common)
    }
}

impl Parts<IPV6> for Tracker {
    #[inline(always)]
    fn part(&self) -> &Part<IPV6> {
        &self.v6
    }
    #[inline(always)]
    fn part_mut(&mut self) -> &mut Part<IPV6> {
        &mut self.v6
    }
    #[inline(always)]
    fn split(&mut self) -> (&mut Part<IPV6>, &mut Common) {
        (&mut self.v6, &mut self.common)
    }
}
