//! Ends of the router from outside: signals, and the console of `unix { interactive }`.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Iterator;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
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
/// Time after which a thread that had no processor is given up, too.
const MOST_WAITED: Duration = Duration::from_secs(5);
/// Time that such a thread gets at once.
const SLICE: Duration = Duration::from_millis(50);
/// Time for the last lines of the log.
const LAST_LINES: Duration = Duration::from_millis(100);

/// Returns whether a thread of this process runs or wants to, and its processor time in all.
fn processor(tid: i32) -> (bool, Duration) {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/task/{tid}/{file}"));
    let state = read("stat").ok().and_then(|text| text.rsplit(") ").next()?.chars().next());
    let nanoseconds = |text: String| text.split_whitespace().next()?.parse().ok();
    let time = read("schedstat").ok().and_then(nanoseconds).unwrap_or(u64::MAX);
    (state == Some('R'), Duration::from_nanos(time))
}

/// Returns whether another thread of this process than the caller runs or wants to.
fn others_want_a_processor() -> bool {
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut tids = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
    tids.any(|tid| tid != own && processor(tid).0)
}

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Stops the workers; returns those that go on. A worker that the system does not run meanwhile
/// gets more time.
pub(super) fn stop_workers(c: &mut Control, ending: &Ending) -> Vec<usize> {
    let tids: Vec<i32> = c.threads().iter().skip(1).map(|thread| thread.tid).collect();
    let before: Vec<Duration> = tids.iter().map(|tid| processor(*tid).1).collect();
    let begun = Instant::now();
    let mut busy = c.stop_workers(WORKERS);
    let waits = |worker: &usize| {
        let (wants, now) = processor(tids[*worker]);
        wants && now.saturating_sub(before[*worker]) < WORKERS
    };
    while busy.iter().any(waits) && begun.elapsed() < MOST_WAITED {
        ending.more.fetch_add(SLICE.as_millis() as u64, Ordering::AcqRel);
        busy = c.stop_workers(SLICE);
    }
    busy
}

/// Writes the last lines of the log when it is dropped: the process does not wait for the thread
/// that writes them.
pub(super) struct LastLines(pub(super) Log);

impl Drop for LastLines {
    fn drop(&mut self) {
        self.0.flush(LAST_LINES);
    }
}

/// Progress of the router's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Stage {
    /// The router runs.
    Running,
    /// The router was asked to end.
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
    /// Milliseconds that workers got on top.
    more: AtomicU64,
    log: Log,
}

impl Ending {
    pub(super) fn new(log: Log) -> Arc<Ending> {
        Arc::new(Ending {
            stage: AtomicU8::new(Stage::Running as u8),
            more: AtomicU64::new(0),
            log,
        })
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

    /// Ends the process if the main thread does not, though its threads had processors: it may wait
    /// for another one that has none.
    fn enforce(&self) {
        let (begun, before) = (Instant::now(), processor_time());
        loop {
            let more = Duration::from_millis(self.more.load(Ordering::Acquire));
            let left = (PATIENCE + more).saturating_sub(begun.elapsed());
            let used = processor_time().saturating_sub(before);
            let waits = used < PATIENCE && others_want_a_processor();
            if left.is_zero() && !(waits && begun.elapsed() < MOST_WAITED) {
                break;
            }
            std::thread::sleep(left.max(SLICE));
        }
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
