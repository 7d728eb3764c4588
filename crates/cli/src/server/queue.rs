//! Replies from the main thread to a session.
//!
//! The main thread never waits here: it puts replies in a bounded queue and writes a byte to a
//! non-blocking socket that the session polls together with its client.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::job::{Gone, Reply, ReplySink, Status};

/// Maximum of streamed text that waits for a slow client, in bytes. A single piece may be larger:
/// it exists already.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// Waiting output at which the main thread pauses the job, in bytes.
const REST_BYTES: usize = 256 * 1024;

/// The session's end.
#[derive(Debug)]
pub(crate) struct Answers {
    shared: Arc<Shared>,
    wake: UnixStream,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: UnixStream,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Reply>,
    bytes: usize,
    overflow: bool,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent wherever a panic could happen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // A full socket contains wake-ups enough.
        let _ = (&self.wake).write(&[1]);
    }
}

impl Answers {
    pub(crate) fn new() -> io::Result<Self> {
        let (wake, far) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        let shared = Arc::new(Shared { state: Mutex::default(), wake: far });
        Ok(Self { shared, wake })
    }

    /// Returns the sink for one job.
    pub(crate) fn sink(&self) -> Sink {
        Sink { shared: Arc::clone(&self.shared), finished: false }
    }

    /// Clears earlier wake-ups; to be called before reading the queue.
    pub(crate) fn clear_wake(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(n) if n > 0) {}
    }

    pub(crate) fn take(&self) -> Option<Reply> {
        let mut state = self.shared.lock();
        let reply = state.queue.pop_front()?;
        if let Reply::Text(text) = &reply {
            state.bytes -= text.len();
        }
        Some(reply)
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.shared.lock().queue.is_empty()
    }

    /// Returns true if the main thread dropped output because this session does not keep up.
    pub(crate) fn overflowed(&self) -> bool {
        self.shared.lock().overflow
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.queue.clear();
    }
}

impl AsFd for Answers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// The main thread's end, for one job.
#[derive(Debug)]
pub(crate) struct Sink {
    shared: Arc<Shared>,
    finished: bool,
}

impl ReplySink for Sink {
    fn send(&mut self, reply: Reply) -> Result<(), Gone> {
        let mut state = self.shared.lock();
        if state.closed || state.overflow {
            return Err(Gone);
        }
        match &reply {
            Reply::Text(_) if state.bytes > MAX_WAITING_BYTES => {
                state.overflow = true;
                self.shared.wake();
                return Err(Gone);
            }
            Reply::Text(text) => state.bytes += text.len(),
            Reply::Done { .. } | Reply::Completions(_) => self.finished = true,
        }
        state.queue.push_back(reply);
        self.shared.wake();
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let state = self.shared.lock();
        // A session that is gone must be sent something to find out.
        state.closed || state.overflow || state.bytes < REST_BYTES
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.finished {
            // The main thread dropped the job: a session must not wait endlessly.
            let text = "the command was dropped\n".to_owned();
            let _ = self.send(Reply::Done { text, status: Status::Failed(-1) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(len: usize) -> Reply {
        Reply::Text("x".repeat(len))
    }

    #[test]
    fn a_reader_that_does_not_keep_up_is_given_up() {
        let answers = Answers::new().unwrap();
        let mut sink = answers.sink();
        let mut sent = 0;
        while sink.send(text(64 * 1024)).is_ok() {
            sent += 64 * 1024;
        }
        assert!((MAX_WAITING_BYTES..MAX_WAITING_BYTES + 128 * 1024).contains(&sent));
        assert!(answers.overflowed());
        // One large piece is taken if nothing else waits.
        let answers = Answers::new().unwrap();
        assert!(answers.sink().send(text(2 * MAX_WAITING_BYTES)).is_ok());
        assert_eq!(answers.take(), Some(text(2 * MAX_WAITING_BYTES)));
    }

    #[test]
    fn either_end_notices_that_the_other_is_gone() {
        let answers = Answers::new().unwrap();
        drop(answers.sink());
        assert!(matches!(answers.take(), Some(Reply::Done { status: Status::Failed(-1), .. })));
        let mut sink = answers.sink();
        drop(answers);
        assert_eq!(sink.send(text(1)), Err(Gone));
    }
}
