//! Flushing MAC addresses in slices: a million entries take a tenth of a second, too long for the
//! main thread to block.
//!
//! Flushed entries disappear from listings at once, and entries learned or configured meanwhile
//! stay: each entry carries the serial of the last flush begun before it.

use crate::bridges::{Bridges, Origin};
use crate::{L2, table};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::mac::MacKey;
use thalweg_tables::qsbr::Domain as Readers;

/// Maximum time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(1);
/// Entries visited between reads of the clock.
pub(crate) const ENTRIES_PER_STEP: u32 = 512;

/// Entries to flush.
#[derive(Clone, Copy)]
pub(crate) struct FlushFilter {
    /// Only entries of this port.
    pub(crate) port: Option<SwIfIndex>,
    /// Only entries of the bridge domain with this number.
    pub(crate) bridge: Option<u16>,
    /// Only entries of these origins.
    pub(crate) origins: fn(Origin) -> bool,
}

impl FlushFilter {
    /// All entries.
    pub(crate) const ALL: FlushFilter = FlushFilter { port: None, bridge: None, origins: |_| true };

    fn matches(&self, key: MacKey, port: SwIfIndex, origin: Origin) -> bool {
        self.port.is_none_or(|p| p == port)
            && self.bridge.is_none_or(|b| b == key.bridge())
            && (self.origins)(origin)
    }
}

/// Receives the number of entries flushed.
pub(crate) type Done = Box<dyn FnOnce(u32)>;

/// A flush in progress.
pub(crate) struct FlushJob {
    filter: FlushFilter,
    /// Entries with this serial or a later one stay.
    serial: u32,
    at: u32,
    removed: u32,
    done: Option<Done>,
}

impl Bridges {
    /// Queues a flush; [`Bridges::flush_step`] does the work.
    pub(crate) fn flush(&mut self, filter: FlushFilter, done: Option<Done>) {
        self.serial += 1;
        let serial = self.serial;
        self.flushes.push_back(FlushJob { filter, serial, at: 0, removed: 0, done });
    }

    /// Whether an entry matches a flush in progress.
    pub(crate) fn is_being_flushed(
        &self,
        key: MacKey,
        port: SwIfIndex,
        origin: Origin,
        serial: u32,
    ) -> bool {
        self.flushes.iter().any(|s| serial < s.serial && s.filter.matches(key, port, origin))
    }

    /// Visits up to `some` entries. Returns the completion of a flush that ended.
    pub(crate) fn flush_step(
        &mut self,
        readers: &Readers,
        some: u32,
    ) -> Option<impl FnOnce() + use<>> {
        let mut job = self.flushes.pop_front()?;
        let end = self.numbers().min(job.at.saturating_add(some));
        let (filter, serial) = (job.filter, job.serial);
        job.removed += self.remove_matching(readers, job.at..end, |key, port, known, _| {
            known.serial < serial && filter.matches(key, port, known.origin)
        });
        job.at = end;
        if end < self.numbers() {
            self.flushes.push_front(job);
            return None;
        }
        if let Some(number) = filter.bridge {
            self.release(number);
        }
        let (done, removed) = (job.done, job.removed);
        Some(move || done.into_iter().for_each(|done| done(removed)))
    }

    /// Whether a flush is in progress.
    pub(crate) fn is_flushing(&self) -> bool {
        !self.flushes.is_empty()
    }
}

/// Starts flushing what was queued, unless that runs already.
pub(crate) fn start(c: &mut Control) {
    let state = c.state::<L2>();
    if !std::mem::replace(&mut state.borrow_mut().bridges.flush_running, true) {
        run_slice(c);
    }
}

fn run_slice(c: &mut Control) {
    let (began, readers, state) = (Instant::now(), Arc::clone(c.domain()), c.state::<L2>());
    let (mut over, mut more) = (false, true);
    while more {
        let done = state.borrow_mut().bridges.flush_step(&readers, ENTRIES_PER_STEP);
        if let Some(done) = done {
            over = true;
            done();
        }
        more = state.borrow().bridges.is_flushing();
        if began.elapsed() >= SLICE {
            break;
        }
    }
    state.borrow_mut().bridges.flush_running = more;
    if over {
        // There may be room to learn again.
        table::publish_room(c);
    }
    if more {
        c.after(Duration::ZERO, run_slice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::learning::Learning;
    use std::sync::Mutex;
    use thalweg_graph::Topic;
    use thalweg_tables::mac::MacTable;
    use thalweg_wire::MacAddr;

    const HOSTS: u32 = 5000;

    fn mac(n: u32) -> [u8; 6] {
        let [a, b, c, d] = n.to_be_bytes();
        [2, 0, a, b, c, d]
    }

    /// Bridge domain 10 with ports 1 and 2 and addresses on each in turn.
    fn bridges(readers: &Readers) -> Bridges {
        let learning = Arc::new(Learning { seen: Mutex::new(Vec::new()), topic: Topic(0) });
        let mut all = Bridges::new(MacTable::new(1 << 14).unwrap(), learning);
        all.create(10).unwrap();
        (1..=2).for_each(|port| all.join(10, SwIfIndex(port), Role::Member, 0).unwrap());
        for n in 0..HOSTS {
            all.add(readers, 10, MacAddr(mac(n)), Some((SwIfIndex(1 + n % 2), "")), Origin::Added)
                .unwrap();
        }
        all
    }

    fn shown(all: &Bridges) -> usize {
        all.addresses(0, u32::MAX).0.len()
    }

    #[test]
    fn a_step_is_bounded_and_flushed_entries_are_hidden() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        all.leave(SwIfIndex(1));
        assert_eq!((shown(&all), all.count().0), (HOSTS as usize / 2, HOSTS));
        assert_eq!(all.address(10, MacAddr(mac(0))), None);
        let (mut steps, mut before) = (0, HOSTS);
        while all.is_flushing() {
            let _ = all.flush_step(&readers, 100);
            let now = all.count().0;
            assert!(before - now <= 100, "{before} {now}");
            (steps, before) = (steps + 1, now);
        }
        assert_eq!((steps, all.count().0), (HOSTS.div_ceil(100), HOSTS / 2));
        assert!(all.address(10, MacAddr(mac(1))).is_some());
    }

    #[test]
    fn entries_added_meanwhile_stay() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        let reported = std::rc::Rc::new(std::cell::Cell::new(0));
        let gone = reported.clone();
        all.flush(FlushFilter::ALL, Some(Box::new(move |n| gone.set(n))));
        let _ = all.flush_step(&readers, 100);
        // An entry not yet visited, one already removed, and a new one.
        for n in [4000, 50, 70_000] {
            all.add(&readers, 10, MacAddr(mac(n)), Some((SwIfIndex(2), "")), Origin::Static)
                .unwrap();
        }
        assert_eq!(shown(&all), 3);
        while all.is_flushing() {
            if let Some(done) = all.flush_step(&readers, 100) {
                done();
            }
        }
        assert_eq!((shown(&all), all.count().0, reported.get()), (3, 3, HOSTS - 1));
    }

    #[test]
    fn a_number_is_free_once_its_addresses_are_flushed() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        let number = all.get(10).unwrap().number;
        assert!(all.leave(SwIfIndex(1)) && all.leave(SwIfIndex(2)));
        all.delete(10).unwrap();
        assert_ne!(all.create(10).unwrap().number, number);
        assert_eq!(shown(&all), 0);
        while all.is_flushing() {
            let _ = all.flush_step(&readers, 1000);
        }
        assert_eq!(all.count().0, 0);
        assert_eq!(all.create(11).unwrap().number, number);
    }
}
