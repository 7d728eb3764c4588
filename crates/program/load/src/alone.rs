//! The tester without a device: what it bears, what it loses by itself, and its latency.

use std::time::Duration;

use anyhow::Result;
use thalweg_load::stream::Load;
use thalweg_load_report as model;
use thalweg_netns::Netns;

use super::number::short;
use super::record;
use super::runner::{Offered, Runner};
use super::streams::StreamTrial;
use super::subject::Subject;
use super::under::Under;
use super::work::Work;

/// The rate that the tester can send and receive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OwnLimit {
    At(f64),
    /// More than is asked for.
    Beyond,
    /// Unknown: measuring it needs a cable between the ports.
    Unknown,
}

impl OwnLimit {
    pub(super) fn rate(self) -> Option<f64> {
        match self {
            OwnLimit::At(cap) => Some(cap),
            OwnLimit::Beyond | OwnLimit::Unknown => None,
        }
    }

    /// The limit, if it is known to be no more than this.
    pub(super) fn at_most(self, rate: f64) -> OwnLimit {
        OwnLimit::At(self.rate().map_or(rate, |own| own.min(rate)))
    }
}

/// Measurements without a device.
pub(super) struct Alone {
    pub(super) limit: OwnLimit,
    /// Share lost at half of that limit, or of the greatest rate; `None` if that is not known.
    pub(super) loss: Option<f64>,
    /// Latency of streams at that load.
    pub(super) latency: Vec<model::Latency>,
}

/// Times that each of both is tried at most.
const TRIES: usize = 4;
/// Share of its own limit at which the tester is well off.
const EASY: f64 = 0.5;
/// Pause after a trial with losses.
const PAUSE: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

impl Alone {
    const UNKNOWN: Alone = Alone { limit: OwnLimit::Unknown, loss: None, latency: Vec::new() };

    /// Measures the tester without a device, or with the simplest one. A measurement that the user
    /// stopped is incomplete.
    pub(super) fn measure(
        work: &Work,
        under: &Under,
        most: f64,
        ns: Option<&Netns>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Alone> {
        let Some(mut subject) = Subject::start(work, under, ns, true, stopped)? else {
            return Ok(Alone::UNKNOWN);
        };
        let mut alone = Alone { limit: OwnLimit::Beyond, ..Alone::UNKNOWN };
        // Packets arrive at the rate that it can send: at the first try much less than asked for,
        // perhaps.
        let mut rate = most;
        for _ in 0..TRIES {
            let Some(measured) = subject.measure(rate, SECOND)? else { break };
            if measured.spoiled || rate < most {
                alone.limit = OwnLimit::At(measured.rate);
            }
            if !measured.spoiled {
                break;
            }
            rate = measured.rate.max(1.0);
            subject.reset(PAUSE)?;
        }
        let easy = EASY * alone.limit.rate().unwrap_or(most);
        for _ in 0..TRIES {
            if alone.loss == Some(0.0) || stopped() {
                break;
            }
            let Some(measured) = subject.measure(easy.max(1.0), SECOND)? else { break };
            let loss = measured.loss_ratio();
            // A stall of the machine is no floor: the best try is.
            if !measured.spoiled && alone.loss.is_none_or(|least| loss < least) {
                alone.loss = Some(loss);
                alone.latency = measured.latency;
            }
            if loss > 0.0 {
                subject.reset(PAUSE)?;
            }
        }
        subject.close()?;
        Ok(alone)
    }

    /// Prints what was found.
    pub(super) fn tell(&self, unit: &str) {
        match self.limit {
            OwnLimit::At(rate) => {
                crate::say!("The tester itself bears {} {unit}, without a device.", short(rate));
            }
            OwnLimit::Beyond => crate::say!("The tester itself bears the greatest rate."),
            OwnLimit::Unknown => crate::say!(
                "The tester's own limit is not known: search once with a cable between the ports."
            ),
        }
        if let Some(loss) = self.loss.filter(|loss| *loss > 0.0) {
            crate::say!("At half of that it loses {:.4} % without a device.", 100.0 * loss);
        }
    }

    /// Puts it into a report.
    pub(super) fn fill(&self, check: &mut model::SelfCheck) {
        check.transport = self.limit.rate();
        check.loss = self.loss;
        check.latency = self.latency.first().map(|latency| latency.scheduled.clone());
    }
}

/// Sends streams at a load without a device: the floor of their latency. `None` if that takes a
/// cable, or the user has stopped it.
pub(super) fn floor(
    work: &Work,
    under: &Under,
    load: Load,
    ns: Option<&Netns>,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<StreamTrial>> {
    let work = work.only_streams();
    let Some(device) = under.start_alone(&work.hosts(under.seed, under.cores), ns)? else {
        return Ok(None);
    };
    let mut runner = Runner::new(device, Duration::ZERO, stopped);
    let offered = Offered { streams: load, connections: None };
    let ran = runner.trial(offered, SECOND, |_, _| Ok(()));
    runner.device.close()?;
    Ok(ran?.filter(|ran| !ran.cut).and_then(|ran| ran.streams))
}

/// The same in the form of reports.
pub(super) fn latencies(floor: Option<&StreamTrial>) -> Vec<model::Latency> {
    floor.map_or(Vec::new(), |trial| {
        record::latencies(trial, trial.sum().sent as f64 / trial.seconds)
    })
}
