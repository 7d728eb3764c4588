//! Memory prepared ahead for new flows.
//!
//! The kernel clears memory on first use, 2 MiB at once: a worker that triggers it stalls for a
//! tenth of a millisecond, or for many of them if the kernel or a hypervisor has to find it first.
//! A thread therefore touches it before: all of the index, as keys come anywhere in it, and as much
//! of the flows, and of side tables indexed by flow, as will be used soon. The table wakes the
//! thread whenever another 2 MiB are begun, and when it is dropped, as unmapping takes the kernel
//! long as well. Flows that arrive faster than the thread prepares memory are refused: a worker
//! never faults memory in itself.
//!
//! A side table may be wanted only when there are many flows. Flows do not wait until the thread
//! has prepared its memory; until then, it cannot be used.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, Thread};
use std::time::Duration;

use rustix::io::Errno;

use crate::paged::{HUGE_PAGE, Region};
use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// Minimum of memory prepared beyond the flows in use: 30 milliseconds' worth at four million new
/// flows per second.
const LEAD: usize = 16 << 20;
/// Fraction of all flows that is prepared, if that is more, until a flow was refused. All are
/// prepared from then on.
const SHARE: usize = 8;
/// Maximum size of an index whose first memory is all prepared before the table is used. For a
/// larger one, the thread takes some milliseconds.
const AT_ONCE: usize = 64 << 20;
/// Stack size of the thread.
const STACK: usize = 64 << 10;
/// Interval of retries after the kernel had no memory.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Shared {
    /// Flows below this have been used, or are about to be.
    used: AtomicU32,
    /// Flows below this have memory, and all keys have: none before the index is ready.
    ready: AtomicU32,
    /// True if the side table is used; and flows below which it has memory.
    wanted: AtomicBool,
    side: AtomicU32,
    /// True once the side table has memory for all existing flows: new ones wait for its memory as
    /// well.
    caught_up: AtomicBool,
    /// True after a flow was refused: the next ones may be as fast.
    hurries: AtomicBool,
    gone: AtomicBool,
}

impl Shared {
    /// Flows below this may be used.
    fn ready(&self) -> u32 {
        let ready = self.ready.load(Ordering::Acquire);
        match self.is_side_ready() {
            true => ready.min(self.side.load(Ordering::Acquire)),
            false => ready,
        }
    }

    /// Returns true if new flows wait for memory in the side table, which existing ones have.
    fn is_side_ready(&self) -> bool {
        self.caught_up.load(Ordering::Acquire)
    }

    /// Sets the number of flows that have memory.
    fn set_ready(&self, flows: u32) {
        self.ready.store(flows, Ordering::Release);
    }

    /// Sets the number of flows that have memory in the side table.
    fn set_side(&self, flows: u32) {
        self.side.store(flows, Ordering::Release);
    }

    /// Records that all existing flows have memory in the side table; new ones wait for it from now
    /// on.
    fn catch_up(&self) {
        self.caught_up.store(true, Ordering::Release);
    }
}

/// Memory with a fixed number of bytes per flow.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) region: Region,
    pub(super) size: usize,
}

impl Column {
    /// Returns the bytes that must be ready while flows below `used` are in use.
    fn needed(&self, used: usize, lead: Lead) -> usize {
        let all = self.region.bytes();
        let lead = match lead {
            Lead::First => LEAD,
            Lead::Share => LEAD.max(all / SHARE),
            Lead::All => all,
        };
        (used * self.size + lead).min(all)
    }
}

/// Amount of memory that is prepared beyond the flows in use.
#[derive(Clone, Copy)]
enum Lead {
    /// Memory that the table needs at first.
    First,
    /// A fraction of it.
    Share,
    /// The whole table.
    All,
}

/// The table's end.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    thread: Thread,
    /// Number of flows in 2 MiB.
    step: u32,
    /// The thread is woken when flows from here on are used.
    next: u32,
    has_side_memory: bool,
}

impl Ahead {
    /// Prepares the first memory, and starts the thread for the rest. The flag of the side table is
    /// true if it is in use from the start.
    pub(super) fn start(
        name: &str,
        flows: Column,
        index: Region,
        side: Option<(Column, bool)>,
    ) -> io::Result<Self> {
        let wanted = side.as_ref().is_some_and(|(_, wanted)| *wanted);
        // No flows exist yet that it has to catch up with.
        let caught_up = wanted.into();
        let shared = Arc::new(Shared { wanted: wanted.into(), caught_up, ..Shared::default() });
        let side = side.map(|(column, _)| column);
        let step = (HUGE_PAGE / flows.size).max(1) as u32;
        let (mine, has_side_memory) = (Arc::clone(&shared), side.is_some());
        let thread = Filling { shared: mine, flows, index, side, ready: [0; 3] }.start(name)?;
        Ok(Ahead { shared, thread, step, next: 0, has_side_memory })
    }

    /// Returns, if flow `used`, the first that was never used, may be used, the number of the next
    /// flow for which to ask again.
    pub(super) fn used(&mut self, used: u32) -> Option<u32> {
        if used >= self.next {
            self.next = used.saturating_add(self.step);
            self.shared.used.store(used, Ordering::Release);
            self.thread.unpark();
        }
        let ready = self.shared.ready();
        if ready <= used && !self.shared.hurries.load(Ordering::Relaxed) {
            self.shared.hurries.store(true, Ordering::Release);
            self.thread.unpark();
        }
        (ready > used).then(|| ready.min(self.next))
    }

    /// Returns true if there is memory for flow `used`.
    pub(super) fn is_ready_for(&self, used: u32) -> bool {
        self.shared.ready() > used
    }

    /// Starts using the side table.
    pub(super) fn want_side_memory(&self) {
        if self.has_side_memory && !self.shared.wanted.load(Ordering::Relaxed) {
            self.shared.wanted.store(true, Ordering::Release);
            self.thread.unpark();
        }
    }

    /// Returns true if existing flows have memory in the side table, or there is none.
    pub(super) fn is_side_ready(&self) -> bool {
        !self.has_side_memory || self.shared.is_side_ready()
    }

    /// Returns true if all memory for `capacity` flows is ready; `None` if the kernel does not
    /// support it.
    #[cfg(test)]
    pub(super) fn is_ready(&self, capacity: u32) -> Option<bool> {
        let used = self.shared.used.load(Ordering::Relaxed);
        if self.shared.wanted.load(Ordering::Relaxed) && !self.is_side_ready() {
            return Some(false);
        }
        let ready = self.shared.ready();
        let used = used + (LEAD / HUGE_PAGE) as u32 * self.step;
        (ready < u32::MAX).then(|| ready >= used.min(capacity))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The thread's end.
struct Filling {
    shared: Arc<Shared>,
    flows: Column,
    index: Region,
    side: Option<Column>,
    /// Number of bytes of each that have memory.
    ready: [usize; 3],
}

impl Filling {
    fn start(mut self, name: &str) -> io::Result<Thread> {
        if self.index.bytes() <= AT_ONCE {
            while self.step(Lead::First).is_ok_and(|more| more) {}
        }
        let thread = Builder::new().name(name.into()).stack_size(STACK);
        Ok(thread.spawn(|| self.run())?.thread().clone())
    }

    fn run(mut self) {
        while !self.shared.gone.load(Ordering::Acquire) {
            let hurries = self.shared.hurries.load(Ordering::Acquire);
            match self.step(if hurries { Lead::All } else { Lead::Share }) {
                Ok(true) | Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(false) => std::thread::park(),
                // A kernel without this request (before Linux 5.14): memory is faulted in as flows
                // come.
                Err(Errno::INVAL) => {
                    self.shared.set_ready(u32::MAX);
                    self.shared.set_side(u32::MAX);
                    self.shared.catch_up();
                    std::thread::park();
                }
                // No memory is free; some may be later.
                Err(_) => std::thread::park_timeout(PAUSE),
            }
        }
    }

    /// Prepares 2 MiB. Returns false if there is nothing to do.
    fn step(&mut self, lead: Lead) -> rustix::io::Result<bool> {
        let used = self.shared.used.load(Ordering::Acquire) as usize;
        let [flows, index, side] = &mut self.ready;
        if *index < self.index.bytes() {
            more(&self.index, index)?;
        } else if *flows < self.flows.needed(used, lead) {
            more(&self.flows.region, flows)?;
            let ready = (*flows).min(self.flows.region.bytes()) / self.flows.size;
            self.shared.set_ready(ready as u32);
        } else if self.shared.wanted.load(Ordering::Acquire)
            && let Some(column) = &self.side
        {
            if *side >= column.needed(used, lead) {
                self.shared.catch_up();
                return Ok(false);
            }
            more(&column.region, side)?;
            let ready = (*side).min(column.region.bytes()) / column.size;
            self.shared.set_side(ready as u32);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Prepares another 2 MiB from `from` on, which moves.
fn more(region: &Region, from: &mut usize) -> rustix::io::Result<()> {
    let next = *from + HUGE_PAGE;
    region.populate(*from..next)?;
    *from = next;
    Ok(())
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc as Shares;

    const FLOWS: usize = 2;
    /// Mirrors [`Filling::step`], with one flow as the amount prepared ahead.
    const AHEAD: usize = 1;

    /// Memory of flows and of the side table: true once it is prepared.
    struct Memory {
        shared: Arc<Shared>,
        flows: [UnsafeCell<bool>; FLOWS],
        side: [UnsafeCell<bool>; FLOWS],
    }

    // SAFETY: a cell is written before it is published, and read only after that, which loom
    // checks.
    unsafe impl Sync for Memory {}
    // SAFETY: as above.
    unsafe impl Send for Memory {}

    impl Memory {
        /// Runs the thread for a few steps.
        fn fill(&self, steps: usize) {
            let found = |cell: &UnsafeCell<bool>| {
                // SAFETY: no thread reads a cell before it is published.
                cell.with_mut(|at| unsafe { *at = true });
            };
            let (mut ready, mut side) = (0, 0);
            for _ in 0..steps {
                let needed = (self.shared.used.load(Ordering::Acquire) as usize + AHEAD).min(FLOWS);
                if ready < needed {
                    found(&self.flows[ready]);
                    ready += 1;
                    self.shared.set_ready(ready as u32);
                } else if self.shared.wanted.load(Ordering::Acquire) {
                    if side >= needed {
                        self.shared.catch_up();
                    } else {
                        found(&self.side[side]);
                        side += 1;
                        self.shared.set_side(side as u32);
                    }
                }
            }
        }
    }

    fn is_there(cell: &UnsafeCell<bool>) -> bool {
        // SAFETY: it was published, which loom checks.
        cell.with(|at| unsafe { *at })
    }

    /// Runs a worker that adds flows, of which the later ones need the side table.
    fn explore(steps: usize, wanted: bool) {
        loom::model(move || {
            let shared = Arc::new(Shared::default());
            let memory = Shares::new(Memory {
                shared: Arc::clone(&shared),
                flows: std::array::from_fn(|_| UnsafeCell::new(false)),
                side: std::array::from_fn(|_| UnsafeCell::new(false)),
            });
            let filling = Shares::clone(&memory);
            let thread = loom::thread::spawn(move || filling.fill(steps));
            let thread_to_wake = std::thread::current();
            let mut ahead =
                Ahead { shared, thread: thread_to_wake, step: 1, next: 0, has_side_memory: true };
            let (mut fresh, mut mark) = (0, 0);
            for turn in 0..FLOWS + 1 {
                if wanted && turn == 1 {
                    ahead.want_side_memory();
                }
                // Asks as the tracker does before it adds a flow that uses the side table.
                let needs = ahead.is_side_ready();
                if fresh >= mark {
                    match ahead.used(fresh) {
                        Some(upto) => mark = upto,
                        None => continue,
                    }
                }
                if fresh as usize == FLOWS {
                    break;
                }
                assert!(is_there(&memory.flows[fresh as usize]));
                if needs {
                    // Earlier flows may use it as well.
                    for flow in 0..=fresh as usize {
                        assert!(is_there(&memory.side[flow]), "flow {flow} of {fresh}");
                    }
                }
                fresh += 1;
            }
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_flows_have_memory_before_they_come() {
        explore(3, false);
    }

    #[test]
    fn loom_side_memory_is_there_once_it_is_ready() {
        explore(5, true);
    }
}
