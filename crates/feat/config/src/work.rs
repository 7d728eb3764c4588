//! Tasks that take long for a large configuration. Collecting it needs the router: that is done on
//! the main thread in slices. Everything else, from reading a file to planning, runs on a thread of
//! its own unless it is small.

use crate::manager::{self, ConfigError, failed};
use crate::store::{self, Revision, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Outcome, Output, Task, TaskPoll};
use thalweg_config::declare::{Catalog, Collected, Document, MAX_TEXT, Part};
use thalweg_files::client;
use thalweg_graph::Control;

/// Maximum time on the main thread per slice.
pub(crate) const SLICE: Duration = Duration::from_millis(2);

/// Interval between checks while another thread works.
pub(crate) const REST: Duration = Duration::from_millis(1);

/// Limits up to which a task is small: pieces of a running configuration, and bytes of a file.
const FEW_PIECES: usize = 8;
const FEW_BYTES: u64 = 32 << 10;

/// Configuration that a task gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The settings in force.
    InForce,
    /// All of it, with the settings that are not in force yet.
    Whole,
}

/// A document, and its parts that cannot be in force as they are wrong.
pub(crate) type Loaded = (Arc<Document>, Arc<Vec<Part>>);

/// Source of a document, read when needed.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A document in memory.
    Ready(Arc<Document>, Arc<Vec<Part>>),
    /// The settings in force, and those that are not yet.
    Unresolved(Arc<Vec<Part>>),
    /// File that a client named.
    File(PathBuf),
    /// The router's own file.
    Own(Store),
    /// Revision that many steps before the last one saved.
    Revision(Store, usize),
}

impl Source {
    /// Number of bytes to read.
    fn bytes(&self) -> u64 {
        let file = match self {
            Source::Ready(..) | Source::Unresolved(_) => return 0,
            Source::File(file) => file,
            // Revisions are about as long as the last one.
            Source::Own(store) | Source::Revision(store, _) => store.file(),
        };
        std::fs::metadata(file).map_or(0, |m| m.len())
    }

    /// Reads and checks the document.
    ///
    /// # Errors
    /// If it cannot be read or has errors.
    pub(crate) fn read(&self, catalog: &Catalog<Control>) -> Result<Arc<Document>, ConfigError> {
        match self {
            Source::Ready(document, _) => Ok(document.clone()),
            Source::Unresolved(_) => Ok(Arc::default()),
            Source::File(file) => {
                let text = client::read(file, MAX_TEXT as u64)?;
                Ok(Arc::new(read_named(catalog, file, &text)?))
            }
            Source::Own(_) | Source::Revision(..) => {
                let (name, text) = self.text()?;
                Ok(Arc::new(catalog.read(&name, &text)?))
            }
        }
    }

    /// Reads what is valid of the document, and the parts that are not.
    ///
    /// # Errors
    /// If it cannot be read or is no YAML.
    pub(crate) fn load(
        &self,
        catalog: &Catalog<Control>,
        running: &Document,
    ) -> Result<Loaded, ConfigError> {
        let (document, parts) = match self {
            Source::Ready(document, parts) => return Ok((document.clone(), parts.clone())),
            Source::Unresolved(parts) => {
                let mut root = running.root().clone();
                parts.iter().for_each(|part| _ = part.add_to(&mut root));
                catalog.salvage("running configuration", root)?
            }
            Source::Revision(store, back) => {
                let (revision, name, text) = found(store, *back)?;
                match revision.number {
                    // Settings that it leaves out were so by default.
                    Some(_) => catalog.load_saved(&name, &text)?,
                    None => catalog.load(&name, &text)?,
                }
            }
            // Faults of a private file would be kept, and listed for all.
            Source::File(file) => {
                let text = client::read(file, MAX_TEXT as u64)?;
                match text.is_private() {
                    true => (read_named(catalog, file, &text)?, Vec::new()),
                    false => catalog.load(&file.display().to_string(), text.text()?)?,
                }
            }
            Source::Own(_) => {
                let (name, text) = self.text()?;
                catalog.load(&name, &text)?
            }
        };
        Ok((Arc::new(document), Arc::new(parts)))
    }

    /// Name and text.
    fn text(&self) -> Result<(String, String), ConfigError> {
        match self {
            Source::Ready(..) | Source::Unresolved(_) | Source::File(_) => Ok(Default::default()),
            Source::Own(store) => {
                Ok((store.file().display().to_string(), store::read(store.file())?))
            }
            Source::Revision(store, back) => {
                let (_, name, text) = found(store, *back)?;
                Ok((name, text))
            }
        }
    }
}

/// Finds a revision: its name in errors, and its text.
fn found(store: &Store, back: usize) -> Result<(Revision, String, String), ConfigError> {
    let none = match back {
        0 => ConfigError::NothingSaved,
        _ => ConfigError::NoRevision(back),
    };
    let (revision, text) = store.found(back)?.ok_or(none)?;
    Ok((revision, format!("revision {back}"), text))
}

/// Reads a document that a client named: what is wrong in it is quoted only if all may read it.
fn read_named(
    catalog: &Catalog<Control>,
    file: &Path,
    text: &client::Text,
) -> Result<Document, ConfigError> {
    let read = catalog.read(&file.display().to_string(), text.text()?);
    Ok(read.map_err(|problems| match text.is_private() {
        true => problems.without_text(client::NOT_SHOWN),
        false => problems,
    })?)
}

/// Demands on a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Must {
    /// The document has no mistakes.
    BeRight,
    /// YAML: mistakes are parts that are left out.
    BeReadable,
}

/// A further document that a task needs.
pub(crate) type Other = (Source, Must);

/// Reads it.
fn read(
    (source, must): &Other,
    catalog: &Catalog<Control>,
    running: &Document,
) -> Result<Loaded, ConfigError> {
    match must {
        Must::BeRight => Ok((source.read(catalog)?, Arc::default())),
        Must::BeReadable => source.load(catalog, running),
    }
}

type Job<R> = Box<dyn FnOnce(Collected<Control>) -> Result<R, ConfigError> + Send>;

enum State<R> {
    Collecting(Box<Collected<Control>>, Job<R>),
    Running(Receiver<Result<R, ConfigError>>),
    Done,
}

/// A task on the running configuration.
pub(crate) struct Work<R> {
    state: State<R>,
    /// The other document is large.
    big: bool,
}

impl<R: Send + 'static> Work<R> {
    /// Starts a task. `job` gets the running configuration and another document if there is one; it
    /// may run on another thread. A large document is read while the other one is collected.
    ///
    /// # Errors
    /// If the features' sections conflict.
    pub(crate) fn start(
        c: &Control,
        view: View,
        other: Option<Other>,
        job: impl FnOnce(&Catalog<Control>, Document, Loaded) -> Result<R, ConfigError> + Send + 'static,
    ) -> Result<Work<R>, ConfigError> {
        let catalog = manager::catalog(c)?;
        let notes = manager::notes(c);
        let collected = Box::new(catalog.collect());
        let parts = match view {
            View::Whole => manager::unresolved(c),
            View::InForce => Arc::default(),
        };
        let big = other.as_ref().is_some_and(|(source, _)| source.bytes() > FEW_BYTES);
        let ahead = other.clone().filter(|_| big).and_then(|other| {
            let catalog = catalog.clone();
            in_thread(move || read(&other, &catalog, &Document::default())).ok()
        });
        let job = move |collected: Collected<Control>| {
            let mut running = catalog.with_parts(catalog.write_out(collected), &parts);
            notes.iter().for_each(|(path, text)| running.note(path, text));
            let other = match (ahead, other) {
                (Some(ahead), _) => ahead.recv().unwrap_or_else(|_| Err(panicked()))?,
                (None, Some(other)) => read(&other, &catalog, &running)?,
                (None, None) => Loaded::default(),
            };
            job(&catalog, running, other)
        };
        Ok(Work { state: State::Collecting(collected, Box::new(job)), big })
    }

    /// Returns whether the running configuration is still being collected.
    pub(crate) fn is_collecting(&self) -> bool {
        matches!(self.state, State::Collecting(..))
    }

    /// Runs until `end`; `Some` is the result.
    pub(crate) fn poll(&mut self, c: &Control, end: Instant) -> Option<Result<R, ConfigError>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Collecting(mut collected, job) => {
                while !collected.go_on(c) {
                    if Instant::now() >= end {
                        self.state = State::Collecting(collected, job);
                        return None;
                    }
                }
                if !self.big && collected.pieces() <= FEW_PIECES {
                    return Some(job(*collected));
                }
                match in_thread(move || job(*collected)) {
                    Ok(wait) => self.state = State::Running(wait),
                    Err(e) => {
                        let text = format!("cannot start a thread: {e}");
                        return Some(Err(ConfigError::Unavailable(text)));
                    }
                }
                None
            }
            State::Running(wait) => match wait.try_recv() {
                Ok(result) => Some(result),
                Err(TryRecvError::Empty) => {
                    self.state = State::Running(wait);
                    None
                }
                Err(TryRecvError::Disconnected) => Some(Err(panicked())),
            },
            State::Done => {
                Some(Err(ConfigError::Unavailable("the result was taken already".into())))
            }
        }
    }
}

fn panicked() -> ConfigError {
    ConfigError::Unavailable("the configuration thread panicked".into())
}

/// Runs a job on a thread of its own, which sends the result.
fn in_thread<R: Send + 'static>(
    job: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<Receiver<R>> {
    let (done, wait) = mpsc::sync_channel(1);
    let run = move || drop(done.send(job()));
    std::thread::Builder::new().name("configuration".into()).spawn(run).map(|_| wait)
}

/// Drops large values on another thread: freeing some hundred thousand texts takes long, too.
pub(crate) fn drop_in_background<T: Send + 'static>(what: T) {
    // Without a thread it is dropped here.
    let _ = std::thread::Builder::new().name("configuration".into()).spawn(move || drop(what));
}

type Then<R> = Box<dyn FnOnce(&mut Control, R, &mut Output) -> Result<(), CliError> + Send>;

/// A command that waits for its task.
struct WaitingCommand<R> {
    work: Work<R>,
    then: Option<Then<R>>,
}

impl<R: Send + 'static> Task<Control> for WaitingCommand<R> {
    fn poll(&mut self, c: &mut Control, _now: Instant, out: &mut Output) -> TaskPoll {
        let Some(result) = self.work.poll(c, Instant::now() + SLICE) else {
            return TaskPoll::At(Instant::now() + REST);
        };
        let Some(then) = self.then.take() else { return TaskPoll::Done };
        match result.map_err(failed).and_then(|r| then(c, r, out)) {
            Ok(()) => TaskPoll::Done,
            Err(e) => TaskPoll::Failed(e),
        }
    }
}

/// Completes a command: at once if the task is small, otherwise when it is done.
///
/// # Errors
/// The error of `job` or `then`, if the task is small.
pub(crate) fn answer<R: Send + 'static>(
    c: &mut Control,
    view: View,
    other: Option<Other>,
    out: &mut Output,
    job: impl FnOnce(&Catalog<Control>, Document, Loaded) -> Result<R, ConfigError> + Send + 'static,
    then: impl FnOnce(&mut Control, R, &mut Output) -> Result<(), CliError> + Send + 'static,
) -> Result<Outcome<Control>, CliError> {
    let mut work = Work::start(c, view, other, job).map_err(failed)?;
    match work.poll(c, Instant::now() + SLICE) {
        Some(result) => {
            then(c, result.map_err(failed)?, out)?;
            Ok(Outcome::Done)
        }
        None => Ok(Outcome::pending(WaitingCommand { work, then: Some(Box::new(then)) })),
    }
}
