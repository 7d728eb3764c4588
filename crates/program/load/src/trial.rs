//! A trial: connections opened at a rate for a time, and what became of them.

use std::time::Duration;

use anyhow::Result;
use thalweg_load::talk::Judged;

use super::blame::FirstTalk;
use super::device::{Books, Device, OfGroup};
use super::sample::Sample;
use super::spot::{Drops, Missing, Side};
use super::stolen::{self, Ticks};

/// Time between two looks at what runs.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Time for which a rate lasts before a sample.
const SETTLE: Duration = Duration::from_millis(500);
/// Time that connections have for their end, beyond what their program takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Share of connections that the tester may fail to open; with more, the trial does not judge the
/// device.
const UNSENT: f64 = 1e-4;

/// Outcome of a trial.
pub(super) struct Trial {
    pub(super) sample: Sample,
    pub(super) connections: Connections,
    pub(super) good: bool,
    /// Its errors are not the device's.
    pub(super) tester: bool,
    /// Drops from its beginning to its end.
    pub(super) drops: Drops,
    /// The first packet of its window that was lost, if one was.
    pub(super) first: Option<FirstTalk>,
    /// Share of the processors' time that the hypervisor took, in percent.
    pub(super) stolen: f64,
}

/// A device with traffic, whose rate changes from trial to trial.
pub(super) struct Tester<'a> {
    pub(super) device: Device,
    /// Time that a connection takes at least.
    pub(super) life: Duration,
    /// Percentage of lost packets below which errors are forgiven.
    pub(super) forgiven: f64,
    /// The rate at which connections are opened now.
    pub(super) rate: f64,
    /// True once the user has had enough.
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl Tester<'_> {
    /// Ramps the rate up or down to another one, and holds it for a moment; false if interrupted.
    pub(super) fn ramp(&mut self, to: f64, ramp: Duration) -> bool {
        let from = std::mem::replace(&mut self.rate, to);
        let steps = (ramp.as_millis() / LOOK.as_millis()).max(1) as u32;
        for step in 1..=steps {
            self.device.set_rate(from + (to - from) * f64::from(step) / f64::from(steps));
            if !self.device.wait(LOOK, self.stopped) {
                return false;
            }
        }
        self.device.wait(SETTLE, self.stopped)
    }

    /// Stops the traffic, has `meanwhile` run, and forgets all connections.
    pub(super) fn reset(&mut self, meanwhile: impl FnOnce(&mut Device)) -> Result<()> {
        self.rate = 0.0;
        self.device.set_rate(0.0);
        meanwhile(&mut self.device);
        self.device.abandon()
    }

    /// Judges the connections that are opened in a time; `None` if interrupted.
    pub(super) fn sample(&mut self, time: Duration) -> Result<Option<Trial>> {
        let ticks = Ticks::now();
        let dropped = self.device.drops()?;
        let before = self.device.books()?;
        self.device.begin(0)?;
        self.device.begin_window()?;
        let whole = self.device.wait(time, self.stopped);
        self.device.end_window();
        let after = self.device.books()?;
        if !whole {
            return Ok(None);
        }
        // Traffic goes on, so that the last connections judged meet what the others met.
        let mut end = after.clone();
        let mut left = self.life + PATIENCE;
        while Connections::of(&before, &end).pending() > 0 && !left.is_zero() {
            if !self.device.wait(LOOK, self.stopped) {
                return Ok(None);
            }
            left = left.saturating_sub(LOOK);
            end = self.device.books()?;
        }
        let sample = Sample::of(self.rate, &before, &after, &end);
        let connections = Connections::of(&before, &end);
        let drops = self.device.drops()?.since(&dropped);
        let tester = is_tester(&sample, &drops) || is_held_back(&sample);
        let forgiven = sample.lost_percent() < self.forgiven;
        let good = !tester && (connections.errors() == 0 || forgiven);
        let seen = self.device.dropped()?;
        let plans: Vec<_> = self.device.groups().map(|group| &group.plan).collect();
        let first = FirstTalk::of(&seen, &plans, &drops, sample.lost_ways());
        Ok(Some(Trial {
            sample,
            connections,
            good,
            tester,
            drops,
            first,
            stolen: ticks.stolen_percent(),
        }))
    }
}

/// True if the tester spoiled a sample.
pub(super) fn is_tester(sample: &Sample, drops: &Drops) -> bool {
    let unsent = sample.clients.unsent + sample.clients.no_room + sample.clients.no_tuple;
    unsent as f64 > UNSENT * sample.clients.begun.max(1) as f64 || drops.of(Side::Tester) > 0
}

/// True if limits that the user has set kept connections from being opened: a trial with fewer of
/// them is no measure of its rate.
pub(super) fn is_held_back(sample: &Sample) -> bool {
    sample.clients.held_back as f64 > UNSENT * sample.clients.begun.max(1) as f64
}

/// Connections judged in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Connections {
    /// Begun in its window.
    pub(super) begun: u64,
    /// Ended as their program says, with nothing sent twice.
    pub(super) clean: u64,
    /// Ended as their program says.
    pub(super) completed: u64,
    /// Ended.
    ended: u64,
    /// Connections held by number that ended otherwise in the meantime.
    broken: u64,
    /// True if connections that have not ended count as good: the user did not wait for them.
    pub(super) cut: bool,
}

impl Connections {
    pub(super) fn pending(&self) -> u64 {
        self.begun.saturating_sub(self.ended)
    }

    pub(super) fn errors(&self) -> u64 {
        let of = if self.cut { self.ended } else { self.begun };
        of.saturating_sub(self.clean) + self.broken
    }

    /// Connections of the window, and of those that are held; `after` is a later reading.
    pub(super) fn of(before: &Books, after: &Books) -> Connections {
        let of = |books: &Books| books.clients.counts.judged;
        let (was, is): (Judged, Judged) = (of(before), of(after));
        Connections {
            begun: is.begun - was.begun,
            clean: is.clean - was.clean,
            completed: is.completed - was.completed,
            ended: is.completed + is.failed - was.completed - was.failed,
            broken: broken(before, after),
            cut: false,
        }
    }
}

/// Connections held by number that ended otherwise than their program says.
fn broken(before: &Books, after: &Books) -> u64 {
    let groups = before.groups.iter().zip(&after.groups).filter(|(_, is)| is.held);
    let of = |(was, is): (&OfGroup, &OfGroup)| {
        let new = is.clients.counts.since(&was.clients.counts);
        new.lost.all() + new.reset + new.wrong
    };
    groups.map(of).sum()
}

impl Trial {
    /// True if it is bad, and the machine may be why: once more is better then.
    pub(super) fn is_doubtful(&self) -> bool {
        self.tester || (!self.good && self.stolen >= stolen::MUCH)
    }

    /// Returns what limited the device in this trial.
    pub(super) fn limited_by(&self) -> String {
        let unexplained = self.missing().unexplained;
        match self.drops.most() {
            Some((spot, packets)) if spot.side == Side::Tester => {
                format!("{spot} ({packets} packets)")
            }
            _ if is_held_back(&self.sample) => {
                "the number of connections that may be open at a time".to_owned()
            }
            _ if self.tester => "the tester, which opened too few".to_owned(),
            Some((spot, packets)) if packets >= unexplained => {
                format!("{spot} ({packets} packets)")
            }
            _ if unexplained > 0 => {
                format!("device: no counter says where ({unexplained} packets)")
            }
            _ => "device: late answers, no packet was lost".to_owned(),
        }
    }

    /// Packets that have not arrived as they were.
    pub(super) fn missing(&self) -> Missing {
        let [lost, damaged] = self.sample.missing_ways();
        self.drops.missing(lost, damaged)
    }
}
