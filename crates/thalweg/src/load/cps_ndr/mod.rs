//! `thalweg load cps-ndr`: the search of TRex's `cps_ndr.py`, with its options, lines and file.
//!
//! The range is halved after each trial. A trial opens connections at one rate, and judges those
//! that were opened in its window: an error is any that did not end as it should, or in which
//! something had to be sent twice.

mod lines;
mod number;
mod output;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use thalweg_load::search::binary::{Binary, Range};
use thalweg_load::talk::{Exchange, Judged, Plan, Protocol, Talk};

use super::device::{Books, Device, Set};
use lines::Sample;
use number::{bounded, share};

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
    /// Share of UDP connections in percent
    #[arg(short = 'u', long, value_name = "PERCENT", default_value = "0", value_parser = share(1))]
    udp_percent: f64,
    /// Requests of a connection, each with its response, 1 to 10000
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = bounded(1, 10_000))]
    num_messages: u64,
    /// Bytes of each message, 20 to 1456
    #[arg(short = 's', long, value_name = "BYTES", default_value = "20", value_parser = bounded(20, 1456))]
    message_size: u64,
    /// Time that a server takes for a response in milliseconds, 0 to 500
    #[arg(short = 'w', long, value_name = "MS", default_value = "0", value_parser = bounded(0, 500))]
    server_wait: u64,
    /// Lower bound of the search in connections per second, 100 to 1M
    #[arg(short = 'm', long, value_name = "RATE", default_value = "10k", value_parser = bounded(100, 1_000_000))]
    min_cps: u64,
    /// Upper bound of the search, 100 to 2M
    #[arg(short = 'M', long, value_name = "RATE", default_value = "500k", value_parser = bounded(100, 2_000_000))]
    max_cps: u64,
    /// Maximum number of concurrent flows, 100 to 4M
    #[arg(short = 'f', long, value_name = "N", value_parser = bounded(100, 4_000_000))]
    max_flows: Option<u64>,
    /// Widen the range by this percentage after more than 3 equal verdicts; the search has no end
    /// then
    #[arg(short = 'a', long, value_name = "PERCENT", default_value = "0", value_parser = bounded(0, 100))]
    adaptive_window: u64,
    /// Time in which the rate grows, and pause after an error, in seconds, 3 to 20
    #[arg(short = 'r', long, value_name = "S", default_value = "3", value_parser = bounded(3, 20))]
    ramp_up: u64,
    /// What the device under test is: this router, in this process, with its ports connected so
    #[arg(long, value_enum, default_value = "tracker")]
    device: Set,
    /// More commands for the device, one per line; its ports are load0 (clients) and load1
    #[arg(long, value_name = "FILE")]
    commands: Option<PathBuf>,
    /// Time by which the tester may open connections late, in milliseconds, 1 to 10000; later ones
    /// make it the limit
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    late: u64,
    /// A number that decides sequence numbers; the same one repeats a run
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load cps-ndr -m 10k -M 1M -i 8
  thalweg load cps-ndr -m 1k -M 100k -i 8 -T 30 -e 0.02 -u 1 -n 1 -s 20 -w 0
  thalweg load cps-ndr -m 500 -M 2k -i 8 -T 120 -e 0.02 -u 1 -n 500 -s 20 -w 50
  thalweg load cps-ndr --device cross-connect -M 2M -i 10

The status is 0 if a rate was found, 1 if no rate was good, 3 if the tester was the limit.";

/// The TCP and UDP ports of the servers.
const PORTS: (u16, u16) = (8080, 5353);
/// Time between two looks at what runs.
const LOOK: Duration = Duration::from_millis(100);
/// Time for which a rate lasts before a sample.
const SETTLE: Duration = Duration::from_millis(500);
/// Time that connections have for their end, beyond what their program takes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Share of connections that the tester may fail to open; with more, the trial says nothing of the
/// device.
const UNSENT: f64 = 1e-4;
/// How often a trial that the tester has spoiled is repeated.
const REPEATS: usize = 3;
/// Status: the tester was the limit.
const TESTER: u8 = 3;

/// The program.
pub(super) fn main(args: &Args) -> ExitCode {
    match search(args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

impl Args {
    fn plan(&self) -> Plan {
        let exchange = Exchange {
            messages: self.num_messages as u16,
            request: self.message_size as u32,
            answer: self.message_size as u32,
            wait: self.server_wait * 1000,
            ..Exchange::default()
        };
        // In tenths of a percent, and no kind is left out that was asked for.
        let udp = (self.udp_percent * 10.0).round() as u32;
        let kinds =
            [("udp", Protocol::Udp, PORTS.1, udp), ("tcp", Protocol::Tcp, PORTS.0, 1000 - udp)];
        let talks = kinds.into_iter().filter(|(.., share)| *share > 0).map(
            |(name, protocol, port, share)| {
                let limit = self
                    .max_flows
                    .map(|flows| (flows as f64 * f64::from(share) / 1000.0).max(1.0) as u32);
                Talk { share, limit, ..Talk::exchange(name, protocol, port, &exchange) }
            },
        );
        let mut plan = Plan::of(
            talks
                .clone()
                .next()
                .unwrap_or_else(|| Talk::exchange("tcp", Protocol::Tcp, PORTS.0, &exchange)),
        );
        plan.talks = talks.collect();
        // Connections last as long as their program and TIME_WAIT; twice that leaves room for bad
        // trials.
        let life = self.life().as_secs_f64() + 1.0;
        let room = self.max_cps as f64 * life * 2.0;
        plan.room = room.clamp(65_536.0, 16e6) as u32;
        plan.late = self.late * 1000;
        plan
    }

    /// Time that a connection takes at least.
    fn life(&self) -> Duration {
        Duration::from_millis(self.server_wait) * self.num_messages as u32
    }
}

/// How a trial went.
struct Trial {
    sample: Sample,
    good: bool,
    /// Its errors are not the device's.
    tester: bool,
    /// Where the device dropped most, and how many packets.
    dropped: Option<(String, &'static str, u64)>,
}

fn search(args: &Args) -> Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    anyhow::ensure!(
        args.min_cps < args.max_cps,
        "the lower bound of {} must be less than the upper one of {}",
        args.min_cps,
        args.max_cps
    );
    let commands = match &args.commands {
        Some(file) => std::fs::read_to_string(file).with_context(|| file.display().to_string())?,
        None => String::new(),
    };
    let stopped = || stop.load(Ordering::Relaxed);
    let mut device = Device::start(args.device, &commands, &args.plan(), args.seed)?;
    let end = iterate(args, &mut device, &stopped);
    device.close();
    let ended = end?;
    if let Some(file) = &args.output {
        output::write(file, args, ended.best.as_ref())?;
    }
    Ok(ended.report())
}

/// What a search has found.
struct Ended {
    range: Range,
    iterations: usize,
    best: Option<Sample>,
    /// The trial at the upper bound.
    worst: Option<Trial>,
    /// The last trial could not be made as meant, because the tester was too slow.
    tester: bool,
}

fn iterate(args: &Args, device: &mut Device, stopped: &dyn Fn() -> bool) -> Result<Ended> {
    let say = |text: &str| {
        if args.verbose {
            println!("... {text} ...");
        }
    };
    let search = Binary {
        least: args.min_cps as f64,
        most: args.max_cps as f64,
        adaptive: args.adaptive_window as f64 / 100.0,
    };
    let mut verdicts = Vec::new();
    let mut rate = 0.0;
    let range = search.after(&verdicts);
    let mut ended = Ended { range, iterations: 0, best: None, worst: None, tester: false };
    let bytes = 2 * args.num_messages * args.message_size;
    let life = args.life().as_secs_f64();
    say(&format!("each connection {bytes} bytes in both directions over {life:.1} seconds"));
    while args.max_iterations.is_none_or(|most| verdicts.len() < most as usize) && !stopped() {
        let range = search.after(&verdicts);
        println!("{}", lines::iteration(verdicts.len() + 1, &range));
        say("waiting until tx rate is stable");
        let ramp = Duration::from_secs(args.ramp_up);
        let mut made = trial(args, device, rate, range.current, ramp, stopped)?;
        for _ in 0..REPEATS {
            if made.as_ref().is_none_or(|trial| !trial.tester) {
                break;
            }
            say("the tester was late; once more");
            made = trial(args, device, range.current, range.current, LOOK, stopped)?;
        }
        let Some(trial) = made else { break };
        for line in trial.sample.lines(trial.good, args.verbose) {
            println!("{line}");
        }
        verdicts.push(trial.good);
        rate = range.current;
        ended.range = search.after(&verdicts);
        ended.iterations = verdicts.len();
        let bad = !trial.good;
        if bad {
            ended.tester = trial.tester;
            ended.worst = Some(trial);
        } else {
            ended.best = Some(trial.sample);
        }
        let last = args.max_iterations.is_some_and(|most| verdicts.len() >= most as usize);
        if (bad || args.reset_command.is_some()) && !last {
            say("resetting connections");
            device.set_rate(0.0);
            rate = 0.0;
            match &args.reset_command {
                Some(command) => {
                    say(&format!("executing {command}"));
                    // Its status says nothing about the device.
                    let _ = std::process::Command::new("sh").args(["-c", command]).status();
                }
                None => {
                    device.wait(ramp, stopped);
                }
            }
            device.abandon();
        }
    }
    device.set_rate(0.0);
    Ok(ended)
}

/// Makes a trial; `None` if it was interrupted.
fn trial(
    args: &Args,
    device: &mut Device,
    from: f64,
    to: f64,
    ramp: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Trial>> {
    let steps = (ramp.as_millis() / LOOK.as_millis()).max(1) as u32;
    for step in 1..=steps {
        device.set_rate(from + (to - from) * f64::from(step) / f64::from(steps));
        if !device.wait(LOOK, stopped) {
            return Ok(None);
        }
    }
    if !device.wait(SETTLE, stopped) {
        return Ok(None);
    }
    // One second shows most of what is wrong; only what passes it takes the whole time.
    let short = Duration::from_secs(1);
    let long = Duration::from_secs(args.sample_time);
    let first = sample(args, device, to, short, stopped)?;
    match first {
        Some(trial) if trial.good && long > short => sample(args, device, to, long, stopped),
        first => Ok(first),
    }
}

/// Judges the connections of a time; `None` if it was interrupted.
fn sample(
    args: &Args,
    device: &mut Device,
    rate: f64,
    time: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Trial>> {
    let before = device.books()?;
    device.set_judging(true);
    let whole = device.wait(time, stopped);
    device.set_judging(false);
    let after = device.books()?;
    if !whole {
        return Ok(None);
    }
    // Traffic goes on, so that the last connections judged meet what the others met.
    let mut end = after.clone();
    let mut left = args.life() + PATIENCE;
    while judged(&before, &end).pending() > 0 && !left.is_zero() {
        if !device.wait(LOOK, stopped) {
            return Ok(None);
        }
        left = left.saturating_sub(LOOK);
        end = device.books()?;
    }
    let sample = Sample::of(rate, &before, &after, &end);
    let unsent = sample.clients.unsent + sample.clients.no_room + sample.clients.no_tuple;
    let tester = unsent as f64 > UNSENT * sample.clients.begun.max(1) as f64;
    let errors = judged(&before, &end).errors();
    let forgiven = sample.lost_percent() < args.error_threshold;
    let good = !tester && (errors == 0 || forgiven);
    let dropped = device.dropped(&before, &end);
    Ok(Some(Trial { sample, good, tester, dropped }))
}

/// Connections judged in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Connections {
    begun: u64,
    clean: u64,
    ended: u64,
}

impl Connections {
    fn pending(&self) -> u64 {
        self.begun.saturating_sub(self.ended)
    }

    fn errors(&self) -> u64 {
        self.begun.saturating_sub(self.clean)
    }
}

fn judged(before: &Books, after: &Books) -> Connections {
    let of = |books: &Books| books.clients.counts.judged;
    let (was, is): (Judged, Judged) = (of(before), of(after));
    Connections {
        begun: is.begun - was.begun,
        clean: is.clean - was.clean,
        ended: is.completed + is.failed - was.completed - was.failed,
    }
}

impl Ended {
    /// Prints the result, and returns the status.
    fn report(&self) -> u8 {
        let Range { lower, upper, .. } = self.range;
        let number = |value| number::short(value);
        let by = match &self.worst {
            Some(trial) if trial.tester => "the tester, which opened too few".to_owned(),
            Some(Trial { dropped: Some((node, reason, packets)), .. }) => {
                format!("device: {node}, {reason} ({packets} packets)")
            }
            Some(_) => "device".to_owned(),
            None => "nothing: no rate was bad".to_owned(),
        };
        let (status, found) = match &self.best {
            Some(best) if self.tester => (TESTER, format!("≥ {}", number(best.rate))),
            Some(best) => (0, number(best.rate)),
            None if self.tester => (TESTER, "none".to_owned()),
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
