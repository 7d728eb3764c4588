//! Messages and calls from the main thread to workers.

use super::Control;
use crate::decl::NodeId;
use crate::mailbox::{Inject, ToWorker};
use crate::worker::Core;
use std::any::Any;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time after which a worker is taken not to respond.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// Time that [`Control::ask`] gives a worker that did not respond the last time.
const SILENT_TIME: Duration = Duration::from_millis(5);
/// Time for which [`Control::begin_asking`] waits for a worker. The main thread does other work in
/// the meantime, and on a busy machine a worker may get no processor for seconds.
const LATE_TIME: Duration = Duration::from_secs(10);

/// Time for which [`Asked::then`] waits at once. Workers usually answer within microseconds.
const AT_ONCE: Duration = Duration::from_millis(5);
/// Time between looks at answers that are late.
const REST: Duration = Duration::from_millis(2);

/// The result of one worker.
enum Answer<R> {
    /// Time until which it is waited for.
    Due(mpsc::Receiver<R>, Instant),
    /// `None` if the worker did not respond.
    Here(Option<R>),
}

/// Results of workers that may still be coming: see [`Control::begin_asking`].
pub struct Asked<R> {
    answers: Vec<Answer<R>>,
}

impl<R> Asked<R> {
    /// Waits up to `time` for the results: one per worker, `None` for one that did not respond
    /// in time. Returns `None` while some are due; to be called once more then.
    pub fn wait(&mut self, c: &mut Control, time: Duration) -> Option<Vec<Option<R>>> {
        let until = Instant::now() + time;
        for (worker, answer) in self.answers.iter_mut().enumerate() {
            while let Answer::Due(rx, deadline) = answer {
                let deadline = *deadline;
                // The overflow on our side is sent only when we push it.
                let more = c.flush();
                let now = Instant::now();
                let left = until.min(deadline).saturating_duration_since(now);
                let wait = if more { left.min(Duration::from_micros(200)) } else { left };
                match rx.recv_timeout(wait) {
                    Ok(result) => {
                        c.workers[worker].silent = false;
                        *answer = Answer::Here(Some(result));
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) if more && wait < left => {}
                    Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < deadline => {
                        return None;
                    }
                    Err(_) => {
                        c.workers[worker].silent = true;
                        *answer = Answer::Here(None);
                    }
                }
            }
        }
        let all = std::mem::take(&mut self.answers).into_iter().map(|answer| match answer {
            Answer::Here(result) => result,
            Answer::Due(..) => None,
        });
        Some(all.collect())
    }

    /// Calls `then` with the results: at once if they come at once, else in a later turn of the
    /// main thread, which does other work meanwhile.
    pub fn then(
        mut self,
        c: &mut Control,
        then: impl FnOnce(&mut Control, Vec<Option<R>>) + 'static,
    ) where
        R: 'static,
    {
        match self.wait(c, AT_ONCE) {
            Some(results) => then(c, results),
            None => {
                let mut then = Some(then);
                c.late.begun += 1;
                c.late.waiting.push(Box::new(move |c| {
                    let Some(results) = self.wait(c, Duration::ZERO) else { return false };
                    if let Some(then) = then.take() {
                        then(c, results);
                    }
                    true
                }));
                go_on_later(c);
            }
        }
    }
}

/// Continuations that wait for late workers.
#[derive(Default)]
pub(super) struct Late {
    waiting: Vec<Continuation>,
    /// Number that ever waited.
    begun: u64,
    /// True if the main loop will look at them.
    is_timed: bool,
}

/// Continues if the answers are there; returns whether they were.
type Continuation = Box<dyn FnMut(&mut Control) -> bool>;

fn go_on_later(c: &mut Control) {
    if !c.late.waiting.is_empty() && !std::mem::replace(&mut c.late.is_timed, true) {
        c.after(REST, |c| {
            c.late.is_timed = false;
            c.go_on();
            go_on_later(c);
        });
    }
}

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

    /// Runs `f` on every worker between two loops and waits for the results: a second at most,
    /// once, and then 5 ms until the worker responds again (`None` for one that did not). A command
    /// that can wait in other ways uses [`begin_asking`](Self::begin_asking): a worker without a
    /// processor keeps it waiting.
    pub fn ask<R: Send + 'static>(
        &mut self,
        f: impl Fn(&mut Core) -> R + Clone + Send + 'static,
    ) -> Vec<Option<R>> {
        let mut asked = self.asking(f, |silent| if silent { SILENT_TIME } else { ANSWER_TIME });
        loop {
            if let Some(answers) = asked.wait(self, ANSWER_TIME) {
                return answers;
            }
        }
    }

    /// Makes every worker run `f` between two loops; the results come later: within ten seconds, or
    /// a second if the worker did not respond the last time.
    pub fn begin_asking<R: Send + 'static>(
        &mut self,
        f: impl Fn(&mut Core) -> R + Clone + Send + 'static,
    ) -> Asked<R> {
        self.asking(f, |silent| if silent { ANSWER_TIME } else { LATE_TIME })
    }

    /// Calls `then` once every worker has processed all messages sent to it before, or does not
    /// respond: at once or in a later turn, as [`Asked::then`].
    pub fn when_synced(&mut self, then: impl FnOnce(&mut Control) + 'static) {
        self.begin_asking(|_| ()).then(self, |c, _| then(c));
    }

    /// Turns the main loop until nothing waits for late workers, and they have processed all
    /// messages: for tests, which look at once at what a command has done.
    pub fn finish_late(&mut self) {
        self.turn_until_none_is_late();
        // Continuations may have sent the last message: its worker may be between looking for
        // messages and taking packets in.
        self.when_synced(|_| ());
        self.turn_until_none_is_late();
    }

    fn turn_until_none_is_late(&mut self) {
        while !self.go_on() {
            self.run_once(Some(REST));
        }
    }

    /// Number of continuations that ever had to wait for late workers.
    pub fn begun_late(&self) -> u64 {
        self.late.begun
    }

    /// Continues those whose workers have answered. Returns whether none is left.
    pub fn go_on(&mut self) -> bool {
        // Work that these begin is looked at next time.
        let mut waiting = std::mem::take(&mut self.late.waiting);
        waiting.retain_mut(|go_on| !go_on(self));
        waiting.append(&mut self.late.waiting);
        self.late.waiting = waiting;
        self.late.waiting.is_empty()
    }

    fn asking<R: Send + 'static>(
        &mut self,
        f: impl Fn(&mut Core) -> R + Clone + Send + 'static,
        patience: impl Fn(bool) -> Duration,
    ) -> Asked<R> {
        let mut answers = Vec::new();
        for w in 0..self.workers.len() {
            let (tx, rx) = mpsc::sync_channel(1);
            let f = f.clone();
            let call = move |core: &mut Core| {
                let _ = tx.send(f(core));
            };
            self.send(w, ToWorker::Call(Box::new(call)));
            let deadline = Instant::now() + patience(self.workers[w].silent);
            answers.push(Answer::Due(rx, deadline));
        }
        Asked { answers }
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

    /// Waits until every worker has processed all messages sent to it before; returns false if one
    /// has not answered in time.
    ///
    /// After a second call, packets that were sent to workers before the first have been through
    /// the graph.
    pub fn sync(&mut self) -> bool {
        self.ask(|_| ()).iter().all(Option::is_some)
    }
}
