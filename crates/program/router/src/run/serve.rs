//! The command line on the main thread: jobs of sessions, and the script of the start.

use super::{RunError, statistics};
use std::path::Path;
use std::time::{Duration, Instant};
use thalweg_api::trace::Trace;
use thalweg_api::{Clients, Hub, Job, Registry, server};
use thalweg_cli::server::{Listen, Server, ServerConfig, SessionConfig, group_id};
use thalweg_cli::{CliJob, Gone, MainCli, Reply, ReplySink, Request, Status};
use thalweg_config::{CliListen, StartupConfig};
use thalweg_engine::Started;
use thalweg_graph::Control;

/// Maximum time that session commands wait for the startup script.
const SCRIPT_FIRST: Duration = Duration::from_secs(5);

/// Prefix of an `exec` error, before the file and line.
const LINE_ERROR: &str = "exec: CLI line error:";

/// The command line as state of the main thread.
struct Cli {
    main: MainCli<Control>,
    /// Time until which session commands are held back, so that clients that connect while the
    /// startup script runs see its result.
    hold: Option<Instant>,
    held: Vec<CliJob>,
    /// The same for requests of the binary API.
    held_api: Vec<Job>,
}

/// Installs the command line and the API registry.
pub(super) fn install(c: &mut Control) -> Result<(), RunError> {
    let tree = thalweg_engine::command_tree(c).map_err(|e| RunError::Start(e.to_string()))?;
    let registry = Registry::new(crate::api::services(&thalweg_engine::features(c)))
        .map_err(|e| RunError::Start(e.to_string()))?;
    let clients = c.state::<Clients>().borrow().clone();
    let trace = c.state::<Trace>().borrow().clone();
    c.insert_runner(Hub::new(registry, clients).with_trace(trace));
    c.insert_runner(Cli {
        main: MainCli::new(tree),
        hold: None,
        held: Vec::new(),
        held_api: Vec::new(),
    });
    Ok(())
}

/// Advances all pending commands; returns when to call it again.
pub fn poll(c: &mut Control) -> Option<Instant> {
    let cli = c.state::<Cli>();
    let mut cli = cli.borrow_mut();
    let now = Instant::now();
    let next = cli.main.poll_tasks(c, now);
    match cli.hold {
        Some(until) if until > now => Some(next.map_or(until, |next| next.min(until))),
        Some(_) => {
            release(&mut cli, c);
            Some(now)
        }
        None => next,
    }
}

fn release(cli: &mut Cli, c: &mut Control) {
    cli.hold = None;
    for job in std::mem::take(&mut cli.held) {
        cli.main.handle(c, job);
    }
    for job in std::mem::take(&mut cli.held_api) {
        // The call is put off: it may have a command for the command line, which is at work here.
        c.remote().submit(|c| serve_api(c, job));
    }
}

/// Executes requests of a binary API client.
fn serve_api(c: &mut Control, job: Job) {
    let cli = c.state::<Cli>();
    if cli.borrow().hold.is_some() {
        cli.borrow_mut().held_api.push(job);
        return;
    }
    let hub = c.state::<Hub<Control>>();
    hub.borrow_mut().serve(c, job);
}

/// Runs a text of commands for the binary API.
pub(crate) fn run_for_api(c: &mut Control, line: String, reply: impl ReplySink + 'static) {
    let cli = c.state::<Cli>();
    cli.borrow_mut().main.handle(c, CliJob::new(Request::Run { line }, reply));
}

fn take(c: &mut Control, job: CliJob) {
    let cli = c.state::<Cli>();
    let mut cli = cli.borrow_mut();
    match (&job.request, cli.hold) {
        (Request::Run { .. }, Some(_)) => cli.held.push(job),
        _ => cli.main.handle(c, job),
    }
}

/// Cancels all pending commands.
pub(super) fn cancel_all(c: &mut Control) {
    let cli = c.state::<Cli>();
    let mut cli = cli.borrow_mut();
    cli.held.clear();
    cli.held_api.clear();
    cli.main.cancel_all(c);
}

/// Holds session commands back until the router is configured.
pub(super) fn hold(c: &mut Control) {
    c.state::<Cli>().borrow_mut().hold = Some(Instant::now() + SCRIPT_FIRST);
}

/// Ends the router's start: releases the held session commands, and tells features.
pub(super) fn release_held(c: &mut Control) {
    c.publish(Started);
    let cli = c.state::<Cli>();
    release(&mut cli.borrow_mut(), c);
}

/// Runs a file of commands. A command that fails ends it and is logged; the router goes on, as VPP
/// does.
pub(super) fn run_script(c: &mut Control, path: &Path) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let line = format!("exec \"{}\"", path.display());
    let remote = c.remote();
    let reply = move |reply: Reply| {
        let (text, status) = match reply {
            Reply::Text(text) => (text, None),
            Reply::Done { text, status } => (text, Some(status)),
            Reply::Completions(_) => return Ok(()),
        };
        let fails = matches!(status, Some(Status::Failed(_)));
        // Output of earlier commands comes along with the error of the one that failed.
        let mut failed = fails && !text.contains(LINE_ERROR);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            failed |= fails && line.contains(LINE_ERROR);
            match failed {
                true => tracing::error!("startup script: {line}"),
                false => tracing::info!("startup script: {line}"),
            }
        }
        if status.is_some() {
            // The end is put off: this runs inside the command line.
            remote.submit(release_held);
        }
        Ok::<(), Gone>(())
    };
    let cli = c.state::<Cli>();
    let mut cli = cli.borrow_mut();
    cli.hold = Some(Instant::now() + SCRIPT_FIRST);
    cli.main.handle(c, CliJob::new(Request::Run { line }, reply));
}

/// Returns the addresses at which the command line listens.
pub(super) fn addresses(config: &StartupConfig, runtime_dir: &Path) -> Listen {
    match &config.unix.cli_listen {
        Some(CliListen::Tcp { host, port }) if host.contains(':') => {
            Listen::Tcp(format!("[{host}]:{port}"))
        }
        Some(CliListen::Tcp { host, port }) => Listen::Tcp(format!("{host}:{port}")),
        Some(path) => {
            let default = || thalweg_cli::paths::cli_socket(runtime_dir);
            let path = path.socket_path(runtime_dir).unwrap_or_else(default);
            Listen::Unix(std::path::absolute(&path).unwrap_or(path))
        }
        None => Listen::Unix(thalweg_cli::paths::cli_socket(runtime_dir)),
    }
}

/// Starts to listen.
pub(super) fn listen(
    c: &Control,
    config: &StartupConfig,
    runtime_dir: &Path,
) -> Result<Server, RunError> {
    let unix = &config.unix;
    let group = group(unix.gid.as_ref())?;
    if let Some(CliListen::Tcp { host, .. }) = &unix.cli_listen
        && host != "localhost"
        && host.parse::<std::net::IpAddr>().is_err()
    {
        // The look-up may take seconds.
        tracing::info!("command line: looking up `{host}'");
    }
    let defaults = SessionConfig::default();
    let banner = format!("Thalweg v{}\n\n", env!("CARGO_PKG_VERSION"));
    let pager = !unix.cli_no_pager && unix.cli_pager_buffer_limit != Some(0);
    let session = SessionConfig {
        banner: if unix.nobanner { String::new() } else { banner },
        prompt: unix.cli_prompt.clone().unwrap_or(defaults.prompt.clone()),
        colour: !unix.nocolor,
        pager,
        history: unix.cli_history_limit.map_or(defaults.history, |n| n as usize),
        ..defaults
    };
    let listen = vec![addresses(config, runtime_dir)];
    let remote = c.remote();
    let dispatch = move |job: CliJob| match remote.submit(|c| take(c, job)) {
        true => Ok(()),
        false => Err(Gone),
    };
    let server = ServerConfig { listen, group, session, ..ServerConfig::default() };
    Ok(Server::start(server, dispatch)?)
}

/// Starts to serve the binary API.
pub(super) fn listen_api(
    c: &Control,
    config: &StartupConfig,
    runtime_dir: &Path,
) -> Result<server::Server, RunError> {
    let default = || runtime_dir.join(thalweg_api::SOCKET);
    let path = config.socksvr.socket_name.clone().unwrap_or_else(default);
    let path = std::path::absolute(&path).unwrap_or(path);
    let group = group(config.socksvr.group.as_ref().or(config.unix.gid.as_ref()))?;
    let defaults = server::ServerConfig::at(path);
    if config.api_trace.on {
        let items = config.api_trace.nitems.map(|n| n as usize);
        c.state::<Trace>().borrow().switch(true, items);
    }
    let mode = config.socksvr.mode.unwrap_or(defaults.mode);
    let clients = c.state::<Clients>().borrow().clone();
    let remote = c.remote();
    let dispatch = move |job| remote.submit(|c| serve_api(c, job));
    let config = server::ServerConfig { mode, group, ..defaults };
    Ok(server::Server::start(config, clients, dispatch)?)
}

/// Makes the statistics segment, and starts to serve it.
pub(super) fn start_statistics(
    c: &mut Control,
    config: &StartupConfig,
    runtime_dir: &Path,
) -> Result<thalweg_stats::Server, RunError> {
    let group = group(config.unix.gid.as_ref())?;
    statistics::start(c, config, runtime_dir, group)
}

/// Returns the ID of a group.
fn group(name: Option<&String>) -> Result<Option<u32>, RunError> {
    let number = |name: &String| group_id(name).ok_or_else(|| RunError::Group(name.clone()));
    name.map(number).transpose()
}
