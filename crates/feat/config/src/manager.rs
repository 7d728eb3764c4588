//! State of the configuration on the main thread.

use crate::apply::{Back, End};
use crate::store::Store;
use crate::work;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, CommandTree};
use thalweg_config::declare::{Catalog, Document, Part, Problem, Problems, State};
use thalweg_device::interface::{DeviceCame, InterfaceEvent};
use thalweg_engine::{Came, await_all};
use thalweg_files::FileError;
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, clock};

/// Reason why a configuration request failed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The features' sections conflict: a programming error.
    #[error("configuration is not available: {0}")]
    Unavailable(String),
    /// A document has errors.
    #[error(transparent)]
    Document(#[from] Problems),
    /// The running configuration cannot be written as a document.
    #[error("the running configuration cannot be written: {0}")]
    Unwritable(Problem),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No file was given, and the router has none.
    #[error("no file: name one, or start the router with `thalweg run --config FILE'")]
    NoFile,
    /// Neither a file nor a revision exists.
    #[error("nothing has been saved yet; `config commit' saves the running configuration")]
    NothingSaved,
    /// The revision does not exist.
    #[error("there is no revision {0}; `show configuration revisions' lists them")]
    NoRevision(usize),
    /// Another configuration is being applied.
    #[error("another configuration is being applied; try again when it is done")]
    Busy,
    /// The running configuration must not be saved yet.
    #[error(
        "a change is waiting for confirmation: `config commit' confirms and saves it, \
         `config save FILE' saves it elsewhere"
    )]
    Unconfirmed,
    /// No change is waiting for confirmation.
    #[error("no change is waiting for confirmation")]
    NothingPending,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> ConfigError {
        ConfigError::Unwritable(problem)
    }
}

/// Converts an error to a command's error.
pub(crate) fn failed(e: ConfigError) -> CliError {
    let code = match e {
        ConfigError::Busy | ConfigError::Unconfirmed => -167,
        ConfigError::NothingSaved | ConfigError::NoRevision(_) | ConfigError::NothingPending => -6,
        ConfigError::Document(_) | ConfigError::NoFile => -73,
        _ => -1,
    };
    CliError::with_code(e, code)
}

/// A comment, and the path of the item that it is attached to.
pub(crate) type Note = (Vec<String>, String);

/// A change that is rolled back unless confirmed.
pub(crate) struct Pending {
    timer: TimerId,
    /// Deadline.
    pub(crate) until: Instant,
    back: Back,
}

/// Application of a configuration, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// None.
    No,
    /// Settings that could not be applied before are tried again, which takes a moment.
    Retrying,
    /// One is.
    Yes,
}

type Parts = (Arc<Catalog<Control>>, Rc<CommandTree<Control>>);

/// State on the main thread.
pub struct Manager {
    parts: Result<Parts, String>,
    store: Option<Store>,
    notes: Vec<Note>,
    pub(crate) busy: Busy,
    pub(crate) pending: Option<Pending>,
    /// Settings that are not in force, and why.
    unresolved: Arc<Vec<Part>>,
    /// Time when they are tried again.
    retry: Option<(TimerId, Instant)>,
    /// Pause before they are tried again without an event.
    pause: Duration,
    /// Some of them were refused.
    has_failed: bool,
    /// A device has come since the last application began.
    device_came: bool,
}

pub(crate) fn init(c: &mut Control) {
    let parts = Err("the router is still starting".into());
    c.insert(Manager {
        parts,
        store: None,
        notes: Vec::new(),
        busy: Busy::No,
        pending: None,
        unresolved: Arc::default(),
        retry: None,
        pause: LATER,
        has_failed: false,
        device_came: false,
    });
    c.subscribe(|c: &mut Control, event: &InterfaceEvent| {
        match event {
            InterfaceEvent::Created(_) => retry_in(c, SOON),
            // Refused settings may have room by then.
            InterfaceEvent::Deleted(_) => {
                let has_failed = c.state::<Manager>().borrow().has_failed;
                if has_failed {
                    retry_in(c, SOON);
                }
            }
            _ => {}
        }
    });
    c.subscribe(|c: &mut Control, _: &DeviceCame| {
        let state = c.state::<Manager>();
        let busy = state.borrow().busy != Busy::No;
        // An application that runs may have missed it before.
        state.borrow_mut().device_came |= busy;
        retry_in(c, SOON);
    });
    c.subscribe(|c: &mut Control, _: &Came| retry_in(c, SOON));
}

pub(crate) fn ready(c: &mut Control) {
    let features = thalweg_engine::features(c);
    let sections = features.iter().flat_map(|f| f.sections()).collect();
    let parts = match (Catalog::new(sections), thalweg_engine::command_tree(c)) {
        (Ok(catalog), Ok(tree)) => Ok((Arc::new(catalog), Rc::new(tree))),
        (Err(e), _) => Err(e.to_string()),
        (_, Err(e)) => Err(e.to_string()),
    };
    if let Err(e) = &parts {
        tracing::error!("configuration: {e}");
    }
    c.state::<Manager>().borrow_mut().parts = parts;
}

fn parts(c: &Control) -> Result<Parts, ConfigError> {
    let manager = c.state::<Manager>();
    let parts = &manager.borrow().parts;
    parts.clone().map_err(ConfigError::Unavailable)
}

/// Everything that a document may contain.
pub(crate) fn catalog(c: &Control) -> Result<Arc<Catalog<Control>>, ConfigError> {
    parts(c).map(|p| p.0)
}

/// All commands.
pub(crate) fn tree(c: &Control) -> Result<Rc<CommandTree<Control>>, ConfigError> {
    parts(c).map(|p| p.1)
}

/// The running configuration, with the comments of the document applied last and with what is not
/// in force yet. Collected at once: for tests; commands collect it in slices.
///
/// # Errors
/// If the features' sections conflict.
pub fn running(c: &Control) -> Result<Document, ConfigError> {
    let catalog = catalog(c)?;
    let manager = c.state::<Manager>();
    let manager = manager.borrow();
    let mut document = catalog.with_parts(catalog.dump(c), &manager.unresolved);
    for (path, text) in &manager.notes {
        document.note(path, text);
    }
    Ok(document)
}

/// Returns whether no configuration is being applied or saved.
pub fn is_idle(c: &Control) -> bool {
    c.state::<Manager>().borrow().busy == Busy::No
}

/// Checks that no configuration is half applied: such a one must become neither the saved
/// configuration nor the target of a rollback.
///
/// # Errors
/// [`ConfigError::Busy`].
pub(crate) fn check_settled(c: &Control) -> Result<(), ConfigError> {
    let busy = c.state::<Manager>().borrow().busy;
    if busy == Busy::Yes { Err(ConfigError::Busy) } else { Ok(()) }
}

/// Settings that are not in force, and why.
pub fn unresolved(c: &Control) -> Arc<Vec<Part>> {
    c.state::<Manager>().borrow().unresolved.clone()
}

/// Settings that were in force and went away outside the router.
pub(crate) fn missing(c: &Control) -> Vec<Part> {
    catalog(c).map_or_else(|_| Vec::new(), |catalog| catalog.missing(c))
}

/// Pause before settings that are not in force are tried again without an event, since what they
/// need may be there by now. Each time that brings nothing doubles it, as a try costs as much as
/// the configuration is large.
const LATER: Duration = Duration::from_secs(10);

/// Longest pause.
const LATEST: Duration = Duration::from_secs(600);

/// The same after an interface was created, or a device has come.
const SOON: Duration = Duration::from_millis(20);

/// Replaces the settings that are not in force.
pub(crate) fn set_unresolved(c: &mut Control, parts: Vec<Part>) {
    let none = parts.is_empty();
    let pause = {
        let state = c.state::<Manager>();
        let mut manager = state.borrow_mut();
        let is_as_before = manager.unresolved.len() == parts.len();
        manager.pause = if is_as_before { (manager.pause * 2).min(LATEST) } else { LATER };
        manager.has_failed = parts.iter().any(|part| part.state == State::Failed);
        let came = std::mem::take(&mut manager.device_came);
        let pause = if came { SOON } else { manager.pause };
        work::drop_in_background(std::mem::replace(&mut manager.unresolved, Arc::new(parts)));
        pause
    };
    match none {
        true => await_all(c, BTreeSet::new()),
        false => retry_in(c, pause),
    }
}

/// Tries again after some time, or sooner if that is decided already.
fn retry_in(c: &mut Control, after: Duration) {
    let state = c.state::<Manager>();
    if state.borrow().unresolved.is_empty() {
        return;
    }
    // An event that comes during a try asks for another one soon, and not after the pause.
    let (old, at) = (state.borrow_mut().retry.take(), clock::now() + after);
    if let Some((timer, due)) = old {
        if due <= at {
            state.borrow_mut().retry = Some((timer, due));
            return;
        }
        c.cancel(timer);
    }
    let timer = c.after(after, |c| {
        let state = c.state::<Manager>();
        state.borrow_mut().retry = None;
        let busy = state.borrow().busy != Busy::No;
        match busy {
            true => retry_in(c, SOON),
            false => crate::apply::retry(c),
        }
    });
    state.borrow_mut().retry = Some((timer, at));
}

/// Sets the router's configuration file.
pub fn keep_in(c: &mut Control, store: Store) {
    c.state::<Manager>().borrow_mut().store = Some(store);
}

/// The router's configuration file.
pub(crate) fn store(c: &Control) -> Result<Store, ConfigError> {
    c.state::<Manager>().borrow().store.clone().ok_or(ConfigError::NoFile)
}

/// Comments of the document applied last, for which the router itself has no place.
pub(crate) fn notes(c: &Control) -> Vec<Note> {
    c.state::<Manager>().borrow().notes.clone()
}

/// Keeps a document's comments: the router itself has no place for them.
pub(crate) fn set_notes(c: &Control, notes: Vec<Note>) {
    c.state::<Manager>().borrow_mut().notes = notes;
}

/// Arms a rollback to `back` unless the change is confirmed.
pub(crate) fn arm(c: &mut Control, back: Back, after: Duration) {
    // The target of an earlier rollback still applies, and what either change was about.
    let back = match disarm(c) {
        Some(earlier) => {
            let only = match (&earlier.only, &back.only) {
                (Some(a), Some(b)) => Some(Arc::new(a.union(b).cloned().collect())),
                _ => None,
            };
            work::drop_in_background(back);
            Back { to: earlier.to, only }
        }
        None => back,
    };
    let timer = c.after(after, revert);
    let until = clock::now() + after;
    c.state::<Manager>().borrow_mut().pending = Some(Pending { timer, until, back });
}

/// Disarms a pending rollback; returns its target.
pub(crate) fn disarm(c: &mut Control) -> Option<Back> {
    let pending = c.state::<Manager>().borrow_mut().pending.take()?;
    c.cancel(pending.timer);
    Some(pending.back)
}

/// Pause before a rollback that failed is tried again.
const AGAIN: Duration = Duration::from_secs(10);

fn revert(c: &mut Control) {
    let busy = c.state::<Manager>().borrow().busy;
    if busy != Busy::No {
        // A configuration is being applied: try again after that.
        let timer = c.after(Duration::from_millis(50), revert);
        if let Some(pending) = &mut c.state::<Manager>().borrow_mut().pending {
            pending.timer = timer;
        }
        return;
    }
    let back = c.state::<Manager>().borrow().pending.as_ref().map(|p| p.back.clone());
    let Some(back) = back else { return };
    tracing::warn!("configuration: not confirmed in time; rolling back");
    crate::apply::in_background(c, back, "rollback", |c, end| {
        let state = c.state::<Manager>();
        // Something unresolved, such as a missing device, is tried again by itself.
        if end != End::Failed {
            state.borrow_mut().pending = None;
        } else if state.borrow().pending.is_some() {
            let seconds = AGAIN.as_secs();
            tracing::warn!("configuration: rolling back again in {seconds} s, or `config commit'");
            let timer = c.after(AGAIN, revert);
            if let Some(pending) = &mut state.borrow_mut().pending {
                pending.timer = timer;
            }
        }
    });
}
