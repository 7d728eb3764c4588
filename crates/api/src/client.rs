//! A client's connection, as the server's thread and the main thread share it.

use crate::hub::Job;
use crate::server::Limits;
use rustix::event::EventfdFlags;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A client's number, which no later client gets.
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
        // Full means that it is awake as it is.
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

/// What connects clients with the server's thread and the main thread.
pub(crate) struct Links {
    pub(crate) limits: Limits,
    pub(crate) waker: Waker,
    /// Hands a job to the main thread.
    pub(crate) dispatch: Box<dyn Fn(Job) -> bool + Send + Sync>,
}

/// Bytes that wait to be written.
#[derive(Debug, Default)]
struct Out {
    bytes: Vec<u8>,
    sent: usize,
}

impl Out {
    fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Gives room of what was sent back, before more is appended: now and then, as the rest has to move.
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
    /// Requests that wait, without framing.
    inbox: VecDeque<Vec<u8>>,
    inbox_bytes: usize,
    out: Out,
    /// A job for this client is under way to the main thread, or there.
    scheduled: bool,
    /// An answer comes later; requests wait for it.
    later: bool,
    /// Requests wait until more of `out` is written.
    blocked: bool,
    /// The server's thread reads on when told.
    reading_paused: bool,
    /// It is to be disconnected for this reason, an empty one for none to tell.
    close: Option<String>,
    /// It sends nothing more: once all is answered, it can go.
    ended: bool,
    /// No more of `out` is read.
    gone: bool,
    requests: u64,
    events: u64,
    complaints: u32,
}

/// What the server's thread is to do with a client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) registered: bool,
    /// Nothing is left to do for it.
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

    /// A client that nobody is: it reads no answers.
    pub(crate) fn nobody() -> io::Result<Self> {
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
        // The state is whole at every point where a panic could happen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> ClientId {
        self.id
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Its name, requests, events, and bytes that wait.
    pub(crate) fn info(&self) -> (String, u64, u64, usize) {
        let state = self.lock();
        (state.name.clone(), state.requests, state.events, state.out.waiting())
    }

    /// How logs call it.
    pub(crate) fn label(&self) -> String {
        match self.lock().name.as_str() {
            "" => format!("API client {:#x}", self.id.0),
            name => format!("API client `{name}`"),
        }
    }

    /// Logs what is wrong with a request, which is ignored; of many, the first ones.
    pub(crate) fn complain(&self, what: impl fmt::Display) {
        const FIRST: u32 = 10;
        let label = self.label();
        let mut state = self.lock();
        state.complaints = state.complaints.saturating_add(1);
        match state.complaints {
            ..=FIRST => tracing::warn!("{label}: {what}; ignored"),
            n if n == FIRST + 1 => tracing::warn!("{label} sends more that is ignored"),
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

    /// Whether so much waits to be written that more answers should wait, or nobody is there to
    /// read any.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.gone || state.out.waiting() >= self.links.limits.answers
    }

    /// Disconnects it once what waits is written, or at once if there is a reason to tell.
    pub(crate) fn close(&self, reason: String) {
        let mut state = self.lock();
        state.close.get_or_insert(reason);
        drop(state);
        self.links.waker.wake();
    }

    pub(crate) fn closing(&self) -> Option<String> {
        self.lock().close.clone()
    }

    /// Marks the end; nothing is written from now on.
    pub(crate) fn set_gone(&self) {
        let mut state = self.lock();
        state.gone = true;
        state.out = Out::default();
        state.blocked = false;
    }

    /// Appends an answer.
    pub(crate) fn answer(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        if !state.gone {
            state.out.settle();
            encode(&mut state.out.bytes);
        }
    }

    /// Appends a great answer, which is encoded already; without a copy, if nothing else waits.
    pub(crate) fn answer_encoded(&self, answer: Vec<u8>) {
        let mut state = self.lock();
        if state.out.waiting() == 0 && !state.gone {
            state.out = Out { bytes: answer, sent: 0 };
            return;
        }
        drop(state);
        self.answer(|out| out.extend_from_slice(&answer));
    }

    /// Appends an event. False if too much waits already, or it is gone.
    pub(crate) fn event(&self, encode: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.lock();
        if state.gone || state.close.is_some() {
            return false;
        }
        let waiting = state.out.waiting();
        if waiting >= self.links.limits.events {
            drop(state);
            self.close(format!("it does not read: {waiting} bytes of events and answers wait"));
            return false;
        }
        state.events += 1;
        state.out.settle();
        encode(&mut state.out.bytes);
        drop(state);
        self.flush();
        true
    }

    /// Writes what the socket takes; the server's thread does the rest.
    pub(crate) fn flush(&self) {
        if !self.write() {
            self.links.waker.wake();
        }
    }

    /// Writes what the socket takes. True if nothing waits then.
    pub(crate) fn write(&self) -> bool {
        let mut state = self.lock();
        loop {
            let Out { bytes, sent } = &mut state.out;
            if *sent == bytes.len() {
                bytes.clear();
                *sent = 0;
                // A big answer's room is not kept.
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

    /// Notes that nothing more will come.
    pub(crate) fn set_ended(&self) {
        self.lock().ended = true;
    }

    /// After its requests were looked at: lets a client go that has sent its last.
    pub(crate) fn rest(self: &Arc<Self>) {
        self.flush();
        self.unblock();
        if self.lock().ended {
            self.links.waker.wake();
        }
    }

    /// What the server's thread is to wait for.
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

    /// Puts a request into the inbox. The main thread hears of it by [`schedule`](Self::schedule).
    pub(crate) fn push(&self, message: Vec<u8>) {
        let mut state = self.lock();
        state.inbox_bytes += message.len();
        state.inbox.push_back(message);
    }

    /// Has the main thread look at the inbox, unless it does or waits for something.
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

    /// After something was written: lets requests go on that waited for it.
    pub(crate) fn unblock(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.blocked && state.out.waiting() <= self.links.limits.answers / 4 {
            state.blocked = false;
            drop(state);
            self.schedule();
        }
    }

    /// The answer that requests waited for is there.
    pub(crate) fn answered(self: &Arc<Self>) {
        self.lock().later = false;
        self.flush();
        self.schedule();
    }

    /// The next request, for the main thread.
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
            // The socket may have room by now, and then nobody else would notice.
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

    /// Says that the answer to the request in hand comes later. Before the handler runs, which may
    /// answer at once.
    pub(crate) fn set_later(&self, later: bool) {
        self.lock().later = later;
    }

    /// Gives up the main thread for a while.
    pub(crate) fn reschedule(self: &Arc<Self>) {
        if !(self.links.dispatch)(Job(self.clone())) {
            self.set_gone();
        }
    }

    /// Parks a dump until more of it is read. False if there is room.
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

/// What the main thread finds in an inbox.
pub(crate) enum Next {
    Request(Vec<u8>),
    Nothing,
}
