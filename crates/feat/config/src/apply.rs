//! The way from what is to what shall be.

use crate::cli_support::Shown;
use crate::manager::{self, ConfigError, Manager, Note, failed};
use crate::work::{self, REST, SLICE, Source, Work};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Execution, Format, Outcome, Output, Progress, Script, Task, TaskPoll};
use thalweg_config::declare::{Catalog, Document, Plan, Step};
use thalweg_graph::Control;

/// What is done about a command that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All that was done is taken back.
    AllOrNothing,
    /// It is reported, and what does not need it goes on. For the start of the router, which shall
    /// do what it can.
    BestEffort,
}

/// Where one is going.
struct Target {
    /// What shall be.
    document: Arc<Document>,
    /// Its notes for people.
    notes: Vec<Note>,
    /// What was.
    previous: Arc<Document>,
}

/// The way, its steps, and how they are shown.
type Planned = (Target, Plan, Shown);

/// What is being done.
enum Phase {
    /// It is found out which commands there are to run.
    Planning(Work<Planned>),
    /// Commands run.
    Running,
    /// One has failed: it is found out which commands lead back.
    PlanningRollback(Work<Plan>),
    /// All have run: it is looked whether it is as it shall be, or what is left.
    Verifying(Work<Option<String>>),
}

/// A configuration on its way.
pub struct Apply {
    phase: Phase,
    /// Known once it is planned.
    target: Option<Target>,
    steps: VecDeque<Step>,
    current: Option<(Step, Execution<Control>)>,
    mode: Mode,
    /// What went wrong; being here, the way goes back.
    failure: Option<String>,
    /// Keys of what could not be done.
    lost: HashSet<String>,
    done: usize,
    confirm: Option<Duration>,
    ended: bool,
}

impl Apply {
    /// Begins to find out the way to `target`. Nothing is changed yet.
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
            confirm,
            ended: false,
        })
    }

    /// As a command: what there is to do is shown before it is done.
    ///
    /// # Errors
    /// If another configuration is being applied, or the document is short and has mistakes.
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

    /// Goes on for a while.
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

    /// One command, or as much of one as may be done until `end`. `Some`: it waits until then.
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

    /// A command has failed.
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
            // On the way back, as much as can be.
            (Mode::AllOrNothing, Some(_)) => tracing::error!("configuration: going back: {wrong}"),
            (Mode::AllOrNothing, None) => self.roll_back(c, wrong),
        }
    }

    /// Goes back.
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

    /// It is known which commands lead back.
    fn rollback_planned(&mut self, plan: Result<Plan, ConfigError>) {
        self.phase = Phase::Running;
        match plan {
            Ok(plan) => self.steps = plan.steps.into(),
            Err(e) => tracing::error!("configuration: {e}"),
        }
    }

    /// All commands have run: begins to look whether it is as it shall be.
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

    /// It is known what is left to be done. `None`: there is more to do.
    fn verified(
        &mut self,
        c: &mut Control,
        left: Option<String>,
        out: &mut Output,
    ) -> Option<Result<(), CliError>> {
        let failed = |text: String| Some(Err(CliError::failed(text)));
        match (&self.failure, left) {
            (Some(wrong), None) => {
                failed(format!("{wrong}\nThe configuration is as it was before."))
            }
            (Some(wrong), Some(left)) => failed(format!(
                "{wrong}\nGoing back did not succeed wholly either (see the log): `{left}' is still \
                 to be done."
            )),
            (None, Some(left)) if self.mode == Mode::AllOrNothing => {
                let wrong = format!("all commands succeeded, but `{left}' is still to be done");
                self.roll_back(c, wrong);
                None
            }
            (None, left) => {
                if let Some(left) = left {
                    tracing::warn!(
                        "configuration: applied but for some; `{left}' is still to be done"
                    );
                }
                self.succeed(c, out);
                Some(Ok(()))
            }
        }
    }

    /// It is as it shall be.
    fn succeed(&mut self, c: &mut Control, out: &mut Output) {
        let (n, s) = (self.done, if self.done == 1 { "" } else { "s" });
        out.line(format_args!("applied and verified: {n} command{s}"));
        let Some(mut target) = self.target.take() else { return };
        manager::set_notes(c, std::mem::take(&mut target.notes));
        if let Some(after) = self.confirm {
            manager::arm(c, target.previous.clone(), after);
            let seconds = after.as_secs();
            out.line(format_args!("`config commit' within {seconds} s, or it is taken back"));
        }
        work::drop_in_background(target);
    }

    fn end(&mut self, c: &Control) {
        // Both are great where the change is, and freeing their memory takes long.
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

    /// Nobody waits any more. A half of a configuration is none: what was done is taken back, in
    /// the background.
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
        out.line("stopped; going back to what was");
        in_background(c, target.previous, "stopped, going back");
    }
}

/// Applies a configuration while nobody waits; what happens is logged.
pub(crate) fn in_background(c: &mut Control, target: Arc<Document>, why: &'static str) {
    match Apply::new(c, Source::Ready(target), Mode::BestEffort, None, Format::Text) {
        Ok(apply) => {
            drive(c, apply, Box::new(move |_| tracing::info!("configuration: {why}: done")))
        }
        Err(e) => tracing::error!("configuration: {why}: {e}"),
    }
}

type Then = Box<dyn FnOnce(&mut Control)>;

fn drive(c: &mut Control, mut apply: Apply, then: Then) {
    let mut out = Output::new();
    match apply.advance(c, Instant::now(), &mut out) {
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
    match Apply::new(c, Source::Ready(Arc::new(target)), Mode::BestEffort, None, Format::Text) {
        Ok(apply) => drive(c, apply, Box::new(then)),
        Err(e) => {
            tracing::error!("configuration: {e}");
            then(c);
        }
    }
}
