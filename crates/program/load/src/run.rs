//! `thalweg load run`, `check` and `show`: a profile's streams or connections.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_cli::counted;
use thalweg_load::stream::{Load, Rate};
use thalweg_load_profile::Profile as Read;
use thalweg_load_report::{Found, Goal, Kind, Series, Trial};
use thalweg_netns::Netns;

use super::alone;
use super::blame::FirstTalk;
use super::lines::Lines as _;
use super::number::{self, bounded, short};
use super::report::{Files, Writer};
use super::runner::{self, GroupRan, Offered, Ran, Runner};
use super::screen::{self, Look, Screen};
use super::stolen;
use super::stop::{Interrupted, Stop};
use super::streams::StreamTrial;
use super::under::Under;
use super::work::{NO_RATE, Wanted, Work};
use super::{record, streams, trial};

/// Status: the tester was the limit.
const TESTER: u8 = 3;
/// Packets per second that are offered to find the tester's own limit: more than it can send.
pub(super) const ABOVE: f64 = 200e6;
/// Connections per second, if none are asked for.
const DEFAULT_CONNECTIONS: f64 = 100.0;
/// A ramp that is worth a line.
const LONG_RAMP: Duration = Duration::from_secs(2);

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
    /// (layer 2), 10gbpsl1 (layer 1), 80% (of what the tester bears); of a profile that has only
    /// connections, how many a second (50k) [default: 1, or 100 connections a second]
    #[arg(short = 'm', long = "load", value_name = "LOAD")]
    load: Option<String>,
    /// Connections per second, of a profile that has streams as well [default: 100]
    #[arg(long, value_name = "RATE")]
    connections: Option<String>,
    /// Length of the window in seconds
    #[arg(short = 'd', long, value_name = "S", default_value = "10", value_parser = bounded(1, 86_400))]
    duration: u64,
    /// Time by which the tester may be late, in milliseconds; what would be later is not sent
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    late: u64,
    /// Do not measure the latency of streams without the device first
    #[arg(long)]
    no_floor: bool,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    under: Under,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load run bench -t size=64 -m 1mpps -d 10 --device cross-connect
  thalweg load run imix -m 80% --lab kernel --device route
  thalweg load run cps-short -m 20k --lab ovs
  thalweg load run my.yaml -m 2 --connections 5k --report run.html --report run.json
  thalweg load run my.yaml --ports eth1,eth2

The status is 0 if nothing was lost, 1 if something was or a number to be held was not reached, 3 if
the tester was the limit.";

/// `thalweg load check`.
pub(super) fn check(args: &Profile) -> Result<u8> {
    let profile = args.wanted.read().and_then(checked)?;
    let (streams, flows) = profile.pairs.iter().fold((0, 0), |(streams, flows), pair| {
        let talks: usize = pair.flows.iter().map(|flows| flows.plan.talks.len()).sum();
        (streams + pair.streams.len(), flows + talks)
    });
    crate::say!(
        "{}: good, with {} and {} of connections on {} of ports",
        profile.name,
        counted(streams as u64, "stream"),
        counted(flows as u64, "kind"),
        counted(profile.pairs.len() as u64, "pair")
    );
    Ok(0)
}

/// A profile that a run would not refuse.
fn checked(profile: Read) -> Result<Read> {
    // The limit of lateness changes nothing that is checked.
    Work::plain(&profile, Duration::ZERO)?;
    Ok(profile)
}

/// `thalweg load show`.
pub(super) fn show(args: &Profile) -> Result<u8> {
    crate::say!("{:#}", args.wanted.read()?.canonical());
    Ok(0)
}

/// `thalweg load run`.
pub(super) fn main(args: &Args, stop: &Stop) -> Result<u8> {
    let profile = args.wanted.read()?;
    let work = Work::of(&profile, &args.under, Duration::from_millis(args.late))?;
    args.under.apart(|ns| {
        let mut writer = Writer::new(Kind::Run, &args.files, Some(&args.under))?;
        writer.profile(&profile.name, profile.canonical());
        let done = args.run(work, ns, &|| stop.is_set(), &mut writer);
        writer.end(done, None)
    })
}

impl Args {
    fn run(
        &self,
        work: Work,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
        writer: &mut Writer,
    ) -> Result<u8> {
        let (streams, connections) = self.loads(&work)?;
        let work = work.sized(connections.unwrap_or_default())?;
        let streams = match streams {
            Load::Total(Rate::Percent(percent)) => {
                self.share_of_own(&work, percent, ns, stopped, writer)?
            }
            load => load,
        };
        let offered = Offered { streams, connections };
        let floor = match work.has_streams() && !self.no_floor && self.under.ports.is_none() {
            true => {
                crate::say!("A second without the device, for the floor of latency.");
                alone::floor(&work, &self.under, streams, ns, stopped)?
            }
            false => None,
        };
        match self.trial(&work, offered, ns, stopped, writer)? {
            Some(ran) => Ok(self.tell(&work, offered, (&ran, floor.as_ref()), writer)),
            None => Err(Interrupted.into()),
        }
    }

    /// Loads of streams and of connections.
    fn loads(&self, work: &Work) -> Result<(Load, Option<f64>)> {
        let rate = |text: &str, option: &'static str| {
            number::rate(text).map_err(anyhow::Error::msg).context(option)
        };
        if !work.has_connections() {
            ensure!(self.connections.is_none(), "--connections: the profile opens none");
            return Ok((self.load_of_streams(work)?, None));
        }
        let (streams, connections) = if work.has_streams() {
            let load = self.load_of_streams(work)?;
            (load, self.connections.as_deref().map(|text| (text, "--connections")))
        } else {
            let (m, connections) = (self.load.as_deref(), self.connections.as_deref());
            ensure!(
                m.is_none() || connections.is_none(),
                "-m and --connections: the profile has no streams, so one of them is enough"
            );
            let given = m.map(|text| (text, "-m"));
            (Load::Times(1.0), given.or(connections.map(|text| (text, "--connections"))))
        };
        let connections = match connections {
            Some((text, option)) => Some(rate(text, option)?),
            // Held connections need no rate.
            None if work.is_held() => None,
            None => Some(DEFAULT_CONNECTIONS),
        };
        Ok((streams, connections))
    }

    fn load_of_streams(&self, work: &Work) -> Result<Load> {
        let load = self.load.as_deref().unwrap_or("1");
        let load = number::load(load).map_err(anyhow::Error::msg).context("-m")?;
        ensure!(
            matches!(load, Load::Times(_)) || work.own_rate() > 0.0,
            "-m: {NO_RATE}, which no rate is for; leave -m out, or give a factor"
        );
        Ok(load)
    }

    /// Makes the one trial.
    fn trial(
        &self,
        work: &Work,
        offered: Offered,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
        writer: &mut Writer,
    ) -> Result<Option<Ran>> {
        let device = self.under.start(&work.hosts(self.under.seed, self.under.cores), ns)?;
        writer.report.device.name = device.name();
        crate::say!("Device: {}.", device.name());
        let mut runner = Runner::new(device, work.life(), stopped);
        let ramp = runner.device.ramp();
        if ramp > LONG_RAMP {
            crate::say!("The connections grow for {} first.", screen::clock(ramp));
        }
        let mut screen = Screen::new();
        let time = Duration::from_secs(self.duration);
        let ran = runner.trial(offered, time, |device, now| screen.look(device, now));
        let closed = runner.device.close();
        writer.report.series = series(&screen.looks);
        // Results count more than how the device ended.
        let ran = ran?;
        if let Err(error) = closed {
            crate::report!("{error:#}");
        }
        Ok(ran)
    }

    /// Prints what was found, adds it to the report, and returns the status.
    fn tell(
        &self,
        work: &Work,
        offered: Offered,
        (ran, floor): (&Ran, Option<&StreamTrial>),
        writer: &mut Writer,
    ) -> u8 {
        crate::say!("\nWindow: {:.2} s.", ran.seconds);
        let mut status = 0;
        let report = &mut writer.report;
        let spoiled = ran.is_spoiled();
        if let Some(trial) = &ran.streams {
            streams::lines(trial, floor).iter().for_each(|line| crate::say!("{line}"));
            let sum = trial.sum();
            let rate = sum.received as f64 / ran.seconds;
            let latency = record::latencies(trial, sum.sent as f64 / ran.seconds);
            let without = alone::latencies(floor);
            report.self_check.latency = without.first().map(|of| of.scheduled.clone());
            report.self_check.loss = floor.map(|trial| trial.sum().loss_ratio());
            report.latency = record::with_floor(latency, &without);
            report.results.push(Found {
                goal: "received".into(),
                unit: "packets/s".into(),
                lower: Some(rate),
                conditional_throughput: rate,
                tester_limit: spoiled,
                first_lost: trial.first.as_ref().map(record::first_lost),
                l1_bps: Some(sum.l1_received() as f64 / ran.seconds),
                ..Found::default()
            });
            status = status.max(u8::from(sum.lost > 0) * crate::FAILED);
        }
        if let Some(trial) = &ran.connections {
            if ran.streams.is_some() {
                crate::say!();
            }
            self.tell_connections(trial, ran);
            let rate = trial.connections.clean as f64 / ran.seconds;
            report.results.push(Found {
                goal: "completed, nothing sent twice".into(),
                unit: "conn/s".into(),
                lower: Some(rate),
                conditional_throughput: rate,
                tester_limit: spoiled,
                first_lost: trial.first.as_ref().map(FirstTalk::record),
                l1_bps: Some(trial.sample.l1_received() as f64 / ran.seconds),
                ..Found::default()
            });
            let failed = trial.connections.errors() > 0
                || ran.groups.iter().any(runner::GroupRan::falls_short);
            status = status.max(u8::from(failed) * crate::FAILED);
        }
        for group in &ran.groups {
            if let Some(hold) = group.hold {
                let of =
                    format!("{}: {} of {hold} connections held", group.name, group.established);
                report.notes.push(format!("{of} at the end of the window."));
            }
        }
        if ran.stolen >= stolen::MUCH {
            let text = format!(
                "The hypervisor took {:.1} % of the processors' time: what was lost or late may be \
                 its doing.",
                ran.stolen
            );
            crate::say!("{text}");
            report.notes.push(text);
        }
        let by = record::limited_by(&ran.drops, ran.missing(), spoiled);
        if let Some(first) = report.results.first_mut() {
            first.limited_by = by;
        }
        if ran.cut {
            report.notes.push("Ended by the user before its time.".into());
        }
        let load = match offered.connections {
            Some(rate) if ran.streams.is_none() => rate,
            _ => ran.streams.as_ref().map_or(0.0, |t| t.sum().intended as f64 / ran.seconds),
        };
        report.goals = vec![Goal {
            name: self.offered(work, offered),
            trial_s: self.duration as f64,
            sum_s: self.duration as f64,
            ..Goal::default()
        }];
        report.trials =
            vec![Trial { n: 1, duration_s: self.duration as f64, ..record::of_ran(ran, load) }];
        if spoiled { TESTER } else { status }
    }

    /// Returns the load in the form of a report.
    fn offered(&self, work: &Work, offered: Offered) -> String {
        let mut parts = Vec::new();
        if work.has_streams() {
            parts.push(format!("streams {}", self.load.as_deref().unwrap_or("1")));
        }
        if let Some(rate) = offered.connections {
            parts.push(format!("{rate} connections/s"));
        }
        if work.groups().any(|(.., group)| group.hold.is_some()) {
            parts.push("connections held".to_owned());
        }
        parts.join(", ")
    }

    fn tell_connections(&self, trial: &trial::Trial, ran: &Ran) {
        trial.sample.lines(trial.good, true).iter().for_each(|line| crate::put!("{line}\n"));
        let connections = &trial.connections;
        crate::say!(
            "connections: begun {}, completed {}, of those with nothing sent twice {}; lost {}",
            connections.begun,
            connections.completed,
            connections.clean,
            connections.errors()
        );
        for group in ran.groups.iter().filter(|group| group.hold.is_some() || ran.groups.len() > 1)
        {
            let GroupRan { name, connections, hold, established } = group;
            match hold {
                Some(hold) => {
                    let short = if group.falls_short() { ": not reached" } else { "" };
                    crate::say!(
                        "  {name}: {established} of {hold} held{short}; lost meanwhile {}",
                        connections.errors()
                    );
                }
                None => crate::say!(
                    "  {name}: begun {}, completed {}, clean {}; lost {}",
                    connections.begun,
                    connections.completed,
                    connections.clean,
                    connections.errors()
                ),
            }
        }
        if let Some(text) = record::connections(trial).little() {
            crate::say!("open on average, by Little's law: {text}");
        }
        if ran.streams.is_none() {
            let (lost, sent) = trial.sample.lost();
            crate::say!("packets: sent {sent}, lost {lost}");
            if lost > 0 {
                crate::say!("Of the packets lost:");
                for (spot, packets) in trial.drops.iter() {
                    crate::say!("  {packets} {spot}");
                }
                let damaged = streams::damaged(trial.sample.damaged());
                damaged.iter().for_each(|line| crate::say!("{line}"));
                crate::say!("  {} unexplained", trial.missing().unexplained);
            }
            let surplus = trial.sample.surplus();
            if surplus > 0 {
                crate::say!(
                    "{surplus} more packets arrived than were sent: the device repeats some, and \
                     these counts do not show what was lost."
                );
            }
            if let Some(first) = &trial.first {
                crate::say!("  first lost in the window: {first}: {}", first.place);
            }
            if trial.tester {
                crate::say!("The tester was the limit: it opened too few, or lost packets itself.");
            }
        }
    }

    /// A share of what the tester itself bears, which is measured for it.
    fn share_of_own(
        &self,
        work: &Work,
        percent: f64,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
        writer: &mut Writer,
    ) -> Result<Load> {
        let alone = self.under.start_alone(&work.hosts(self.under.seed, self.under.cores), ns)?;
        let device = alone.context(
            "-m in percent: what the tester itself bears is not known with --ports; give a rate",
        )?;
        let mut runner = Runner::new(device, Duration::ZERO, stopped);
        let load = Load::Times(ABOVE / work.own_rate().max(1e-9));
        // Streams alone: the connections that go with them take little of it.
        let offered = Offered { streams: load, connections: Some(0.0) };
        let ran = runner.trial(offered, Duration::from_secs(1), |_, _| Ok(()));
        runner.device.close()?;
        let ran = ran?.ok_or(Interrupted)?;
        let received = ran.streams.as_ref().map_or(0, |trial| trial.sum().received);
        let cap = received as f64 / ran.seconds;
        ensure!(cap > 0.0, "the tester's own limit could not be measured: nothing arrived");
        crate::say!("The tester itself bears {} packets/s, without a device.", short(cap));
        writer.report.self_check.transport = Some(cap);
        Ok(Load::Times(cap * percent / 100.0 / work.own_rate().max(1e-9)))
    }
}

/// Values over time.
fn series(looks: &[Look]) -> Option<Series> {
    let mut series = Series { step_ms: 1000, ..Series::default() };
    type Of = fn(&Look) -> f64;
    let values: [(&str, Of); 6] = [
        ("sent", |look| look.sent),
        ("received", |look| look.received),
        ("begun", |look| look.begun),
        ("completed", |look| look.completed),
        ("active", |look| (look.open + look.time_wait) as f64),
        ("established", |look| look.established as f64),
    ];
    for (name, of) in values {
        let all: Vec<f64> = looks.iter().map(of).collect();
        if all.iter().any(|value| *value > 0.0) {
            series.values.insert(name.to_owned(), all);
        }
    }
    (!series.values.is_empty()).then_some(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_refuses_what_a_run_refuses() {
        let read = |server: &str| {
            let text = format!(
                "version: 1\nflows:\n\
                 - {{name: x, tcp: {{client: 17.0.0.1, server: 49.0.0.1-49.0.0.5, port: 80}}}}\n\
                 - {{name: y, tcp: {{client: 18.0.0.1, server: {server}, port: 80}}, hold: 10}}\n"
            );
            Read::parse("dup.yaml", &text, &[]).unwrap()
        };
        checked(read("49.0.0.6")).unwrap();
        let error = format!("{:#}", checked(read("49.0.0.5")).unwrap_err());
        assert!(error.starts_with("dup.yaml: pair 0 of ports: the connections x and y"), "{error}");
    }
}
