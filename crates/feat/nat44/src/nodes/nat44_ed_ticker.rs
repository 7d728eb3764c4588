//! `nat44-ed-ticker`: expires sessions, a bounded number per turn.
//!
//! Receives no packets. Handles messages that change the addresses and sessions of a worker.

use crate::config::Config;
use crate::limits::LimitSettings;
use crate::log::LogWriter;
use crate::pool::Pool;
use crate::restore::Restored;
use crate::saved::Saved;
use crate::time;
use crate::worker::{Nat, Sweep};
use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use thalweg_buffer::{Packet, SwIfIndex};
use thalweg_graph::{Built, InputNode, Kind, NodeCx, NodeDecl, PerWorker, Poll, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    FRAGMENT_TIMEOUT: Error, UNKNOWN_L4, "timeout waiting for the first fragment";
    INTERFACE_DELETED: Error, DEV_READY, "interface of a waiting fragment is deleted";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "nat44-ed-ticker",
    kind: Kind::Timer,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        Built::input(Ticker { config: cx.shared(), here: cx.control.per_worker(), next: 0 })
    },
    ..NodeDecl::DEFAULT
};

/// Time between turns with nothing to expire, in milliseconds: a slot of the timer wheel.
const PAUSE: u32 = 128;

/// A message from the main thread to a worker.
pub(crate) enum Order {
    /// Enable, with this empty state.
    Start(Box<Nat>),
    /// Disable.
    Stop,
    /// Add a pool address.
    Add(Box<Pool>),
    /// Remove a pool address.
    Drop { address: u32, twice: bool },
    /// Reserve a port for a static mapping, or release it.
    Reserve { address: u32, protocol: u8, port: u16, keep: bool },
    /// Start a sweep.
    Sweep(Sweep),
    /// An interface is deleted: drop what waits and came or leaves by it, as another one may have
    /// its index before it goes on.
    Gone(SwIfIndex),
    /// Set or remove the session log.
    Log(Option<Box<LogWriter>>),
    /// Replace the session limits.
    Limit(Box<LimitSettings>),
    /// Restore sessions, saved `elapsed` milliseconds ago.
    Restore { all: Vec<Saved>, elapsed: u64, answer: Sender<(Restored, Vec<Saved>)> },
}

struct Ticker {
    config: Arc<Snapshot<Config>>,
    here: PerWorker<Nat>,
    /// Time of the next turn, in ticks.
    next: u64,
}

/// Drops fragments that have waited too long, or all.
fn drop_waiting(cx: &mut NodeCx<'_>, nat: &mut Nat, all: bool) {
    while let Some((_, packet)) = nat.fragments.next_overdue(time::millis(cx.now()), all) {
        cx.send(packet, Verdict::drop(FRAGMENT_TIMEOUT));
    }
}

/// Removes the state of this worker, after dropping waiting fragments.
fn take_away(cx: &mut NodeCx<'_>, here: PerWorker<Nat>) {
    if let Some(mut old) = cx.take_local(here) {
        drop_waiting(cx, &mut old, true);
        cx.discard(old);
    }
}

impl InputNode for Ticker {
    #[inline]
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let now = cx.now();
        if now < self.next {
            // Reporting a time far away would wake the worker for nothing.
            return if self.next == u64::MAX { Poll::Idle } else { Poll::At(self.next) };
        }
        let Some(mut nat) = cx.take_local(self.here) else {
            self.next = u64::MAX;
            return Poll::Idle;
        };
        let (more, empty) = {
            let config = self.config.load(cx.guard());
            (nat.expire(config, time::millis(now)), nat.table.is_empty())
        };
        drop_waiting(cx, &mut nat, false);
        let empty = empty && !nat.fragments.any_waits();
        cx.put_local(self.here, nat);
        if empty {
            // The node that adds a session has this polled again.
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
                take_away(cx, self.here);
                cx.put_local(self.here, nat);
            }
            Order::Stop => take_away(cx, self.here),
            Order::Add(pool) => drop(cx.with_local(self.here, |nat| nat.add_pool(*pool))),
            Order::Drop { address, twice } => {
                cx.with_local(self.here, |nat| nat.drop_pool(address, twice));
            }
            Order::Reserve { address, protocol, port, keep } => {
                cx.with_local(self.here, |nat| nat.reserve(address, protocol, port, keep));
            }
            Order::Sweep(which) => drop(cx.with_local(self.here, |nat| nat.sweep(which))),
            Order::Gone(gone) => {
                let of =
                    |(_, packet): &(u8, Packet)| [packet.rx_if(), packet.tx_if()].contains(&gone);
                let next = |nat: &mut Nat| nat.fragments.next_unwanted(of);
                while let Some(Some((_, packet))) = cx.with_local(self.here, next) {
                    cx.send(packet, Verdict::drop(INTERFACE_DELETED));
                }
            }
            Order::Log(log) => {
                if let Some(Some(old)) =
                    cx.with_local(self.here, |nat| std::mem::replace(&mut nat.log, log))
                {
                    cx.discard(old);
                }
            }
            Order::Limit(orders) => {
                if let Some(old) = cx.with_local(self.here, |nat| nat.limit(*orders))
                    && let Some(hosts) = old.into_hosts()
                {
                    cx.discard(hosts);
                }
            }
            Order::Restore { all, elapsed, answer } => {
                let (config, now) = (self.config.load(cx.guard()), time::millis(cx.now()));
                let done = cx.with_local(self.here, |nat| nat.restore(config, &all, elapsed, now));
                // The requester may have given up.
                let _ = answer.send(done.unwrap_or_default());
            }
        }
    }
}
