//! Memory for flows that are still to come.
//!
//! The kernel clears memory when it is used for the first time, 2 MiB at once: a worker that does so
//! stands still for a tenth of a millisecond, or for many of them if the kernel or a hypervisor has to
//! look for it. So a thread has it cleared before: all of the index, as keys come anywhere in it, and of
//! the flows, and what is kept beside them, as much as is soon to be used. The table wakes the thread whenever
//! another 2 MiB are begun, and at its end, as giving memory back takes the kernel long as well. Flows
//! that are faster than the thread are refused: a worker never finds memory itself.
//!
//! What is kept beside the flows may be wanted only when there are many of them. Flows do not wait until the thread
//! has come through: until it has, whoever needs what is beside them has to do without.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, Thread};
use std::time::Duration;

use rustix::io::Errno;

use crate::paged::{HUGE_PAGE, Region};
use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// What lies ready beyond the flows that have been used, at least: at four million new flows per second,
/// 30 milliseconds' need.
const LEAD: usize = 16 << 20;
/// The part of all flows that lies ready, if that is more: until one had to be refused. Then it is all.
const SHARE: usize = 8;
/// Where the index is no larger than this, all that is needed at first is made ready before the table is
/// used at all. More of it takes the thread some milliseconds.
const AT_ONCE: usize = 64 << 20;
/// The thread does not need much.
const STACK: usize = 64 << 10;
/// When the thread asks again after the kernel had no memory.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Shared {
    /// Flows below this have been used, or are about to be.
    used: AtomicU32,
    /// Flows below this have memory, and all keys have: none before the index is ready.
    ready: AtomicU32,
    /// Whether the column beside the flows is used, and flows below which it has memory.
    wanted: AtomicBool,
    side: AtomicU32,
    /// It has come up with the flows that there were: new ones wait for its memory as well.
    caught_up: AtomicBool,
    /// A flow was refused: the next ones may be as fast.
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

    /// Whether new flows wait for the memory beside them, which those that there are have.
    fn is_side_ready(&self) -> bool {
        self.caught_up.load(Ordering::Acquire)
    }

    /// Flows below this have memory.
    fn set_ready(&self, flows: u32) {
        self.ready.store(flows, Ordering::Release);
    }

    /// Flows below this have memory beside them.
    fn set_side(&self, flows: u32) {
        self.side.store(flows, Ordering::Release);
    }

    /// All flows that there are have memory beside them, and new ones are going to.
    fn catch_up(&self) {
        self.caught_up.store(true, Ordering::Release);
    }
}

/// Memory of which each flow has as many bytes.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) region: Region,
    pub(super) size: usize,
}

impl Column {
    /// How much of it is to be ready when flows below `used` are in use.
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

/// How much lies ready beyond the flows that have been used.
#[derive(Clone, Copy)]
enum Lead {
    /// What the table needs to begin with.
    First,
    /// A part of it.
    Share,
    /// The whole table.
    All,
}

/// The table's end.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    thread: Thread,
    /// Flows of 2 MiB.
    step: u32,
    /// The thread is to know when flows from here on are used.
    next: u32,
    has_side_memory: bool,
}

impl Ahead {
    /// Makes the first memory ready, and starts the thread for all that follows. Of the column beside the flows
    /// it is said whether it is in use.
    pub(super) fn start(
        name: &str,
        flows: Column,
        index: Region,
        side: Option<(Column, bool)>,
    ) -> io::Result<Self> {
        let wanted = side.as_ref().is_some_and(|(_, wanted)| *wanted);
        // There are no flows yet that it had to come up with.
        let caught_up = wanted.into();
        let shared = Arc::new(Shared { wanted: wanted.into(), caught_up, ..Shared::default() });
        let side = side.map(|(column, _)| column);
        let step = (HUGE_PAGE / flows.size).max(1) as u32;
        let (mine, has_side_memory) = (Arc::clone(&shared), side.is_some());
        let thread = Filling { shared: mine, flows, index, side, ready: [0; 3] }.start(name)?;
        Ok(Ahead { shared, thread, step, next: 0, has_side_memory })
    }

    /// Whether flow `used`, the first that was never used, may be; if so, up to which one nobody need ask.
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

    /// Whether there is memory for flow `used`.
    pub(super) fn is_ready_for(&self, used: u32) -> bool {
        self.shared.ready() > used
    }

    /// The column beside the flows is in use from now on.
    pub(super) fn want_side_memory(&self) {
        if self.has_side_memory && !self.shared.wanted.load(Ordering::Relaxed) {
            self.shared.wanted.store(true, Ordering::Release);
            self.thread.unpark();
        }
    }

    /// Whether there is memory beside the flows that there are, if any is kept there.
    pub(super) fn is_side_ready(&self) -> bool {
        !self.has_side_memory || self.shared.is_side_ready()
    }

    /// Whether all is ready that is to be, of so many flows; nothing if the kernel does not know how.
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
    /// Bytes of each that have memory.
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
                // A kernel that has no such request (before Linux 5.14): memory is found as flows come.
                Err(Errno::INVAL) => {
                    self.shared.set_ready(u32::MAX);
                    self.shared.set_side(u32::MAX);
                    self.shared.catch_up();
                    std::thread::park();
                }
                // There is none; there may be some later.
                Err(_) => std::thread::park_timeout(PAUSE),
            }
        }
    }

    /// Finds memory for 2 MiB. False if there is nothing to do.
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

/// Has another 2 MiB made ready, from `from` on, which moves.
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
    /// As [`Filling::step`] has it, with a flow for what lies ready ahead.
    const AHEAD: usize = 1;

    /// Memory of flows, and beside them: whether it was found.
    struct Memory {
        shared: Arc<Shared>,
        flows: [UnsafeCell<bool>; FLOWS],
        side: [UnsafeCell<bool>; FLOWS],
    }

    // SAFETY: a cell is written before it is published, and read only behind that, which loom checks.
    unsafe impl Sync for Memory {}
    // SAFETY: as above.
    unsafe impl Send for Memory {}

    impl Memory {
        /// The thread, a few steps.
        fn fill(&self, steps: usize) {
            let found = |cell: &UnsafeCell<bool>| {
                // SAFETY: nobody reads a cell before it is published.
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

    /// A worker that adds flows, of which the later ones need what is beside them.
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
                // As the tracker asks before it adds a flow that has something beside it.
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
                    // And those that came before it may get something.
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
    fn loom_what_is_beside_flows_is_there_once_it_is_said_to_be() {
        explore(5, true);
    }
}
