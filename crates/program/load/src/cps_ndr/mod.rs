//! `thalweg load cps-ndr`: the search of TRex's `cps_ndr.py`, with its options, lines and file.
//!
//! The range is halved after each trial. A trial opens connections at one rate, and judges those
//! that were opened in its window: an error is any that did not end as it should, or in which
//! something had to be sent twice.

mod output;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use thalweg_load::search::binary::{Binary, Range};
use thalweg_load_report::{Found, Goal, Kind, Trial as Row, Verdict};
use thalweg_netns::Netns;
use thalweg_terminal::harmless;

use super::lines::{self, Lines};
use super::number::{self, bounded, share};
use super::output as files;
use super::record;
use super::report::{Files, Writer};
use super::sample::Sample;
use super::stop::{Interrupted, Stop};
use super::traffic::Traffic;
use super::trial::{LOOK, Tester, Trial};

/// Searches for the highest rate of connections at which there is no error, as TRex's cps_ndr.py
/// does: with its options, its lines and its file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Stop after this many iterations; without it, Ctrl-C does
    #[arg(short = 'i', long, value_name = "N")]
    max_iterations: Option<u32>,
    /// Length of the deciding sample in seconds, 1 to 600
    #[arg(short = 'T', long, value_name = "S", default_value = "1", value_parser = bounded(1, 600))]
    sample_time: u64,
    /// Forgive errors as long as less than this percentage of packets is lost
    #[arg(short = 'e', long, value_name = "PERCENT", default_value = "0", value_parser = share(5))]
    error_threshold: f64,
    /// Run by the shell between iterations, while no traffic runs
    #[arg(short = 'c', long, value_name = "COMMAND")]
    reset_command: Option<String>,
    /// Write the last good sample to this file, as JSON
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what is being done, and every kind of error
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Lower bound of the search in connections per second, 100 to 1M
    #[arg(short = 'm', long, value_name = "RATE", default_value = "10k", value_parser = bounded(100, 1_000_000))]
    min_cps: u64,
    /// Upper bound of the search, 100 to 2M
    #[arg(short = 'M', long, value_name = "RATE", default_value = "500k", value_parser = bounded(100, 2_000_000))]
    max_cps: u64,
    /// Widen the range by this percentage after more than 3 equal verdicts; the search has no end
    /// then
    #[arg(short = 'a', long, value_name = "PERCENT", default_value = "0", value_parser = bounded(0, 100))]
    adaptive_window: u64,
    /// Time in which the rate grows, and pause after an error, in seconds, 3 to 20
    #[arg(short = 'r', long, value_name = "S", default_value = "3", value_parser = bounded(3, 20))]
    ramp_up: u64,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    traffic: Traffic,
}

/// Options of cps_ndr.py that name a TRex server. They are read, so that a line that has them is
/// answered with a reason.
#[derive(clap::Args)]
struct Server {
    /// Not used: there is no TRex server
    #[arg(short = 'S', long, value_name = "HOST", hide = true)]
    server: Option<String>,
    #[arg(short = 'p', long, value_name = "PORT", hide = true)]
    sync_port: Option<String>,
    #[arg(short = 'P', long, value_name = "PORT", hide = true)]
    async_port: Option<String>,
    #[arg(short = 't', long, value_name = "S", hide = true)]
    timeout: Option<String>,
}

impl Server {
    fn refuse(&self) -> Result<()> {
        let given = [
            ("-S (--server)", &self.server),
            ("-p (--sync-port)", &self.sync_port),
            ("-P (--async-port)", &self.async_port),
            ("-t (--timeout)", &self.timeout),
        ];
        match given.iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((option, _)) => anyhow::bail!(
                "{option}: there is no TRex server to connect to, this program sends the traffic \
                 itself; leave the option out, and name the device by --lab or --ports"
            ),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  thalweg load cps-ndr -m 10k -M 1M -i 8
  thalweg load cps-ndr -m 1k -M 100k -i 8 -T 30 -e 0.02 -u 1 -n 1 -s 20 -w 0
  thalweg load cps-ndr -m 500 -M 2k -i 8 -T 120 -e 0.02 -u 1 -n 500 -s 20 -w 50
  thalweg load cps-ndr --device cross-connect -M 2M -i 10

The status is 0 if a rate was found, 1 if no rate was good, 3 if the tester was the limit.";

/// Number of times that a trial that the tester has spoiled is repeated.
const REPEATS: usize = 3;
/// Status: the tester was the limit.
const TESTER: u8 = 3;

/// The program.
pub(super) fn main(args: &Args, stop: &Stop) -> Result<u8> {
    args.server.refuse()?;
    args.traffic.under.apart(|ns| search(args, stop, ns))
}

fn search(args: &Args, stop: &Stop, ns: Option<&Netns>) -> Result<u8> {
    anyhow::ensure!(
        args.min_cps < args.max_cps,
        "the lower bound of {} must be less than the upper one of {}",
        args.min_cps,
        args.max_cps
    );
    if let Some(file) = &args.output {
        files::check("-o", file)?;
    }
    let mut writer = Writer::new(Kind::Search, &args.files, Some(&args.traffic.under))?;
    writer.profile("connections by options", args.traffic.canonical());
    let mut ended = Ended::new(args);
    let stopped = || stop.is_set();
    let mut made = || {
        let mut tester = start(args, ns, &stopped)?;
        writer.report.device.name = tester.device.name();
        let print = |line: &str| crate::put!("{line}\n");
        let made = iterate(args, &mut tester, &mut ended, &print, &|| writer.at());
        let closed = tester.device.close();
        made?;
        // A result counts more than how the device ended.
        if let Err(error) = closed {
            crate::report!("{error:#}");
        }
        Ok(())
    };
    let made: Result<()> = made();
    let status = match made.is_ok() || ended.iterations > 0 {
        true => ended.report(),
        false => crate::FAILED,
    };
    ended.fill(args, &mut writer);
    if stopped() {
        writer.report.notes.push("Ended by the user before its time.".into());
    }
    let other = args.output.as_deref().map(|file| (file, output::text(args, ended.best.as_ref())));
    writer.end(made, other)?;
    Ok(status)
}

/// Result of a search that prints nothing.
pub(super) struct Quiet {
    /// The device's own name.
    pub(super) name: String,
    /// The last good sample.
    pub(super) best: Option<Sample>,
    /// Cause of the last bad trial; true if it was the tester.
    pub(super) limited_by: Option<(String, bool)>,
    /// The row of a report, without its name.
    pub(super) found: Found,
}

/// Makes a search that prints nothing.
///
/// # Errors
/// The errors of a search; [`Interrupted`].
pub(super) fn quietly(args: &Args, stop: &Stop) -> Result<Quiet> {
    args.traffic.under.apart(|ns| {
        let stopped = || stop.is_set();
        let mut tester = start(args, ns, &stopped)?;
        let name = tester.device.name();
        let mut ended = Ended::new(args);
        let made = iterate(args, &mut tester, &mut ended, &|_| {}, &|| 0);
        let closed = tester.device.close();
        made.and(closed)?;
        anyhow::ensure!(!stopped(), Interrupted);
        let limited_by = ended.worst.as_ref().map(|trial| (trial.limited_by(), trial.tester));
        Ok(Quiet { name, found: ended.found(), best: ended.best, limited_by })
    })
}

fn start<'a>(args: &Args, ns: Option<&Netns>, stopped: &'a dyn Fn() -> bool) -> Result<Tester<'a>> {
    let work = args.traffic.work(args.max_cps as f64)?;
    let device = args
        .traffic
        .under
        .start(&work.hosts(args.traffic.under.seed, args.traffic.under.cores), ns)?;
    let (life, forgiven) = (args.traffic.life(), args.error_threshold);
    Ok(Tester { device, life, forgiven, rate: 0.0, stopped })
}

/// Result of a search.
struct Ended {
    range: Range,
    iterations: usize,
    best: Option<Sample>,
    /// The trial at the upper bound.
    worst: Option<Trial>,
    /// All trials.
    rows: Vec<Row>,
}

/// The search of the options.
fn binary(args: &Args) -> Binary {
    Binary {
        least: args.min_cps as f64,
        most: args.max_cps as f64,
        adaptive: args.adaptive_window as f64 / 100.0,
    }
}

/// Makes trials; what they find is in `ended`, also if one of them fails.
fn iterate(
    args: &Args,
    tester: &mut Tester<'_>,
    ended: &mut Ended,
    print: &dyn Fn(&str),
    at: &dyn Fn() -> u64,
) -> Result<()> {
    let say = |text: &str| {
        if args.verbose {
            print(&harmless(&format!("... {text} ...")));
        }
    };
    let search = binary(args);
    let mut verdicts = Vec::new();
    let traffic = &args.traffic;
    let bytes = 2 * traffic.num_messages * traffic.message_size;
    let life = traffic.life().as_secs_f64();
    say(&format!("each connection {bytes} bytes in both directions over {life:.1} seconds"));
    let ramp = Duration::from_secs(args.ramp_up);
    let goes_on = |made: usize| args.max_iterations.is_none_or(|most| made < most as usize);
    while goes_on(verdicts.len()) && !(tester.stopped)() {
        let range = search.after(&verdicts);
        let at_ns = at();
        print(&lines::iteration(verdicts.len() + 1, &range));
        say("waiting until tx rate is stable");
        let mut made = trial(args, tester, range.current, ramp)?;
        for _ in 0..REPEATS {
            if made.as_ref().is_none_or(|trial| !trial.is_doubtful()) {
                break;
            }
            say("the tester was late, or the machine was not all ours; once more");
            made = trial(args, tester, range.current, LOOK)?;
        }
        let Some(trial) = made else { break };
        for line in trial.sample.lines(trial.good, args.verbose) {
            print(&line);
        }
        if args.verbose {
            for (spot, packets) in trial.drops.iter() {
                print(&harmless(&format!("... {spot} = {packets}")));
            }
            if let Some(first) = &trial.first {
                print(&harmless(&format!("... first lost: {first}: {}", first.place)));
            }
        }
        verdicts.push(trial.good);
        let verdict = if trial.good { Verdict::Low } else { Verdict::High };
        ended.rows.push(Row {
            n: verdicts.len() as u32,
            at_ns,
            load: range.current,
            verdicts: [(GOAL.to_owned(), verdict)].into(),
            ..record::of_connections(&trial)
        });
        ended.range = search.after(&verdicts);
        ended.iterations = verdicts.len();
        let bad = !trial.good;
        if bad {
            ended.worst = Some(trial);
        } else {
            ended.best = Some(trial.sample);
        }
        if (bad || args.reset_command.is_some()) && goes_on(verdicts.len()) {
            say("resetting connections");
            let stopped = tester.stopped;
            tester.reset(|device| match &args.reset_command {
                Some(command) => {
                    say(&format!("executing {command}"));
                    attend(command, stopped);
                }
                None => {
                    device.wait(ramp, stopped);
                }
            })?;
        }
    }
    Ok(())
}

/// Runs a command of the user's to its end, or until the user has had enough. Its status does not
/// judge the device.
fn attend(command: &str, stopped: &dyn Fn() -> bool) {
    let Ok(mut child) = std::process::Command::new("sh").args(["-c", command]).spawn() else {
        return;
    };
    while let Ok(None) = child.try_wait() {
        if stopped() {
            // A terminal has sent it the signal, too; others have not.
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        // Paced: an end is seen soon enough.
        std::thread::sleep(LOOK);
    }
}

/// Makes a trial; `None` if it was interrupted.
fn trial(args: &Args, tester: &mut Tester<'_>, rate: f64, ramp: Duration) -> Result<Option<Trial>> {
    if !tester.ramp(rate, ramp) {
        return Ok(None);
    }
    // One second shows most faults; only a load that passes it takes the whole time.
    let short = Duration::from_secs(1);
    let long = Duration::from_secs(args.sample_time);
    match tester.sample(short)? {
        Some(trial) if trial.good && long > short => tester.sample(long),
        first => Ok(first),
    }
}

/// Name of the goal in a report.
const GOAL: &str = "cps_ndr";

impl Ended {
    /// Nothing so far.
    fn new(args: &Args) -> Ended {
        let range = binary(args).after(&[]);
        Ended { range, iterations: 0, best: None, worst: None, rows: Vec::new() }
    }

    /// The row of a report, without its name.
    fn found(&self) -> Found {
        let tester = self.worst.as_ref().is_some_and(|trial| trial.tester);
        let rate = self.best.as_ref().map(|best| best.rate);
        let limited_by = self
            .worst
            .as_ref()
            .and_then(|trial| record::limited_by(&trial.drops, trial.missing(), trial.tester));
        Found {
            unit: "conn/s".into(),
            lower: rate,
            upper: self.worst.as_ref().map(|_| self.range.upper),
            conditional_throughput: rate.unwrap_or_default(),
            // Without a bad rate, the device bears more.
            tester_limit: tester || (self.worst.is_none() && rate.is_some()),
            limited_by,
            first_lost: self.worst.as_ref().and_then(|trial| Some(trial.first.as_ref()?.record())),
            l1_bps: self.best.as_ref().map(|best| best.l1_received() as f64 / best.seconds),
            ..Found::default()
        }
    }

    /// Fills a report.
    fn fill(&self, args: &Args, writer: &mut Writer) {
        let report = &mut writer.report;
        report.goals = vec![Goal {
            name: GOAL.into(),
            loss_ratio: args.error_threshold / 100.0,
            trial_s: args.sample_time as f64,
            sum_s: args.sample_time as f64,
            ..Goal::default()
        }];
        report.results = vec![Found { goal: GOAL.into(), ..self.found() }];
        report.trials = self.rows.clone();
    }

    /// Prints the result, and returns the status.
    fn report(&self) -> u8 {
        let Range { lower, upper, .. } = self.range;
        let number = |value| number::short(value);
        let by = match &self.worst {
            Some(trial) => trial.limited_by(),
            None => "nothing: no rate was bad".to_owned(),
        };
        let tester = self.worst.as_ref().is_some_and(|trial| trial.tester);
        let (status, found) = match &self.best {
            Some(best) if tester => (TESTER, format!("≥ {}", number(best.rate))),
            Some(best) => (0, number(best.rate)),
            None if tester => (TESTER, "none".to_owned()),
            None => (crate::FAILED, "none".to_owned()),
        };
        crate::report!(
            "result: {found} conn/s (lower {}, upper {}, {} iterations), limited by {by}",
            number(lower),
            number(upper),
            self.iterations
        );
        status
    }
}

#[cfg(test)]
mod tests;
