//! Applies a document: plan, run, verify, roll back.

use crate::cli_support::{Shape, Shown};
use crate::manager::{self, Busy, ConfigError, Manager, Note, failed};
use crate::progress::Words;
use crate::work::{self, Loaded, Must, REST, SLICE, Source, View, Work};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Execution, Format, Outcome, Output, Progress, Script, Task, TaskPoll};
use thalweg_config::declare::{
    Catalog, Document, Item, Part, Phase as Purpose, Plan, Step, WHOLE, interface_key,
};
use thalweg_engine::{Absent, await_all, take_absent};
use thalweg_graph::Control;

/// Reaction to a command that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Roll back everything.
    AllOrNothing,
    /// Log the failure, and continue with everything that does not depend on it; what is not in
    /// force then is kept as unresolved. At startup and for rollbacks.
    BestEffort,
    /// Like `BestEffort`, for what is unresolved: a failure is nothing new.
    Retry,
}

/// Target of an application.
struct Target {
    /// Desired configuration.
    document: Arc<Document>,
    /// Parts of it that are wrong.
    wrong: Arc<Vec<Part>>,
    /// Comments of the document.
    notes: Vec<Note>,
    /// Configuration before.
    previous: Arc<Document>,
}

/// Shape of plans in the background, which nobody sees.
const UNSEEN: Shape = Shape { format: Format::Text, all: false };

/// Keys of items that a change is about.
pub(crate) type Touched = Arc<HashSet<String>>;

/// A configuration to go back to.
#[derive(Clone)]
pub(crate) struct Back {
    /// The configuration.
    pub(crate) to: Loaded,
    /// Items that the change was about: later changes by others stay. `None` takes back everything.
    pub(crate) only: Option<Touched>,
}

/// End of an application in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it is in force.
    Whole,
    /// Some of it is unresolved.
    Unresolved,
    /// Nothing was applied.
    Failed,
}

/// Preparation of an application, by another thread.
struct Planned {
    target: Target,
    plan: Plan,
    shown: Shown,
    /// Keys of the items that the plan is about.
    touched: HashSet<String>,
}

/// Reason why an item could not be applied.
#[derive(Clone)]
struct Lost {
    /// Reason in words.
    why: String,
    /// The thing outside the router that is not there.
    absent: Option<Absent>,
}

/// Rest that a finished application has left undone.
#[derive(Default)]
struct Left {
    /// Commands that are still missing, or were undone meanwhile.
    commands: Vec<String>,
    /// Settings that others have changed meanwhile.
    by_others: Vec<String>,
    /// Settings that are not in force.
    parts: Vec<Part>,
    /// Things outside the router that they wait for.
    awaited: BTreeSet<Absent>,
}

/// Command that lists parts that are not in force.
const SEE: &str = "see `show configuration unresolved'";

/// Phase of an application.
enum Phase {
    /// Trying unresolved parts again, which takes a moment.
    Waiting(Source),
    /// Computing the commands to run.
    Planning(Work<Planned>),
    /// Running the commands.
    Running,
    /// A command failed: computing the commands that roll back.
    PlanningRollback(Work<Plan>),
    /// All commands have run: replanning, which should yield no steps.
    Verifying(Work<Left>),
}

/// A configuration being applied.
pub struct Apply {
    phase: Phase,
    /// Known once planned.
    target: Option<Target>,
    steps: VecDeque<Step>,
    /// Keys of the items that the plan is about.
    touched: Touched,
    /// Items that the plan is restricted to.
    only: Option<Touched>,
    current: Option<(Step, Execution<Control>)>,
    mode: Mode,
    shape: Shape,
    words: Words,
    /// Commands of the plan.
    planned: usize,
    /// Failures that were logged or would have been.
    failures: usize,
    /// The first failure; if set, the application is rolling back.
    failure: Option<String>,
    /// The first removal that failed. Its object may have gone with something before:
    /// verifying tells.
    doubtful: Option<String>,
    /// Keys of items that could not be applied, and why.
    lost: HashMap<String, Lost>,
    done: usize,
    /// Something could not be applied.
    is_incomplete: bool,
    confirm: Option<Duration>,
    ended: bool,
}

/// Reads the target of an application, and plans it.
fn planning(
    c: &Control,
    target: Source,
    only: Option<Touched>,
    mode: Mode,
    shape: Shape,
) -> Result<Work<Planned>, ConfigError> {
    let must = match mode {
        Mode::AllOrNothing => Must::BeRight,
        Mode::BestEffort | Mode::Retry => Must::BeReadable,
    };
    let job = move |catalog: &Catalog<Control>, running: Document, (document, wrong): Loaded| {
        let mut plan = running.plan_to(&document);
        if let Some(only) = only {
            plan.steps.retain(|step| is_touched(step, &only));
        }
        let shown = Shown::plan(catalog.kinds(), &plan, shape);
        let notes = document.notes();
        let touched = plan.steps.iter().map(|step| step.key.clone()).collect();
        let target = Target { document, wrong, notes, previous: Arc::new(running) };
        Ok(Planned { target, plan, shown, touched })
    };
    Work::start(c, View::InForce, Some((target, must)), job)
}

impl Apply {
    /// Starts planning. Nothing is changed yet.
    ///
    /// # Errors
    /// If another configuration is being applied.
    fn new(
        c: &mut Control,
        target: Source,
        only: Option<Touched>,
        mode: Mode,
        confirm: Option<Duration>,
        shape: Shape,
    ) -> Result<Apply, ConfigError> {
        let state = c.state::<Manager>();
        let busy = state.borrow().busy;
        let phase = match busy {
            Busy::No => {
                let work = planning(c, target, only.clone(), mode, shape)?;
                let retrying = mode == Mode::Retry;
                state.borrow_mut().busy = if retrying { Busy::Retrying } else { Busy::Yes };
                Phase::Planning(work)
            }
            Busy::Retrying => Phase::Waiting(target),
            Busy::Yes => return Err(ConfigError::Busy),
        };
        Ok(Apply {
            // While it waits, another may begin: then it is too late.
            ended: matches!(phase, Phase::Waiting(_)),
            phase,
            target: None,
            steps: VecDeque::new(),
            touched: Touched::default(),
            only,
            current: None,
            mode,
            shape,
            words: Words::default(),
            planned: 0,
            failures: 0,
            failure: None,
            doubtful: None,
            lost: HashMap::new(),
            done: 0,
            is_incomplete: false,
            confirm,
        })
    }

    /// Starts as a command: the plan is shown before it runs.
    ///
    /// # Errors
    /// If another configuration is being applied, or a short document has errors.
    pub(crate) fn begin(
        c: &mut Control,
        target: Source,
        mode: Mode,
        confirm: Option<Duration>,
        all: bool,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let shape = Shape { format: out.format(), all };
        let mut apply = Apply::new(c, target, None, mode, confirm, shape).map_err(failed)?;
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

    /// Starts after a retry has ended.
    fn wait(&mut self, c: &mut Control) -> Result<(), ConfigError> {
        let Phase::Waiting(target) = &self.phase else { return Ok(()) };
        let busy = c.state::<Manager>().borrow().busy;
        match busy {
            Busy::Retrying => Ok(()),
            Busy::Yes => Err(ConfigError::Busy),
            Busy::No => {
                let (target, only) = (target.clone(), self.only.clone());
                self.phase = Phase::Planning(planning(c, target, only, self.mode, self.shape)?);
                self.ended = false;
                c.state::<Manager>().borrow_mut().busy = Busy::Yes;
                Ok(())
            }
        }
    }

    fn planned(&mut self, planned: Planned, out: &mut Output) {
        let Planned { target, plan, shown, touched } = planned;
        shown.show(out);
        if plan.is_empty() {
            out.line("nothing to do");
        }
        if self.mode != Mode::Retry {
            for part in target.wrong.iter().take(WHOLE) {
                tracing::error!("configuration: {part}; the rest is applied");
            }
            if let Some(more) = target.wrong.len().checked_sub(WHOLE).filter(|n| *n > 0) {
                tracing::error!("configuration: {more} more parts are wrong, {SEE}");
            }
        }
        self.planned = plan.steps.len();
        self.target = Some(target);
        self.touched = Arc::new(touched);
        self.steps = plan.steps.into();
        self.phase = Phase::Running;
    }

    /// Describes its present work.
    fn doing(&self) -> String {
        let way_back = if self.failure.is_some() { ", on the way back" } else { "" };
        match &self.phase {
            Phase::Waiting(_) => "trying again what is unresolved".into(),
            Phase::Planning(work) if work.is_collecting() => "collecting what is in force".into(),
            Phase::Planning(_) => "reading the document and planning".into(),
            Phase::PlanningRollback(_) => "planning the way back".into(),
            Phase::Running => {
                let begun = self.planned.saturating_sub(self.steps.len());
                format!("{begun} of {} commands{way_back}", self.planned)
            }
            Phase::Verifying(_) => format!("verifying{way_back}"),
        }
    }

    /// A word on what it is doing, now and then while it takes long.
    fn word(&mut self) -> Option<String> {
        let mut words = std::mem::take(&mut self.words);
        let word = words.word(Instant::now(), || self.doing());
        self.words = words;
        word
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
                Phase::Waiting(_) => {
                    if let Err(e) = self.wait(c) {
                        return TaskPoll::Failed(failed(e));
                    }
                    if matches!(self.phase, Phase::Waiting(_)) {
                        return rest;
                    }
                }
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
                    // Items that cannot be verified do not stay.
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
                // Skip a step that needs something that could not be set.
                let lost = step.needs.iter().find_map(|n| self.lost.get(n));
                if let Some(lost) = lost.filter(|_| step.phase != Purpose::Prune) {
                    let why = lost.why.clone();
                    self.lost.insert(step.key, Lost { why, absent: None });
                    return Ok(None);
                }
                // Commands before it may have reported something absent, which is not about it.
                let _ = take_absent(c);
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
            (Mode::BestEffort | Mode::Retry, _) => {
                match self.mode {
                    Mode::Retry => tracing::debug!("configuration: {wrong}"),
                    _ => self.log_failure(&wrong),
                }
                let why = format!("`{}' failed: {e}", step.command);
                let absent = take_absent(c).or_else(|| no_directory(&step.command));
                self.lost.insert(step.key.clone(), Lost { why, absent });
            }
            (Mode::AllOrNothing, None) if step.phase == Purpose::Prune => {
                tracing::debug!("configuration: {wrong}");
                self.doubtful.get_or_insert(wrong);
            }
            // A rollback continues with what is left.
            (Mode::AllOrNothing, Some(_)) => self.log_failure(&format!("rollback: {wrong}")),
            (Mode::AllOrNothing, None) => self.roll_back(c, wrong),
        }
    }

    /// Logs a failure, unless there are very many.
    fn log_failure(&mut self, wrong: &str) {
        self.failures += 1;
        match self.failures {
            0..=WHOLE => tracing::error!("configuration: {wrong}"),
            n if n == WHOLE + 1 => tracing::error!("configuration: further failures: {SEE}"),
            _ => {}
        }
    }

    /// Starts the rollback of this application's changes. Changes by others meanwhile stay.
    fn roll_back(&mut self, c: &mut Control, wrong: String) {
        self.failure = Some(wrong);
        work::drop_in_background(std::mem::take(&mut self.steps));
        let Some(target) = &self.target else { return };
        let (back, touched) = (target.previous.clone(), self.touched.clone());
        let job = move |_: &_, now: Document, _| {
            let mut plan = now.plan_to(&back);
            plan.steps.retain(|step| is_touched(step, &touched));
            Ok(plan)
        };
        self.phase = match Work::start(c, View::InForce, None, job) {
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
            Ok(plan) => {
                self.planned = plan.steps.len();
                self.steps = plan.steps.into();
            }
            Err(e) => tracing::error!("configuration: {e}"),
        }
    }

    /// Starts verifying: replans, expecting no steps.
    fn verify(&mut self, c: &Control) -> Result<Work<Left>, ConfigError> {
        let goal = self.target.as_ref().map(|target| match &self.failure {
            Some(_) => target.previous.clone(),
            None => target.document.clone(),
        });
        let (touched, lost) = (self.touched.clone(), std::mem::take(&mut self.lost));
        let wrong = self.target.as_ref().map_or_else(Arc::default, |target| target.wrong.clone());
        Work::start(c, View::InForce, None, move |_, now: Document, _| {
            let Some(goal) = goal else { return Ok(Left::default()) };
            let plan = now.plan_to(&goal);
            let (own, others): (Vec<Step>, Vec<Step>) =
                plan.steps.into_iter().partition(|step| is_touched(step, &touched));
            // Settings that others have removed meanwhile are not wanted back.
            let mut parts = wrong.to_vec();
            parts.extend(not_in_force(&goal, &now, &own, &lost));
            parts.iter_mut().for_each(|part| part.note_instead(now.root()));
            let awaited = own.iter().filter_map(|step| lost.get(&step.key)?.absent.clone());
            let awaited = awaited.collect();
            let commands = |steps: Vec<Step>| steps.into_iter().map(|s| s.command).collect();
            Ok(Left { commands: commands(own), by_others: commands(others), parts, awaited })
        })
    }

    /// Handles the result of verifying. `None`: there is more to do.
    fn verified(
        &mut self,
        c: &mut Control,
        left: Left,
        out: &mut Output,
    ) -> Option<Result<(), CliError>> {
        let failed = |text: String| Some(Err(CliError::failed(text)));
        let first = left.commands.first();
        match (&self.failure, first) {
            (Some(wrong), None) => {
                tracing::warn!("configuration: not applied; all is as it was before");
                failed(format!("{wrong}\nRolled back to the previous configuration."))
            }
            (Some(wrong), Some(first)) => {
                tracing::error!("configuration: not applied, and the rollback is incomplete");
                failed(format!(
                    "{wrong}\nThe rollback is incomplete (see the log): `{first}' is still missing."
                ))
            }
            (None, Some(first)) if self.mode == Mode::AllOrNothing => {
                let wrong = match self.doubtful.take() {
                    Some(wrong) => wrong,
                    None => format!("all commands succeeded, but `{first}' is still missing"),
                };
                self.roll_back(c, wrong);
                None
            }
            (None, first) => {
                if let Some(first) = first.filter(|_| self.mode != Mode::Retry) {
                    tracing::warn!(
                        "configuration: applied incompletely; `{first}' is still missing"
                    );
                }
                self.is_incomplete = first.is_some();
                self.succeed(c, left, out);
                Some(Ok(()))
            }
        }
    }

    /// The configuration is applied and verified.
    fn succeed(&mut self, c: &mut Control, left: Left, out: &mut Output) {
        let (n, s) = (self.done, if self.done == 1 { "" } else { "s" });
        out.line(format_args!("applied and verified: {n} command{s}"));
        if let Some(first) = left.by_others.first() {
            let n = left.by_others.len();
            let text = format!("{n} settings were changed by others meanwhile; see `{first}'");
            tracing::warn!("configuration: {text}");
            out.line(text);
        }
        let Some(mut target) = self.target.take() else { return };
        let before = manager::unresolved(c);
        let parts = left.parts;
        let counted = Part::counted(parts.iter().chain(&manager::missing(c)));
        match (self.mode, parts.len()) {
            (Mode::Retry, n) if n < before.len() => {
                let left = if n == 0 { "nothing" } else { &counted };
                tracing::info!("configuration: something has come; left: {left}");
            }
            (Mode::Retry, _) => {}
            _ if counted.is_empty() => tracing::info!("configuration: applied"),
            _ => {
                let text = format!("{counted}; {SEE}");
                tracing::warn!("configuration: applied, {text}");
                out.line(text);
            }
        }
        manager::set_unresolved(c, parts);
        await_all(c, left.awaited);
        manager::set_notes(c, std::mem::take(&mut target.notes));
        if let Some(after) = self.confirm {
            let only = Some(self.touched.clone());
            manager::arm(c, Back { to: (target.previous.clone(), before), only }, after);
            let seconds = after.as_secs();
            out.line(format_args!(
                "to keep it, run `config commit' within {seconds} s; otherwise it is rolled back"
            ));
        }
        work::drop_in_background(target);
    }

    fn end(&mut self, c: &Control) {
        // All are large after a large change, and freeing them takes long.
        let (target, lost) = (self.target.take(), std::mem::take(&mut self.lost));
        let (steps, touched) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.touched));
        work::drop_in_background((target, lost, steps, touched));
        if !std::mem::replace(&mut self.ended, true) {
            c.state::<Manager>().borrow_mut().busy = Busy::No;
        }
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
        let poll = self.advance(c, now, out);
        if let (TaskPoll::At(_), Some(word)) = (&poll, self.word()) {
            out.line(word);
        }
        poll
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
        let (target, touched) = (self.target.take(), self.touched.clone());
        self.end(c);
        let Some(target) = target else {
            return out.line("stopped; nothing has changed");
        };
        out.line("stopped; rolling back to the previous configuration");
        let to = (target.previous, manager::unresolved(c));
        let back = Back { to, only: Some(touched) };
        in_background(c, back, "rollback after stop", |_, _| {});
    }
}

/// Returns whether a step is about what an application has changed, and not about what others have.
fn is_touched(step: &Step, touched: &HashSet<String>) -> bool {
    // A property, such as an index, went along with what it belongs to.
    let keys = [&step.key].into_iter().chain(&step.needs).chain(&step.with);
    keys.into_iter().any(|key| touched.contains(key))
}

/// Returns the directory that a file of a command that failed would be in, if there is none.
fn no_directory(command: &str) -> Option<Absent> {
    let files = command.split_whitespace().filter(|word| word.starts_with('/'));
    files.map(Path::new).find_map(Absent::directory_of)
}

/// The parts of a document that are not in force, as commands are still missing.
fn not_in_force(
    goal: &Document,
    now: &Document,
    left: &[Step],
    lost: &HashMap<String, Lost>,
) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let there: HashSet<&str> = match left.is_empty() {
        true => HashSet::new(),
        false => now.items().iter().map(Item::key).collect(),
    };
    // Steps that only remove have no part in the document.
    for step in left.iter().filter(|step| step.phase != Purpose::Prune) {
        let (not_run, lost_of) =
            (format!("`{}' has not been run", step.command), lost.get(&step.key));
        let why = lost_of.map_or(&not_run, |lost| &lost.why);
        let outside = lost_of.and_then(|lost| lost.absent.as_ref().map(ToString::to_string));
        let needed = || step.needs.iter().find(|key| !there.contains(key.as_str())).cloned();
        let awaited = outside.or_else(needed);
        let mut add = |path: &str, why: &str| {
            let part = Part::copy(goal.root(), path, why);
            parts.extend(part.map(|part| match &awaited {
                Some(what) => part.waiting_for(what),
                None => part,
            }));
        };
        add(&step.path, why);
        // Some settings of an interface are words of the command that creates it.
        let name = step.key.strip_prefix(interface_key("").as_str());
        if let Some(name) = name.filter(|_| lost.contains_key(&step.key)) {
            add(&format!("thalweg.interfaces.{name}"), why);
        }
    }
    Part::outermost(parts)
}

/// Goes back in the background; the outcome is logged, and passed to `then`.
pub(crate) fn in_background(
    c: &mut Control,
    Back { to: (target, parts), only }: Back,
    why: &'static str,
    then: impl FnOnce(&mut Control, End) + 'static,
) {
    let target = Source::Ready(target, parts);
    match Apply::new(c, target, only, Mode::BestEffort, None, UNSEEN) {
        Ok(apply) => {
            let then = move |c: &mut Control, end: End| {
                match end {
                    End::Whole => tracing::info!("configuration: {why}: done"),
                    End::Unresolved => tracing::warn!(
                        "configuration: {why}: done, but for what is unresolved; see `show \
                         configuration unresolved'"
                    ),
                    End::Failed => tracing::error!("configuration: {why}: failed"),
                }
                then(c, end);
            };
            drive(c, apply, Box::new(then));
        }
        Err(e) => {
            tracing::error!("configuration: {why}: {e}");
            then(c, End::Failed);
        }
    }
}

/// Tries again what is not in force, as what it needs may be there by now.
pub(crate) fn retry(c: &mut Control) {
    let parts = manager::unresolved(c);
    if parts.is_empty() {
        return;
    }
    match Apply::new(c, Source::Unresolved(parts), None, Mode::Retry, None, UNSEEN) {
        Ok(apply) => drive(c, apply, Box::new(|_, _| {})),
        Err(e) => tracing::debug!("configuration: {e}"),
    }
}

/// The continuation after an application.
type Then = Box<dyn FnOnce(&mut Control, End)>;

fn drive(c: &mut Control, mut apply: Apply, then: Then) {
    let mut out = Output::new();
    match apply.advance(c, Instant::now(), &mut out) {
        TaskPoll::At(at) => {
            if let Some(word) = apply.word() {
                tracing::info!("configuration: {word}");
            }
            let wait = at.saturating_duration_since(Instant::now());
            c.after(wait, move |c| drive(c, apply, then));
        }
        TaskPoll::Done if apply.is_incomplete => then(c, End::Unresolved),
        TaskPoll::Done => then(c, End::Whole),
        TaskPoll::Failed(e) => {
            tracing::error!("configuration: {e}");
            then(c, End::Failed);
        }
    }
}

/// Applies a configuration at startup: what fails is logged and kept as unresolved, the rest is
/// applied. `wrong` are the parts that could not be read. `then` runs at the end, with whether all
/// of it is in force.
pub fn apply_at_start(
    c: &mut Control,
    target: Document,
    wrong: Vec<Part>,
    then: impl FnOnce(&mut Control, bool) + 'static,
) {
    let is_whole = wrong.is_empty();
    let target = Source::Ready(Arc::new(target), Arc::new(wrong));
    match Apply::new(c, target, None, Mode::BestEffort, None, UNSEEN) {
        Ok(apply) => {
            drive(c, apply, Box::new(move |c, end| then(c, end == End::Whole && is_whole)));
        }
        Err(e) => {
            tracing::error!("configuration: {e}");
            then(c, false);
        }
    }
}
