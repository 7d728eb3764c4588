//! MAC learning and aging.
//!
//! A worker that receives a frame from an unknown or moved address sends an event (rate limited per
//! address), and only the main thread writes the table. Bridging thus needs no lock, and a flood of
//! new addresses costs the main thread's time, not the workers'.

use crate::bridges::{Learned, MAX_ADDRESSES};
use crate::{L2, table};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::{Control, Event, Topic};
use thalweg_tables::MapError;
use thalweg_tables::mac::{MacKey, Seen};

/// State shared by workers and the main thread.
pub(crate) struct Learning {
    /// Seen marks of each worker, in the order in which nodes are built.
    pub(crate) seen: Mutex<Vec<Arc<Seen>>>,
    pub(crate) topic: Topic,
}

impl Learning {
    /// Creates the seen marks of a worker.
    pub(crate) fn worker(&self) -> Result<Arc<Seen>, MapError> {
        let seen = Arc::new(Seen::new(MAX_ADDRESSES)?);
        self.all().push(Arc::clone(&seen));
        Ok(seen)
    }
    /// Reserves memory for marks of entries below this number, so that workers never wait for it.
    pub(crate) fn make_ready(&self, upto: u32) {
        self.all().iter().for_each(|seen| seen.make_ready(upto));
    }
    /// Seen marks of all workers.
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Arc<Seen>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of the aging scan.
#[derive(Default)]
pub(crate) struct Scan {
    armed: bool,
}

/// Event of an address seen on a port.
pub(crate) fn event(topic: Topic, key: MacKey, port: u32, at: u64) -> Event {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&key.mac());
    bytes[6..].copy_from_slice(&key.bridge().to_le_bytes());
    Event::new(topic, SwIfIndex(port), at, &bytes)
}

/// Handles an event of an address seen by a worker.
pub(crate) fn address_seen(c: &mut Control, event: &Event) {
    let [a, b, cc, d, e, f, low, high] = match event.bytes().first_chunk::<8>() {
        Some(bytes) => *bytes,
        None => return,
    };
    let key = MacKey::new(u16::from_le_bytes([low, high]), [a, b, cc, d, e, f]);
    // Addresses that a port heard before it went down have been flushed.
    if !interface::is_current(c, event.sw_if, event.at) {
        return;
    }
    let domain = Arc::clone(c.domain());
    let learned = c.state::<L2>().borrow_mut().bridges.learn(&domain, key, event.sw_if);
    if learned == Learned::Last {
        // The table is full: workers stop reporting new addresses.
        table::publish_room(c);
    }
}

/// Interval of aging scans, and entries visited per step.
const SCAN_INTERVAL: Duration = Duration::from_secs(5);
const ENTRIES_PER_STEP: u32 = 1 << 14;
const SLICE_PAUSE: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Schedules the aging scan if a bridge domain ages addresses and none is scheduled.
pub(crate) fn arm(c: &mut Control) {
    let wanted = c.state::<L2>().borrow().bridges.domains().any(|d| d.mac_age > 0);
    let scan = c.state::<Scan>();
    let armed = std::mem::replace(&mut scan.borrow_mut().armed, wanted);
    if wanted && !armed {
        c.after(SCAN_INTERVAL, age_slice);
    }
}

fn age_slice(c: &mut Control) {
    let domain = Arc::clone(c.domain());
    let (round, aged) = c.state::<L2>().borrow_mut().bridges.age(&domain, MINUTE, ENTRIES_PER_STEP);
    if aged > 0 {
        table::publish_room(c);
    }
    if !round {
        c.after(SLICE_PAUSE, age_slice);
        return;
    }
    c.state::<Scan>().borrow_mut().armed = false;
    arm(c);
}
