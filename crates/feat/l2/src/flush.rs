//! Flushing MAC addresses in slices: a million entries take a tenth of a second, too long for the
//! main thread to block.
//!
//! Flushed entries disappear from listings at once, and entries learned or configured meanwhile
//! stay: each entry carries the serial of the last flush begun before it. Flushes that wait while
//! others run go over the entries together: there is one for each port that is deleted.

use crate::bridges::{Bridges, Origin};
use crate::{L2, table};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{SwIfIndex, interface};
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
    /// Port of the entries; `None` for any.
    pub(crate) port: Option<SwIfIndex>,
    /// Number of the entries' bridge domain; `None` for any.
    pub(crate) bridge: Option<u16>,
    /// Filter of the entries' origins.
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

struct FlushJob {
    filter: FlushFilter,
    /// Entries with this serial or a later one stay.
    serial: u32,
    removed: u32,
    /// Number of a deleted bridge domain that is free afterwards.
    frees: Option<u16>,
    done: Option<Done>,
}

/// Flushes that go over the entries together.
#[derive(Default)]
pub(crate) struct Pass {
    jobs: Vec<FlushJob>,
    /// Places of those of one port; of others, those of one bridge domain; and all others.
    by_port: HashMap<SwIfIndex, Vec<usize>>,
    by_bridge: HashMap<u16, Vec<usize>>,
    others: Vec<usize>,
    /// The next entry.
    at: u32,
}

impl Pass {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn add(&mut self, job: FlushJob) {
        let places = match job.filter {
            FlushFilter { port: Some(port), .. } => self.by_port.entry(port).or_default(),
            FlushFilter { bridge: Some(bridge), .. } => self.by_bridge.entry(bridge).or_default(),
            _ => &mut self.others,
        };
        places.push(self.jobs.len());
        self.jobs.push(job);
    }

    /// Returns the place of the first flush that an entry is meant by.
    fn find(&self, key: MacKey, port: SwIfIndex, origin: Origin, serial: u32) -> Option<usize> {
        let of_port = self.by_port.get(&port).into_iter().flatten();
        let of_bridge = self.by_bridge.get(&key.bridge()).into_iter().flatten();
        let meant = |job: &FlushJob| serial < job.serial && job.filter.matches(key, port, origin);
        let mut all = of_port.chain(of_bridge).chain(&self.others).copied();
        all.find(|at| self.jobs.get(*at).is_some_and(meant))
    }
}

impl Bridges {
    /// Queues a flush; [`Bridges::flush_step`] does the work.
    pub(crate) fn flush(&mut self, filter: FlushFilter, done: Option<Done>) {
        self.queue(filter, None, done);
    }

    /// Queues the flush of a deleted bridge domain, whose number is free afterwards.
    pub(crate) fn flush_deleted(&mut self, number: u16) {
        let filter = FlushFilter { bridge: Some(number), ..FlushFilter::ALL };
        self.queue(filter, Some(number), None);
    }

    fn queue(&mut self, filter: FlushFilter, frees: Option<u16>, done: Option<Done>) {
        self.serial += 1;
        let serial = self.serial;
        self.waiting.add(FlushJob { filter, serial, removed: 0, frees, done });
    }

    /// True if an entry matches a flush in progress.
    pub(crate) fn is_being_flushed(
        &self,
        key: MacKey,
        port: SwIfIndex,
        origin: Origin,
        serial: u32,
    ) -> bool {
        [&self.pass, &self.waiting].iter().any(|p| p.find(key, port, origin, serial).is_some())
    }

    /// Returns whether entries of a port may be left that is flushed.
    pub(crate) fn is_flushing_port(&self, port: SwIfIndex) -> bool {
        [&self.pass, &self.waiting].iter().any(|pass| pass.by_port.contains_key(&port))
    }

    /// Returns the deleted ports of which no entry is left, each once.
    fn left(&mut self) -> Vec<SwIfIndex> {
        let all = std::mem::take(&mut self.leaving);
        let (some, none) = all.into_iter().partition(|port| self.is_flushing_port(*port));
        self.leaving = some;
        none
    }

    /// Visits up to `some` entries. Returns the completion of flushes that ended.
    pub(crate) fn flush_step(
        &mut self,
        readers: &Readers,
        some: u32,
    ) -> Option<impl FnOnce() + use<>> {
        let mut pass = std::mem::take(&mut self.pass);
        if pass.is_empty() {
            pass = std::mem::take(&mut self.waiting);
        }
        if pass.is_empty() {
            return None;
        }
        let end = self.numbers().min(pass.at.saturating_add(some));
        self.remove_matching(readers, pass.at..end, |key, port, known, _| {
            let found = pass.find(key, port, known.origin, known.serial);
            let job = found.and_then(|at| pass.jobs.get_mut(at));
            job.map(|job| job.removed += 1).is_some()
        });
        pass.at = end;
        if end < self.numbers() {
            self.pass = pass;
            return None;
        }
        pass.jobs.iter().filter_map(|job| job.frees).for_each(|number| self.release(number));
        Some(move || {
            for job in pass.jobs {
                job.done.into_iter().for_each(|done| done(job.removed));
            }
        })
    }

    /// True if a flush is in progress.
    pub(crate) fn is_flushing(&self) -> bool {
        !self.pass.is_empty() || !self.waiting.is_empty()
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
        let left = state.borrow_mut().bridges.left();
        left.into_iter().for_each(|port| interface::free_index(c, port));
        // The table may have room to learn again.
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

    /// Invented addresses of one port make room for those of others, and for configured ones.
    #[test]
    fn a_flood_of_addresses_on_one_port_leaves_room_for_others() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        let learn = |all: &mut Bridges, n, port| {
            all.learn(&readers, MacKey::new(1, mac(n)), SwIfIndex(port));
        };
        (10_000..40_000).for_each(|n| learn(&mut all, n, 1));
        let (count, learned) = all.count();
        assert!(count < 1 << 14 && learned > 10_000, "{count} {learned}");
        let of_two = |all: &Bridges| {
            let found = all.addresses(0, u32::MAX).0;
            let is_new =
                |a: &&crate::Address| a.port == SwIfIndex(2) && a.origin == Origin::Learned;
            found.iter().filter(is_new).count()
        };
        (50_000..51_000).for_each(|n| learn(&mut all, n, 2));
        assert_eq!(of_two(&all), 1000);
        // A port that has learned most gets no more, and takes nothing from others.
        (60_000..61_000).for_each(|n| learn(&mut all, n, 1));
        assert_eq!(of_two(&all), 1000);
        let port = Some((SwIfIndex(1), ""));
        assert!(all.add(&readers, 10, MacAddr(mac(7_000)), port, Origin::Static).is_ok());
        // Configured ones are not given up.
        assert!((0..HOSTS).all(|n| all.address(10, MacAddr(mac(n))).is_some()));
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
    fn flushes_that_wait_go_over_the_entries_together() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        for port in 1..=1000 {
            let port = Some(SwIfIndex(port));
            all.flush(FlushFilter { port, ..FlushFilter::ALL }, None);
        }
        let mut steps = 0;
        while all.is_flushing() {
            let _ = all.flush_step(&readers, 100);
            steps += 1;
        }
        assert_eq!((steps, all.count().0), (HOSTS.div_ceil(100), 0));
    }

    #[test]
    fn an_earlier_flush_does_not_free_a_number() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        let number = all.get(10).unwrap().number;
        let learned = |origin| origin == Origin::Learned;
        let of_it = FlushFilter { bridge: Some(number), origins: learned, ..FlushFilter::ALL };
        all.flush(of_it, None);
        let _ = all.flush_step(&readers, 100);
        assert!(all.leave(SwIfIndex(1)) && all.leave(SwIfIndex(2)));
        all.delete(10).unwrap();
        while all.flush_step(&readers, 1000).is_none() {}
        assert_ne!(all.create(10).unwrap().number, number);
        while all.flush_step(&readers, 1000).is_none() {}
        assert_eq!(all.create(11).unwrap().number, number);
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
