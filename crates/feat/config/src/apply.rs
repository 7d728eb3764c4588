//! Applies a document: plan, run, verify, roll back.

use crate::cli_support::Shown;
use crate::manager::{self, ConfigError, Manager, Note, failed};
use crate::work::{self, REST, SLICE, Source, Work};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Execution, Format, Outcome, Output, Progress, Script, Task, TaskPoll};
use thalweg_config::declare::{Catalog, Document, Plan, Step};
use thalweg_graph::Control;

/// What to do if a command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Roll back everything.
    AllOrNothing,
    /// Log the failure, and continue with everything that does not depend on it. Used at startup,
    /// when the router does what it can.
    BestEffort,
}

/// Target of an application.
struct Target {
    /// Desired configuration.
    document: Arc<Document>,
    /// Comments of the document.
    notes: Vec<Note>,
    /// Configuration before.
    previous: Arc<Document>,
}

/// Target, plan, and its output.
type Planned = (Target, Plan, Shown);

/// Phase of an application.
enum Phase {
    /// Computing the commands to run.
    Planning(Work<Planned>),
    /// Running the commands.
    Running,
    /// A command failed: computing the commands that roll back.
    PlanningRollback(Work<Plan>),
    /// All commands have run: replanning, which should yield no steps.
    Verifying(Work<Option<String>>),
}

/// A configuration being applied.
pub struct Apply {
    phase: Phase,
    /// Known once planned.
    target: Option<Target>,
    steps: VecDeque<Step>,
    current: Option<(Step, Execution<Control>)>,
    mode: Mode,
    /// The first failure; if set, the application is rolling back.
    failure: Option<String>,
    /// Keys of items that could not be applied.
    lost: HashSet<String>,
    done: usize,
    /// Something could not be applied.
    is_incomplete: bool,
    confirm: Option<Duration>,
    ended: bool,
}

impl Apply {
    /// Starts planning. Nothing is changed yet.
    ///
    /// # Errors
    /// If another configuration is being applied.
    fn new(
        c: &mut Control,
        target: Source,
        mode: Mode,
        confirm: Option<Duration>,
        format: Format,
    ) -> Result<Apply, ConfigError> {
        let source = target.clone();
        let job = move |catalog: &Catalog<Control>, running: Document| {
            let document = target.read(catalog)?;
            let plan = running.plan_to(&document);
            let shown = Shown::plan(&plan, format);
            let notes = document.notes();
            Ok((Target { document, notes, previous: Arc::new(running) }, plan, shown))
        };
        let work = Work::start(c, Some(&source), job)?;
        let state = c.state::<Manager>();
        if std::mem::replace(&mut state.borrow_mut().busy, true) {
            return Err(ConfigError::Busy);
        }
        Ok(Apply {
            phase: Phase::Planning(work),
            target: None,
            steps: VecDeque::new(),
            current: None,
            mode,
            failure: None,
            lost: HashSet::new(),
            done: 0,
            is_incomplete: false,
            confirm,
            ended: false,
        })
    }

    /// Starts as a command: the plan is shown before it runs.
    ///
    /// # Errors
    /// If another configuration is being applied, or a short document has errors.
    pub(crate) fn begin(
        c: &mut Control,
        target: Source,
        confirm: Option<Duration>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut apply =
            Apply::new(c, target, Mode::AllOrNothing, confirm, out.format()).map_err(failed)?;
        if let Phase::Planning(work) = &mut apply.phase {
            match work.poll(c, Instant::now() + SLICE) {
                None => {}
                Some(Ok(planned)) => apply.planned(planned, out),
                Some(Err(e)) => {
                    apply.end(c);
                    return Err(failed(e));
                }
            }
        }
        Ok(Outcome::pending(apply))
    }

    fn planned(&mut self, (target, plan, shown): Planned, out: &mut Output) {
        shown.show(out);
        if plan.is_empty() {
            out.line("nothing to do");
        }
        self.target = Some(target);
        self.steps = plan.steps.into();
        self.phase = Phase::Running;
    }

    /// Runs for a time slice.
    fn advance(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        let end = Instant::now() + SLICE;
        loop {
            if Instant::now() >= end {
                return TaskPoll::At(now);
            }
            let rest = TaskPoll::At(Instant::now() + REST);
            match &mut self.phase {
                Phase::Planning(work) => match work.poll(c, end) {
                    None => return rest,
                    Some(Ok(planned)) => self.planned(planned, out),
                    Some(Err(e)) => return self.finish(c, Err(failed(e))),
                },
                Phase::PlanningRollback(work) => match work.poll(c, end) {
                    None => return rest,
                    Some(plan) => self.rollback_planned(plan),
                },
                Phase::Verifying(work) => match work.poll(c, end) {
                    None => return rest,
                    Some(Ok(left)) => {
                        if let Some(end) = self.verified(c, left, out) {
                            return self.finish(c, end);
                        }
                    }
                    // What cannot be verified does not stay.
                    Some(Err(e)) if self.mode == Mode::AllOrNothing && self.failure.is_none() => {
                        self.roll_back(c, format!("cannot verify: {e}"));
                    }
                    Some(Err(e)) => return self.finish(c, Err(failed(e))),
                },
                Phase::Running => match self.one(c, now, end) {
                    Ok(Some(at)) => return TaskPoll::At(at),
                    Ok(None) if self.current.is_some() || !self.steps.is_empty() => {}
                    Ok(None) => match self.verify(c) {
                        Ok(work) => self.phase = Phase::Verifying(work),
                        Err(e) => return self.finish(c, Err(failed(e))),
                    },
                    Err(wrong) => self.command_failed(c, &wrong.0, &wrong.1),
                },
            }
        }
    }

    /// Runs one command, or part of one until `end`. `Some`: it waits until then.
    fn one(
        &mut self,
        c: &mut Control,
        now: Instant,
        end: Instant,
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
        match execution.step(&tree, c, now, end.saturating_duration_since(Instant::now())) {
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

    /// Handles a failed command.
    fn command_failed(&mut self, c: &mut Control, step: &Step, e: &CliError) {
        let wrong = match step.path.is_empty() {
            true => format!("`{}' failed: {e}", step.command),
            false => format!("{}: `{}' failed: {e}", step.path, step.command),
        };
        match (self.mode, &self.failure) {
            (Mode::BestEffort, _) => {
                tracing::error!("configuration: {wrong}");
                self.lost.insert(step.key.clone());
            }
            // A rollback continues with what is left.
            (Mode::AllOrNothing, Some(_)) => tracing::error!("configuration: rollback: {wrong}"),
            (Mode::AllOrNothing, None) => self.roll_back(c, wrong),
        }
    }

    /// Starts the rollback.
    fn roll_back(&mut self, c: &mut Control, wrong: String) {
        self.failure = Some(wrong);
        work::drop_in_background(std::mem::take(&mut self.steps));
        let Some(target) = &self.target else { return };
        let back = target.previous.clone();
        self.phase = match Work::start(c, None, move |_, now: Document| Ok(now.plan_to(&back))) {
            Ok(work) => Phase::PlanningRollback(work),
            Err(e) => {
                tracing::error!("configuration: {e}");
                Phase::Running
            }
        };
    }

    /// The commands that roll back are known.
    fn rollback_planned(&mut self, plan: Result<Plan, ConfigError>) {
        self.phase = Phase::Running;
        match plan {
            Ok(plan) => self.steps = plan.steps.into(),
            Err(e) => tracing::error!("configuration: {e}"),
        }
    }

    /// Starts verifying: replans, expecting no steps.
    fn verify(&self, c: &Control) -> Result<Work<Option<String>>, ConfigError> {
        let goal = self.target.as_ref().map(|target| match &self.failure {
            Some(_) => target.previous.clone(),
            None => target.document.clone(),
        });
        Work::start(c, None, move |_, now: Document| {
            let left = goal.map(|goal| now.plan_to(&goal));
            Ok(left.and_then(|plan| Some(plan.steps.first()?.command.clone())))
        })
    }

    /// Handles the result of verifying. `None`: there is more to do.
    fn verified(
        &mut self,
        c: &mut Control,
        left: Option<String>,
        out: &mut Output,
    ) -> Option<Result<(), CliError>> {
        let failed = |text: String| Some(Err(CliError::failed(text)));
        match (&self.failure, left) {
            (Some(wrong), None) => {
                failed(format!("{wrong}\nRolled back to the previous configuration."))
            }
            (Some(wrong), Some(left)) => failed(format!(
                "{wrong}\nThe rollback is incomplete (see the log): `{left}' is still missing."
            )),
            (None, Some(left)) if self.mode == Mode::AllOrNothing => {
                let wrong = format!("all commands succeeded, but `{left}' is still missing");
                self.roll_back(c, wrong);
                None
            }
            (None, left) => {
                if let Some(left) = left {
                    self.is_incomplete = true;
                    tracing::warn!(
                        "configuration: applied incompletely; `{left}' is still missing"
                    );
                }
                self.succeed(c, out);
                Some(Ok(()))
            }
        }
    }

    /// The configuration is applied and verified.
    fn succeed(&mut self, c: &mut Control, out: &mut Output) {
        let (n, s) = (self.done, if self.done == 1 { "" } else { "s" });
        out.line(format_args!("applied and verified: {n} command{s}"));
        let Some(mut target) = self.target.take() else { return };
        manager::set_notes(c, std::mem::take(&mut target.notes));
        if let Some(after) = self.confirm {
            manager::arm(c, target.previous.clone(), after);
            let seconds = after.as_secs();
            out.line(format_args!(
                "to keep it, run `config commit' within {seconds} s; otherwise it is rolled back"
            ));
        }
        work::drop_in_background(target);
    }

    fn end(&mut self, c: &Control) {
        // Both are large after a large change, and freeing them takes long.
        work::drop_in_background((self.target.take(), std::mem::take(&mut self.steps)));
        self.ended = true;
        c.state::<Manager>().borrow_mut().busy = false;
    }

    fn finish(&mut self, c: &mut Control, end: Result<(), CliError>) -> TaskPoll {
        self.end(c);
        match end {
            Ok(()) => TaskPoll::Done,
            Err(e) => TaskPoll::Failed(e),
        }
    }
}

impl Task<Control> for Apply {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        self.advance(c, now, out)
    }

    /// The command was cancelled. A partly applied configuration must not stay: it is rolled back
    /// in the background.
    fn cancel(&mut self, c: &mut Control, out: &mut Output) {
        if self.ended {
            return;
        }
        if let Some((_, mut execution)) = self.current.take() {
            execution.cancel(c);
        }
        let target = self.target.take();
        self.end(c);
        let Some(target) = target else {
            return out.line("stopped; nothing has changed");
        };
        out.line("stopped; rolling back to the previous configuration");
        in_background(c, target.previous, "rollback after stop", |_, _| {});
    }
}

/// Applies a configuration in the background; the outcome is logged, and passed to `then`.
pub(crate) fn in_background(
    c: &mut Control,
    target: Arc<Document>,
    why: &'static str,
    then: impl FnOnce(&mut Control, bool) + 'static,
) {
    match Apply::new(c, Source::Ready(target), Mode::BestEffort, None, Format::Text) {
        Ok(apply) => {
            let then = move |c: &mut Control, done: bool| {
                match done {
                    true => tracing::info!("configuration: {why}: done"),
                    false => tracing::error!("configuration: {why}: failed"),
                }
                then(c, done);
            };
            drive(c, apply, Box::new(then));
        }
        Err(e) => {
            tracing::error!("configuration: {why}: {e}");
            then(c, false);
        }
    }
}

/// What follows, and whether the configuration is applied.
type Then = Box<dyn FnOnce(&mut Control, bool)>;

fn drive(c: &mut Control, mut apply: Apply, then: Then) {
    let mut out = Output::new();
    match apply.advance(c, Instant::now(), &mut out) {
        TaskPoll::At(at) => {
            let wait = at.saturating_duration_since(Instant::now());
            c.after(wait, move |c| drive(c, apply, then));
        }
        TaskPoll::Done => then(c, !apply.is_incomplete),
        TaskPoll::Failed(e) => {
            tracing::error!("configuration: {e}");
            then(c, false);
        }
    }
}

/// Applies a configuration at startup: what fails is logged, the rest is applied. `then` runs at
/// the end.
pub fn apply_at_start(
    c: &mut Control,
    target: Document,
    then: impl FnOnce(&mut Control) + 'static,
) {
    match Apply::new(c, Source::Ready(Arc::new(target)), Mode::BestEffort, None, Format::Text) {
        Ok(apply) => drive(c, apply, Box::new(|c, _| then(c))),
        Err(e) => {
            tracing::error!("configuration: {e}");
            then(c);
        }
    }
}
