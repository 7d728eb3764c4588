//! `thalweg run`: the router.

mod latency;
mod layout;
mod logging;
mod nat_statistics;
mod node_statistics;
pub(crate) mod serve;
mod signals;
mod statistics;

pub use layout::{Cores, LayoutError, engine};
pub use serve::poll;

use crate::features::FEATURES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signals::{Ending, LastLines, Stage};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use thalweg_cli::server::ServerError;
use thalweg_config::declare::{Document, Part};
use thalweg_config::{StartupConfig, StartupError};
use thalweg_engine::Feature;
use thalweg_feat_config::ConfigError;
use thalweg_feat_config::store::Store;
use thalweg_files::{PidFile, client};
use thalweg_graph::{Control, EngineError};

/// Runs the router in the foreground until SIGINT or SIGTERM
///
/// The configuration is that of VPP: stanzas in a file, on the command line, or both.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// File of startup stanzas
    #[arg(short = 'c', long, value_name = "FILE")]
    startup: Option<String>,
    /// Configuration file (YAML), written by `config commit'; it need not exist yet
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not start if something in the configuration file is wrong or cannot be applied; without
    /// it, the rest is applied
    #[arg(long, requires = "config")]
    strict: bool,
    /// Add the commands with which `thalweg load' loses packets on purpose, and learns which were
    /// dropped
    #[arg(long)]
    load_probe: bool,
    /// Startup stanzas, such as: unix { cli-listen /tmp/cli.sock } cpu { workers 2 }
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    stanzas: Vec<String>,
}

/// Directories below which clients may always name files to write, and the runtime directory.
const CLIENT_FILES: [&str; 2] = ["/var/lib/thalweg", "/var/log/thalweg"];

const EXAMPLES: &str = "\
Stanzas (others are accepted, with a warning):
  unix { cli-listen PATH|HOST:PORT  exec FILE  log FILE  runtime-dir DIR  files DIR
         pidfile FILE  gid GROUP  cli-prompt TEXT  nobanner  nocolor  cli-no-pager  interactive }
  socksvr { socket-name PATH  mode 0660  group GROUP }
  statseg { socket-name PATH  size 32m  per-node-counters on|off  update-interval SECONDS }
  metrics { listen HOST:PORT }
  api-trace { on  nitems N }
  cpu { main-core N  workers N | corelist-workers 1-3,5  skip-cores N  relative
        latency MICROSECONDS }
  buffers { buffers-per-numa N  default data-size BYTES  page-size 2m }
  logging { default-log-level error|warn|info|debug }

Examples:
  thalweg run
  thalweg run -c /etc/thalweg/startup.conf
  thalweg run --config /etc/thalweg/thalweg.yaml
  thalweg run unix { cli-listen /tmp/cli.sock exec ./setup.cli } cpu { workers 2 }

Without `cli-listen' the command line is at /run/thalweg/cli.sock; for other users than root, below
$XDG_RUNTIME_DIR or /tmp. The binary API's socket is api.sock in the same directory. Without `cpu'
there is one worker, not pinned to a core.
The exit status is 0 after a clean shutdown, 1 if something failed (including leaked packet
buffers), 2 for an invalid configuration, 70 after an internal error.";

/// Error that keeps the router from starting, or ends it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The startup configuration is invalid.
    #[error("{0}")]
    Config(#[from] StartupError),
    /// The configuration document is invalid.
    #[error("{0}")]
    Document(#[from] ConfigError),
    /// `--config` names a directory.
    #[error(
        "{} is a directory: `--config' takes a file, such as {}", .0.display(),
        .0.join("thalweg.yaml").display()
    )]
    Directory(PathBuf),
    /// The stanza of pairs cannot be read.
    #[error(transparent)]
    Pairs(#[from] thalweg_feat_lcp::startup::BadStanza),
    /// The machine lacks resources that the configuration needs.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// `unix { gid }` or `socksvr { group }` names no group.
    #[error("no group `{0}` for `unix {{ gid }}` or `socksvr {{ group }}`")]
    Group(String),
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The command line cannot be served.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The binary API cannot be served.
    #[error(transparent)]
    Api(#[from] thalweg_api::server::ServerError),
    /// The statistics segment has no room.
    #[error(transparent)]
    Segment(#[from] thalweg_stats::SegmentError),
    /// The statistics segment cannot be served.
    #[error(transparent)]
    Statistics(#[from] thalweg_stats::ServerError),
    /// Metrics cannot be served at the configured address.
    #[error("metrics: {0}")]
    Metrics(#[from] thalweg_stats::http::HttpError),
    /// A file or directory is not accessible.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// Operation that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The socket directory belongs to another user.
    #[error("{} belongs to another user; set `unix {{ runtime-dir DIR }}`", .0.display())]
    Foreign(PathBuf),
    /// Another part that cannot be started.
    #[error("cannot start: {0}")]
    Start(String),
    /// A part of the configuration file could not be applied, with `--strict`.
    #[error("--strict: not all of the configuration file could be applied; the log says what")]
    Strict,
    /// Packet buffers leaked.
    #[error("{0} packet buffers leaked")]
    Leak(usize),
}

impl RunError {
    fn status(&self) -> u8 {
        match self {
            RunError::Config(_) | RunError::Pairs(_) | RunError::Layout(_) | RunError::Group(_) => {
                crate::USAGE
            }
            RunError::Document(ConfigError::Document(_) | ConfigError::File(_)) => crate::USAGE,
            RunError::Directory(_) => crate::USAGE,
            _ => crate::FAILED,
        }
    }
}

fn file<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> RunError + 'a {
    move |source| RunError::File { what, path: path.to_owned(), source }
}

/// Serves the binary API of a router that another program runs, below `dir` until the result is
/// dropped. The program calls [`poll`] and [`Control::run_once`] in turn.
///
/// # Errors
/// If there cannot be such a socket.
pub fn serve_api(c: &mut Control, dir: &Path) -> Result<thalweg_api::server::Server, RunError> {
    serve::install(c)?;
    serve::listen_api(c, &StartupConfig::default(), dir)
}

/// The program. `probe` has the commands of `--load-probe`.
pub fn main(args: &Args, probe: &'static Feature) -> ExitCode {
    let mut words: Vec<&str> = Vec::new();
    // Before there were documents, `--config' was a file of stanzas.
    let (document, stanzas) = match &args.config {
        Some(file) if is_document(file) => (Some(file.as_path()), None),
        other => (None, other.as_ref().and_then(|file| file.to_str())),
    };
    if let Some(file) = args.startup.as_deref().or(stanzas) {
        words.extend(["-c", file]);
    }
    words.extend(args.stanzas.iter().map(String::as_str));
    // A feature has nothing that a panic could leave half done.
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| run(&words, document, args, probe)));
    match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => crate::fail(error.status(), &error),
        // The message and the place are printed already.
        Err(_) => crate::fail(crate::FAULT, &"the main thread panicked; exiting"),
    }
}

/// True if a file's name is that of a document.
fn is_document(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "yaml" || e == "yml")
}

/// A document and what is wrong in it, and why it is not that of the router's file.
type Found = (Option<(Document, Vec<Part>)>, Option<String>);

/// Reads the router's configuration document, and what is wrong in it; `None` if it does not exist.
/// In place of a file that is no document there is the last revision that is one, unless everything
/// must be right.
fn document(store: &Store, strict: bool) -> Result<Found, RunError> {
    let catalog = crate::configuration::catalog()?;
    let loaded = match store.saved() {
        Ok(None) => {
            // A save can make the file later, unless there is a mistake in its name.
            thalweg_files::check_directory(store.file()).map_err(ConfigError::from)?;
            return Ok((None, None));
        }
        Ok(Some(text)) => {
            let name = store.file().display().to_string();
            let loaded = match strict {
                true => catalog.read(&name, &text).map(|document| (document, Vec::new())),
                false => catalog.load(&name, &text),
            };
            loaded.map_err(ConfigError::from)
        }
        Err(e) => Err(e.into()),
    };
    let wrong = match loaded {
        Ok(loaded) => return Ok((Some(loaded), None)),
        Err(wrong) if strict => return Err(wrong.into()),
        Err(wrong) => wrong,
    };
    let mut earlier = store.earlier();
    let good =
        earlier.find_map(|(name, text)| Some((catalog.load_saved(&name, &text).ok()?, name)));
    let Some((loaded, name)) = good else { return Err(wrong.into()) };
    let instead = format!(
        "{wrong}\nThe router starts with {name}, which was saved last; {} stays as it is until `config \
         commit'",
        store.file().display()
    );
    Ok((Some(loaded), Some(instead)))
}

/// Applies the configuration document, then runs the startup script. `failed` is set if that is
/// refused.
fn configure(
    c: &mut Control,
    store: Option<Store>,
    document: Option<(Document, Vec<Part>)>,
    script: Option<PathBuf>,
    failed: Option<Arc<AtomicBool>>,
) {
    let then = move |c: &mut Control, done: bool| match (script, failed) {
        (_, Some(failed)) if !done => failed.store(true, Ordering::Release),
        (Some(script), _) => serve::run_script(c, &script),
        (None, _) => serve::release_held(c),
    };
    if let Some(store) = store {
        if document.is_none() {
            let file = store.file().display();
            tracing::info!("{file} does not exist yet: starting with an empty configuration");
        }
        thalweg_feat_config::manager::keep_in(c, store);
    }
    match document {
        Some((document, wrong)) => {
            serve::hold(c);
            thalweg_feat_config::apply_at_start(c, document, wrong, then);
        }
        None => then(c, true),
    }
}

/// Time for features to save what would be lost.
const SAVING: Duration = Duration::from_millis(300);

fn run(
    words: &[&str],
    file_of_document: Option<&Path>,
    args: &Args,
    probe: &'static Feature,
) -> Result<(), RunError> {
    let strict = args.strict;
    if let Some(dir) = args.config.as_ref().filter(|path| path.is_dir()) {
        return Err(RunError::Directory(dir.clone()));
    }
    let (config, warnings) = StartupConfig::from_args(words)?;
    let pairs = config.stanza("linux-cp").map(|s| thalweg_feat_lcp::startup::read(s.words()));
    let mut pairs = pairs.transpose()?;
    if let Some(stanza) = config.stanza("linux-nl") {
        let notice_bytes = thalweg_feat_lcp::startup::read_nl(stanza.words())?;
        pairs.get_or_insert_default().notice_bytes = notice_bytes;
    }
    let store = file_of_document.map(Store::new);
    let (document, instead) =
        store.as_ref().map(|s| document(s, strict)).transpose()?.unwrap_or_default();
    let (engine, notes) = layout::engine(&config, &Cores::of_this_machine())?;
    let log = config.unix.log.clone().unwrap_or_default();
    let lines = logging::start(&config).map_err(file("open log", &log))?;
    let _last_lines = LastLines(lines.clone());
    let ending = Ending::new(lines);
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    notes.iter().for_each(|note| tracing::warn!("{note}"));
    instead.iter().for_each(|why| tracing::error!("configuration: {why}"));
    // The file stays open as long as the router runs.
    let _awake = config.cpu.latency.and_then(|micros| match latency::ask(micros) {
        Ok(file) => Some(file),
        Err(e) => {
            tracing::warn!("cpu {{ latency {micros} }} has no effect: {e}");
            None
        }
    });
    if !config.unix.nodaemon {
        tracing::debug!("staying in the foreground, as under `unix {{ nodaemon }}`");
    }
    let dir = config.unix.runtime_dir.clone().unwrap_or_else(thalweg_cli::paths::runtime_dir);
    prepare_dir(&dir)?;
    let own = [dir.clone()].into_iter().chain(CLIENT_FILES.map(Into::into)).collect();
    client::allow_below(client::Allowed { own, named: config.unix.files.clone() });

    raise_open_files();
    // From here on signals mean an orderly end.
    let signals = signals::Signals::catch().map_err(|e| RunError::Start(e.to_string()))?;
    let mut c = Control::new(engine)?;
    let probe = args.load_probe.then_some(probe);
    let features: Vec<&Feature> = FEATURES.iter().copied().chain(probe).collect();
    thalweg_engine::start(&mut c, &features)?;
    pairs.into_iter().for_each(|pairs| thalweg_feat_lcp::startup::apply(&c, pairs));
    thalweg_feat_neighbor::ask_for_next_hops(&mut c);
    serve::install(&mut c)?;
    // First the socket: if another router has it, nothing must be touched.
    let server = serve::listen(&c, &config, &dir)?;
    let api = serve::listen_api(&c, &config, &dir)?;
    let statistics = serve::start_statistics(&mut c, &config, &dir)?;
    let (last_panic, started) = (dir.join(thalweg_cli::paths::LAST_PANIC), SystemTime::now());
    thalweg_graph::control::on_panic(move |context| {
        let [at, since] = [SystemTime::now(), started].map(thalweg_cli::utc);
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("{at} UTC: thalweg v{version}, started {since}\n{context}\n");
        // The process ends: standard error has the same.
        let _ = thalweg_files::replace(&last_panic, text.as_bytes());
    });
    if let Some(address) = &config.metrics.listen {
        crate::metrics::start(&mut c, address)?;
    }
    let pidfile = match &config.unix.pidfile {
        Some(path) => Some(PidFile::write(path).map_err(ConfigError::from)?),
        None => None,
    };
    signals.forward(c.remote(), ending.clone()).map_err(|e| RunError::Start(e.to_string()))?;
    for at in server.addresses() {
        tracing::info!("thalweg v{}: command line at {at}", env!("CARGO_PKG_VERSION"));
    }
    tracing::info!("binary API at {}", api.path().display());
    tracing::info!("statistics segment at {}", statistics.path().display());
    let failed = Arc::new(AtomicBool::new(false));
    let refuse = strict.then(|| failed.clone());
    configure(&mut c, store, document, config.unix.exec.clone(), refuse);
    if config.unix.interactive {
        signals::console(server.addresses().to_vec(), c.remote(), ending.clone());
    }

    while !ending.is_asked() && !failed.load(Ordering::Acquire) {
        let next = serve::poll(&mut c);
        c.run_once(next.map(|at| at.saturating_duration_since(Instant::now())));
    }

    tracing::info!("shutting down");
    ending.reach(Stage::Leaving);
    drop(pidfile);
    serve::cancel_all(&mut c);
    drop((server, api));
    thalweg_engine::end(&mut c, Instant::now() + SAVING);
    let busy = signals::stop_workers(&mut c, &ending);
    if !busy.is_empty() {
        tracing::error!("workers {busy:?} do not end: exiting");
        ending.exit(i32::from(crate::FAILED));
    }
    ending.reach(Stage::Over);
    let audit = c.shut_down();
    if audit.in_use > 0 {
        tracing::error!("{} of {} packet buffers leaked", audit.in_use, audit.total);
        return Err(RunError::Leak(audit.in_use));
    }
    tracing::info!("all {} packet buffers returned; goodbye", audit.total);
    if failed.load(Ordering::Acquire) {
        return Err(RunError::Strict);
    }
    Ok(())
}

/// Raises the limit of open files to what the system grants: each queue of a device is one, and
/// shells and service managers begin with 1,024.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit { current: limit.maximum, ..limit };
    if let Err(e) = setrlimit(Resource::Nofile, highest) {
        tracing::warn!("the limit of open files stays {:?}: {e}", limit.current);
    }
}

/// Makes the directory for sockets. One that another user made first, in `/tmp`, is refused.
fn prepare_dir(dir: &Path) -> Result<(), RunError> {
    let root = rustix::process::geteuid().is_root();
    let mode = if root { 0o755 } else { 0o700 };
    let make = || fs::DirBuilder::new().recursive(true).mode(mode).create(dir);
    make().map_err(file("make directory", dir))?;
    match thalweg_socket::stranger_of(dir) {
        Some(_) => Err(RunError::Foreign(dir.to_owned())),
        None => Ok(()),
    }
}
