//! `thalweg load ndr`: the rates at which nothing is lost, and at which little is, by MLRsearch.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use thalweg_load::search::mlr::{Found, Search, Step};
use thalweg_load::search::{self, Goal};
use thalweg_netns::Netns;

use super::number::{bounded, share, short};
use super::traffic::Traffic;
use super::trial::{Tester, Trial};

/// Searches for the highest rates of connections that meet goals, by MLRsearch (RFC 9971).
///
/// A connection counts as lost if it did not end as its program says, or if anything had to be
/// sent twice. A goal is met at a rate if in more than half of its time no more was lost than the
/// goal allows, so that a stall of the machine does not decide.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is searched for
    #[arg(long = "goal", value_name = "GOAL", value_enum, default_values = ["ndr", "pdr"])]
    goals: Vec<GoalName>,
    /// Least rate in connections per second
    #[arg(short = 'm', long, value_name = "RATE", default_value = "1k", value_parser = bounded(1, 1_000_000))]
    min_cps: u64,
    /// Greatest rate; the tester's own limit if that is less
    #[arg(short = 'M', long, value_name = "RATE", default_value = "2M", value_parser = bounded(1, 10_000_000))]
    max_cps: u64,
    /// Duration of a deciding trial in seconds, instead of the goal's
    #[arg(short = 'T', long, value_name = "S", value_parser = bounded(1, 600))]
    trial: Option<u64>,
    /// Duration of all deciding trials at a rate together in seconds, instead of the goal's
    #[arg(long, value_name = "S", value_parser = bounded(1, 36_000))]
    sum: Option<u64>,
    /// Distance of the bounds that ends a search, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0.5", value_parser = share(3))]
    width: f64,
    /// Number of searches; the result is their median
    #[arg(long, value_name = "N", default_value = "1", value_parser = bounded(1, 100))]
    repeat: u64,
    /// End after this many minutes, with what has been found by then
    #[arg(long, value_name = "MINUTES", default_value = "20", value_parser = bounded(1, 1440))]
    limit: u64,
    /// Write goals, results and all trials to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    traffic: Traffic,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load ndr
  thalweg load ndr --device cross-connect --goal ndr --repeat 3 --json ndr.json
  thalweg load ndr --sum 5 --width 2 -u 10 -n 5 -w 20

The status is 0 if all goals were met, 1 if one was not met at the least rate, 3 if the tester was
the limit, 4 if the machine was too busy to say.";

/// A goal by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GoalName {
    /// Nothing is lost
    Ndr,
    /// Up to 0.5 % is lost
    Pdr,
    /// Nothing is lost in one trial of 60 seconds, as RFC 2544 has it
    Throughput,
}

/// Status: the tester was the limit.
const TESTER: u8 = 3;
/// Status: the machine was too busy.
const BUSY: u8 = 4;
/// Share of the tester's own limit up to which it searches.
const SEARCHED: f64 = 0.95;
/// Share of the tester's own limit from which on a result is not the device's.
const TRUSTED: f64 = 0.9;
/// How often a trial that the tester has spoiled is repeated.
const REPEATS: usize = 5;
/// Time in which the rate grows at the beginning of a trial.
const RAMP: Duration = Duration::from_millis(300);
/// Pause after a trial with losses.
const PAUSE: Duration = Duration::from_millis(500);

/// The program.
pub(super) fn main(args: &Args) -> ExitCode {
    match args.traffic.apart(|ns| searches(args, ns)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

/// A search that came to an end.
struct Searched {
    /// What the device calls itself.
    device: String,
    found: Vec<Found>,
    trials: Vec<(search::Trial, serde_json::Value)>,
    /// What limited the device at the least rate at which it lost something.
    limited_by: Option<String>,
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
enum NoResult {
    #[error("interrupted")]
    Interrupted,
    #[error("no result after {0} minutes: --limit, a greater --width or a lesser --sum would help")]
    Late(u64),
    #[error(
        "the tester was late in {REPEATS} trials in a row at {rate} conn/s: end what else runs on \
         this machine, or allow more by --late"
    )]
    Busy { rate: String },
}

impl Args {
    fn goals(&self) -> Vec<Goal> {
        let goal = |name: &GoalName| match name {
            GoalName::Ndr => Goal::ndr(),
            GoalName::Pdr => Goal::pdr(),
            GoalName::Throughput => Goal::throughput(),
        };
        let mut goals: Vec<Goal> = self.goals.iter().map(goal).collect();
        for goal in &mut goals {
            goal.width = self.width / 100.0;
            goal.trial = self.trial.map_or(goal.trial, |seconds| seconds as f64);
            goal.sum = self.sum.map_or(goal.sum, |seconds| seconds as f64).max(goal.trial);
        }
        // The strictest first.
        goals.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
        goals
    }
}

fn searches(args: &Args, ns: Option<&Netns>) -> Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let stopped = || stop.load(Ordering::Relaxed);
    let goals = args.goals();
    let least = args.min_cps as f64;
    // What the numbers say is checked before anything is measured.
    Search::new(least, args.max_cps as f64, goals.clone()).check()?;
    let cap = own_limit(args, ns, &stopped)?;
    println!("{cap}");
    let most = cap.rate().map_or(args.max_cps as f64, |cap| cap * SEARCHED);
    let search = Search::new(least, most, goals);
    search.check().context("the tester cannot search")?;
    let mut all = Vec::new();
    for number in 1..=args.repeat {
        if args.repeat > 1 {
            println!("Search {number} of {}:", args.repeat);
        }
        match one(args, &search, ns, &stopped) {
            Ok(searched) => all.push(searched),
            Err(error) => {
                let status = match error.downcast_ref::<NoResult>() {
                    Some(NoResult::Interrupted) => 130,
                    Some(NoResult::Busy { .. }) => BUSY,
                    Some(NoResult::Late(_)) => crate::FAILED,
                    None => return Err(error),
                };
                crate::report!("{error}");
                // What has been measured is not lost.
                write(args, &search, cap, &all)?;
                return Ok(status);
            }
        }
    }
    write(args, &search, cap, &all)?;
    Ok(report(&search, cap, &all))
}

/// The connections per second that the tester can open and answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OwnLimit {
    At(f64),
    /// More than are asked for.
    Beyond,
    /// Not measured: that would take a cable between the ports.
    Unknown,
}

impl OwnLimit {
    fn rate(self) -> Option<f64> {
        match self {
            OwnLimit::At(cap) => Some(cap),
            OwnLimit::Beyond | OwnLimit::Unknown => None,
        }
    }
}

impl std::fmt::Display for OwnLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OwnLimit::At(cap) => {
                write!(f, "The tester itself bears {} conn/s, without a device.", short(*cap))
            }
            OwnLimit::Beyond => f.write_str("The tester itself bears the greatest rate."),
            OwnLimit::Unknown => f.write_str(
                "The tester's own limit is not known: search once with a cable between the ports.",
            ),
        }
    }
}

/// Measures the tester with the simplest device.
fn own_limit(args: &Args, ns: Option<&Netns>, stopped: &dyn Fn() -> bool) -> Result<OwnLimit> {
    let most = args.max_cps as f64;
    let Some(device) = args.traffic.start_alone(most, ns)? else { return Ok(OwnLimit::Unknown) };
    let life = args.traffic.life();
    let mut tester = Tester { device, life, forgiven: 0.0, rate: 0.0, stopped };
    let mut cap = Some(0.0);
    // What it opens is what it can: at the first try much less than asked for, perhaps.
    let mut rate = most;
    for _ in 0..4 {
        let trial = match tester.ramp(rate, RAMP) {
            true => tester.sample(Duration::from_secs(1))?,
            false => None,
        };
        let Some(trial) = trial else { break };
        let clean = trial.connections.clean as f64 / trial.sample.seconds;
        cap = (trial.tester || rate < most).then_some(clean);
        if !trial.tester {
            break;
        }
        rate = clean;
        tester.reset(|device| {
            device.wait(PAUSE, stopped);
        })?;
    }
    tester.device.close()?;
    if stopped() {
        return Err(NoResult::Interrupted.into());
    }
    Ok(cap.map_or(OwnLimit::Beyond, OwnLimit::At))
}

/// Makes one search.
fn one(
    args: &Args,
    search: &Search,
    ns: Option<&Netns>,
    stopped: &dyn Fn() -> bool,
) -> Result<Searched> {
    let device = args.traffic.start(search.most, ns)?;
    let life = args.traffic.life();
    let mut tester = Tester { device, life, forgiven: 0.0, rate: 0.0, stopped };
    let name = tester.device.name();
    let searched = run(args, search, &mut tester).map(|found| Searched { device: name, ..found });
    let closed = tester.device.close();
    // What was measured counts more than how the device ended.
    let searched = searched?;
    if let Err(error) = closed {
        crate::report!("{error:#}");
    }
    Ok(searched)
}

fn run(args: &Args, search: &Search, tester: &mut Tester<'_>) -> Result<Searched> {
    let begin = Instant::now();
    let limit = Duration::from_secs(60 * args.limit);
    let mut trials: Vec<search::Trial> = Vec::new();
    let mut records = Vec::new();
    let mut worst: Option<(f64, String)> = None;
    loop {
        let (load, duration) = match search.next(&trials) {
            Step::Trial { load, duration } => (load, duration),
            Step::Done(found) => {
                let trials = trials.into_iter().zip(records).collect();
                let limited_by = worst.map(|(_, by)| by);
                return Ok(Searched { device: String::new(), found, trials, limited_by });
            }
        };
        if begin.elapsed() > limit {
            return Err(NoResult::Late(args.limit).into());
        }
        let trial = valid(tester, load, duration)?;
        let lost = trial.connections.loss_ratio();
        println!(
            "trial {}: {} conn/s for {duration:.0} s: {} of {} lost ({:.4} %)",
            trials.len() + 1,
            short(load),
            trial.connections.errors(),
            trial.connections.begun,
            100.0 * lost
        );
        if lost > 0.0 && worst.as_ref().is_none_or(|(rate, _)| load < *rate) {
            worst = Some((load, trial.limited_by()));
        }
        records.push(record(&trial));
        trials.push(search::Trial::new(load, duration, lost));
        if lost > 0.0 {
            let stopped = tester.stopped;
            tester.reset(|device| {
                device.wait(PAUSE, stopped);
            })?;
        }
    }
}

/// Makes a trial that the tester does not spoil.
fn valid(tester: &mut Tester<'_>, load: f64, duration: f64) -> Result<Trial> {
    for _ in 0..REPEATS {
        let sampled = match tester.ramp(load, RAMP) {
            true => tester.sample(Duration::from_secs_f64(duration))?,
            false => None,
        };
        match sampled {
            Some(trial) if !trial.tester => return Ok(trial),
            Some(_) => {
                let stopped = tester.stopped;
                tester.reset(|device| {
                    device.wait(PAUSE, stopped);
                })?;
            }
            None => return Err(NoResult::Interrupted.into()),
        }
    }
    Err(NoResult::Busy { rate: short(load) }.into())
}

/// A trial's counters for the file.
fn record(trial: &Trial) -> serde_json::Value {
    let (lost, sent) = trial.sample.lost();
    json!({
        "begun": trial.connections.begun,
        "completed": trial.connections.completed,
        "clean": trial.connections.clean,
        "active": trial.sample.active,
        "packets_sent": sent,
        "packets_lost": lost,
        "packets_unexplained": trial.unexplained(),
        "drops": trial
            .drops
            .iter()
            .map(|(spot, packets)| {
                json!({
                    "side": spot.side.word(),
                    "node": spot.node,
                    "reason": spot.reason,
                    "packets": packets,
                })
            })
            .collect::<Vec<_>>(),
    })
}

/// Returns the middle one of values, and the least and the greatest.
fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(((low + high) / 2.0, least, most))
}

/// Prints the results, and returns the status.
fn report(search: &Search, cap: OwnLimit, all: &[Searched]) -> u8 {
    let mut status = 0;
    println!();
    for (at, goal) in search.goals.iter().enumerate() {
        let found: Vec<&Found> = all.iter().filter_map(|one| one.found.get(at)).collect();
        let Some((median, least, most)) = spread(found.iter().map(|one| one.throughput).collect())
        else {
            continue;
        };
        let name = &goal.name;
        if median == 0.0 {
            println!("{name}: not met at {} conn/s, the least rate", short(search.least));
            status = crate::FAILED;
            continue;
        }
        let tester = cap.rate().filter(|cap| median >= TRUSTED * cap);
        let upper = found.iter().filter_map(|one| one.upper).reduce(f64::max);
        let sign = if tester.is_some() || upper.is_none() { "≥ " } else { "" };
        let upper = upper.map_or("none".to_owned(), |upper| format!("{upper:.0}"));
        println!("{name}: {sign}{median:.0} conn/s (upper bound {upper})");
        if all.len() > 1 {
            println!("  {} searches: {least:.0} to {most:.0}", all.len());
        }
        if let Some(cap) = tester {
            println!("  The tester's own limit is {cap:.0}: this says little about the device.");
            status = status.max(TESTER);
        }
    }
    if let Some(by) = all.iter().rev().find_map(|one| one.limited_by.as_ref()) {
        println!("Limited by {by}.");
    }
    status
}

fn write(args: &Args, search: &Search, cap: OwnLimit, all: &[Searched]) -> Result<()> {
    let Some(file) = &args.json else { return Ok(()) };
    let goal = |goal: &Goal| {
        json!({
            "goal": goal.name,
            "loss_ratio": goal.loss_ratio,
            "exceed_ratio": goal.exceed_ratio,
            "trial_s": goal.trial,
            "sum_s": goal.sum,
            "width": goal.width,
        })
    };
    let found = |found: &Found| {
        json!({
            "goal": found.goal,
            "lower": found.lower,
            "upper": found.upper,
            "conditional_throughput": found.throughput,
        })
    };
    let searched = |one: &Searched| {
        let trials = one.trials.iter().map(|(trial, record)| {
            let mut record = record.clone();
            record["load"] = trial.load.into();
            record["duration_s"] = trial.duration.into();
            record["loss_ratio"] = trial.loss_ratio.into();
            record
        });
        json!({
            "device": one.device,
            "results": one.found.iter().map(found).collect::<Vec<_>>(),
            "limited_by": one.limited_by,
            "trials": trials.collect::<Vec<_>>(),
        })
    };
    let all = json!({
        "version": 1,
        "tool": "thalweg load ndr",
        "tool_version": env!("CARGO_PKG_VERSION"),
        "unit": "conn/s",
        "seed": args.traffic.seed,
        "self_check": { "conn_per_s": cap.rate() },
        "goals": search.goals.iter().map(goal).collect::<Vec<_>>(),
        "searches": all.iter().map(searched).collect::<Vec<_>>(),
    });
    let text = format!("{all:#}\n");
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::device::Device;
    use crate::load::set::Set;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        let words = std::iter::once("ndr").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args).unwrap()
    }

    #[test]
    fn goals_are_as_asked_for() {
        let goals = args("--goal pdr --goal ndr --width 2 -T 2 --sum 1").goals();
        let numbers: Vec<_> = goals.iter().map(|g| (g.loss_ratio, g.trial, g.sum)).collect();
        assert_eq!(numbers, [(0.0, 2.0, 2.0), (0.005, 2.0, 2.0)]);
        assert_eq!(goals[0].width, 0.02);
        assert_eq!(args("").goals().len(), 2);
        assert_eq!(args("--goal throughput").goals()[0].trial, 60.0);
    }

    #[test]
    fn middle_of_values_is_found() {
        assert_eq!(spread(vec![]), None);
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(spread(vec![4.0, 1.0]), Some((2.5, 1.0, 4.0)));
    }

    /// A device whose table holds few connections: the rate at which it is full is found, and what
    /// drops is named.
    #[test]
    fn limit_of_a_table_is_found() {
        let args = args("--goal ndr --sum 1 --width 30 -m 20 -M 2k -w 100 --late 10000");
        let search = Search { coarse: 0, ..Search::new(20.0, 2000.0, args.goals()) };
        let plan = args.traffic.plan(2000.0);
        // Each connection stays in the table for a tenth of a second, and in TIME_WAIT longer.
        let device = Device::inside(Set::Tracker, "set conntrack limit 1000", &plan, 1).unwrap();
        let life = args.traffic.life();
        let stopped = || false;
        let mut tester = Tester { device, life, forgiven: 0.0, rate: 0.0, stopped: &stopped };
        let searched = run(&args, &search, &mut tester).unwrap();
        tester.device.close().unwrap();
        let found = &searched.found[0];
        assert!(found.upper.is_some(), "{found:?}");
        let by = searched.limited_by.clone().unwrap_or_default();
        assert!(by.starts_with("device: "), "{by}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ndr.json");
        let args = Args { json: Some(file.clone()), ..args };
        let trials = searched.trials.len();
        write(&args, &search, OwnLimit::Unknown, &[searched]).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["searches"][0]["trials"].as_array().unwrap().len(), trials);
        assert_eq!(all["goals"][0]["goal"], "NDR");
    }
}
