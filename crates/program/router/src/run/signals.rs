//! What ends the router from outside: signals, and the console of `unix { interactive }`.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Iterator;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thalweg_cli::client::{Client, interactive_at};
use thalweg_cli::server::Listen;
use thalweg_graph::Remote;

/// Signals that are caught from now on.
pub(super) struct Signals(Iterator);

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP.
    pub(super) fn catch() -> io::Result<Signals> {
        Iterator::new([SIGINT, SIGTERM, SIGHUP]).map(Signals)
    }

    /// Sets `stop` at the first SIGINT or SIGTERM and wakes the main thread; ends the process at
    /// the second. SIGHUP does nothing: there is no configuration to read again.
    pub(super) fn forward(mut self, remote: Remote, stop: Arc<AtomicBool>) -> io::Result<()> {
        let wait = move || {
            for signal in self.0.forever().filter(|signal| *signal != SIGHUP) {
                if stop.swap(true, Ordering::AcqRel) {
                    crate::report!("second signal {signal}: exiting immediately");
                    std::process::exit(128 + signal);
                }
                tracing::info!("signal {signal}");
                remote.submit(|_| ());
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
    }
}

/// Serves the command line on standard input and output: a session on a terminal, else the commands
/// that are piped in. The router ends with it, as after `quit` in VPP.
pub(super) fn console(addresses: Vec<Listen>, remote: Remote, stop: Arc<AtomicBool>) {
    let session = move || {
        let Some(at) = addresses.first() else { return };
        let ended = match io::stdin().is_terminal() {
            true => interactive_at(at).map_err(|e| e.to_string()),
            false => piped(at),
        };
        if let Err(error) = ended {
            tracing::error!("console: {error}");
        }
        stop.store(true, Ordering::Release);
        remote.submit(|_| ());
    };
    if let Err(error) = std::thread::Builder::new().name("console".into()).spawn(session) {
        tracing::error!("console: {error}");
    }
}

fn piped(at: &Listen) -> Result<(), String> {
    let mut client = Client::connect_to(at).map_err(|e| e.to_string())?;
    let mut out = io::stdout();
    for line in io::stdin().lines() {
        let line = line.map_err(|e| e.to_string())?;
        if matches!(line.trim(), "quit" | "q" | "exit") {
            break;
        }
        client.stream(&line, &mut out).map_err(|e| e.to_string())?;
    }
    out.flush().map_err(|e| e.to_string())
}
