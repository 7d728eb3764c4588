//! The way from what is to what shall be.

use crate::manager::{self, ConfigError, Manager};
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Execution, Output, Progress, Script, Task, TaskPoll};
use thalweg_config::declare::{Document, Plan, Step};
use thalweg_graph::Control;

/// How long the main thread may be kept before other work gets its turn.
const SLICE: Duration = Duration::from_millis(8);

/// What is done about a command that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All that was done is taken back.
    Whole,
    /// It is reported, and what does not need it goes on. For the start of the router, which shall
    /// do what it can.
    Best,
}

/// A configuration on its way.
pub struct Apply {
    /// What shall be.
    target: Document,
    /// What was.
    back: Document,
    steps: VecDeque<Step>,
    current: Option<(Step, Execution<Control>)>,
    mode: Mode,
    /// What went wrong; being here, the way goes back.
    broken: Option<String>,
    /// Keys of what could not be done.
    lost: HashSet<String>,
    done: usize,
    confirm: Option<Duration>,
    ended: bool,
}

impl Apply {
    /// Begins: plans the way to `target`. Nothing is changed yet.
    ///
    /// # Errors
    /// If another configuration is being applied.
    pub fn new(
        c: &mut Control,
        target: Document,
        mode: Mode,
        confirm: Option<Duration>,
    ) -> Result<Apply, ConfigError> {
        let back = manager::running(c)?;
        let steps = back.plan_to(&target).steps.into();
        let state = c.state::<Manager>();
        if std::mem::replace(&mut state.borrow_mut().busy, true) {
            return Err(ConfigError::Busy);
        }
        Ok(Apply {
            target,
            back,
            steps,
            current: None,
            mode,
            broken: None,
            lost: HashSet::new(),
            done: 0,
            confirm,
            ended: false,
        })
    }

    /// The commands that it will run.
    pub fn plan(&self) -> Plan {
        Plan { steps: self.steps.iter().cloned().collect() }
    }

    /// Goes on for a while.
    fn go(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        let end = Instant::now() + SLICE;
        loop {
            if Instant::now() >= end {
                return TaskPoll::At(now);
            }
            match self.one(c, now) {
                Ok(Some(at)) => return TaskPoll::At(at),
                Ok(None) if self.current.is_some() || !self.steps.is_empty() => {}
                Ok(None) => match self.end_of_way(c, out) {
                    Some(end) => return self.finish(c, end),
                    None => continue,
                },
                Err(failed) => self.fails(c, &failed.0, &failed.1),
            }
        }
    }

    /// One command, or a part of one. `Some`: it waits until then.
    fn one(
        &mut self,
        c: &mut Control,
        now: Instant,
    ) -> Result<Option<Instant>, Box<(Step, CliError)>> {
        let (step, mut execution) = match self.current.take() {
            Some(current) => current,
            None => {
                let Some(step) = self.steps.pop_front() else { return Ok(None) };
                if step.needs.iter().any(|n| self.lost.contains(n)) {
                    self.lost.insert(step.key.clone());
                    return Ok(None);
                }
                match Script::typed(step.command.clone()) {
                    Ok(script) => (step, Execution::new(script)),
                    Err(e) => return Err(Box::new((step, e))),
                }
            }
        };
        let tree = match manager::tree(c) {
            Ok(tree) => tree,
            Err(e) => return Err(Box::new((step, CliError::failed(e)))),
        };
        match execution.step(&tree, c, now, SLICE) {
            Progress::Running(at) => {
                self.current = Some((step, execution));
                Ok(Some(at))
            }
            Progress::Finished(Ok(_)) => {
                self.done += 1;
                Ok(None)
            }
            Progress::Finished(Err(e)) => Err(Box::new((step, e))),
        }
    }

    /// A command has failed.
    fn fails(&mut self, c: &mut Control, step: &Step, e: &CliError) {
        let wrong = match step.path.is_empty() {
            true => format!("`{}' failed: {e}", step.command),
            false => format!("{}: `{}' failed: {e}", step.path, step.command),
        };
        match (self.mode, &self.broken) {
            (Mode::Best, _) => {
                tracing::error!("configuration: {wrong}");
                self.lost.insert(step.key.clone());
            }
            // On the way back, as much as can be.
            (Mode::Whole, Some(_)) => tracing::error!("configuration: going back: {wrong}"),
            (Mode::Whole, None) => self.turn(c, wrong),
        }
    }

    /// Goes back.
    fn turn(&mut self, c: &mut Control, wrong: String) {
        self.broken = Some(wrong);
        self.steps = match manager::running(c) {
            Ok(now) => now.plan_to(&self.back).steps.into(),
            Err(e) => {
                tracing::error!("configuration: {e}");
                VecDeque::new()
            }
        };
    }

    /// All commands have run: is it as it shall be? `None`: there is more to do.
    fn end_of_way(&mut self, c: &mut Control, out: &mut Output) -> Option<Result<(), String>> {
        let goal = if self.broken.is_some() { &self.back } else { &self.target };
        let left = match manager::running(c) {
            Ok(now) => now.plan_to(goal),
            Err(e) => return Some(Err(e.to_string())),
        };
        let left = left.steps.first().map(|s| s.command.clone());
        match (&self.broken, left) {
            (Some(wrong), None) => {
                Some(Err(format!("{wrong}\nThe configuration is as it was before.")))
            }
            (Some(wrong), Some(left)) => Some(Err(format!(
                "{wrong}\nGoing back did not succeed wholly either (see the log): `{left}' is still \
                 to be done."
            ))),
            (None, Some(left)) if self.mode == Mode::Whole => {
                let wrong = format!("all commands succeeded, but `{left}' is still to be done");
                self.turn(c, wrong);
                None
            }
            (None, left) => {
                manager::set_notes(c, &self.target);
                if let Some(left) = left {
                    tracing::warn!(
                        "configuration: applied but for some; `{left}' is still to be done"
                    );
                }
                let (n, s) = (self.done, if self.done == 1 { "" } else { "s" });
                out.line(format_args!("applied and verified: {n} command{s}"));
                if let Some(after) = self.confirm {
                    manager::arm(c, std::mem::take(&mut self.back), after);
                    let seconds = after.as_secs();
                    out.line(format_args!(
                        "`config commit' within {seconds} s, or it is taken back"
                    ));
                }
                Some(Ok(()))
            }
        }
    }

    fn finish(&mut self, c: &mut Control, end: Result<(), String>) -> TaskPoll {
        self.ended = true;
        c.state::<Manager>().borrow_mut().busy = false;
        match end {
            Ok(()) => TaskPoll::Done,
            Err(text) => TaskPoll::Failed(CliError::failed(text)),
        }
    }
}

impl Task<Control> for Apply {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        self.go(c, now, out)
    }

    /// Nobody waits any more. A half of a configuration is none: what was done is taken back, in
    /// the background.
    fn cancel(&mut self, c: &mut Control, out: &mut Output) {
        if self.ended {
            return;
        }
        self.ended = true;
        if let Some((_, mut execution)) = self.current.take() {
            execution.cancel(c);
        }
        c.state::<Manager>().borrow_mut().busy = false;
        out.line("stopped; going back to what was");
        in_background(c, std::mem::take(&mut self.back), "stopped, going back");
    }
}

/// Applies a configuration while nobody waits; what happens is logged.
pub(crate) fn in_background(c: &mut Control, target: Document, why: &'static str) {
    match Apply::new(c, target, Mode::Best, None) {
        Ok(apply) => {
            drive(c, apply, Box::new(move |_| tracing::info!("configuration: {why}: done")))
        }
        Err(e) => tracing::error!("configuration: {why}: {e}"),
    }
}

type Then = Box<dyn FnOnce(&mut Control)>;

fn drive(c: &mut Control, mut apply: Apply, then: Then) {
    let mut out = Output::new();
    match apply.go(c, Instant::now(), &mut out) {
        TaskPoll::At(at) => {
            let wait = at.saturating_duration_since(Instant::now());
            c.after(wait, move |c| drive(c, apply, then));
        }
        TaskPoll::Done => then(c),
        TaskPoll::Failed(e) => {
            tracing::error!("configuration: {e}");
            then(c);
        }
    }
}

/// Applies a configuration as the router starts: what can be done is done, the rest is logged.
/// `then` runs when it is over.
pub fn apply_at_start(
    c: &mut Control,
    target: Document,
    then: impl FnOnce(&mut Control) + 'static,
) {
    match Apply::new(c, target, Mode::Best, None) {
        Ok(apply) => drive(c, apply, Box::new(then)),
        Err(e) => {
            tracing::error!("configuration: {e}");
            then(c);
        }
    }
}
