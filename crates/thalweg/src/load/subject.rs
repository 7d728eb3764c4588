//! A device with work, as searches see it: a rate and a time in, a loss out.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use thalweg_load::stream::Load;
use thalweg_netns::Netns;

use super::spot::{Drops, Spot};
use super::streams::{self, StreamTester};
use super::trial::{Tester, Trial};
use super::under::Under;
use super::work::Work;

/// Time in which the rate of connections grows at the beginning of a trial.
const RAMP: Duration = Duration::from_millis(300);

/// What a trial measured.
pub(super) struct Measured {
    /// Packets or connections of its window, and how many of them were lost.
    pub(super) of: u64,
    pub(super) lost: u64,
    /// What arrived per second.
    pub(super) rate: f64,
    /// Its errors are the tester's.
    pub(super) spoiled: bool,
    /// What limited the device.
    pub(super) limited_by: String,
    /// All of it, for the file.
    pub(super) record: Value,
}

impl Measured {
    /// Share that was lost, 0 to 1.
    pub(super) fn loss_ratio(&self) -> f64 {
        self.lost as f64 / self.of.max(1) as f64
    }
}

/// A device with work.
pub(super) enum Subject<'a> {
    Talks(Tester<'a>),
    /// Streams, and their own rate in packets per second.
    Streams(StreamTester<'a>, f64),
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
        let hosts = work.hosts(under.seed);
        let device = match alone {
            true => under.start_alone(&hosts, ns)?,
            false => Some(under.start(&hosts, ns)?),
        };
        let Some(device) = device else { return Ok(None) };
        Ok(Some(match work {
            Work::Talks { life, .. } => {
                Subject::Talks(Tester { device, life: *life, forgiven: 0.0, rate: 0.0, stopped })
            }
            Work::Streams(_) => {
                let tester = StreamTester { device, number: 0, stopped };
                Subject::Streams(tester, work.own_rate())
            }
        }))
    }

    /// What the device calls itself.
    pub(super) fn name(&self) -> String {
        match self {
            Subject::Talks(tester) => tester.device.name(),
            Subject::Streams(tester, _) => tester.device.name(),
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
            Subject::Streams(tester, own) => {
                let load = Load::Times(rate / own.max(1e-9));
                let trial = tester.trial(load, time, |_, _| {})?.filter(|trial| !trial.cut);
                Ok(trial.map(|trial| of_packets(&trial)))
            }
        }
    }

    /// Stops what is sent, pauses, and forgets what there was.
    pub(super) fn reset(&mut self, pause: Duration) -> Result<()> {
        match self {
            Subject::Talks(tester) => {
                let stopped = tester.stopped;
                tester.reset(|device| {
                    device.wait(pause, stopped);
                })
            }
            Subject::Streams(tester, _) => {
                tester.device.wait(pause, tester.stopped);
                tester.device.abandon()
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
            Subject::Streams(tester, _) => tester.device.close(),
        }
    }
}

/// Places where packets were dropped, for a file.
pub(super) fn drops_json(drops: &Drops) -> Value {
    let drop = |(spot, packets): (&Spot, u64)| {
        json!({
            "side": spot.side.word(),
            "node": spot.node,
            "reason": spot.reason,
            "packets": packets,
        })
    };
    drops.iter().map(drop).collect()
}

fn of_connections(trial: &Trial) -> Measured {
    let (lost, sent) = trial.sample.lost();
    let connections = &trial.connections;
    Measured {
        of: connections.begun,
        lost: connections.errors(),
        rate: connections.clean as f64 / trial.sample.seconds,
        spoiled: trial.tester,
        limited_by: trial.limited_by(),
        record: json!({
            "begun": connections.begun,
            "completed": connections.completed,
            "clean": connections.clean,
            "active": trial.sample.active,
            "packets_sent": sent,
            "packets_lost": lost,
            "packets_unexplained": trial.unexplained(),
            "drops": drops_json(&trial.drops),
        }),
    }
}

fn of_packets(trial: &streams::StreamTrial) -> Measured {
    let sum = trial.sum();
    let (_, unexplained) = trial.unexplained();
    let limited_by = match trial.worst() {
        Some((spot, packets)) if packets >= unexplained => format!("{spot} ({packets} packets)"),
        _ if trial.is_spoiled() => "the tester, which sent too few".to_owned(),
        _ if unexplained > 0 => format!("device: no counter says where ({unexplained} packets)"),
        _ => "device".to_owned(),
    };
    Measured {
        of: sum.sent,
        lost: sum.lost,
        rate: sum.received as f64 / trial.seconds,
        spoiled: trial.is_spoiled(),
        limited_by,
        record: streams::json(trial),
    }
}
