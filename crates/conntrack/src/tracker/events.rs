//! What happened to connections, for those who want to know.

use std::collections::VecDeque;

use crate::connection::Connection;

/// Events that wait to be taken; more are counted as lost.
pub const ROOM: usize = 4096;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It was committed.
    New,
    /// The other side has answered.
    Established,
    /// It is gone.
    Ended(EndReason),
}

/// Why a connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// It was silent for too long.
    Expired,
    /// It gave its place to another one.
    Recycled,
    /// Somebody asked for it.
    Flushed,
    /// A new one of the same addresses and ports took its place.
    Replaced,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To which connection.
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

    /// Takes all that wait; `room` is used for the next ones.
    pub(super) fn swap(&mut self, room: VecDeque<Event>) -> VecDeque<Event> {
        std::mem::replace(&mut self.waiting, room)
    }
}
