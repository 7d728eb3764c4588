//! `thalweg load ndr`: the rates at which nothing is lost, and at which little is, by MLRsearch.

use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use thalweg_load::search::mlr::{Found, Search, Step};
use thalweg_load::search::{self, Goal};
use thalweg_load_report::{self as model, FirstLost, Kind, LimitedBy, Verdict};
use thalweg_netns::Netns;

use super::alone::{Alone, OwnLimit};
use super::number::{bounded, share, short};
use super::record;
use super::report::{self, Files, Writer};
use super::screen::clock;
use super::stop::{Interrupted, Stop};
use super::subject::{Measured, Subject};
use super::traffic::Traffic;
use super::work::{Wanted, Work, tunable};

/// Searches for the highest rates of connections or packets that meet goals, by MLRsearch
/// (RFC 9971).
///
/// A connection counts as lost if it did not end as its program says, or if anything had to be
/// sent twice. A rate meets a goal if the loss stays within the goal for more than half of the
/// time: a stall of the machine does not decide.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Quantity to search for
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
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    traffic: Traffic,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load ndr
  thalweg load ndr --device cross-connect --goal ndr --repeat 3 --report ndr.html --report ndr.json
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
/// Number of times that a trial is made that the tester spoils.
const REPEATS: usize = 5;
/// Number of times that a search begins again below a rate at which the tester is late, and how far
/// below.
const LOWERED: u32 = 12;
const LESS: f64 = 0.85;
/// Number of times that a trial with losses is repeated because the hypervisor took time from the
/// machine.
const DOUBTS: usize = 2;
/// Pause after a trial with losses.
const PAUSE: Duration = Duration::from_millis(500);

/// The program.
pub(super) fn main(args: &Args, stop: &Stop) -> Result<u8> {
    args.traffic.under.apart(|ns| {
        let mut writer = Writer::new(Kind::Search, &args.files, Some(&args.traffic.under))?;
        let done = searches(args, ns, &|| stop.is_set(), &mut writer);
        writer.end(done, None)
    })
}

/// A search that came to an end.
struct Searched {
    found: Vec<Found>,
    /// The least rate at which the tester was late, if it was: with this device it bears less.
    own: Option<f64>,
    /// Place that limited the device at the least rate at which it lost something.
    worst: Option<Worst>,
}

/// A trial with losses, at the least rate that had any.
struct Worst {
    load: f64,
    limited_by: Option<LimitedBy>,
    first_lost: Option<FirstLost>,
}

/// All trials so far, also of a search that does not come to an end.
#[derive(Default)]
struct Made {
    trials: Vec<model::Trial>,
    /// Latency at the greatest load without a loss.
    latency: Vec<model::Latency>,
    /// Bits of layer 1 of what the rate counts, by load.
    l1: Vec<(f64, f64)>,
}

/// Reason why a search has no result.
#[derive(Debug, thiserror::Error)]
enum NoResult {
    #[error("no result after {0} minutes: --limit, a greater --width or a lesser --sum would help")]
    Late(u64),
    #[error(
        "the tester was late in {trials} trials at {at}: end what else runs on this machine, or \
         allow more by --late"
    )]
    Busy {
        trials: usize,
        at: String,
        /// The greatest rate of what arrived in one of them.
        reached: f64,
    },
    #[error(
        "the tester itself loses {0:.4} % at half of its own limit, without a device, and goal {1} \
         allows less: end what else runs on this machine, or search below a lesser --max"
    )]
    Floor(f64, String),
}

impl NoResult {
    fn status(&self) -> u8 {
        match self {
            NoResult::Busy { .. } | NoResult::Floor(..) => BUSY,
            NoResult::Late(_) => crate::FAILED,
        }
    }
}

impl Args {
    /// The traffic.
    fn work(&self, writer: &mut Writer) -> Result<Work> {
        let Some(profile) = &self.profile else {
            writer.profile("connections by options", self.traffic.canonical());
            return Ok(Work::talks(self.traffic.plan(), self.traffic.life()));
        };
        let wanted = Wanted { profile: profile.clone(), tunables: self.tunables.clone() };
        let late = Duration::from_millis(self.traffic.late);
        let profile = wanted.read()?;
        writer.profile(&profile.name, profile.canonical());
        let work = Work::of(&profile, &self.traffic.under, late)?;
        work.check_search()?;
        Ok(work)
    }

    /// Returns the reason why a search would not judge the device.
    fn refused(&self, alone: &Alone) -> Option<NoResult> {
        let loss = alone.loss?;
        let goals = self.goals();
        let goal = goals.iter().find(|goal| loss > goal.loss_ratio)?;
        Some(NoResult::Floor(100.0 * loss, goal.name.clone()))
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

fn searches(
    args: &Args,
    ns: Option<&Netns>,
    stopped: &dyn Fn() -> bool,
    writer: &mut Writer,
) -> Result<u8> {
    let goals = args.goals();
    let work = args.work(writer)?;
    let bounds = work.bounds();
    let least = args.least.map_or(bounds.0, |rate| rate as f64);
    let asked = args.most.map_or(bounds.1, |rate| rate as f64);
    // Numbers are checked before anything is measured.
    Search::new(least, asked, goals.clone()).check()?;
    let work = work.sized(asked)?;
    let unit = work.unit();
    let alone = Alone::measure(&work, &args.traffic.under, asked, ns, stopped)?;
    alone.tell(unit);
    alone.fill(&mut writer.report.self_check);
    ensure!(!stopped(), Interrupted);
    if let Some(error) = args.refused(&alone) {
        crate::report!("{error}");
        writer.report.notes.push(format!("No search was made: {error}."));
        return Ok(error.status());
    }
    let mut cap = alone.limit;
    let most = cap.rate().map_or(asked, |cap| cap * SEARCHED);
    let mut search = Search::new(least, most, goals);
    search.check().context("the tester cannot search")?;
    writer.report.goals = report::goals(&search.goals);
    let mut all = Vec::new();
    let mut made = Made::default();
    for number in 1..=args.repeat {
        if args.repeat > 1 {
            crate::say!("Search {number} of {}:", args.repeat);
        }
        match one(&work, args, &search, ns, stopped, (writer, &mut made)) {
            Ok(searched) => {
                if let Some(own) = searched.own {
                    cap = cap.at_most(own);
                    search.most = own * LESS;
                }
                all.push(searched);
            }
            Err(error) => {
                // Measurements so far are not lost.
                finish(writer, unit, &search, (cap, &alone.latency), &all, made);
                let Some(why) = error.downcast_ref::<NoResult>() else { return Err(error) };
                writer.report.notes.push(format!("No result of a search: {error:#}."));
                crate::report!("{why}");
                return Ok(why.status());
            }
        }
    }
    let status = tell(unit, &search, cap, &all);
    finish(writer, unit, &search, (cap, &alone.latency), &all, made);
    Ok(status)
}

/// Makes one search.
fn one(
    work: &Work,
    args: &Args,
    search: &Search,
    ns: Option<&Netns>,
    stopped: &dyn Fn() -> bool,
    (writer, made): (&mut Writer, &mut Made),
) -> Result<Searched> {
    let under = &args.traffic.under;
    let subject = Subject::start(work, under, ns, false, stopped)?;
    let mut subject = subject.context("there is no device")?;
    writer.report.device.name = subject.name();
    let limit = Duration::from_secs(60 * args.limit);
    let at = || writer.at();
    let searched = run(search, limit, work.unit(), &mut subject, stopped, (&at, made));
    let closed = subject.close();
    // Results count more than how the device ended.
    let searched = searched?;
    if let Err(error) = closed {
        crate::report!("{error:#}");
    }
    Ok(searched)
}

fn run(
    search: &Search,
    limit: Duration,
    unit: &str,
    subject: &mut Subject<'_>,
    stopped: &dyn Fn() -> bool,
    (at, made): (&dyn Fn() -> u64, &mut Made),
) -> Result<Searched> {
    let begin = Instant::now();
    let mut trials: Vec<search::Trial> = Vec::new();
    let mut worst: Option<Worst> = None;
    let mut search = search.clone();
    let (mut own, mut lowered) = (None, 0);
    loop {
        let (load, duration) = match search.next(&trials) {
            Step::Trial { load, duration } => (load, duration),
            Step::Done(found) => return Ok(Searched { found, own, worst }),
        };
        if begin.elapsed() > limit {
            return Err(NoResult::Late(limit.as_secs() / 60).into());
        }
        let at_ns = at();
        underway(&format!(
            "trial {}: {} {unit} for {duration:.0} s …",
            trials.len() + 1,
            short(load)
        ));
        // The first ones look for the most that can be; later, a stall of the machine is likelier.
        let repeats = if trials.is_empty() { 2 } else { REPEATS };
        let found = valid(subject, (load, duration), repeats, unit, stopped, (at, made));
        let busy = found.as_ref().err().and_then(|error| match error.downcast_ref() {
            Some(NoResult::Busy { reached, .. }) => Some(*reached),
            _ => None,
        });
        let measured = match busy.map(|reached| reached.clamp(load / 2.0, load * LESS)) {
            // The tester bears less with a device next to it than alone.
            Some(most) if lowered < LOWERED && most > search.least => {
                lowered += 1;
                (own, search.most) = (Some(load), most);
                crate::say!(
                    "{}with this device, the tester is late at {} {unit}: searching up to {}",
                    progress(begin.elapsed(), limit),
                    short(load),
                    short(search.most)
                );
                trials.clear();
                worst = None;
                subject.reset(PAUSE)?;
                continue;
            }
            _ => found?,
        };
        let ratio = measured.loss_ratio();
        crate::say!(
            "{}trial {}: {} {unit} for {duration:.0} s: {} of {} lost ({:.4} %)",
            progress(begin.elapsed(), limit),
            trials.len() + 1,
            short(load),
            measured.lost,
            measured.of,
            100.0 * ratio
        );
        let Measured { limited_by, first_lost, latency, record, rate, l1_bps, .. } = measured;
        if rate > 0.0 {
            made.l1.push((load, l1_bps / rate));
        }
        if ratio > 0.0 && worst.as_ref().is_none_or(|worst| load < worst.load) {
            worst = Some(Worst { load, limited_by, first_lost });
        }
        if ratio == 0.0 && made.latency.first().is_none_or(|of| of.load <= load) {
            made.latency = latency;
        }
        let verdict = |goal: &Goal| {
            let verdict = if ratio <= goal.loss_ratio { Verdict::Low } else { Verdict::High };
            (goal.name.clone(), verdict)
        };
        made.push(model::Trial {
            at_ns,
            load,
            duration_s: duration,
            verdicts: search.goals.iter().map(verdict).collect(),
            ..record
        });
        trials.push(search::Trial::new(load, duration, ratio));
        if ratio > 0.0 {
            subject.reset(PAUSE)?;
        }
    }
}

/// Makes a trial that the tester does not spoil.
fn valid(
    subject: &mut Subject<'_>,
    (load, duration): (f64, f64),
    repeats: usize,
    unit: &str,
    stopped: &dyn Fn() -> bool,
    (at, made): (&dyn Fn() -> u64, &mut Made),
) -> Result<Measured> {
    let mut tries = Tries::default();
    while tries.late < repeats {
        let at_ns = at();
        match subject.measure(load, Duration::from_secs_f64(duration))? {
            Some(measured)
                if tries.counts(measured.spoiled, measured.is_doubtful(), measured.rate) =>
            {
                return Ok(measured);
            }
            Some(measured) => {
                let why = format!("the hypervisor took {:.1} % of the time", measured.stolen);
                let mut record = measured.record;
                record.invalid.get_or_insert(why);
                // The trial does not count, but the report has it.
                made.push(model::Trial { at_ns, load, duration_s: duration, ..record });
                subject.reset(PAUSE)?;
            }
            None => return Err(Interrupted.into()),
        }
        ensure!(!stopped(), Interrupted);
    }
    let at = format!("{} {unit}", short(load));
    Err(NoResult::Busy { trials: tries.late, at, reached: tries.reached }.into())
}

/// Tries of one trial that did not count.
#[derive(Default)]
struct Tries {
    /// Trials in which the hypervisor took time.
    doubtful: usize,
    /// Trials in which the tester was late.
    late: usize,
    /// The greatest rate of what arrived in one of these.
    reached: f64,
}

impl Tries {
    /// True if another one counts: the tester `spoiled` it by being late, or the hypervisor made it
    /// doubtful by time that it took, which says nothing about the tester.
    fn counts(&mut self, spoiled: bool, is_doubtful: bool, rate: f64) -> bool {
        // A machine that is never all ours must do: the report says so.
        if !spoiled && (!is_doubtful || self.doubtful == DOUBTS) {
            return true;
        }
        if spoiled {
            (self.late, self.reached) = (self.late + 1, self.reached.max(rate));
        } else {
            self.doubtful += 1;
        }
        false
    }
}

/// Returns the middle one of values, and the least and the greatest.
fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(((low + high) / 2.0, least, most))
}

/// Prints the results, and returns the status.
fn tell(unit: &str, search: &Search, cap: OwnLimit, all: &[Searched]) -> u8 {
    let mut status = 0;
    crate::say!();
    for (at, goal) in search.goals.iter().enumerate() {
        let found: Vec<&Found> = all.iter().filter_map(|one| one.found.get(at)).collect();
        let Some((median, least, most)) = spread(found.iter().map(|one| one.throughput).collect())
        else {
            continue;
        };
        let name = &goal.name;
        if median == 0.0 {
            crate::say!("{name}: not met at {} {unit}, the least rate", short(search.least));
            status = crate::FAILED;
            continue;
        }
        let tester = cap.rate().filter(|cap| median >= TRUSTED * cap);
        let upper = found.iter().filter_map(|one| one.upper).reduce(f64::max);
        let sign = if tester.is_some() || upper.is_none() { "≥ " } else { "" };
        let upper = upper.map_or("none".to_owned(), |upper| format!("{upper:.0}"));
        crate::say!("{name}: {sign}{median:.0} {unit} (upper bound {upper})");
        if all.len() > 1 {
            crate::say!("  {} searches: {least:.0} to {most:.0}", all.len());
        }
        if let Some(cap) = tester {
            crate::say!("  The tester's own limit is {cap:.0}: this says little about the device.");
            status = status.max(TESTER);
        }
    }
    let worst = || all.iter().rev().filter_map(|one| one.worst.as_ref());
    if let Some(by) = worst().find_map(|worst| worst.limited_by.as_ref()) {
        crate::say!("Limited by {} ({:.1} % of loss).", report::in_words(by), 100.0 * by.share);
    }
    if let Some(first) = worst().find_map(|worst| worst.first_lost.as_ref()) {
        crate::say!("The first packet lost was {}.", report::first_in_words(first));
    }
    status
}

/// Fills the report with results and trials.
fn finish(
    writer: &mut Writer,
    unit: &str,
    search: &Search,
    (cap, floor): (OwnLimit, &[model::Latency]),
    all: &[Searched],
    made: Made,
) {
    let found = |(at, goal): (usize, &Goal)| {
        let found: Vec<&Found> = all.iter().filter_map(|one| one.found.get(at)).collect();
        let repeats: Vec<f64> = found.iter().map(|one| one.throughput).collect();
        let middle = report::median(&repeats);
        let by_median = |one: &&&Found| Some(one.throughput) <= middle;
        // The search whose result is the median, or the one below it.
        let one =
            found.iter().filter(by_median).max_by(|a, b| a.throughput.total_cmp(&b.throughput));
        let worst = || all.iter().rev().filter_map(|one| one.worst.as_ref());
        let tester = middle.zip(cap.rate()).is_some_and(|(middle, cap)| middle >= TRUSTED * cap);
        let upper = one.and_then(|one| one.upper);
        model::Found {
            goal: goal.name.clone(),
            unit: unit.to_owned(),
            lower: one.and_then(|one| one.lower),
            upper,
            conditional_throughput: one.map_or(0.0, |one| one.throughput),
            l1_bps: one.and_then(|one| made.l1_of(one.lower?, one.throughput)),
            tester_limit: tester || (one.is_some() && upper.is_none()),
            limited_by: worst().find_map(|worst| worst.limited_by.clone()),
            first_lost: worst().find_map(|worst| worst.first_lost.clone()),
            interval95: report::interval95(&repeats),
            median: middle.filter(|_| repeats.len() > 1),
            repeats,
        }
    };
    writer.report.results = search.goals.iter().enumerate().map(found).collect();
    writer.report.trials = made.trials;
    writer.report.latency = record::with_floor(made.latency, floor);
}

impl Made {
    /// Bits per second of layer 1 at a throughput that was found at a load.
    fn l1_of(&self, load: f64, throughput: f64) -> Option<f64> {
        let distance = |(other, _): &&(f64, f64)| (other - load).abs();
        let nearest = self.l1.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        Some(nearest.1 * throughput)
    }

    fn push(&mut self, trial: model::Trial) {
        let n = self.trials.len() as u32 + 1;
        self.trials.push(model::Trial { n, ..trial });
    }
}

/// The time that a search has taken, and the most that it may take, on a terminal.
fn progress(elapsed: Duration, limit: Duration) -> String {
    match std::io::stdout().is_terminal() {
        // The line replaces the first one.
        true => format!("\r\x1b[2K[{} of at most {}] ", clock(elapsed), clock(limit)),
        false => String::new(),
    }
}

/// Shows on a terminal what is being done; the next line is written over it.
fn underway(text: &str) {
    if std::io::stdout().is_terminal() {
        crate::put!("{text}");
        // Nobody reads a terminal that is gone.
        let _ = std::io::stdout().flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::set::Set;
    use crate::trial::Tester;
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

    #[test]
    fn time_of_the_hypervisor_is_not_the_testers() {
        let mut tries = Tries::default();
        assert!((0..DOUBTS).all(|_| !tries.counts(false, true, 900.0)));
        assert!(!tries.counts(true, true, 700.0) && !tries.counts(true, false, 800.0));
        assert_eq!((tries.doubtful, tries.late, tries.reached), (DOUBTS, 2, 800.0));
        assert!(tries.counts(false, true, 900.0), "it must do at last");
        assert!(Tries::default().counts(false, false, 1.0));
    }

    /// A device whose table holds few connections: the rate at which it is full is found, and what
    /// drops is named.
    #[test]
    fn limit_of_a_table_is_found() {
        let args = args("--goal ndr --sum 1 --width 30 -m 20 -M 2k -w 100 --late 10000");
        let search = Search { coarse: 0, ..Search::new(20.0, 2000.0, args.goals()) };
        let file = tempfile::tempdir().unwrap().keep().join("ndr.json");
        let files = Files { files: vec![file.clone()] };
        let mut writer = Writer::new(Kind::Search, &files, Some(&args.traffic.under)).unwrap();
        let work = args.work(&mut writer).unwrap().sized(2000.0).unwrap();
        // Each connection stays in the table for a tenth of a second, and in TIME_WAIT longer.
        let limit = "set conntrack limit 1000";
        let device = Device::inside(Set::Tracker, limit, &work.hosts(1, 1)).unwrap();
        let stopped = || false;
        let life = args.traffic.life();
        let tester = Tester { device, life, forgiven: 0.0, rate: 0.0, stopped: &stopped };
        let mut subject = Subject::Talks(tester);
        let mut made = Made::default();
        let limit = Duration::from_secs(600);
        let unit = work.unit();
        let searched =
            run(&search, limit, unit, &mut subject, &stopped, (&|| 7, &mut made)).unwrap();
        subject.close().unwrap();
        let found = &searched.found[0];
        assert!(found.upper.is_some(), "{found:?}");
        let by = searched.worst.as_ref().and_then(|worst| worst.limited_by.clone()).unwrap();
        assert_eq!((by.row.as_str(), by.node.as_str()), ("device", "flow-rules"), "{by:?}");
        let trials = made.trials.len();
        finish(&mut writer, unit, &search, (OwnLimit::Unknown, &[]), &[searched], made);
        writer.end(Ok(()), None).unwrap();
        let report = model::Report::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!((report.trials.len(), report.trials[0].n), (trials, 1));
        assert_eq!(report.results[0].limited_by, Some(by));
        assert!(
            report.trials.iter().any(|trial| trial.verdicts.get("NDR") == Some(&Verdict::High))
        );
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
}
