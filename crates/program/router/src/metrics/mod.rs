//! `GET /metrics`: counters over HTTP, for Prometheus and its like.
//!
//! * `figures`: a snapshot that the main thread takes of the workers' counters, the same as those
//!   of `show` commands and of the statistics segment.
//! * `state`: sessions, connections, learned MAC addresses, flow rules.
//! * `process`: process metrics from /proc, read without another thread.
//! * `text`: names, labels and help texts of the metrics.
//!
//! A thread of its own talks to the clients and writes the text; the main thread is asked for
//! figures once per request at most, and workers for the numbers of sessions and connections alone.

pub mod cli;
mod figures;
mod process;
mod settings;
pub(crate) mod state;
mod text;
mod twins;

pub use figures::Figures;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use thalweg_engine::Feature;
use thalweg_graph::{Control, Remote};
use thalweg_stats::http::{Answer, HttpError, HttpServer, Patience, Request};
use thalweg_stats::metrics::{Format, render};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "metrics",
    about: "metrics over HTTP, for Prometheus",
    commands: cli::COMMANDS,
    settings: &[&settings::SETTINGS],
    init: |c| c.insert(Metrics::default()),
    ..Feature::DEFAULT
};

/// Time after which a client that waits for the main thread gets an error.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a name is looked up again that was not found at the start, or whose address was
/// not there.
const AGAIN: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });
/// Figures younger than this are served again, so that the main thread's load does not grow with
/// the number of clients.
const FRESH: Duration = Duration::from_millis(20);

/// The metrics endpoint; state of the main thread.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Address from the startup configuration.
    default: Option<String>,
    /// Current address: `host:port`.
    listen: Option<String>,
    /// True if a command chose it, also if it equals the one from the startup configuration.
    is_chosen: bool,
    server: Option<HttpServer>,
}

impl Metrics {
    /// Returns the address at which metrics are served, if any.
    pub fn listen(&self) -> Option<&str> {
        self.listen.as_deref()
    }

    /// Returns what a command has chosen: an address, or none.
    fn chosen(&self) -> Option<Option<&str>> {
        self.is_chosen.then(|| self.listen())
    }

    /// Returns the address from the startup configuration.
    pub fn at_start(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

/// Serves metrics at `address` by default. A name is looked up meanwhile, which may take seconds,
/// and again until it is found: at the start of a machine, its resolver may come later.
///
/// # Errors
/// If the address is in use, or invalid.
pub fn start(c: &mut Control, address: &str) -> Result<(), HttpError> {
    c.state::<Metrics>().borrow_mut().default = Some(address.to_owned());
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    if address.parse::<SocketAddr>().is_ok() || host == "localhost" {
        return listen(c, Some((address.to_owned(), resolve(address)?)));
    }
    tracing::info!("metrics: looking up `{host}'");
    Ok(look_up(c, address.to_owned(), resolve, false)?)
}

/// Resolves `host:port`.
type Resolver = fn(&str) -> Result<Vec<SocketAddr>, HttpError>;

/// Looks a name up in a thread, then serves metrics there. `failed`: the log has said already that
/// the name was not found.
fn look_up(c: &mut Control, name: String, resolver: Resolver, failed: bool) -> std::io::Result<()> {
    let remote = c.remote();
    let task = move || {
        let found = resolver(&name);
        remote.submit(move |c| {
            // A command may have chosen another one meanwhile.
            if c.state::<Metrics>().borrow().is_chosen {
                return;
            }
            let Err(e) = found.and_then(|all| listen(c, Some((name.clone(), all)))) else { return };
            if !failed {
                let seconds = AGAIN.as_secs();
                tracing::error!(
                    "metrics: {e}; tried again each {seconds} s; `metrics listen' serves them \
                     elsewhere"
                );
            }
            c.after(AGAIN, move |c| {
                if let Err(e) = look_up(c, name, resolver, true) {
                    tracing::error!("metrics: {e}");
                }
            });
        });
    };
    std::thread::Builder::new().name("metrics-name".into()).spawn(task).map(drop)
}

/// Resolves `host:port`. Asking for a name may take seconds: not for the main thread.
///
/// # Errors
/// If there is no such host.
fn resolve(address: &str) -> Result<Vec<SocketAddr>, HttpError> {
    let fail = |source| HttpError::Listen { address: address.into(), source };
    Ok(address.to_socket_addrs().map_err(fail)?.collect())
}

/// Serves metrics at an address, given with what it resolves to, or stops serving them.
///
/// # Errors
/// If the address is invalid or in use; nothing changes then.
fn listen(c: &mut Control, to: Option<(String, Vec<SocketAddr>)>) -> Result<(), HttpError> {
    let state = c.state::<Metrics>();
    let mut state = state.borrow_mut();
    let (address, resolved) = to.unzip();
    if state.listen == address {
        return Ok(());
    }
    let mut server = None;
    if let Some(all) = resolved {
        let start = |at: &SocketAddr| {
            let mut pages = Pages { remote: c.remote(), last: None };
            let page = move |request: Request<'_>| pages.answer(request);
            HttpServer::start(&at.to_string(), "metrics", Patience::default(), page)
        };
        let mut tried = Err(HttpError::Listen {
            address: address.clone().unwrap_or_default(),
            source: std::io::Error::other("the name has no address"),
        });
        for at in &all {
            tried = start(at);
            if tried.is_ok() {
                break;
            }
        }
        let started = tried?;
        tracing::info!("metrics: serving at http://{}/metrics", started.address());
        server = Some(started);
    }
    (state.listen, state.server) = (address, server);
    Ok(())
}

/// Answers HTTP requests; lives on the server's thread.
struct Pages {
    remote: Remote,
    last: Option<(Instant, Arc<Figures>)>,
}

impl Pages {
    fn answer(&mut self, request: Request<'_>) -> Answer {
        match request.path {
            "/metrics" => {}
            "/" => return Answer::text(200, "Thalweg's metrics are at /metrics"),
            _ => return Answer::text(404, "not found: metrics are at /metrics"),
        }
        let Some(figures) = self.figures() else {
            return Answer::text(503, "main thread busy; try again");
        };
        let format = Format::accepted(request.accept);
        let body = render(text::All { figures, process: process::read() }, format);
        Answer { status: 200, media_type: format.media_type(), body }
    }

    fn figures(&mut self) -> Option<Arc<Figures>> {
        if let Some((_, figures)) = self.last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Some(figures.clone());
        }
        let (reply, replies) = mpsc::sync_channel(1);
        self.remote.submit(move |c| {
            // The receiver is gone if this took longer than `PATIENCE`.
            Figures::read_then(c, move |figures| drop(reply.send(figures)));
        });
        let figures = Arc::new(replies.recv_timeout(PATIENCE).ok()?);
        self.last = Some((Instant::now(), figures.clone()));
        Some(figures)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use thalweg_buffer::PoolConfig;
    use thalweg_graph::EngineConfig;

    /// Look-ups before a name is found.
    const IN_VAIN: u32 = 3;

    fn late(_: &str) -> Result<Vec<SocketAddr>, HttpError> {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        match ASKED.fetch_add(1, Ordering::Relaxed) {
            0..IN_VAIN => Err(HttpError::Listen {
                address: "late".into(),
                source: std::io::Error::other("no such host"),
            }),
            _ => Ok(vec![([127, 0, 0, 1], 0).into()]),
        }
    }

    #[test]
    fn a_name_that_is_not_found_is_looked_up_again() {
        let pool = PoolConfig { buffers: 1024, ..PoolConfig::default() };
        let config = EngineConfig { pool, ..EngineConfig::default() };
        let mut c = Control::new(config).expect("an engine");
        thalweg_engine::start(&mut c, crate::features::FEATURES).expect("a graph");
        look_up(&mut c, "late:0".into(), late, false).expect("a thread");
        let begun = Instant::now();
        while c.state::<Metrics>().borrow().listen().is_none() {
            assert!(begun.elapsed() < thalweg_testkit::WAIT_LIMIT);
            c.run_once(Some(Duration::from_millis(5)));
        }
        assert_eq!(c.state::<Metrics>().borrow().listen(), Some("late:0"));
        c.shut_down();
    }
}

#[cfg(test)]
mod lists {
    #[test]
    fn commands_are_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/metrics/cli"),
            what: "command",
            list: "COMMANDS",
            element: "&dyn thalweg_cli::Command<thalweg_graph::Control>",
            item: "COMMAND",
        }
        .check();
    }
}
