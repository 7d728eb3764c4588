//! Jobs: how commands reach the main thread and how replies come back.
//!
//! A session (or the binary API) makes a [`CliJob`] and submits it by its [`Dispatch`]. The main
//! loop passes it to [`MainCli::handle`], and calls [`MainCli::poll_tasks`] when the deadline that
//! it returned has come or any job arrives. Replies go to the job's [`ReplySink`], which never
//! blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::complete::Completion;
use crate::error::CliError;
use crate::exec::{End, Execution, Progress};
use crate::script::Script;
use crate::tree::CommandTree;

/// Maximum time that long scripts, all of them together, may keep the main thread before other work
/// gets its turn.
const SLICE: Duration = Duration::from_millis(3);
/// Pause of a job whose output is not taken as fast as it comes.
const REST: Duration = Duration::from_millis(5);
/// Maximum number of running jobs.
const MAX_RUNNING: usize = 256;

/// A request to the main thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run these commands, up to the first that fails.
    Run {
        /// One or more commands.
        line: String,
    },
    /// Complete the word at the cursor.
    Complete {
        /// The line as typed so far.
        line: String,
        /// The cursor, as a byte offset.
        cursor: usize,
        /// True for `?`, which also shows grammars; false for the tab key.
        help: bool,
    },
    /// Only check the running jobs: one was cancelled.
    Wake,
}

/// A request with its reply sink.
pub struct CliJob {
    /// The request.
    pub request: Request,
    /// Receives the reply.
    pub reply: Box<dyn ReplySink>,
    /// Cancels the job if its client is gone.
    pub cancel: Cancel,
}

impl CliJob {
    /// Creates a job whose reply goes to `reply`.
    pub fn new(request: Request, reply: impl ReplySink + 'static) -> Self {
        Self { request, reply: Box::new(reply), cancel: Cancel::default() }
    }
}

/// A flag that a session sets when its user presses Ctrl-C or goes away.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Requests the end of the job. The main thread notices at its next
    /// [`poll_tasks`](MainCli::poll_tasks); submit [`Request::Wake`] to have one soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns true if the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Output of a command that continues over time.
    Text(String),
    /// The remaining output, including error text, and how it ended. Nothing follows.
    Done {
        /// Output, lines ended by `\n`.
        text: String,
        /// Result.
        status: Status,
    },
    /// The reply to [`Request::Complete`]. Nothing follows.
    Completions(Vec<Completion>),
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Every command succeeded.
    Ok,
    /// A command failed, with this return code (negative, as VPP numbers them).
    Failed(i32),
    /// The user cancelled it.
    Cancelled,
    /// The session must end.
    Quit,
}

/// The receiver is gone (or does not keep up).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct Gone;

/// Receives the reply to one request. Must not block: it is called on the main thread.
pub trait ReplySink: Send {
    /// Receives one piece.
    ///
    /// # Errors
    /// [`Gone`] if nothing will read it: the job is then cancelled.
    fn send(&mut self, reply: Reply) -> Result<(), Gone>;

    /// Returns true if more output can be taken now. Otherwise the main thread pauses the job.
    fn is_ready(&self) -> bool {
        true
    }
}

impl<F: FnMut(Reply) -> Result<(), Gone> + Send> ReplySink for F {
    fn send(&mut self, reply: Reply) -> Result<(), Gone> {
        self(reply)
    }
}

/// Submits jobs to the main thread. Also implemented for closures (which can wake an event loop
/// after they queued the job) and for [`mpsc::Sender`].
pub trait Dispatch: Clone + Send + 'static {
    /// Submits a job without waiting for it.
    ///
    /// # Errors
    /// [`Gone`] if the main thread has ended.
    fn submit(&self, job: CliJob) -> Result<(), Gone>;
}

impl<F: Fn(CliJob) -> Result<(), Gone> + Clone + Send + 'static> Dispatch for F {
    fn submit(&self, job: CliJob) -> Result<(), Gone> {
        self(job)
    }
}

impl Dispatch for mpsc::Sender<CliJob> {
    fn submit(&self, job: CliJob) -> Result<(), Gone> {
        self.send(job).map_err(|_| Gone)
    }
}

/// The main thread's side: the commands, and the running jobs.
pub struct MainCli<C: 'static> {
    tree: CommandTree<C>,
    running: Vec<Running<C>>,
}

struct Running<C: 'static> {
    execution: Execution<C>,
    reply: Box<dyn ReplySink>,
    cancel: Cancel,
    at: Instant,
}

impl<C: 'static> MainCli<C> {
    /// Creates the main thread's side for the commands of `tree`.
    pub fn new(tree: CommandTree<C>) -> Self {
        Self { tree, running: Vec::new() }
    }

    /// Returns the commands.
    pub fn tree(&self) -> &CommandTree<C> {
        &self.tree
    }

    /// Returns the number of running jobs.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Handles a job, or starts to. A job that is not finished continues in
    /// [`poll_tasks`](Self::poll_tasks), which must be called soon after.
    pub fn handle(&mut self, cx: &mut C, job: CliJob) {
        let CliJob { request, mut reply, cancel } = job;
        match request {
            Request::Wake => {}
            Request::Complete { line, cursor, help } => {
                let words = match help {
                    true => self.tree.help_at(cx, &line, cursor),
                    false => self.tree.complete(cx, &line, cursor),
                };
                // The client may be gone: nothing is lost.
                let _ = reply.send(Reply::Completions(words));
            }
            Request::Run { line } => {
                let script = match Script::typed(line) {
                    Ok(_) if self.running.len() >= MAX_RUNNING => Err(CliError::failed(
                        format_args!("{MAX_RUNNING} commands are running; try again later"),
                    )),
                    other => other,
                };
                match script {
                    Ok(script) => {
                        let execution = Execution::new(script);
                        let at = Instant::now();
                        let mut job = Running { execution, reply, cancel, at };
                        if job.go(&self.tree, cx, at) {
                            self.running.push(job);
                        }
                    }
                    Err(error) => {
                        let (text, status) = (format!("{error}\n"), Status::Failed(error.code()));
                        let _ = reply.send(Reply::Done { text, status });
                    }
                }
            }
        }
    }

    /// Continues due jobs for some milliseconds, and ends those that were cancelled; those whose
    /// turn did not come are the first next time. Returns the latest time of the next call; `None`
    /// if no job is running.
    pub fn poll_tasks(&mut self, cx: &mut C, now: Instant) -> Option<Instant> {
        let tree = &self.tree;
        let began = Instant::now();
        // Position of the first job that has to wait, among those that are left.
        let (mut left, mut waits) = (0, None);
        self.running.retain_mut(|job| {
            let stays = if job.cancel.is_cancelled() {
                job.stop(cx);
                false
            } else if job.at > now {
                true
            } else if waits.is_some() || began.elapsed() >= SLICE {
                waits.get_or_insert(left);
                true
            } else {
                job.go(tree, cx, now)
            };
            left += usize::from(stays);
            stays
        });
        self.running.rotate_left(waits.unwrap_or(0));
        self.running.iter().map(|job| job.at).min()
    }

    /// Ends all running jobs, e.g. before the process exits.
    pub fn cancel_all(&mut self, cx: &mut C) {
        for mut job in self.running.drain(..) {
            job.stop(cx);
        }
    }
}

impl<C: 'static> Running<C> {
    /// Does one step; returns false once the job is finished.
    fn go(&mut self, tree: &CommandTree<C>, cx: &mut C, now: Instant) -> bool {
        if !self.reply.is_ready() {
            self.at = now + REST;
            return true;
        }
        let progress = self.execution.step(tree, cx, now, SLICE);
        let mut text = self.execution.take_output();
        let status = match progress {
            Progress::Running(at) => {
                self.at = at;
                if !text.is_empty() && self.reply.send(Reply::Text(text)).is_err() {
                    self.execution.cancel(cx);
                    return false;
                }
                return true;
            }
            Progress::Finished(Ok(End::Done)) => Status::Ok,
            Progress::Finished(Ok(End::Quit)) => Status::Quit,
            Progress::Finished(Err(error)) => {
                text.push_str(&error.to_string());
                text.push('\n');
                Status::Failed(error.code())
            }
        };
        let _ = self.reply.send(Reply::Done { text, status });
        false
    }

    fn stop(&mut self, cx: &mut C) {
        self.execution.cancel(cx);
        let text = self.execution.take_output();
        let _ = self.reply.send(Reply::Done { text, status: Status::Cancelled });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestCx, tree};

    fn submit(
        main: &mut MainCli<TestCx>,
        cx: &mut TestCx,
        line: &str,
    ) -> (mpsc::Receiver<Reply>, Cancel) {
        let (tx, rx) = mpsc::channel();
        let sink = move |reply| tx.send(reply).map_err(|_| Gone);
        let job = CliJob::new(Request::Run { line: line.to_owned() }, sink);
        let cancel = job.cancel.clone();
        main.handle(cx, job);
        (rx, cancel)
    }

    fn done(text: &str, status: Status) -> Reply {
        Reply::Done { text: text.to_owned(), status }
    }

    #[test]
    fn a_task_streams_and_the_rest_follows_it() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        let (rx, _) = submit(&mut main, &mut cx, "echo a\nticks 2\necho b");
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [Reply::Text("a\ntick 1\n".to_owned())]);
        let at = main.poll_tasks(&mut cx, Instant::now()).unwrap();
        assert!(at > Instant::now() && rx.try_recv().is_err());
        main.poll_tasks(&mut cx, at);
        assert_eq!(rx.try_recv().unwrap(), done("tick 2\nb\n", Status::Ok));
        assert_eq!((main.running(), main.poll_tasks(&mut cx, at)), (0, None));
    }

    #[test]
    fn cancelling_and_going_away_end_a_task() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        let (rx, cancel) = submit(&mut main, &mut cx, "ticks 1000");
        cancel.cancel();
        main.handle(&mut cx, CliJob::new(Request::Wake, |_| Ok(())));
        assert_eq!(main.poll_tasks(&mut cx, Instant::now()), None);
        assert_eq!(rx.try_iter().last().unwrap(), done("stopped\n", Status::Cancelled));
        assert_eq!(cx.cancelled, 1);

        let (rx, _) = submit(&mut main, &mut cx, "ticks 1000");
        let at = main.poll_tasks(&mut cx, Instant::now()).unwrap();
        drop(rx);
        assert_eq!(main.poll_tasks(&mut cx, at), None);
        assert_eq!(cx.cancelled, 2);

        let (_rx, _) = submit(&mut main, &mut cx, "wait 1000");
        main.cancel_all(&mut cx);
        assert_eq!(main.running(), 0);
    }

    #[test]
    fn failures_carry_text_and_code() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        let (rx, _) = submit(&mut main, &mut cx, "echo a\nfail -81\necho b");
        assert_eq!(rx.try_recv().unwrap(), done("a\nfail: as asked\n", Status::Failed(-81)));
        let (rx, _) = submit(&mut main, &mut cx, "  ");
        assert!(matches!(rx.try_recv().unwrap(), Reply::Done { status: Status::Failed(-1), .. }));
        let (rx, _) = submit(&mut main, &mut cx, "quit\necho b");
        assert_eq!(rx.try_recv().unwrap(), done("", Status::Quit));
    }

    #[test]
    fn a_long_script_is_cut_into_slices() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        let (rx, _) = submit(&mut main, &mut cx, &"spin\n".repeat(30));
        assert_eq!(main.running(), 1);
        let mut turns = 0;
        while main.poll_tasks(&mut cx, Instant::now()).is_some() {
            turns += 1;
        }
        assert!(turns >= 1, "{turns}");
        assert!(rx.try_iter().any(|r| r == done("", Status::Ok)));
    }

    #[test]
    fn many_long_scripts_take_turns() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        let all: Vec<_> =
            (0..8).map(|_| submit(&mut main, &mut cx, &"spin\n".repeat(20))).collect();
        assert_eq!(main.running(), 8);
        // A call continues one or two: the others are the first in the next calls.
        let mut calls = 0;
        while main.poll_tasks(&mut cx, Instant::now()).is_some() {
            calls += 1;
        }
        assert!(calls >= 8, "{calls}");
        for (rx, _) in &all {
            assert!(rx.try_iter().any(|r| r == done("", Status::Ok)));
        }
        // One that pauses loses nothing by it, and one that was cancelled ends at once.
        let (_rest, _) = submit(&mut main, &mut cx, "wait 1000");
        let (_a, _) = submit(&mut main, &mut cx, &"spin\n".repeat(50));
        let (b, cancel) = submit(&mut main, &mut cx, &"spin\n".repeat(50));
        cancel.cancel();
        main.poll_tasks(&mut cx, Instant::now());
        assert_eq!(b.try_iter().last(), Some(done("", Status::Cancelled)));
        assert_eq!(main.running(), 2);
    }

    #[test]
    fn too_many_jobs_are_refused() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        let waiting: Vec<_> =
            (0..MAX_RUNNING).map(|_| submit(&mut main, &mut cx, "wait 1000")).collect();
        let (rx, _) = submit(&mut main, &mut cx, "echo a");
        let Reply::Done { text, status: Status::Failed(-1) } = rx.try_recv().unwrap() else {
            panic!()
        };
        assert!(text.contains("try again later"), "{text}");
        drop(waiting);
    }

    #[test]
    fn completions_are_answered() {
        let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
        for (help, want) in [(false, "show"), (true, "show")] {
            let (tx, rx) = mpsc::channel();
            let request = Request::Complete { line: "sho".to_owned(), cursor: 3, help };
            main.handle(&mut cx, CliJob::new(request, move |r| tx.send(r).map_err(|_| Gone)));
            let Reply::Completions(words) = rx.try_recv().unwrap() else { panic!() };
            assert_eq!(words[0].word, want);
        }
    }
}
