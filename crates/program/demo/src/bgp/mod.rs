//! `thalweg demo bgp`: a customer's edge with full routes of two providers, by real daemons.
//!
//! The router is between a customer and two providers. A routing daemon at the twins of its
//! interfaces has sessions with both, and all routes; those of the first provider are better. A
//! stream of numbered datagrams goes from the customer to addresses all over the table. Then the
//! link to the first provider fails and comes back, the router is killed and started again, and so
//! is the daemon. The datagrams that are lost meanwhile say how long forwarding was away.

mod claims;
mod configs;
mod stage;
mod stream;
mod view;

use crate::claims::{Claim, Ended};
use crate::screen::Screen;
use crate::{FAILED, Interrupted, last_words, print_claims};
use anyhow::{Context, Result, bail};
use claims::Evidence;
use configs::Software;
use stage::{Daemon, Looks, Places, Providers, Router, Session};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stream::{DESTINATIONS, Losses, Stream};
use thalweg_netns::{enter_user_namespace, require_tools};
use view::{Event, Moment};

/// Time that nothing is done in, to see that nothing is lost.
const QUIET: Duration = Duration::from_secs(2);
/// Time in which every destination gets some datagrams.
const SAMPLE: Duration = Duration::from_millis(250);
/// Time for datagrams on the way.
const ON_THE_WAY: Duration = Duration::from_millis(500);
/// Time between two looks at the sessions and the links.
const LOOK: Duration = Duration::from_millis(500);
/// Limit of a step, and of each 100,000 routes.
const STEP: Duration = Duration::from_secs(60);
const STEP_OF_ROUTES: Duration = Duration::from_secs(30);
/// Steps, for the bar.
const STEPS: f64 = 7.0;

/// Shows a customer's edge with full routes of two providers, BIRD and FRRouting: how fast they
/// come, and how long forwarding is away as a link fails and is repaired, and as the router and the
/// routing daemon restart.
///
/// Everything runs in network namespaces of its own and is gone afterwards. Neither root nor a
/// second machine is needed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Routes of each provider
    #[arg(long, default_value_t = 100_000,
        value_parser = clap::value_parser!(u32).range(1000..=i64::from(configs::MOST)))]
    routes: u32,
    /// The routing daemon at the router
    #[arg(long, value_enum, default_value_t = Software::Bird)]
    daemon: Software,
    /// Lines of text instead of the whole screen
    #[arg(long)]
    plain: bool,
    /// Write the results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  thalweg demo bgp
  thalweg demo bgp --daemon frr --plain
  thalweg demo bgp --routes 1000000 --json result.json

The status is 0 if every claim of the summary holds.";

/// The program. Call it while there is one thread: without root it enters a user namespace.
pub fn main(args: &Args) -> ExitCode {
    match demo(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) if error.is::<Interrupted>() => {
            crate::report!("interrupted; nothing is left behind");
            ExitCode::from(130)
        }
        Err(error) => crate::fail(FAILED, &format!("{error:#}")),
    }
}

fn demo(args: &Args) -> Result<bool> {
    if !rustix::process::geteuid().is_root() {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "bash", "unshare"])?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let dir = tempfile::Builder::new().prefix("thalweg-demo-").tempdir()?;
    let screen = Screen::open(args.plain)?;
    let mut show = Play::begin(args, &dir, screen, stop)?;
    let evidence = show.all().with_context(|| show.said())?;
    drop(show);
    drop(dir);
    let claims = claims::judge(&evidence);
    print_summary(&evidence, &claims);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&claims::to_json(&evidence, &claims))?;
        std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))?;
    }
    Ok(claims.iter().all(|claim| claim.holds))
}

/// The demonstration while it runs. Parts end in the order of the fields.
struct Play {
    screen: Option<Screen>,
    stop: Arc<AtomicBool>,
    software: Software,
    routes: u32,
    begin: Instant,
    phase: &'static str,
    step: f64,
    looked: Option<Instant>,
    received: [u64; 2],
    rates: [f64; 2],
    sessions: [Session; 2],
    events: Vec<Event>,
    /// The begin of the event that goes on.
    open: Option<Instant>,
    stream: Option<Stream>,
    looks: Looks,
    daemon: Daemon,
    _providers: Providers,
    router: Option<Router>,
    places: Places,
}

impl Play {
    fn begin(
        args: &Args,
        dir: &tempfile::TempDir,
        screen: Screen,
        stop: Arc<AtomicBool>,
    ) -> Result<Play> {
        let places = Places::new()?;
        let router = Router::start(&places, dir.path())?;
        let looks = Looks::start(router.socket(), args.routes)?;
        let begin = Instant::now();
        let daemon = Daemon::start(args.daemon, &places.plane)?;
        let providers = Providers::start(&places, args.routes)?;
        Ok(Play {
            screen: Some(screen),
            stop,
            software: args.daemon,
            routes: args.routes,
            begin,
            phase: "routes arrive",
            step: 0.0,
            looked: None,
            received: [0; 2],
            rates: [0.0; 2],
            sessions: Default::default(),
            events: Vec::new(),
            open: None,
            stream: None,
            looks,
            daemon,
            _providers: providers,
            router: Some(router),
            places,
        })
    }

    /// Returns the last lines of the daemon's output, for an error.
    fn said(&mut self) -> String {
        // The screen would hide it.
        self.screen = None;
        let said = self.daemon.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// All steps.
    fn all(&mut self) -> Result<Evidence> {
        self.until("all routes in the router", Play::is_full)?;
        // The sessions of both providers may be there later than the routes of one.
        let ready = self.begin.elapsed();
        let first = self.looks.first_full();
        let filled = first.map_or(ready, |at| at.full.duration_since(self.begin));
        let behind = first.map_or(filled, |at| at.full.duration_since(at.noticed));
        let addresses = configs::addresses(self.routes, DESTINATIONS);
        let (from, to) = (&self.places.customer, &self.places.world);
        self.stream = Some(Stream::start(from, to, &addresses)?);
        self.until("the stream", Play::flows)?;

        self.next("steady");
        let steady = self.quiet()?;
        let before = self.shares()?;

        self.happens("the link to provider one fails");
        self.places.one.ip("link set edge down")?;
        let failure = self.settled(|s| s.flows() && !s.sessions[0].established)?;
        let after = self.shares()?;

        self.happens("the link is repaired");
        self.places.one.ip("link set edge up")?;
        let repair = self.settled(|s| s.flows() && s.is_full() && s.rates[1] < 1.0)?;
        let again = self.shares()?;

        let marks = self.sessions.clone();
        self.happens("the router is killed and starts again");
        self.router()?.kill_and_start()?;
        let restart = self.settled(|s| s.flows() && s.is_full())?;
        self.look()?;
        let sessions_stayed = self.sessions == marks;

        self.happens("the routing daemon is killed and starts again");
        self.daemon.kill_and_start()?;
        let is_new = |(now, before): (&Session, &Session)| now.mark != before.mark;
        let all_new = |s: &Play| s.sessions.iter().zip(&marks).all(is_new);
        let daemon = self.settled(|s| s.flows() && s.is_full() && all_new(s))?;

        self.next("tables are compared");
        let (kernel, router, differ) = self.compare()?;
        self.stream = None;
        self.next("the end");
        let ending = self.router.take().context("the router does not run")?.stop()?;
        let clean = ending.status.success();
        let words = last_words(&ending.stderr, &ending.status);
        self.screen = None;
        Ok(Evidence {
            software: self.software,
            routes: self.routes,
            filled,
            ready,
            behind,
            steady,
            failure,
            repair,
            restart,
            daemon,
            sessions_stayed,
            by_way: [before, after, again],
            kernel,
            router,
            differ,
            ending: Ended { clean, words },
        })
    }

    fn router(&mut self) -> Result<&mut Router> {
        self.router.as_mut().context("the router does not run")
    }

    fn next(&mut self, phase: &'static str) {
        self.phase = phase;
        self.step += 1.0;
    }

    /// Begins an event.
    fn happens(&mut self, name: &'static str) {
        self.next(name);
        self.open = Some(Instant::now());
        let at = self.begin.elapsed();
        self.events.push(Event { name, at, losses: Losses::default(), tables: None, open: true });
    }

    /// Waits until a condition holds, and nothing more is lost; ends the event.
    fn settled(&mut self, is: impl Fn(&Play) -> bool) -> Result<Event> {
        let begin = self.open.context("nothing has happened")?;
        // The condition may hold before the event is noticed.
        self.until("the event to be noticed", |_| begin.elapsed() > SAMPLE * 2)?;
        self.until("the stream and the tables", is)?;
        self.quiet()?;
        self.update();
        self.open = None;
        let last = self.looks.last_full().filter(|at| at.noticed > begin);
        let event = self.events.last_mut().context("nothing has happened")?;
        let since = |at: Instant| at.duration_since(begin);
        event.tables = last.map(|at| (since(at.noticed), since(at.full)));
        event.open = false;
        Ok(event.clone())
    }

    /// Counts what the event that goes on has done so far.
    fn update(&mut self) {
        let (Some(begin), Some(stream)) = (self.open, &self.stream) else { return };
        if let (Some(event), Some(now)) =
            (self.events.last_mut(), Instant::now().checked_sub(ON_THE_WAY))
        {
            event.losses = stream.losses(begin, now);
        }
    }

    /// Does nothing for a while; returns what was lost in it.
    fn quiet(&mut self) -> Result<Losses> {
        let from = Instant::now();
        self.until("some seconds", |_| from.elapsed() > QUIET + ON_THE_WAY)?;
        let stream = self.stream.as_ref().context("no stream")?;
        Ok(stream.losses(from, from + QUIET))
    }

    /// Tells if every destination gets its datagrams.
    fn flows(&self) -> bool {
        let end = Instant::now().checked_sub(ON_THE_WAY);
        let begin = end.and_then(|end| end.checked_sub(SAMPLE));
        let span = begin.zip(end);
        self.stream.as_ref().zip(span).is_some_and(|(s, (begin, end))| s.all_arrive(begin, end))
    }

    /// Tells if the sessions are established, and all routes are the router's.
    fn is_full(&self) -> bool {
        self.sessions.iter().all(|session| session.established)
            && self.looks.table().is_some_and(|table| table.has_all(self.routes))
    }

    /// Shares of the stream by way of the providers, in percent.
    fn shares(&mut self) -> Result<[f64; 2]> {
        let before = self.places.received()?;
        let from = Instant::now();
        self.until("some packets", |_| from.elapsed() > SAMPLE)?;
        let now = self.places.received()?;
        let counts = [0, 1].map(|i| now[i].saturating_sub(before[i]) as f64);
        let all = (counts[0] + counts[1]).max(1.0);
        Ok(counts.map(|count| count * 100.0 / all))
    }

    /// Counts the routes of both sides, and those that differ.
    fn compare(&mut self) -> Result<(u64, u64, u64)> {
        self.still()?;
        let kernel = stage::kernel_routes(&self.places.plane)?;
        let socket = self.router()?.socket();
        stage::resync(&socket)?;
        let mut differ = None;
        let limit = Instant::now() + self.limit();
        while differ.is_none() {
            differ = stage::last_list(&socket)?;
            if Instant::now() > limit {
                bail!("the router does not list the kernel's routes");
            }
            self.tick()?;
        }
        let router = self.looks.table().map_or(0, |table| table.forwarded);
        Ok((kernel, router, differ.unwrap_or(0)))
    }

    /// Waits until the kernel announces no change for a while: daemons go on behind the scenes.
    fn still(&mut self) -> Result<()> {
        let begin = Instant::now();
        let mut last = (self.looks.table(), begin);
        while last.1.elapsed() < QUIET && begin.elapsed() < self.limit() {
            self.tick()?;
            let now = self.looks.table();
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(())
    }

    fn limit(&self) -> Duration {
        STEP + STEP_OF_ROUTES.mul_f64(f64::from(self.routes) / 1e5)
    }

    /// Shows what happens until a condition holds.
    fn until(&mut self, what: &str, is: impl Fn(&Play) -> bool) -> Result<()> {
        let begin = Instant::now();
        while !is(self) {
            if begin.elapsed() > self.limit() {
                bail!("waited {} s for {what}, while {}", self.limit().as_secs(), self.phase);
            }
            self.tick()?;
        }
        Ok(())
    }

    /// Looks at sessions and links.
    fn look(&mut self) -> Result<()> {
        let seconds = self.looked.map(|at| at.elapsed().as_secs_f64());
        // A daemon that starts does not answer.
        self.sessions = self.daemon.sessions().unwrap_or_default();
        let received = self.places.received()?;
        if let Some(seconds) = seconds {
            let rate = |i: usize| received[i].saturating_sub(self.received[i]) as f64 / seconds;
            self.rates = [rate(0), rate(1)];
        }
        (self.received, self.looked) = (received, Some(Instant::now()));
        Ok(())
    }

    fn tick(&mut self) -> Result<()> {
        if let Some(router) = &mut self.router {
            router.alive()?;
        }
        if self.looked.is_none_or(|at| at.elapsed() > LOOK) {
            self.look()?;
        }
        let Some(mut screen) = self.screen.take() else { bail!("no screen") };
        if screen.is_due() {
            self.update();
            let (sent, received) = self.stream.as_ref().map_or((0, 0), Stream::counts);
            screen.show(&Moment {
                phase: self.phase,
                done: self.step / STEPS,
                seconds: self.begin.elapsed().as_secs_f64(),
                software: self.software,
                sessions: &self.sessions,
                table: self.looks.table(),
                sent,
                received,
                rates: self.rates,
                events: &self.events,
            })?;
        }
        let ended = screen.wait(Duration::from_millis(50))?;
        self.screen = Some(screen);
        if ended || self.stop.load(Ordering::Acquire) {
            return Err(Interrupted.into());
        }
        Ok(())
    }
}

fn print_summary(e: &Evidence, claims: &[Claim]) {
    let events = [&e.failure, &e.repair, &e.restart, &e.daemon].map(Clone::clone);
    crate::say!("{}", view::events(&events).text());
    print_claims(claims);
    let program = std::env::current_exe().unwrap_or_else(|_| "thalweg".into());
    let here = std::env::current_dir().unwrap_or_default();
    let program = program.strip_prefix(here).unwrap_or(&program).display();
    crate::say!("\nTry next:\n");
    for (words, about) in MORE {
        crate::say!("    {program} {words}   # {about}");
    }
    crate::say!("\nYour own: docs/bird.md, docs/frr.md and examples/bgp-edge.");
}

/// Other things to try, as lines to paste, with what each shows.
pub const MORE: [(&str, &str); 2] = [
    ("demo bgp --daemon frr", "the same with FRRouting at the router"),
    ("demo bgp --routes 1000000", "a full table, in some minutes"),
];
