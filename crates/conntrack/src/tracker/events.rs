//! Events of connections.

use std::collections::VecDeque;

use crate::connection::Connection;

/// Capacity of the event queue; further events are counted as lost.
pub const ROOM: usize = 4096;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The connection was committed.
    New,
    /// The other side answered.
    Established,
    /// The connection ended.
    Ended(EndReason),
}

/// Reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The connection timed out.
    Expired,
    /// The connection made room for another one.
    Recycled,
    /// A user flushed it.
    Flushed,
    /// A new connection with the same addresses and ports replaced it.
    Replaced,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The connection.
    pub connection: Connection,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) wanted: bool,
    waiting: VecDeque<Event>,
    pub(super) lost: u64,
}

impl Events {
    pub(super) fn push(&mut self, kind: EventKind, connection: Connection) {
        if self.waiting.len() < ROOM {
            self.waiting.push_back(Event { kind, connection });
        } else {
            self.lost += 1;
        }
    }

    /// Takes all queued events; `room` becomes the new queue.
    pub(super) fn swap(&mut self, room: VecDeque<Event>) -> VecDeque<Event> {
        std::mem::replace(&mut self.waiting, room)
    }
}
