//! Limits of punted packets: a bucket of tokens for each class of packets of each interface, on
//! each worker, so that a flood of one class at one interface leaves others their share.

use crate::class::{CLASSES, Class};
use crate::nodes::linux_cp_punt;
use crate::pairs::Pairs;
use crate::table::Twin;
use std::any::Any;
use std::sync::Arc;
use thalweg_graph::stats::Counter;
use thalweg_graph::{BuildCx, Control, NodeCx, PerWorker, clock};
use thalweg_tables::limit::RateLimit;

/// Counters of an interface's punted packets on one worker, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct OfWorker([Counts; CLASSES]);

/// Counters of a class.
#[derive(Debug, Default)]
struct Counts {
    passed: Counter,
    limited: Counter,
}

/// Punted packets of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Passed to the kernel.
    pub passed: u64,
    /// Dropped by the limit.
    pub limited: u64,
}

/// Makes the counters of a pair.
pub(crate) fn counters(c: &Control) -> Arc<[OfWorker]> {
    (0..c.workers()).map(|_| OfWorker::default()).collect()
}

/// Returns the sums over workers, by class.
pub(crate) fn totals(counts: &[OfWorker]) -> [Totals; CLASSES] {
    std::array::from_fn(|class| Totals {
        passed: counts.iter().map(|w| w.0[class].passed.get()).sum(),
        limited: counts.iter().map(|w| w.0[class].limited.get()).sum(),
    })
}

/// The buckets of a worker, by number of the pair. They come with a message, so that no worker has
/// to allocate them.
#[derive(Debug)]
pub(crate) struct Buckets(Vec<[RateLimit; CLASSES]>);

/// Limits on the main thread.
pub(crate) struct Limits {
    /// Packets per second, by class, if not the usual ones.
    rates: [Option<u32>; CLASSES],
    /// Numbers of pairs for which workers have buckets.
    room: usize,
    buckets: PerWorker<Buckets>,
    /// Packets of pairs that are gone.
    former: [Totals; CLASSES],
}

/// Numbers of pairs for which there are buckets at first.
const ROOM: usize = 64;

pub(crate) fn init(c: &mut Control) {
    let buckets = c.per_worker();
    let (rates, former) = ([None; CLASSES], [Totals::default(); CLASSES]);
    c.insert(Limits { rates, room: ROOM, buckets, former });
}

pub(crate) fn ready(c: &mut Control) {
    give(c);
}

/// Gives workers buckets of the present rates.
fn give(c: &mut Control) {
    let (rates, room) = {
        let limits = c.state::<Limits>();
        let limits = limits.borrow();
        (Class::ALL.map(|class| rate_of(&limits, class)), limits.room)
    };
    let second = clock::hz() as u64;
    let each = rates.map(|rate| RateLimit::steady(rate, Class::burst(rate), second));
    if let Some(node) = c.node(linux_cp_punt::NODE.name) {
        c.message_all(node, |_| Box::new(Buckets(vec![each.clone(); room])));
    }
}

fn rate_of(limits: &Limits, class: Class) -> u32 {
    limits.rates[class as usize].unwrap_or(class.usual_rate())
}

/// Returns how many packets of a class pass per second, interface and worker.
pub fn rate(c: &Control, class: Class) -> u32 {
    rate_of(&c.state::<Limits>().borrow(), class)
}

/// Sets how many packets of a class pass per second, interface and worker; `None` for the usual
/// rate.
pub fn set_rate(c: &mut Control, class: Class, rate: Option<u32>) {
    let rate = rate.filter(|rate| *rate != class.usual_rate());
    c.state::<Limits>().borrow_mut().rates[class as usize] = rate;
    give(c);
}

/// Makes room for the buckets of a pair.
pub(crate) fn make_room(c: &mut Control, number: u32) {
    let is_new = {
        let limits = c.state::<Limits>();
        let mut limits = limits.borrow_mut();
        let needed = number as usize + 1;
        let is_new = needed > limits.room;
        if is_new {
            limits.room = needed.next_power_of_two();
        }
        is_new
    };
    if is_new {
        give(c);
    }
}

/// Keeps the sums of a pair that goes.
pub(crate) fn keep(c: &Control, counts: &[OfWorker]) {
    let limits = c.state::<Limits>();
    let former = &mut limits.borrow_mut().former;
    for (sum, gone) in former.iter_mut().zip(totals(counts)) {
        sum.passed += gone.passed;
        sum.limited += gone.limited;
    }
}

/// Returns the punted packets of all pairs, also of those that are gone, by class.
pub fn all(c: &Control) -> [Totals; CLASSES] {
    let mut sums = c.state::<Limits>().borrow().former;
    for pair in c.state::<Pairs>().borrow().iter() {
        for (sum, of) in sums.iter_mut().zip(totals(&pair.counts)) {
            sum.passed += of.passed;
            sum.limited += of.limited;
        }
    }
    sums
}

/// The way of punted packets by the limits, for a node: it takes the worker's buckets for a frame.
pub(crate) struct Gate {
    at: PerWorker<Buckets>,
    buckets: Option<Box<Buckets>>,
}

impl Gate {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Gate {
        Gate { at: cx.control.state::<Limits>().borrow().buckets, buckets: None }
    }

    pub(crate) fn begin(&mut self, cx: &mut NodeCx<'_>) {
        self.buckets = cx.take_local(self.at);
    }

    pub(crate) fn end(&mut self, cx: &mut NodeCx<'_>) {
        if let Some(buckets) = self.buckets.take() {
            cx.put_local(self.at, buckets);
        }
    }

    /// Counts a packet; returns whether its class has room for it.
    pub(crate) fn pass(&mut self, cx: &NodeCx<'_>, twin: &Twin, class: Class) -> bool {
        let of_pair = self.buckets.as_mut().and_then(|b| b.0.get_mut(twin.number as usize));
        // The buckets of a new pair may be on their way.
        let passes = of_pair.is_none_or(|of| of[class as usize].allow(cx.now()));
        if let Some(counts) = twin.counts.get(cx.worker()) {
            let counts = &counts.0[class as usize];
            if passes { counts.passed.add(1) } else { counts.limited.add(1) }
        }
        passes
    }

    /// Takes buckets from the main thread, in place of those that the worker has.
    pub(crate) fn message(&self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(new) = message.downcast::<Buckets>() else { return };
        if let Some(old) = cx.take_local(self.at) {
            cx.discard(old);
        }
        cx.put_local(self.at, new);
    }
}
