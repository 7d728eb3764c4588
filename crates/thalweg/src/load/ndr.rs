//! `thalweg load ndr`: the rates at which nothing is lost, and at which little is, by MLRsearch.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use thalweg_load::search::mlr::{Found, Search, Step};
use thalweg_load::search::{self, Goal};
use thalweg_netns::Netns;

use super::number::{bounded, share, short};
use super::subject::{Measured, Subject};
use super::traffic::Traffic;
use super::work::{Wanted, Work, tunable};

/// Searches for the highest rates of connections or packets that meet goals, by MLRsearch
/// (RFC 9971).
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
    /// Profile with streams or connections, instead of connections by options: a file, or one that
    /// is built in
    #[arg(value_name = "PROFILE")]
    profile: Option<String>,
    /// Set tunables of the profile
    #[arg(short = 't', long = "tunable", value_name = "NAME=VALUE,…", value_delimiter = ',', requires = "profile", value_parser = tunable)]
    tunables: Vec<(String, String)>,
    /// Least rate, in connections or packets per second [default: 1k or 10k]
    #[arg(short = 'm', long = "min", visible_alias = "min-cps", value_name = "RATE", value_parser = bounded(1, 1_000_000_000))]
    least: Option<u64>,
    /// Greatest rate; the tester's own limit if that is less [default: 2M or 200M]
    #[arg(short = 'M', long = "max", visible_alias = "max-cps", value_name = "RATE", value_parser = bounded(1, 1_000_000_000))]
    most: Option<u64>,
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
  thalweg load ndr bench -t size=64 --device cross-connect
  thalweg load ndr imix --lab kernel --device route

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
/// Pause after a trial with losses.
const PAUSE: Duration = Duration::from_millis(500);

/// The program.
pub(super) fn main(args: &Args) -> ExitCode {
    match args.traffic.under.apart(|ns| searches(args, ns)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

/// A search that came to an end.
struct Searched {
    /// What the device calls itself.
    device: String,
    found: Vec<Found>,
    trials: Vec<(search::Trial, Value)>,
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
        "the tester was late in {REPEATS} trials in a row at {0}: end what else runs on this \
         machine, or allow more by --late"
    )]
    Busy(String),
}

impl Args {
    /// What is sent.
    fn work(&self) -> Result<Work> {
        let Some(profile) = &self.profile else {
            return Ok(Work::talks(self.traffic.plan(), self.traffic.life()));
        };
        let wanted = Wanted { profile: profile.clone(), tunables: self.tunables.clone() };
        let late = Duration::from_millis(self.traffic.late);
        let work = Work::of(&wanted.read()?, &self.traffic.under, late)?;
        work.check_search()?;
        Ok(work)
    }

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
    let work = args.work()?;
    let bounds = work.bounds();
    let least = args.least.map_or(bounds.0, |rate| rate as f64);
    let asked = args.most.map_or(bounds.1, |rate| rate as f64);
    // What the numbers say is checked before anything is measured.
    Search::new(least, asked, goals.clone()).check()?;
    let work = work.sized(asked)?;
    let unit = work.unit();
    let cap = own_limit(&work, args, asked, ns, &stopped)?;
    match cap {
        OwnLimit::At(rate) => {
            println!("The tester itself bears {} {unit}, without a device.", short(rate));
        }
        OwnLimit::Beyond => println!("The tester itself bears the greatest rate."),
        OwnLimit::Unknown => println!(
            "The tester's own limit is not known: search once with a cable between the ports."
        ),
    }
    let most = cap.rate().map_or(asked, |cap| cap * SEARCHED);
    let search = Search::new(least, most, goals);
    search.check().context("the tester cannot search")?;
    let mut all = Vec::new();
    for number in 1..=args.repeat {
        if args.repeat > 1 {
            println!("Search {number} of {}:", args.repeat);
        }
        match one(&work, args, &search, ns, &stopped) {
            Ok(searched) => all.push(searched),
            Err(error) => {
                let status = match error.downcast_ref::<NoResult>() {
                    Some(NoResult::Interrupted) => 130,
                    Some(NoResult::Busy(_)) => BUSY,
                    Some(NoResult::Late(_)) => crate::FAILED,
                    None => return Err(error),
                };
                crate::report!("{error}");
                // What has been measured is not lost.
                write(args, &work, &search, cap, &all)?;
                return Ok(status);
            }
        }
    }
    write(args, &work, &search, cap, &all)?;
    Ok(report(unit, &search, cap, &all))
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

/// Measures the tester with the simplest device.
fn own_limit(
    work: &Work,
    args: &Args,
    most: f64,
    ns: Option<&Netns>,
    stopped: &dyn Fn() -> bool,
) -> Result<OwnLimit> {
    let under = &args.traffic.under;
    let Some(mut subject) = Subject::start(work, under, ns, true, stopped)? else {
        return Ok(OwnLimit::Unknown);
    };
    let mut cap = Some(0.0);
    // What arrives is what it can send: at the first try much less than asked for, perhaps.
    let mut rate = most;
    for _ in 0..4 {
        let Some(measured) = subject.measure(rate, Duration::from_secs(1))? else { break };
        cap = (measured.spoiled || rate < most).then_some(measured.rate);
        if !measured.spoiled {
            break;
        }
        rate = measured.rate.max(1.0);
        subject.reset(PAUSE)?;
    }
    subject.close()?;
    if stopped() {
        return Err(NoResult::Interrupted.into());
    }
    Ok(cap.map_or(OwnLimit::Beyond, OwnLimit::At))
}

/// Makes one search.
fn one(
    work: &Work,
    args: &Args,
    search: &Search,
    ns: Option<&Netns>,
    stopped: &dyn Fn() -> bool,
) -> Result<Searched> {
    let under = &args.traffic.under;
    let subject = Subject::start(work, under, ns, false, stopped)?;
    let mut subject = subject.context("there is no device")?;
    let device = subject.name();
    let limit = Duration::from_secs(60 * args.limit);
    let searched = run(search, limit, work.unit(), &mut subject, stopped);
    let closed = subject.close();
    // What was measured counts more than how the device ended.
    let searched = searched?;
    if let Err(error) = closed {
        crate::report!("{error:#}");
    }
    Ok(Searched { device, ..searched })
}

fn run(
    search: &Search,
    limit: Duration,
    unit: &str,
    subject: &mut Subject<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<Searched> {
    let begin = Instant::now();
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
            return Err(NoResult::Late(limit.as_secs() / 60).into());
        }
        let measured = valid(subject, load, duration, unit, stopped)?;
        let ratio = measured.loss_ratio();
        println!(
            "trial {}: {} {unit} for {duration:.0} s: {} of {} lost ({:.4} %)",
            trials.len() + 1,
            short(load),
            measured.lost,
            measured.of,
            100.0 * ratio
        );
        if ratio > 0.0 && worst.as_ref().is_none_or(|(rate, _)| load < *rate) {
            worst = Some((load, measured.limited_by));
        }
        records.push(measured.record);
        trials.push(search::Trial::new(load, duration, ratio));
        if ratio > 0.0 {
            subject.reset(PAUSE)?;
        }
    }
}

/// Makes a trial that the tester does not spoil.
fn valid(
    subject: &mut Subject<'_>,
    load: f64,
    duration: f64,
    unit: &str,
    stopped: &dyn Fn() -> bool,
) -> Result<Measured> {
    for _ in 0..REPEATS {
        match subject.measure(load, Duration::from_secs_f64(duration))? {
            Some(measured) if !measured.spoiled => return Ok(measured),
            Some(_) => subject.reset(PAUSE)?,
            None => return Err(NoResult::Interrupted.into()),
        }
        if stopped() {
            return Err(NoResult::Interrupted.into());
        }
    }
    Err(NoResult::Busy(format!("{} {unit}", short(load))).into())
}

/// Returns the middle one of values, and the least and the greatest.
fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(((low + high) / 2.0, least, most))
}

/// Prints the results, and returns the status.
fn report(unit: &str, search: &Search, cap: OwnLimit, all: &[Searched]) -> u8 {
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
            println!("{name}: not met at {} {unit}, the least rate", short(search.least));
            status = crate::FAILED;
            continue;
        }
        let tester = cap.rate().filter(|cap| median >= TRUSTED * cap);
        let upper = found.iter().filter_map(|one| one.upper).reduce(f64::max);
        let sign = if tester.is_some() || upper.is_none() { "≥ " } else { "" };
        let upper = upper.map_or("none".to_owned(), |upper| format!("{upper:.0}"));
        println!("{name}: {sign}{median:.0} {unit} (upper bound {upper})");
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

fn write(args: &Args, work: &Work, search: &Search, cap: OwnLimit, all: &[Searched]) -> Result<()> {
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
        "unit": work.unit(),
        "seed": args.traffic.under.seed,
        "self_check": { "per_second": cap.rate() },
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
    use crate::load::trial::Tester;
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
        let work = args.work().unwrap().sized(2000.0).unwrap();
        // Each connection stays in the table for a tenth of a second, and in TIME_WAIT longer.
        let limit = "set conntrack limit 1000";
        let device = Device::inside(Set::Tracker, limit, &work.hosts(1)).unwrap();
        let stopped = || false;
        let life = args.traffic.life();
        let tester = Tester { device, life, forgiven: 0.0, rate: 0.0, stopped: &stopped };
        let mut subject = Subject::Talks(tester);
        let searched =
            run(&search, Duration::from_secs(600), work.unit(), &mut subject, &stopped).unwrap();
        subject.close().unwrap();
        let found = &searched.found[0];
        assert!(found.upper.is_some(), "{found:?}");
        let by = searched.limited_by.clone().unwrap_or_default();
        assert!(by.starts_with("device: "), "{by}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ndr.json");
        let args = Args { json: Some(file.clone()), ..args };
        let trials = searched.trials.len();
        write(&args, &work, &search, OwnLimit::Unknown, &[searched]).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["searches"][0]["trials"].as_array().unwrap().len(), trials);
        assert_eq!(all["goals"][0]["goal"], "NDR");
    }
}
