//! A client's connection, shared by the server's thread and the main thread.

use crate::hub::Job;
use crate::server::Limits;
use rustix::event::EventfdFlags;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Id of a client, which is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);

/// Wakes the server's thread.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags)?))
    }

    pub(crate) fn wake(&self) {
        // If it is full, the thread is awake already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Connects clients with the server's thread and the main thread.
pub(crate) struct Links {
    pub(crate) limits: Limits,
    pub(crate) waker: Waker,
    /// Submits a job to the main thread.
    pub(crate) dispatch: Box<dyn Fn(Job) -> bool + Send + Sync>,
}

/// Output that waits to be written.
#[derive(Debug, Default)]
struct Out {
    bytes: Vec<u8>,
    sent: usize,
}

impl Out {
    fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Discards what was sent before more is appended: only now and then, as the rest has to be
    /// moved.
    fn settle(&mut self) {
        if self.sent > 1 << 20 && self.sent >= self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[derive(Debug, Default)]
struct State {
    name: String,
    registered: bool,
    /// Pending requests, without framing.
    inbox: VecDeque<Vec<u8>>,
    inbox_bytes: usize,
    out: Out,
    /// True if a job for this client is queued for the main thread, or there.
    scheduled: bool,
    /// True if a reply comes later; requests wait for it.
    later: bool,
    /// True if requests wait until more of `out` is written.
    blocked: bool,
    /// True if the server's thread does not read until it is woken.
    reading_paused: bool,
    /// Reason for disconnecting it; empty for none to report.
    close: Option<String>,
    /// True if it sends nothing more: once all requests are done, it can go.
    ended: bool,
    /// True if no more of `out` is read.
    gone: bool,
    requests: u64,
    events: u64,
    complaints: u32,
}

/// Work of the server's thread for a client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) registered: bool,
    /// True if nothing is left to do.
    pub(crate) idle: bool,
}

/// A connected client.
pub(crate) struct Client {
    id: ClientId,
    stream: UnixStream,
    links: Arc<Links>,
    state: Mutex<State>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(id: ClientId, stream: UnixStream, links: Arc<Links>) -> Self {
        Self { id, stream, links, state: Mutex::default() }
    }

    /// Creates a detached client, which reads no replies.
    pub(crate) fn detached() -> io::Result<Self> {
        let (stream, _) = UnixStream::pair()?;
        let links = Links {
            limits: Limits::default(),
            waker: Waker::new()?,
            dispatch: Box::new(|_| false),
        };
        let client = Self::new(ClientId(u32::MAX), stream, Arc::new(links));
        client.lock().gone = true;
        Ok(client)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent wherever a panic could happen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> ClientId {
        self.id
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Returns its name, requests, events, and pending bytes.
    pub(crate) fn info(&self) -> (String, u64, u64, usize) {
        let state = self.lock();
        (state.name.clone(), state.requests, state.events, state.out.waiting())
    }

    /// Returns its name in logs.
    pub(crate) fn label(&self) -> String {
        match self.lock().name.as_str() {
            "" => format!("API client {:#x}", self.id.0),
            // A client's name stays on its line.
            name => format!("API client `{}`", name.escape_debug()),
        }
    }

    /// Logs an invalid request, which is ignored; only the first few.
    pub(crate) fn complain(&self, what: impl fmt::Display) {
        const FIRST: u32 = 10;
        let label = self.label();
        let mut state = self.lock();
        state.complaints = state.complaints.saturating_add(1);
        match state.complaints {
            ..=FIRST => tracing::warn!("{label}: {what}; ignored"),
            n if n == FIRST + 1 => tracing::warn!("{label} sends further invalid messages"),
            _ => {}
        }
    }

    pub(crate) fn register(&self, name: &str) {
        let mut state = self.lock();
        (state.name, state.registered) = (name.to_owned(), true);
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.lock().registered
    }

    pub(crate) fn is_gone(&self) -> bool {
        let state = self.lock();
        state.gone || state.close.is_some()
    }

    /// Returns true if replies should wait for pending output, or if the client is gone.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.gone || state.out.waiting() >= self.links.limits.answers
    }

    /// Disconnects it once pending output is written, or at once if there is a reason to report.
    pub(crate) fn close(&self, reason: String) {
        let mut state = self.lock();
        state.close.get_or_insert(reason);
        drop(state);
        self.links.waker.wake();
    }

    pub(crate) fn closing(&self) -> Option<String> {
        self.lock().close.clone()
    }

    /// Marks it as gone; nothing is written from now on.
    pub(crate) fn set_gone(&self) {
        let mut state = self.lock();
        state.gone = true;
        state.out = Out::default();
        state.blocked = false;
    }

    /// Appends a reply.
    pub(crate) fn answer(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        if !state.gone {
            state.out.settle();
            encode(&mut state.out.bytes);
        }
    }

    /// Appends a large reply that is already encoded; without a copy, if nothing else is pending.
    pub(crate) fn answer_encoded(&self, answer: Vec<u8>) {
        let mut state = self.lock();
        if state.out.waiting() == 0 && !state.gone {
            state.out = Out { bytes: answer, sent: 0 };
            return;
        }
        drop(state);
        self.answer(|out| out.extend_from_slice(&answer));
    }

    /// Appends an event. Returns false if too much is pending already, or the client is gone.
    pub(crate) fn event(&self, encode: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.lock();
        if state.gone || state.close.is_some() {
            return false;
        }
        let waiting = state.out.waiting();
        if waiting >= self.links.limits.events {
            drop(state);
            self.close(format!(
                "it does not read: {waiting} bytes of events and replies are pending"
            ));
            return false;
        }
        state.events += 1;
        state.out.settle();
        encode(&mut state.out.bytes);
        drop(state);
        self.flush();
        true
    }

    /// Writes what the socket takes; the server's thread writes the rest.
    pub(crate) fn flush(&self) {
        if !self.write() {
            self.links.waker.wake();
        }
    }

    /// Writes what the socket takes. Returns true if nothing is pending then.
    pub(crate) fn write(&self) -> bool {
        let mut state = self.lock();
        loop {
            let Out { bytes, sent } = &mut state.out;
            if *sent == bytes.len() {
                bytes.clear();
                *sent = 0;
                // The memory of a large reply is not kept.
                bytes.shrink_to(64 << 10);
                return true;
            }
            match (&self.stream).write(&bytes[*sent..]) {
                Ok(0) => return false,
                Ok(n) => *sent += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    state.gone = true;
                    state.out = Out::default();
                    return false;
                }
            }
        }
    }

    /// Records that nothing more will come.
    pub(crate) fn set_ended(&self) {
        self.lock().ended = true;
    }

    /// Runs after its requests were handled: closes a client that has sent its last.
    pub(crate) fn rest(self: &Arc<Self>) {
        self.flush();
        self.unblock();
        if self.lock().ended {
            self.links.waker.wake();
        }
    }

    /// Returns what the server's thread has to wait for.
    pub(crate) fn interest(&self) -> Interest {
        let limits = &self.links.limits;
        let mut state = self.lock();
        let full =
            state.inbox.len() >= limits.requests || state.inbox_bytes >= limits.request_bytes;
        state.reading_paused = full;
        Interest {
            read: !full,
            write: state.out.waiting() > 0,
            registered: state.registered,
            idle: state.inbox.is_empty()
                && !state.scheduled
                && !state.later
                && !state.blocked
                && state.out.waiting() == 0,
        }
    }

    /// Adds a request to the inbox. [`schedule`](Self::schedule) notifies the main thread.
    pub(crate) fn push(&self, message: Vec<u8>) {
        let mut state = self.lock();
        state.inbox_bytes += message.len();
        state.inbox.push_back(message);
    }

    /// Schedules the inbox on the main thread, unless it is scheduled or waits for something.
    pub(crate) fn schedule(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.scheduled || state.later || state.blocked {
            return;
        }
        state.scheduled = true;
        drop(state);
        if !(self.links.dispatch)(Job(self.clone())) {
            self.set_gone();
        }
    }

    /// Runs after a write: resumes requests that waited for it.
    pub(crate) fn unblock(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.blocked && state.out.waiting() <= self.links.limits.answers / 4 {
            state.blocked = false;
            drop(state);
            self.schedule();
        }
    }

    /// Runs when a late reply is there: resumes the requests that waited for it.
    pub(crate) fn answered(self: &Arc<Self>) {
        self.lock().later = false;
        self.flush();
        self.schedule();
    }

    /// Returns the next request, for the main thread.
    pub(crate) fn next(&self) -> Next {
        let limits = &self.links.limits;
        let mut state = self.lock();
        if state.later {
            state.scheduled = false;
            return Next::Nothing;
        }
        if state.out.waiting() >= limits.answers && !state.gone {
            (state.blocked, state.scheduled) = (true, false);
            drop(state);
            // The socket may have room by now, which would go unnoticed otherwise.
            self.links.waker.wake();
            return Next::Nothing;
        }
        match state.inbox.pop_front() {
            Some(message) => {
                state.inbox_bytes -= message.len();
                state.requests += 1;
                let resume = state.reading_paused
                    && state.inbox.len() <= limits.requests / 2
                    && state.inbox_bytes <= limits.request_bytes / 2;
                if resume {
                    state.reading_paused = false;
                    drop(state);
                    self.links.waker.wake();
                }
                Next::Request(message)
            }
            None => {
                state.scheduled = false;
                Next::Nothing
            }
        }
    }

    /// Sets whether the reply to the current request comes later. Before the handler runs, which
    /// may reply at once.
    pub(crate) fn set_later(&self, later: bool) {
        self.lock().later = later;
    }

    /// Yields the main thread for a while.
    pub(crate) fn reschedule(self: &Arc<Self>) {
        if !(self.links.dispatch)(Job(self.clone())) {
            self.set_gone();
        }
    }

    /// Blocks a dump until more output is read. Returns false if there is room.
    pub(crate) fn block(&self) -> bool {
        let mut state = self.lock();
        if state.gone || state.out.waiting() < self.links.limits.answers {
            return false;
        }
        (state.blocked, state.scheduled) = (true, false);
        drop(state);
        self.links.waker.wake();
        true
    }
}

/// Next entry of an inbox.
pub(crate) enum Next {
    Request(Vec<u8>),
    Nothing,
}
