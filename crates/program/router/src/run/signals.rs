//! What ends the router from outside: signals, and the console of `unix { interactive }`.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Iterator;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use thalweg_cli::client::{Client, interactive_at};
use thalweg_cli::server::Listen;
use thalweg_graph::{Control, Remote};
use thalweg_terminal::log::Log;

/// Signals that are caught from now on.
pub(super) struct Signals(Iterator);

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP.
    pub(super) fn catch() -> io::Result<Signals> {
        Iterator::new([SIGINT, SIGTERM, SIGHUP]).map(Signals)
    }

    /// Ends the router at the first SIGINT or SIGTERM, in an orderly way if that takes less than
    /// [`PATIENCE`], and at once at the second. SIGHUP does nothing: there is no configuration to
    /// read again, and the log follows its name.
    pub(super) fn forward(mut self, remote: Remote, ending: Arc<Ending>) -> io::Result<()> {
        let wait = move || {
            for signal in self.0.forever().filter(|signal| *signal != SIGHUP) {
                if ending.ask() {
                    tracing::warn!("second signal {signal}: exiting immediately");
                    ending.exit(128 + signal);
                }
                tracing::info!("signal {signal}");
                remote.submit(|_| ());
                // Without another thread there is no second chance but a second signal.
                let of_last_chance = ending.clone();
                let wait = move || of_last_chance.enforce();
                let _ = std::thread::Builder::new().name("ending".into()).spawn(wait);
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
    }
}

/// Time for an orderly end.
const PATIENCE: Duration = Duration::from_millis(900);
/// Part of it that workers get.
const WORKERS: Duration = Duration::from_millis(400);
/// Most that a thread gets on top because it had no processor.
const MOST_WAITED: Duration = Duration::from_secs(4);
/// Time for the last lines of the log.
const LAST_LINES: Duration = Duration::from_millis(100);

/// How long a thread has waited for a processor, in all; zero if the system does not say.
fn waited(tid: i32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat"));
    let nanoseconds = |text: String| text.split_whitespace().nth(1)?.parse().ok();
    Duration::from_nanos(text.ok().and_then(nanoseconds).unwrap_or(0))
}

/// Stops the workers; returns those that go on. What the system does instead of running them is not
/// their fault, and is added to their time.
pub(super) fn stop_workers(c: &mut Control) -> Vec<usize> {
    let tids: Vec<i32> = c.threads().iter().skip(1).map(|thread| thread.tid).collect();
    let now = |tids: &[i32]| tids.iter().map(|tid| waited(*tid)).collect::<Vec<_>>();
    let before = now(&tids);
    let (mut busy, mut given) = (c.stop_workers(WORKERS), Duration::ZERO);
    while !busy.is_empty() {
        let after = now(&tids);
        let since = |worker: &usize| after[*worker].saturating_sub(before[*worker]);
        let most = busy.iter().map(since).max().unwrap_or_default().min(MOST_WAITED);
        if most <= given {
            break;
        }
        busy = c.stop_workers(most - given);
        given = most;
    }
    busy
}

/// Has the last lines of the log written when it is dropped: the process does not wait for the
/// thread that writes them.
pub(super) struct LastLines(pub(super) Log);

impl Drop for LastLines {
    fn drop(&mut self) {
        self.0.flush(LAST_LINES);
    }
}

/// How far the router has come in its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Stage {
    /// It runs.
    Running,
    /// It was asked to end.
    Asked,
    /// The main thread gives up what others use.
    Leaving,
    /// No packet is forwarded any more, and no client is served; memory is given back.
    Over,
}

/// The end of the router, which no other program can keep it from: one that does not read what it
/// is sent, or a file that does not answer.
pub(super) struct Ending {
    stage: AtomicU8,
    log: Log,
}

impl Ending {
    pub(super) fn new(log: Log) -> Arc<Ending> {
        Arc::new(Ending { stage: AtomicU8::new(Stage::Running as u8), log })
    }

    /// Asks the main thread to end. Returns whether it was asked before.
    pub(super) fn ask(&self) -> bool {
        self.stage.fetch_max(Stage::Asked as u8, Ordering::AcqRel) != Stage::Running as u8
    }

    /// Returns whether it was asked to end.
    pub(super) fn is_asked(&self) -> bool {
        self.stage.load(Ordering::Acquire) != Stage::Running as u8
    }

    /// Notes how far the main thread has come.
    pub(super) fn reach(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
    }

    /// Ends the process if the main thread does not, though it had a processor.
    fn enforce(&self) {
        let main = rustix::process::getpid().as_raw_nonzero().get();
        let before = waited(main);
        std::thread::sleep(PATIENCE);
        std::thread::sleep(waited(main).saturating_sub(before).min(MOST_WAITED));
        if self.stage.load(Ordering::Acquire) == Stage::Over as u8 {
            // The system takes memory back faster.
            self.exit(0);
        }
        tracing::error!("the router does not end by itself: exiting");
        self.exit(i32::from(crate::FAILED));
    }

    /// Ends the process now, with the log's last lines if they can be written.
    pub(super) fn exit(&self, status: i32) -> ! {
        self.log.flush(LAST_LINES);
        std::process::exit(status)
    }
}

/// Serves the command line on standard input and output: a session on a terminal, else the commands
/// that are piped in. The router ends with it, as after `quit` in VPP.
pub(super) fn console(addresses: Vec<Listen>, remote: Remote, ending: Arc<Ending>) {
    let session = move || {
        let Some(at) = addresses.first() else { return };
        let ended = match io::stdin().is_terminal() {
            true => interactive_at(at).map_err(|e| e.to_string()),
            false => piped(at),
        };
        if let Err(error) = ended {
            tracing::error!("console: {error}");
        }
        ending.ask();
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
