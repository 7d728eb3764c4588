//! `thalweg demo`: a router between two hosts, real traffic, and the samples of it.
//!
//! Three network namespaces, `left — router — right`, are joined by virtual Ethernet. The router in
//! the middle is this program's `run`; a thread of the demonstration is its sFlow collector. Pings
//! and iperf3 make the traffic. In the end every claim is checked against an independent count.

#![forbid(unsafe_code)]

mod bgp;
mod claims;
mod collector;
mod figures;
mod grid;
mod picture;
mod router;
mod screen;
mod terminal;
mod traffic;
mod view;

use anyhow::{Context, Result, bail, ensure};
use claims::{Claim, Ended, Evidence, Talker};
use collector::Collector;
use figures::{Figures, Poller};
use grid::Grid;
use router::{COLLECTOR_PORT, Files, Router, SAMPLING_RATE};
use screen::Screen;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use thalweg_cli::client::Client;
use thalweg_netns::{Cmd, Lab, LabOptions, enter_user_namespace, require_tools, wait_until};
use thalweg_sflow::estimate::{Estimate, Order};
use thalweg_terminal::{FAILED, fail, report, say};
use traffic::{Phase, Plan, Traffic, Truth};
use view::Moment;

/// Prefix of the namespaces of `--keep`.
const PREFIX: &str = "thalweg";
const SIDES: [&str; 3] = ["left", "router", "right"];

/// Time that the last samples may take; they take about a second.
const LAST_SAMPLES: Duration = Duration::from_secs(5);

/// Shows a router between two hosts at work: pings, TCP and UDP through it, what its nodes cost,
/// and its sFlow estimates next to the true numbers.
///
/// Everything runs in network namespaces of its own and is gone afterwards. Neither root nor a
/// second machine is needed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Leave the namespaces and the router in place afterwards, to try commands
    #[arg(long)]
    keep: bool,
    /// End what an earlier --keep has left
    #[arg(long, conflicts_with_all = ["keep", "json"])]
    end: bool,
    /// How long it takes, roughly
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(8..=3600))]
    seconds: u64,
    /// Lines of text instead of the whole screen
    #[arg(long)]
    plain: bool,
    /// Write the results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the last screen with traffic into this file, as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "end")]
    picture: Option<PathBuf>,
}

/// Other demonstrations.
#[derive(clap::Subcommand)]
enum Other {
    /// Show full routes of two providers, a failure and restarts
    Bgp(bgp::Args),
}

const EXAMPLES: &str = "\
Examples:
  thalweg demo
  thalweg demo bgp
  thalweg demo --plain --json result.json
  thalweg demo --picture demo.svg
  thalweg demo --keep      then follow what it prints
  thalweg demo --end

The status is 0 if every claim of the summary holds.";

/// The program. Call it while there is one thread: without root it enters a user namespace.
pub fn main(args: &Args) -> ExitCode {
    if let Some(Other::Bgp(args)) = &args.other {
        return bgp::main(args);
    }
    match demo(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(crate::FAILED),
        Err(error) if error.is::<Interrupted>() => {
            crate::report!("interrupted; nothing is left behind");
            ExitCode::from(130)
        }
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

/// The user has had enough.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

fn demo(args: &Args) -> Result<bool> {
    let user = rustix::process::getuid().as_raw();
    let kept = Files { dir: std::env::temp_dir().join(format!("thalweg-demo-{user}")) };
    if args.end {
        return end(&kept).map(|()| true);
    }
    if !rustix::process::geteuid().is_root() {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "ping", "iperf3", "setpriv"])?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    if !args.keep {
        let dir = tempfile::Builder::new().prefix("thalweg-demo-").tempdir()?;
        return show(args, &Files { dir: dir.path().to_owned() }, &stop);
    }
    ensure!(
        std::fs::create_dir(&kept.dir).is_ok(),
        "{} is there already: an earlier demo goes on; to end it: thalweg demo --end",
        kept.dir.display()
    );
    let shown = show(args, &kept, &stop);
    if shown.is_err() {
        // A lab that is set up half-way is of no use.
        end(&kept)?;
    }
    shown
}

/// Ends a kept router and removes its namespaces and files.
fn end(files: &Files) -> Result<()> {
    ensure!(
        thalweg_socket::stranger_of(&files.dir).is_none(),
        "{} belongs to another user: it is no demo of yours",
        files.dir.display()
    );
    let was_running = router::end_kept(files)?;
    for side in SIDES {
        let name = format!("{PREFIX}-{side}");
        if Path::new("/run/netns").join(&name).exists() {
            Cmd::new("ip").args(["netns", "delete", &name]).output()?;
        }
    }
    if files.dir.exists() {
        std::fs::remove_dir_all(&files.dir)
            .with_context(|| format!("remove {}", files.dir.display()))?;
        crate::say!("{}", if was_running { "The demo's router has ended." } else { "Cleaned up." });
    } else {
        crate::say!("There is no demo to end.");
    }
    Ok(())
}

/// Parts that run while the demonstration does.
struct Stage {
    lab: Lab,
    collector: Collector,
    router: Router,
    poller: Poller,
    truth: Truth,
}

fn show(args: &Args, files: &Files, stop: &AtomicBool) -> Result<bool> {
    let name_prefix = args.keep.then(|| PREFIX.to_owned());
    let lab = Lab::build(&LabOptions { name_prefix, ..LabOptions::default() })?;
    if args.keep {
        // Only `end` removes them, not the drop of the last handle.
        lab.keep();
    }
    let collector = Collector::start(&lab.router, COLLECTOR_PORT)?;
    let router = Router::start(&lab, files, args.keep)?;
    let poller = Poller::start(&files.socket())?;
    let truth = Truth::since_now(&lab)?;
    let mut stage = Stage { lab, collector, router, poller, truth };
    let phase = Phase::new();
    let result = traffic::start(&stage.lab, Plan::of(args.seconds), phase.clone())?;
    let mut last = None;
    let traffic = match play(&mut stage, &result, &phase, args, &mut last, stop) {
        Ok(traffic) => traffic,
        Err(error) => {
            traffic::abandon(&result, stage.router.pid());
            // Kept or not, there is nothing to see of half a demonstration.
            let _ = stage.router.stop();
            return Err(error);
        }
    };
    if let Some(path) = &args.picture {
        let screen = last.context("no screen to draw: no packets have passed")?;
        let write = std::fs::write(path, picture::svg(&screen));
        write.with_context(|| format!("write {}", path.display()))?;
    }
    let mut evidence = gather(&stage, files, traffic)?;
    let pid = stage.router.pid();
    if !args.keep {
        evidence.ending = Some(ending(stage.router)?);
    }
    let claims = claims::judge(&evidence);
    print_summary(&evidence, &claims);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&claims::to_json(&evidence, &claims))?;
        std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))?;
    }
    match args.keep {
        true => print_what_next(files, pid),
        false => print_more(),
    }
    Ok(claims.iter().all(|claim| claim.holds))
}

/// Shows the traffic until it is over. `last` becomes the last screen with traffic, if a picture of
/// it was asked for.
fn play(
    stage: &mut Stage,
    result: &Receiver<Result<Traffic>>,
    phase: &Phase,
    args: &Args,
    last: &mut Option<Grid>,
    stop: &AtomicBool,
) -> Result<Traffic> {
    let plan = Plan::of(args.seconds);
    let start = Instant::now();
    let mut screen = Screen::open(args.plain)?;
    let mut over: Option<(Traffic, Instant)> = None;
    loop {
        match result.try_recv() {
            Ok(done) => over = Some((done?, Instant::now())),
            Err(TryRecvError::Disconnected) if over.is_none() => {
                bail!("the traffic ended without a result")
            }
            Err(_) => {}
        }
        let late = |end: &Instant| end.elapsed() > LAST_SAMPLES;
        if let Some((traffic, _)) = over.take_if(|(_, end)| late(end) || samples_are_in(stage)) {
            return Ok(traffic);
        }
        if let Some(status) = stage.router.ended()? {
            drop(screen);
            bail!("the router ended with {status}\n{}", stage.router.log());
        }
        if screen.is_due() {
            let seconds = start.elapsed().as_secs_f64();
            let figures = stage.poller.latest();
            let received = stage.collector.collected().flow_samples;
            let moment = Moment {
                phase: phase.get(),
                done: seconds / plan.total().as_secs_f64(),
                seconds,
                figures: figures.as_ref(),
                talkers: &talkers(stage)?,
                received,
            };
            screen.show(&moment)?;
            if args.picture.is_some() && over.is_none() && moment.has_traffic() {
                *last = Some(moment.screen());
            }
        }
        if screen.wait(Duration::from_millis(50))? || stop.load(Ordering::Acquire) {
            return Err(Interrupted.into());
        }
    }
}

/// True if the router has sent all samples, and the collector has them.
fn samples_are_in(stage: &Stage) -> bool {
    let received = stage.collector.collected().flow_samples;
    let taken = stage.poller.latest().map(|(before, now)| {
        // Two readings alike: nothing moves any more.
        (before.samples == now.samples).then_some(now.samples.taken)
    });
    taken.flatten() == Some(received)
}

/// The conversations: what the samples say, and what the hosts counted.
fn talkers(stage: &Stage) -> Result<Vec<Talker>> {
    let truth = stage.truth.packets()?;
    let collected = stage.collector.collected();
    let estimated = collected.talkers.top(32, Order::Packets);
    drop(collected);
    let none = Estimate::packets(0, f64::from(SAMPLING_RATE));
    let mut all: Vec<Talker> = truth
        .into_iter()
        .map(|(key, truth)| match estimated.iter().find(|t| t.key == key) {
            Some(t) => Talker { key, packets: t.packets, bytes: t.bytes, truth },
            None => Talker { key, packets: none, bytes: Estimate::default(), truth },
        })
        .collect();
    all.sort_by(|a, b| b.packets.value.total_cmp(&a.packets.value).then(b.truth.cmp(&a.truth)));
    Ok(all)
}

/// Takes down everything that the claims are judged by, now that nothing moves.
fn gather(stage: &Stage, files: &Files, traffic: Traffic) -> Result<Evidence> {
    let mut client = Client::connect(files.socket())?;
    if let Some(error) = stage.poller.error() {
        bail!("the router does not answer: {error}");
    }
    let mut settled = None;
    // Hosts may still ask for each other's hardware address; wait for two readings alike.
    let read = wait_until(Duration::from_secs(5), "the router to be quiet", || {
        let now = Figures::read(&mut client);
        let alike = matches!((&settled, &now), (Some(before), Ok(now)) if alike(before, now));
        settled = now.ok();
        if alike { settled.clone() } else { None }
    });
    let figures = read?;
    let mut wires = Vec::new();
    for side in [&stage.lab.left, &stage.lab.right] {
        let name = format!("host-{}", side.router_dev);
        let sent = side.ns.link(side.dev)?.tx_packets;
        let seen = figures.interfaces.iter().find(|i| i.name == name);
        let seen = seen.map_or(0, |i| i.count("rx_packets") + i.missed());
        wires.push((name, sent, seen));
    }
    let talkers = talkers(stage)?;
    let collected = stage.collector.collected();
    Ok(Evidence {
        traffic,
        samples: figures.samples,
        received: collected.flow_samples,
        malformed: collected.malformed,
        talkers,
        accounting: figures.accounting,
        wires,
        ending: None,
    })
}

fn alike(before: &Figures, now: &Figures) -> bool {
    before.interfaces == now.interfaces && before.samples == now.samples
}

fn ending(router: Router) -> Result<Ended> {
    let ending = router.stop()?;
    let words = last_words(&ending.log, &ending.status);
    Ok(Ended { clean: ending.status.success(), words })
}

/// The last line of the log of a router that has ended, with its status if that is not 0.
fn last_words(log: &str, status: &ExitStatus) -> String {
    let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // The log's time and level are of no interest here.
    let words = last.split_once(" INFO ").map_or(last, |(_, words)| words);
    if status.success() { words.to_owned() } else { format!("{status}: {last}") }
}

fn print_summary(evidence: &Evidence, claims: &[Claim]) {
    crate::say!("{}", view::talkers(&evidence.talkers).text());
    print_claims(claims);
}

fn print_claims(claims: &[Claim]) {
    for Claim { name, holds, text } in claims {
        crate::say!("{} {name:<10}  {text}", if *holds { "✔" } else { "✘" });
    }
    let broken = claims.iter().filter(|claim| !claim.holds).count();
    match broken {
        0 => crate::say!("\nAll claims hold."),
        n => crate::say!("\n{n} of {} claims do not hold.", claims.len()),
    }
}

/// Other things to try, as lines to paste, with what each shows.
pub const MORE: [(&str, &str); 3] = [
    ("demo --keep", "the same again, and the router stays for your own commands"),
    ("run unix { interactive runtime-dir /tmp/thalweg }", "an empty router; ? lists commands"),
    ("load run imix -m 10kpps -d 5 --device cross-connect", "load, and what becomes of it"),
];

fn print_more() {
    let program = std::env::current_exe().unwrap_or_else(|_| "thalweg".into());
    // Typed from where this was.
    let here = std::env::current_dir().unwrap_or_default();
    let program = program.strip_prefix(here).unwrap_or(&program).display();
    crate::say!("\nTry next:\n");
    for (words, about) in MORE {
        crate::say!("    {program} {words}   # {about}");
    }
}

fn print_what_next(files: &Files, pid: u32) {
    let program = std::env::current_exe().unwrap_or_else(|_| "thalweg".into());
    let client = program.with_file_name("thalctl");
    let client = if client.exists() { client } else { "thalctl".into() };
    let ctl = format!("{} -s {}", client.display(), files.socket().display());
    let enter = match rustix::process::getuid().is_root() && is_first_user_namespace() {
        true => String::new(),
        false => format!("nsenter --user --mount --preserve-credentials -t {pid} "),
    };
    crate::say!(
        "\nThe router (process {pid}) and its namespaces stay. Try:\n\n    {ctl}\n    \
         {ctl} show interface\n    {ctl} trace add af-packet-input 5\n    \
         {enter}ip netns exec {PREFIX}-left ping -c 3 10.10.2.2\n    {ctl} show trace\n    \
         {ctl} show sflow\n\nIts log is {}. To end it:\n\n    {} demo --end",
        files.log().display(),
        program.display(),
    );
}

/// True if `/run/netns` is that of the first user namespace.
fn is_first_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}
