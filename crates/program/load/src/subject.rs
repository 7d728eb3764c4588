//! A device with work, as searches see it: a rate and a time in, a loss out.

use std::time::Duration;

use anyhow::Result;
use thalweg_load::stream::Load;
use thalweg_load_report::{self as report, FirstLost, LimitedBy};
use thalweg_netns::Netns;

use super::blame::FirstTalk;
use super::record;
use super::runner::{Offered, Ran, Runner};
use super::stolen;
use super::trial::{Tester, Trial, is_held_back};
use super::under::Under;
use super::work::Work;

/// Time in which the rate of connections grows at the beginning of a trial.
const RAMP: Duration = Duration::from_millis(300);

/// Result of a trial.
pub(super) struct Measured {
    /// Packets or connections of its window, and how many of them were lost.
    pub(super) of: u64,
    pub(super) lost: u64,
    /// Arrivals per second.
    pub(super) rate: f64,
    /// Its errors are the tester's.
    pub(super) spoiled: bool,
    /// Share of the processors' time that the hypervisor took, in percent.
    pub(super) stolen: f64,
    /// Place at which most was lost, if anything was.
    pub(super) limited_by: Option<LimitedBy>,
    /// The first packet of streams that was lost.
    pub(super) first_lost: Option<FirstLost>,
    /// Bits that arrived per second, with FCS, preamble and gap.
    pub(super) l1_bps: f64,
    /// Latency of streams.
    pub(super) latency: Vec<report::Latency>,
    /// All of it, for the report.
    pub(super) record: report::Trial,
}

impl Measured {
    /// Share that was lost, 0 to 1.
    pub(super) fn loss_ratio(&self) -> f64 {
        self.lost as f64 / self.of.max(1) as f64
    }

    /// True if something was lost, and the machine may be why, which did not run all the time.
    pub(super) fn is_doubtful(&self) -> bool {
        self.lost > 0 && self.stolen >= stolen::MUCH
    }
}

/// A device with work.
pub(super) enum Subject<'a> {
    /// Connections, whose traffic goes on from one trial to the next.
    Talks(Tester<'a>),
    /// Streams, and their own rate in packets per second.
    Streams(Runner<'a>, f64),
    /// Connections, whose rate changes, with streams at their own rates, numbers that are held, or
    /// ramps.
    Both(Runner<'a>),
}

impl<'a> Subject<'a> {
    /// Starts the device, or the tester alone; `None` if the latter takes a cable.
    pub(super) fn start(
        work: &Work,
        under: &Under,
        ns: Option<&Netns>,
        alone: bool,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Option<Subject<'a>>> {
        let hosts = work.hosts(under.seed, under.cores);
        let device = match alone {
            true => under.start_alone(&hosts, ns)?,
            false => Some(under.start(&hosts, ns)?),
        };
        let Some(device) = device else { return Ok(None) };
        let life = work.life();
        let has_background = work.has_streams() || work.grows();
        Ok(Some(match (has_background, work.has_connections()) {
            (false, _) => {
                Subject::Talks(Tester { device, life, forgiven: 0.0, rate: 0.0, stopped })
            }
            (true, false) => Subject::Streams(Runner::new(device, life, stopped), work.own_rate()),
            (true, true) => Subject::Both(Runner::new(device, life, stopped)),
        }))
    }

    /// The device's own name.
    pub(super) fn name(&self) -> String {
        match self {
            Subject::Talks(tester) => tester.device.name(),
            Subject::Streams(runner, _) | Subject::Both(runner) => runner.device.name(),
        }
    }

    /// Makes a trial; `None` if the user stopped it.
    pub(super) fn measure(&mut self, rate: f64, time: Duration) -> Result<Option<Measured>> {
        match self {
            Subject::Talks(tester) => {
                if !tester.ramp(rate, RAMP) {
                    return Ok(None);
                }
                Ok(tester.sample(time)?.map(|trial| of_connections(&trial)))
            }
            Subject::Streams(runner, own) => {
                let load = Load::Times(rate / own.max(1e-9));
                let offered = Offered { streams: load, connections: None };
                let ran = runner.trial(offered, time, |_, _| Ok(()))?.filter(|ran| !ran.cut);
                Ok(ran.map(|ran| of_ran(&ran, rate)))
            }
            Subject::Both(runner) => {
                let offered = Offered { streams: Load::Times(1.0), connections: Some(rate) };
                let ran = runner.trial(offered, time, |_, _| Ok(()))?.filter(|ran| !ran.cut);
                // The tester has forgotten its connections; the device must not keep them.
                runner.device.abandon()?;
                Ok(ran.map(|ran| of_ran(&ran, rate)))
            }
        }
    }

    /// Stops the traffic, pauses, and forgets all state.
    pub(super) fn reset(&mut self, pause: Duration) -> Result<()> {
        match self {
            Subject::Talks(tester) => {
                let stopped = tester.stopped;
                tester.reset(|device| {
                    device.wait(pause, stopped);
                })
            }
            Subject::Streams(runner, _) | Subject::Both(runner) => {
                runner.device.wait(pause, runner.stopped);
                runner.device.abandon()
            }
        }
    }

    /// Ends the device.
    ///
    /// # Errors
    /// If one outside does not end well.
    pub(super) fn close(self) -> Result<()> {
        match self {
            Subject::Talks(tester) => tester.device.close(),
            Subject::Streams(runner, _) | Subject::Both(runner) => runner.device.close(),
        }
    }
}

fn of_connections(trial: &Trial) -> Measured {
    let connections = &trial.connections;
    Measured {
        of: connections.begun,
        lost: connections.errors(),
        rate: connections.clean as f64 / trial.sample.seconds,
        spoiled: trial.tester,
        stolen: trial.stolen,
        limited_by: record::limited_by(&trial.drops, trial.missing(), trial.tester),
        first_lost: trial.first.as_ref().map(FirstTalk::record),
        l1_bps: trial.sample.l1_received() as f64 / trial.sample.seconds,
        latency: Vec::new(),
        record: record::of_connections(trial),
    }
}

/// Packets of streams, or connections, if there are any: then the packets lost count as well.
fn of_ran(ran: &Ran, load: f64) -> Measured {
    let streams = ran.streams.as_ref();
    let sum = streams.map(|trial| trial.sum()).unwrap_or_default();
    let (of, lost, arrived) = match &ran.connections {
        Some(trial) => {
            let connections = &trial.connections;
            // The greater share of both decides.
            let packets = sum.loss_ratio() * connections.begun as f64;
            let lost = connections.errors().max(packets.ceil() as u64);
            (connections.begun, lost, connections.clean)
        }
        None => (sum.sent, sum.lost, sum.received),
    };
    let mut record = record::of_ran(ran, load);
    (record.loss_ratio, record.judged) = (lost as f64 / of.max(1) as f64, of);
    if ran.connections.is_none() {
        record.judged = ran.judged();
    }
    Measured {
        of,
        lost,
        rate: arrived as f64 / ran.seconds,
        spoiled: ran.is_spoiled()
            || ran.connections.as_ref().is_some_and(|trial| is_held_back(&trial.sample)),
        stolen: ran.stolen,
        limited_by: record::limited_by(&ran.drops, ran.missing(), ran.is_spoiled()),
        first_lost: ran.first_lost(),
        l1_bps: ran.l1_received() as f64 / ran.seconds,
        latency: streams.map_or(Vec::new(), |trial| record::latencies(trial, load)),
        record,
    }
}
