//! `GET /metrics`: counters over HTTP, for Prometheus and its like.
//!
//! * `figures`: what the main thread reads, in one go, of what workers count. It is the same that
//!   `show` commands and the statistics segment tell.
//! * `state`: sessions, connections, stations, rules.
//! * `process`: what the kernel knows of the process; needs no other thread.
//! * `text`: names, labels and helps of the metrics.
//!
//! A thread of its own talks to the clients and writes the text; the main thread is asked for figures
//! once per request at most, and workers for the numbers of sessions and connections alone.

pub mod cli;
mod figures;
mod process;
mod settings;
pub(crate) mod state;
mod text;

pub use figures::Figures;

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use thalweg_graph::{Control, Feature, Remote};
use thalweg_stats::http::{Answer, HttpError, HttpServer, Patience, Request};
use thalweg_stats::metrics::{Format, render};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "metrics",
    about: "counters over HTTP, for Prometheus",
    commands: cli::COMMANDS,
    settings: &[&settings::SETTINGS],
    init: |c| c.insert(Metrics::default()),
    ..Feature::DEFAULT
};

/// How long a client may wait for the main thread.
const PATIENCE: Duration = Duration::from_secs(5);
/// Figures that are younger are told again: so many clients cost the main thread no more than few.
const FRESH: Duration = Duration::from_millis(20);

/// Where metrics are told; state of the main thread.
#[derive(Debug, Default)]
pub struct Metrics {
    /// What the startup configuration says.
    default: Option<String>,
    /// What holds: `host:port`.
    listen: Option<String>,
    server: Option<HttpServer>,
}

impl Metrics {
    /// Where it is said that metrics are told, if they are.
    pub fn listen(&self) -> Option<&str> {
        self.listen.as_deref()
    }

    /// What is told where nothing was said while the router ran.
    pub fn at_start(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

/// Tells metrics at `address` from the start.
///
/// # Errors
/// If the address is none, or taken.
pub fn start(c: &mut Control, address: &str) -> Result<(), HttpError> {
    listen(c, Some(address.to_owned()))?;
    c.state::<Metrics>().borrow_mut().default = Some(address.to_owned());
    Ok(())
}

/// Tells metrics at `address`, or nowhere.
///
/// # Errors
/// If the address is none, or taken; all is as before then.
pub fn listen(c: &mut Control, address: Option<String>) -> Result<(), HttpError> {
    let state = c.state::<Metrics>();
    let mut state = state.borrow_mut();
    if state.listen == address {
        return Ok(());
    }
    let server = match &address {
        Some(address) => {
            let mut pages = Pages { remote: c.remote(), last: None };
            let page = move |request: Request<'_>| pages.answer(request);
            let server = HttpServer::start(address, "metrics", Patience::default(), page)?;
            tracing::info!("metrics are at http://{}/metrics", server.address());
            Some(server)
        }
        None => None,
    };
    (state.listen, state.server) = (address, server);
    Ok(())
}

/// What clients get; lives on the server's thread.
struct Pages {
    remote: Remote,
    last: Option<(Instant, Arc<Figures>)>,
}

impl Pages {
    fn answer(&mut self, request: Request<'_>) -> Answer {
        match request.path {
            "/metrics" => {}
            "/" => return Answer::text(200, "Thalweg's metrics are at /metrics"),
            _ => return Answer::text(404, "there is nothing but /metrics"),
        }
        let Some(figures) = self.figures() else {
            return Answer::text(503, "the main thread is busy; ask again");
        };
        let format = Format::accepted(request.accept);
        let body = render(text::All { figures, process: process::read() }, format);
        Answer { status: 200, media_type: format.media_type(), body }
    }

    fn figures(&mut self) -> Option<Arc<Figures>> {
        if let Some((_, figures)) = self.last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Some(figures.clone());
        }
        let (tell, told) = mpsc::sync_channel(1);
        self.remote.submit(move |c| {
            // Nobody listens any more if it took too long.
            let _ = tell.send(Figures::read(c));
        });
        let figures = Arc::new(told.recv_timeout(PATIENCE).ok()?);
        self.last = Some((Instant::now(), figures.clone()));
        Some(figures)
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
