//! `thalweg load run`, `check` and `show`: a profile's streams or connections.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use thalweg_load::stream::{Load, Rate};
use thalweg_load_profile::Profile as Read;
use thalweg_netns::Netns;

use super::lines::Lines as _;
use super::number::{self, bounded, short};
use super::streams::{self, StreamTester};
use super::subject::drops_json;
use super::trial::Tester;
use super::under::Under;
use super::work::{Wanted, Work};

/// Status: the tester was the limit.
const TESTER: u8 = 3;
/// Packets per second that are offered to find the tester's own limit: more than it can send.
const ABOVE: f64 = 200e6;

/// A profile to look at.
#[derive(clap::Args)]
pub struct Profile {
    #[command(flatten)]
    wanted: Wanted,
}

/// Sends what a profile says for a time, and says what became of each packet or connection.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    wanted: Wanted,
    /// Load: a factor on the profile's own rates (2), or a rate of each direction: 5kpps, 2.5gbps
    /// (layer 2), 10gbpsl1 (layer 1), 80% (of what the tester bears); of connections, how many a
    /// second (50k)
    #[arg(short = 'm', long = "load", value_name = "LOAD", default_value = "1")]
    load: String,
    /// Length of the window in seconds
    #[arg(short = 'd', long, value_name = "S", default_value = "10", value_parser = bounded(1, 86_400))]
    duration: u64,
    /// Time by which the tester may be late, in milliseconds; what would be later is not sent
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    late: u64,
    /// Write what was found to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    under: Under,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load run bench -t size=64 -m 1mpps -d 10 --device cross-connect
  thalweg load run imix -m 80% --lab kernel --device route
  thalweg load run cps-short -m 20k --lab ovs
  thalweg load run my.yaml -m 2 --ports eth1,eth2

The status is 0 if nothing was lost, 1 if something was, 3 if the tester was the limit.";

/// `thalweg load check`.
pub(super) fn check(args: &Profile) -> ExitCode {
    match args.wanted.read() {
        Ok(profile) => {
            let (streams, flows) = profile.pairs.iter().fold((0, 0), |(streams, flows), pair| {
                let talks: usize = pair.flows.iter().map(|flows| flows.plan.talks.len()).sum();
                (streams + pair.streams.len(), flows + talks)
            });
            println!(
                "{}: good, with {streams} streams and {flows} kinds of connections on {} pairs of \
                 ports",
                profile.name,
                profile.pairs.len()
            );
            ExitCode::SUCCESS
        }
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

/// `thalweg load show`.
pub(super) fn show(args: &Profile) -> ExitCode {
    match args.wanted.read() {
        Ok(profile) => {
            println!("{:#}", profile.canonical());
            ExitCode::SUCCESS
        }
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

/// `thalweg load run`.
pub(super) fn main(args: &Args) -> ExitCode {
    let run = || {
        let profile = args.wanted.read()?;
        let work = Work::of(&profile, &args.under, Duration::from_millis(args.late))?;
        args.under.apart(|ns| args.run(&profile, work, ns))
    };
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

impl Args {
    fn run(&self, profile: &Read, work: Work, ns: Option<&Netns>) -> Result<u8> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        let stopped = || stop.load(Ordering::Relaxed);
        let (status, found) = match &work {
            Work::Streams(_) => self.streams(&work, ns, &stopped)?,
            Work::Talks { .. } => self.connections(work, ns, &stopped)?,
        };
        if let (Some(file), Some(found)) = (&self.json, found) {
            let mut all = json!({
                "version": 1,
                "tool": "thalweg load run",
                "tool_version": env!("CARGO_PKG_VERSION"),
                "profile": {
                    "name": profile.name,
                    "fingerprint": profile.fingerprint(),
                    "canonical": profile.canonical(),
                },
                "load": self.load,
                "seed": self.under.seed,
            });
            all["found"] = found;
            let text = format!("{all:#}\n");
            std::fs::write(file, text)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(if stopped() { 130 } else { status })
    }

    fn streams(
        &self,
        work: &Work,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(u8, Option<Value>)> {
        let load = self.stream_load(work, ns, stopped)?;
        let device = self.under.start(&work.hosts(self.under.seed), ns)?;
        let name = device.name();
        let mut tester = StreamTester { device, number: 0, stopped };
        let trial = tester.trial(load, Duration::from_secs(self.duration), |was, is| {
            let rate = |of: fn(&thalweg_device_load::Progress) -> (u64, u64)| {
                let mut sum = (0.0, 0.0);
                for (was, is) in was.iter().zip(is) {
                    let seconds = (is.at.saturating_sub(was.at) as f64 / 1e9).max(1e-9);
                    sum.0 += of(is).0.saturating_sub(of(was).0) as f64 / seconds;
                    sum.1 += 8.0 * of(is).1.saturating_sub(of(was).1) as f64 / seconds;
                }
                format!("{}p/s, {}b/s", short(sum.0), short(sum.1))
            };
            println!("sent {}; received {}", rate(|p| p.sent), rate(|p| p.received));
        });
        let closed = tester.device.close();
        let Some(trial) = trial? else { return Ok((130, None)) };
        if let Err(error) = closed {
            crate::report!("{error:#}");
        }
        println!();
        for line in streams::lines(&trial, &name) {
            println!("{line}");
        }
        let status = match (trial.is_spoiled(), trial.sum().lost) {
            (true, _) => TESTER,
            (false, 0) => 0,
            (false, _) => crate::FAILED,
        };
        let mut found = streams::json(&trial);
        found["device"] = name.into();
        Ok((status, Some(found)))
    }

    /// What `-m` says. A percentage is of what the tester itself bears, which is measured for it.
    fn stream_load(
        &self,
        work: &Work,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Load> {
        let load = number::load(&self.load).map_err(anyhow::Error::msg).context("-m")?;
        let Load::Total(Rate::Percent(percent)) = load else { return Ok(load) };
        let alone = self.under.start_alone(&work.hosts(self.under.seed), ns)?;
        let device = alone.context(
            "-m in percent: what the tester itself bears is not known with --ports; give a rate",
        )?;
        let mut tester = StreamTester { device, number: 0, stopped };
        let load = Load::Times(ABOVE / work.own_rate().max(1e-9));
        let trial = tester.trial(load, Duration::from_secs(1), |_, _| {});
        tester.device.close()?;
        let trial = trial?.context("interrupted")?;
        let cap = trial.sum().received as f64 / trial.seconds;
        ensure!(cap > 0.0, "the tester's own limit could not be measured: nothing arrived");
        println!("The tester itself bears {} packets/s, without a device.", short(cap));
        Ok(Load::Times(cap * percent / 100.0 / work.own_rate().max(1e-9)))
    }

    fn connections(
        &self,
        work: Work,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(u8, Option<Value>)> {
        let rate = number::rate(&self.load).map_err(anyhow::Error::msg).context("-m")?;
        let work = work.sized(rate)?;
        let Work::Talks { life, hold, total, .. } = &work else { return Ok((0, None)) };
        let device = self.under.start(&work.hosts(self.under.seed), ns)?;
        let name = device.name();
        let mut tester = Tester { device, life: *life, forgiven: 0.0, rate: 0.0, stopped };
        tester.device.set_limits(*hold, *total);
        let time = Duration::from_secs(self.duration);
        let trial = match tester.ramp(rate, Duration::from_secs(1)) {
            true => tester.sample(time),
            false => Ok(None),
        };
        let closed = tester.device.close();
        let Some(trial) = trial? else { return Ok((130, None)) };
        if let Err(error) = closed {
            crate::report!("{error:#}");
        }
        println!("Device: {name}. Window: {:.2} s.", trial.sample.seconds);
        for line in trial.sample.lines(trial.good, true) {
            println!("{line}");
        }
        let connections = &trial.connections;
        println!(
            "connections: begun {}, completed {}, of these {} without a retry; {} open at the end of \
             the window",
            connections.begun, connections.completed, connections.clean, trial.sample.open
        );
        let (lost, sent) = trial.sample.lost();
        println!("packets: sent {sent}, lost {lost}, of these {} unexplained", trial.unexplained());
        for (spot, packets) in trial.drops.iter() {
            println!("  {packets} {spot}");
        }
        if trial.tester {
            println!("The tester was the limit: {}.", trial.limited_by());
        }
        let status = match (trial.tester, connections.errors()) {
            (true, _) => TESTER,
            (false, 0) => 0,
            (false, _) => crate::FAILED,
        };
        let found = json!({
            "device": name,
            "window_s": trial.sample.seconds,
            "rate": rate,
            "begun": connections.begun,
            "completed": connections.completed,
            "clean": connections.clean,
            "active": trial.sample.active,
            "open": trial.sample.open,
            "packets_sent": sent,
            "packets_lost": lost,
            "packets_unexplained": trial.unexplained(),
            "drops": drops_json(&trial.drops),
            "spoiled": trial.tester,
        });
        Ok((status, Some(found)))
    }
}
