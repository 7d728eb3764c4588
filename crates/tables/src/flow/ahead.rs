//! Memory for flows that are still to come.
//!
//! The kernel clears memory when it is used for the first time, 2 MiB at once: a worker that does so
//! stands still for a tenth of a millisecond, or for much longer if the kernel or a hypervisor has to
//! look for it. So a thread has it cleared before: all of the index, as keys come anywhere in it, and of
//! the flows as much as is soon to be used. The table wakes the thread whenever another 2 MiB are begun,
//! and at its end, as giving memory back takes the kernel long as well.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{Builder, Thread};

use crate::paged::{HUGE_PAGE, Region};

/// What lies ready beyond the flows that have been used: at four million new flows per second,
/// 30 milliseconds' need.
const LEAD: usize = 16 << 20;
/// What is made ready of the index before the table is used at all. More of it takes the thread some
/// milliseconds.
const AT_ONCE: usize = 64 << 20;
/// The thread does not need much.
const STACK: usize = 64 << 10;

#[derive(Debug, Default)]
struct Shared {
    /// Flows below this have been used, or are about to be.
    used: AtomicU32,
    /// Flows below this have memory.
    ready: AtomicU32,
    gone: AtomicBool,
}

/// The table's end.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    thread: Thread,
    /// Flows of 2 MiB.
    step: u32,
}

impl Ahead {
    /// Makes the first memory ready, and starts the thread for all that follows. A flow takes `size`
    /// bytes.
    pub(super) fn start(name: &str, flows: Region, size: usize, index: Region) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mine = Arc::clone(&shared);
        let (flows_ready, index_ready) = (0, 0);
        let thread = Filling { shared: mine, flows, size, index, flows_ready, index_ready };
        let thread = thread.start(name)?;
        Ok(Ahead { shared, thread, step: (HUGE_PAGE / size).max(1) as u32 })
    }

    /// Flows from `used` on are about to be used: the number of those that come first after another
    /// 2 MiB, and whether there is memory until then.
    pub(super) fn used(&self, used: u32, capacity: u32) -> (u32, bool) {
        let next = used.saturating_add(self.step);
        let ready = self.shared.ready.load(Ordering::Relaxed) >= next.min(capacity);
        self.shared.used.store(used, Ordering::Release);
        self.thread.unpark();
        (next, ready)
    }

    /// Whether all is ready that is to be.
    #[cfg(test)]
    pub(super) fn is_ready(&self, capacity: u32) -> bool {
        let used =
            self.shared.used.load(Ordering::Relaxed) + LEAD as u32 / HUGE_PAGE as u32 * self.step;
        self.shared.ready.load(Ordering::Relaxed) >= used.min(capacity)
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
    flows: Region,
    size: usize,
    index: Region,
    /// Bytes of flows and of the index that have memory.
    flows_ready: usize,
    index_ready: usize,
}

impl Filling {
    fn start(mut self, name: &str) -> io::Result<Thread> {
        let all_at_once = self.index.bytes() <= AT_ONCE;
        while all_at_once || self.flows_are_short() {
            if !self.step().unwrap_or(false) {
                break;
            }
        }
        let thread = Builder::new().name(name.into()).stack_size(STACK);
        Ok(thread.spawn(|| self.run())?.thread().clone())
    }

    fn run(mut self) {
        while !self.shared.gone.load(Ordering::Acquire) {
            if !self.step().unwrap_or(false) {
                // Nothing to do; or the kernel refuses, and may do better next time.
                std::thread::park();
            }
        }
    }

    /// Whether more flows are to have memory.
    fn flows_are_short(&self) -> bool {
        let used = self.shared.used.load(Ordering::Acquire) as usize * self.size;
        self.flows_ready < (used + LEAD).min(self.flows.bytes())
    }

    /// Finds memory for 2 MiB. False if there is nothing to do.
    fn step(&mut self) -> rustix::io::Result<bool> {
        if self.flows_are_short() {
            let next = self.flows_ready + HUGE_PAGE;
            self.flows.populate(self.flows_ready..next)?;
            self.flows_ready = next;
            let ready = next.min(self.flows.bytes()) / self.size;
            self.shared.ready.store(ready as u32, Ordering::Relaxed);
        } else if self.index_ready < self.index.bytes() {
            let next = self.index_ready + HUGE_PAGE;
            self.index.populate(self.index_ready..next)?;
            self.index_ready = next;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}
