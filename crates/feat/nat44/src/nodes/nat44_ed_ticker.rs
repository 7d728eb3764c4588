//! `nat44-ed-ticker`: ends sessions whose time has come, a bounded number a turn.
//!
//! Brings no packets in. Takes messages that change a worker's addresses and sessions.

use crate::config::Config;
use crate::limits::LimitSettings;
use crate::log::LogWriter;
use crate::pool::Pool;
use crate::restore::Restored;
use crate::saved::Saved;
use crate::time;
use crate::worker::{self, Nat, Sweep};
use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use thalweg_graph::{Built, InputNode, Kind, NodeCx, NodeDecl, Poll, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! { ALONE: Error, 289, "timeout waiting for the first fragment"; }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "nat44-ed-ticker",
    kind: Kind::Input,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::input(Ticker { config: cx.shared(), next: 0 }),
    ..NodeDecl::DEFAULT
};

/// How long to wait when nothing ends, in milliseconds: a slot of the wheel.
const PAUSE: u32 = 128;

/// What the main thread has a worker do.
pub(crate) enum Order {
    /// Begin with these sessions, none.
    Start(Box<Nat>),
    /// End.
    Stop,
    /// An address more.
    Add(Box<Pool>),
    /// An address less.
    Drop { address: u32, twice: bool },
    /// A port that is a static mapping's, or is not any more.
    Reserve { address: u32, protocol: u8, port: u16, keep: bool },
    /// Sessions to be ended.
    Sweep(Sweep),
    /// Where sessions are noted from now on, if anywhere.
    Log(Option<Box<LogWriter>>),
    /// Limits that hold from now on.
    Limit(Box<LimitSettings>),
    /// Sessions from a file, that many milliseconds after they went into it.
    Restore { all: Vec<Saved>, elapsed: u64, answer: Sender<Restored> },
}

struct Ticker {
    config: Arc<Snapshot<Config>>,
    /// Tick count at which sessions are looked at.
    next: u64,
}

/// Drops fragments that have waited for long enough, or all.
fn drop_waiting(cx: &mut NodeCx<'_>, nat: &mut Nat, all: bool) {
    while let Some((_, packet)) = nat.fragments.next_overdue(time::millis(cx.now()), all) {
        cx.send(packet, Verdict::drop(ALONE));
    }
}

/// Takes this worker's sessions away, packets that wait not with them.
fn take_away(cx: &mut NodeCx<'_>) {
    if let Some(mut old) = worker::take() {
        drop_waiting(cx, &mut old, true);
        cx.discard(old);
    }
}

impl InputNode for Ticker {
    #[inline]
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let now = cx.now();
        if now < self.next {
            // A moment that is far away would have the worker wake for nothing.
            return if self.next == u64::MAX { Poll::Idle } else { Poll::At(self.next) };
        }
        let Some(mut nat) = worker::take() else {
            self.next = u64::MAX;
            return Poll::Idle;
        };
        let (more, empty) = {
            let config = self.config.load(cx.guard());
            (nat.expire(config, time::millis(now)), nat.table.is_empty())
        };
        drop_waiting(cx, &mut nat, false);
        let empty = empty && !nat.fragments.any_waits();
        worker::put(Some(nat));
        if empty {
            // Whatever brings a session in has this called again.
            return Poll::Idle;
        }
        if more {
            self.next = now;
            return Poll::Busy(0);
        }
        self.next = now + time::ticks(PAUSE);
        Poll::At(self.next)
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(order) = message.downcast::<Order>() else { return };
        self.next = 0;
        match *order {
            Order::Start(nat) => {
                take_away(cx);
                worker::put(Some(nat));
            }
            Order::Stop => take_away(cx),
            Order::Add(pool) => drop(worker::with(|nat| nat.add_pool(*pool))),
            Order::Drop { address, twice } => {
                worker::with(|nat| nat.drop_pool(address, twice));
            }
            Order::Reserve { address, protocol, port, keep } => {
                worker::with(|nat| nat.reserve(address, protocol, port, keep));
            }
            Order::Sweep(which) => drop(worker::with(|nat| nat.sweep(which))),
            Order::Log(log) => {
                if let Some(Some(old)) = worker::with(|nat| std::mem::replace(&mut nat.log, log)) {
                    cx.discard(old);
                }
            }
            Order::Limit(orders) => {
                if let Some(old) = worker::with(|nat| nat.limit(*orders))
                    && let Some(hosts) = old.into_hosts()
                {
                    cx.discard(hosts);
                }
            }
            Order::Restore { all, elapsed, answer } => {
                let (config, now) = (self.config.load(cx.guard()), time::millis(cx.now()));
                let done = worker::with(|nat| nat.restore(config, &all, elapsed, now));
                // Who asked may have given up.
                let _ = answer.send(done.unwrap_or_default());
            }
        }
    }
}
