//! What the main thread knows of the configuration as a whole.

use crate::store::{FileError, Store};
use crate::work;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, CommandTree};
use thalweg_config::declare::{Catalog, Document, Problem, Problems};
use thalweg_graph::Control;
use thalweg_graph::control::TimerId;

/// Why something about the configuration cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The features do not fit together: a mistake of the program.
    #[error("configuration is not available: {0}")]
    Unavailable(String),
    /// A document has mistakes.
    #[error(transparent)]
    Document(#[from] Problems),
    /// A document cannot be written.
    #[error("the running configuration cannot be written: {0}")]
    Unwritable(Problem),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No file was named, and the router keeps none.
    #[error("no file: name one, or start the router with `thalweg run --config FILE'")]
    NoFile,
    /// Nothing has been saved yet.
    #[error("nothing has been saved yet; `config save' does")]
    NothingSaved,
    /// So many revisions there are not.
    #[error("there is no revision {0}; `show configuration revisions' lists them")]
    NoRevision(usize),
    /// One thing at a time.
    #[error("a configuration is being applied; wait for it to end")]
    Busy,
    /// No revert is pending.
    #[error("nothing waits to be confirmed")]
    NothingPending,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> ConfigError {
        ConfigError::Unwritable(problem)
    }
}

/// As a command's failure.
pub(crate) fn failed(e: ConfigError) -> CliError {
    let code = match e {
        ConfigError::Busy => -167,
        ConfigError::NothingSaved | ConfigError::NoRevision(_) | ConfigError::NothingPending => -6,
        ConfigError::Document(_) | ConfigError::NoFile => -73,
        _ => -1,
    };
    CliError::with_code(e, code)
}

/// A note for people, and the path of what it is about.
pub(crate) type Note = (Vec<String>, String);

/// A change that is taken back unless somebody confirms it.
pub(crate) struct Pending {
    timer: TimerId,
    /// When.
    pub(crate) until: Instant,
    /// What it is taken back to.
    back: Arc<Document>,
}

type Parts = (Arc<Catalog<Control>>, Rc<CommandTree<Control>>);

/// State of the main thread.
pub struct Manager {
    parts: Result<Parts, String>,
    store: Option<Store>,
    notes: Vec<Note>,
    pub(crate) busy: bool,
    pub(crate) pending: Option<Pending>,
}

pub(crate) fn init(c: &mut Control) {
    let parts = Err("the router is still starting".into());
    c.insert(Manager { parts, store: None, notes: Vec::new(), busy: false, pending: None });
}

pub(crate) fn ready(c: &mut Control) {
    let features = c.features();
    let sections = features.iter().flat_map(|f| f.settings.iter().copied()).collect();
    let commands = features.iter().flat_map(|f| f.commands.iter().copied()).collect();
    let parts = match (Catalog::new(sections), CommandTree::new(commands)) {
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

/// All that may stand in a document.
pub(crate) fn catalog(c: &Control) -> Result<Arc<Catalog<Control>>, ConfigError> {
    parts(c).map(|p| p.0)
}

/// All commands.
pub(crate) fn tree(c: &Control) -> Result<Rc<CommandTree<Control>>, ConfigError> {
    parts(c).map(|p| p.1)
}

/// The running configuration, with the notes of the document that was applied last. All at once: for
/// tests; commands collect it in slices.
///
/// # Errors
/// If a feature dumps what it would not read: a mistake of the program.
pub fn running(c: &Control) -> Result<Document, ConfigError> {
    let mut document = catalog(c)?.dump(c)?;
    for (path, text) in &c.state::<Manager>().borrow().notes {
        document.note(path, text);
    }
    Ok(document)
}

/// Sets the file that the router keeps.
pub fn keep_in(c: &mut Control, store: Store) {
    c.state::<Manager>().borrow_mut().store = Some(store);
}

/// Where the configuration is kept.
pub(crate) fn store(c: &Control) -> Result<Store, ConfigError> {
    c.state::<Manager>().borrow().store.clone().ok_or(ConfigError::NoFile)
}

/// Notes for people, which the router itself has no place for.
pub(crate) fn notes(c: &Control) -> Vec<Note> {
    c.state::<Manager>().borrow().notes.clone()
}

/// Remembers a document's notes: the router itself has no place for them.
pub(crate) fn set_notes(c: &Control, notes: Vec<Note>) {
    c.state::<Manager>().borrow_mut().notes = notes;
}

/// Sees to it that the configuration becomes `back` again unless somebody confirms what it is.
pub(crate) fn arm(c: &mut Control, back: Arc<Document>, after: Duration) {
    // What was to be taken back before, is still.
    let back = match disarm(c) {
        Some(earlier) => {
            work::drop_in_background(back);
            earlier
        }
        None => back,
    };
    let timer = c.after(after, revert);
    let until = Instant::now() + after;
    c.state::<Manager>().borrow_mut().pending = Some(Pending { timer, until, back });
}

/// Nothing is taken back any more; what would have been, if anything.
pub(crate) fn disarm(c: &mut Control) -> Option<Arc<Document>> {
    let pending = c.state::<Manager>().borrow_mut().pending.take()?;
    c.cancel(pending.timer);
    Some(pending.back)
}

fn revert(c: &mut Control) {
    let busy = c.state::<Manager>().borrow().busy;
    if busy {
        // Something is being applied: after that.
        let timer = c.after(Duration::from_millis(50), revert);
        if let Some(pending) = &mut c.state::<Manager>().borrow_mut().pending {
            pending.timer = timer;
        }
        return;
    }
    let Some(pending) = c.state::<Manager>().borrow_mut().pending.take() else { return };
    tracing::warn!("configuration: not confirmed in time; going back");
    crate::apply::in_background(c, pending.back, "going back");
}
