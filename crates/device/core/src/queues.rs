//! Receive queues of a device: the workers that poll them, their modes, and the frames that the
//! device lost.
//!
//! A driver keeps a [`Queues`] for each device. Queues that nobody placed go to the workers with
//! the fewest, whatever drivers these are of.

use crate::interface::Interfaces;
use crate::{DeviceError, RxQueue, SwIfIndex};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;
use thalweg_graph::{Control, NodeId, RxMode};

/// Interval in which devices are asked for the frames that they lost.
const MISSED_EVERY: Duration = Duration::from_secs(1);

/// Receive queues of all devices.
#[derive(Default)]
struct Load {
    /// Number of queues by worker.
    queues: Vec<usize>,
    /// Interfaces whose devices count what they lose.
    counting: BTreeSet<SwIfIndex>,
}

impl Load {
    /// Returns the worker with the fewest queues, not counting the queue on `from`; `from` itself
    /// if it is no worse than others.
    fn idlest(&self, from: Option<usize>) -> usize {
        let load = |w: &usize| (self.queues[*w] - usize::from(Some(*w) == from), Some(*w) != from);
        (0..self.queues.len()).min_by_key(load).unwrap_or(0)
    }

    fn add(&mut self, worker: usize) {
        if let Some(n) = self.queues.get_mut(worker) {
            *n += 1;
        }
    }

    fn remove(&mut self, worker: usize) {
        if let Some(n) = self.queues.get_mut(worker) {
            *n = n.saturating_sub(1);
        }
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Load::default());
}

pub(crate) fn ready(c: &mut Control) {
    c.state::<Load>().borrow_mut().queues = vec![0; c.workers()];
    c.every(MISSED_EVERY, |c| {
        report_missed(c);
        true
    });
}

/// Starts or stops regular reads of a device's [loss counts](crate::Device::poll_missed).
pub fn count_missed(c: &Control, sw_if: SwIfIndex, on: bool) {
    let load = c.state::<Load>();
    if on {
        load.borrow_mut().counting.insert(sw_if);
    } else {
        load.borrow_mut().counting.remove(&sw_if);
    }
}

fn report_missed(c: &mut Control) {
    let all: Vec<SwIfIndex> = c.state::<Load>().borrow().counting.iter().copied().collect();
    for sw_if in all {
        let device = c.state::<Interfaces>().borrow().device(sw_if);
        if let Some(d) = device {
            d.poll_missed(c, sw_if);
        }
    }
}

/// One receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Number.
    pub queue: u32,
    /// Worker that polls it.
    pub worker: usize,
    /// Receive mode.
    pub mode: RxMode,
    /// The user assigned it to its worker.
    pub pinned: bool,
}

/// Receive queues of a device.
#[derive(Debug)]
pub struct Queues {
    /// Name of the input node.
    node: &'static str,
    all: RefCell<Vec<Queue>>,
}

impl Queues {
    /// Assigns `count` queues, from number 0, each to the worker with the fewest. `node` is the
    /// name of the node that polls them.
    pub fn place(c: &Control, node: &'static str, count: u32) -> Queues {
        let load = c.state::<Load>();
        let mut load = load.borrow_mut();
        let place = |queue| {
            let worker = load.idlest(None);
            load.add(worker);
            Queue { queue, worker, mode: RxMode::default(), pinned: false }
        };
        let all = (0..count).map(place).collect();
        Queues { node, all: RefCell::new(all) }
    }

    /// Returns all queues.
    pub fn all(&self) -> Vec<Queue> {
        self.all.borrow().clone()
    }

    /// Returns the queue of a number.
    pub fn get(&self, queue: u32) -> Option<Queue> {
        self.all.borrow().iter().find(|q| q.queue == queue).copied()
    }

    /// Returns the workers that poll any, each once.
    pub fn workers(&self) -> BTreeSet<usize> {
        self.all.borrow().iter().map(|q| q.worker).collect()
    }

    /// Returns the queues as `show interface rx-placement` lists them.
    pub fn rows(&self) -> Vec<RxQueue> {
        let row = |q: &Queue| RxQueue {
            queue: q.queue,
            worker: q.worker,
            node: self.node.to_owned(),
            mode: q.mode,
            pinned: q.pinned,
        };
        self.all.borrow().iter().map(row).collect()
    }

    /// Sets the mode of a queue (`None`: of all).
    pub fn set_mode(&self, queue: Option<u32>, mode: RxMode) {
        let mut all = self.all.borrow_mut();
        all.iter_mut().filter(|q| queue.is_none_or(|n| n == q.queue)).for_each(|q| q.mode = mode);
    }

    /// Assigns a queue to a worker, `None`: to the one with the fewest. If that is another worker
    /// than before, `move_it` moves it from the first to the second.
    ///
    /// # Errors
    /// The error of `move_it`; the queue stays where it was then.
    pub fn assign(
        &self,
        c: &mut Control,
        queue: u32,
        worker: Option<usize>,
        move_it: impl FnOnce(&mut Control, usize, usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(Queue { worker: from, .. }) = self.get(queue) else { return Ok(()) };
        let to = worker.unwrap_or_else(|| c.state::<Load>().borrow().idlest(Some(from)));
        if to != from {
            move_it(c, from, to)?;
            let load = c.state::<Load>();
            load.borrow_mut().remove(from);
            load.borrow_mut().add(to);
        }
        if let Some(q) = self.all.borrow_mut().iter_mut().find(|q| q.queue == queue) {
            (q.worker, q.pinned) = (to, worker.is_some());
        }
        Ok(())
    }

    /// Has the input node of a worker give a queue to the one of another worker: `give` and `take`
    /// make the messages to them.
    ///
    /// # Errors
    /// If the worker that has the queue does not answer.
    pub fn hand_over<Q: Send + 'static, M: Send + 'static>(
        c: &mut Control,
        input: NodeId,
        (from, to): (usize, usize),
        give: impl FnOnce(SyncSender<Q>) -> M,
        take: impl FnOnce(Q) -> M,
    ) -> Result<(), DeviceError> {
        let (giver, given) = mpsc::sync_channel(1);
        c.message(from, input, Box::new(give(giver)));
        // The request follows earlier messages in the worker's queue; it replies between two loops.
        c.sync();
        let Ok(queue) = given.try_recv() else {
            return Err(DeviceError::Failed(format!("worker {from} did not release the queue")));
        };
        c.message(to, input, Box::new(take(queue)));
        Ok(())
    }

    /// Releases the workers' places, before the device is deleted.
    pub fn release(&self, c: &Control) {
        Self::release_all(c, &std::mem::take(&mut *self.all.borrow_mut()));
    }

    /// Releases the places of queues whose device could not be made.
    pub fn release_all(c: &Control, all: &[Queue]) {
        let load = c.state::<Load>();
        all.iter().for_each(|q| load.borrow_mut().remove(q.worker));
    }

    /// Sends a message to the input node of each worker that polls any.
    pub fn notify<M: Send + 'static>(&self, c: &mut Control, input: NodeId, make: impl Fn() -> M) {
        for worker in self.workers() {
            c.message(worker, input, Box::new(make()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_where_there_are_fewest() {
        let mut load = Load { queues: vec![2, 1, 1], counting: BTreeSet::new() };
        assert_eq!(load.idlest(None), 1);
        // One that moves is not counted where it is, and stays if others are no better.
        assert_eq!((load.idlest(Some(2)), load.idlest(Some(0))), (2, 0));
        load.add(2);
        assert_eq!(load.idlest(Some(2)), 2);
        load.remove(1);
        assert_eq!(load.idlest(Some(2)), 1);
        (0..3).for_each(|_| load.remove(1));
        assert_eq!(load.queues, [2, 0, 2]);
    }
}
