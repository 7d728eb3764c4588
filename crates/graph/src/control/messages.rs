//! Messages and calls from the main thread to workers.

use super::Control;
use crate::decl::NodeId;
use crate::mailbox::{Inject, ToWorker};
use crate::worker::Core;
use std::any::Any;
use std::sync::mpsc;
use std::time::{Duration, Instant};

impl Control {
    pub(super) fn send(&mut self, worker: usize, m: ToWorker) {
        let w = &mut self.workers[worker];
        if !w.waiting.is_empty() {
            w.waiting.push_back(m);
        } else if let Err(rtrb::PushError::Full(m)) = w.inbox.push(m) {
            w.waiting.push_back(m);
        }
        w.waker.wake();
    }

    /// Sends a message to a node on one worker.
    pub fn message(&mut self, worker: usize, node: NodeId, message: Box<dyn Any + Send>) {
        self.send(worker, ToWorker::Node { node, message });
    }

    /// Sends a message to a node on all workers; `make` builds it for each.
    pub fn message_all(
        &mut self,
        node: NodeId,
        mut make: impl FnMut(usize) -> Box<dyn Any + Send>,
    ) {
        for w in 0..self.workers.len() {
            self.message(w, node, make(w));
        }
    }

    /// Sends a packet into the graph through a worker.
    pub fn inject(&mut self, worker: usize, inject: Inject) {
        self.send(worker, ToWorker::Inject(inject));
    }

    /// Runs `f` on every worker between two loops and waits for the results (a second at most;
    /// `None` for a worker that did not respond).
    pub fn ask<R: Send + 'static>(
        &mut self,
        f: impl Fn(&mut Core) -> R + Clone + Send + 'static,
    ) -> Vec<Option<R>> {
        let mut answers = Vec::new();
        for w in 0..self.workers.len() {
            let (tx, rx) = mpsc::sync_channel(1);
            let f = f.clone();
            let call = move |core: &mut Core| {
                let _ = tx.send(f(core));
            };
            self.send(w, ToWorker::Call(Box::new(call)));
            answers.push(rx);
        }
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut answer = |rx: mpsc::Receiver<R>| loop {
            // The overflow on our side is sent only when we push it.
            let more = self.flush();
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = if more { left.min(Duration::from_micros(200)) } else { left };
            match rx.recv_timeout(wait) {
                Ok(r) => return Some(r),
                Err(mpsc::RecvTimeoutError::Timeout) if more && wait < left => {}
                Err(_) => return None,
            }
        };
        answers.into_iter().map(&mut answer).collect()
    }

    /// Moves messages that found a worker's ring full into it as room allows. Returns true if some
    /// are left.
    pub(super) fn flush(&mut self) -> bool {
        let mut left = false;
        for w in &mut self.workers {
            if w.waiting.is_empty() {
                continue;
            }
            while let Some(m) = w.waiting.pop_front() {
                if let Err(rtrb::PushError::Full(m)) = w.inbox.push(m) {
                    w.waiting.push_front(m);
                    left = true;
                    break;
                }
            }
            w.waker.wake();
        }
        left
    }

    /// Waits until every worker has processed all messages sent to it before.
    ///
    /// After a second call, packets that were sent to workers before the first have been through
    /// the graph.
    pub fn sync(&mut self) {
        self.ask(|_| ());
    }
}
