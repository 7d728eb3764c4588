//! A trial of streams: a load for a time, and what became of its packets.
//!
//! Only packets that are due in the window are judged. The load grows before it and lasts a little
//! longer, so that they all meet the same; counters are read once nothing arrives any more.

use std::time::Duration;

use anyhow::Result;
use thalweg_device_load::{Change, DirectionReport, Progress};
use thalweg_load::stream::{Load, Rate};

use crate::load::device::Device;
use crate::load::spot::{Drops, Side, Spot};

/// Time in which the load grows, in steps that double it.
const RAMP: Duration = Duration::from_millis(300);
const STEPS: u32 = 6;
/// Time for which the load lasts before the window, and behind it.
const SETTLE: Duration = Duration::from_millis(500);
const TAIL: Duration = Duration::from_millis(50);
/// Time without a packet after which none is on its way, and the most that is waited.
const QUIET: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_secs(2);
/// Share of packets that the tester may fail to send; with more, the trial says nothing of the
/// device.
const UNSENT: f64 = 1e-4;

/// A device with streams.
pub(in crate::load) struct StreamTester<'a> {
    pub(in crate::load) device: Device,
    /// Number of the last trial.
    pub(in crate::load) number: u8,
    /// Whether the user has had enough.
    pub(in crate::load) stopped: &'a dyn Fn() -> bool,
}

/// How a trial went.
pub(in crate::load) struct StreamTrial {
    /// Length of its window in seconds.
    pub(in crate::load) seconds: f64,
    /// Of each pair of ports: from the first to the second, and back.
    pub(in crate::load) pairs: Vec<[DirectionReport; 2]>,
    /// What was dropped from its beginning to its end.
    pub(in crate::load) drops: Drops,
    /// Whether it was cut short by the user.
    pub(in crate::load) cut: bool,
}

/// Packets of a trial's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::load) struct Sum {
    pub(in crate::load) intended: u64,
    pub(in crate::load) sent: u64,
    /// Not sent, because the tester was late, and because it had no room.
    pub(in crate::load) late: u64,
    pub(in crate::load) refused: u64,
    pub(in crate::load) received: u64,
    pub(in crate::load) lost: u64,
    /// Bytes sent and received, without FCS.
    pub(in crate::load) bytes: (u64, u64),
}

impl Sum {
    /// Adds another one.
    pub(in crate::load) fn add(&mut self, other: Sum) {
        self.intended += other.intended;
        self.sent += other.sent;
        self.late += other.late;
        self.refused += other.refused;
        self.received += other.received;
        self.lost += other.lost;
        self.bytes.0 += other.bytes.0;
        self.bytes.1 += other.bytes.1;
    }

    /// Share of the packets sent that were lost, 0 to 1.
    pub(in crate::load) fn loss_ratio(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    /// Of a direction: its judged packets, or all, if those without tags are among them.
    pub(in crate::load) fn of(direction: &DirectionReport) -> Sum {
        let mut sum = Sum::default();
        let all_tagged = direction.streams.iter().all(|stream| stream.tagged);
        for stream in &direction.streams {
            let books = if all_tagged { &stream.judged } else { &stream.all };
            sum.add(Sum {
                intended: books.sent.intended,
                sent: books.sent.sent,
                late: books.sent.late,
                refused: books.sent.refused,
                received: books.received.packets,
                lost: 0,
                bytes: (books.sent.bytes, books.received.bytes),
            });
        }
        if !all_tagged {
            sum.received += direction.port.untagged;
            sum.bytes.1 += direction.port.untagged_bytes;
        }
        sum.lost = sum.sent.saturating_sub(sum.received);
        sum
    }
}

impl StreamTrial {
    /// All directions, with their names.
    pub(in crate::load) fn directions(&self) -> impl Iterator<Item = (&DirectionReport, String)> {
        let several = self.pairs.len() > 1;
        self.pairs.iter().enumerate().flat_map(move |(number, pair)| {
            let named = move |way: &str| match several {
                true => format!("{number} {way}"),
                false => way.to_owned(),
            };
            let [there, back] = pair;
            [(there, named("a-b")), (back, named("b-a"))]
        })
    }

    /// Packets of both directions.
    pub(in crate::load) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        self.directions().for_each(|(direction, _)| sum.add(Sum::of(direction)));
        sum
    }

    /// Whether the tester spoiled it.
    pub(in crate::load) fn is_spoiled(&self) -> bool {
        let sum = self.sum();
        (sum.late + sum.refused) as f64 > UNSENT * sum.intended.max(1) as f64
            || self.drops.of(Side::Tester) > 0
    }

    /// Packets sent since the trial began that have not arrived, and of those, the ones that no
    /// counter explains.
    pub(in crate::load) fn unexplained(&self) -> (u64, u64) {
        let lost = self.directions().map(|(direction, _)| {
            let sent: u64 = direction.streams.iter().map(|stream| stream.all.sent.sent).sum();
            let tagged: u64 =
                direction.streams.iter().map(|stream| stream.all.received.packets).sum();
            sent.saturating_sub(tagged + direction.port.untagged)
        });
        let lost = lost.sum();
        let known = self.drops.iter().map(|(_, packets)| packets).sum();
        (lost, u64::saturating_sub(lost, known))
    }

    /// The place where most was dropped.
    pub(in crate::load) fn worst(&self) -> Option<(&Spot, u64)> {
        self.drops.most()
    }
}

impl StreamTester<'_> {
    /// Sends a load for a time, and calls `look` about each second with what was sent and received
    /// meanwhile. `None` if the user stopped it before its window began.
    pub(in crate::load) fn trial(
        &mut self,
        load: Load,
        time: Duration,
        mut look: impl FnMut(&[Progress; 2], &[Progress; 2]),
    ) -> Result<Option<StreamTrial>> {
        let before = self.device.drops()?;
        self.number = self.number.wrapping_add(1);
        self.device.change(Change::Begin(self.number));
        for step in (0..STEPS).rev() {
            let share = 1.0 / f64::from(1u32 << step);
            self.device.change(Change::Load(scaled(load, share)));
            if !self.device.wait(RAMP / STEPS, self.stopped) {
                return self.stop();
            }
        }
        if !self.device.wait(SETTLE, self.stopped) {
            return self.stop();
        }
        self.device.change(Change::Judging(true));
        let mut last = self.device.progress()?;
        let start = last;
        let mut left = time;
        while !left.is_zero() && !(self.stopped)() {
            let part = left.min(Duration::from_secs(1));
            self.device.wait(part, self.stopped);
            left -= part;
            let now = self.device.progress()?;
            look(&last, &now);
            last = now;
        }
        self.device.change(Change::Judging(false));
        let cut = (self.stopped)();
        // The device's own time goes on, whatever the user wants.
        self.device.wait(TAIL, &|| false);
        self.device.change(Change::Load(Load::Times(0.0)));
        self.drain()?;
        Ok(Some(StreamTrial {
            seconds: (last[0].at.saturating_sub(start[0].at) as f64 / 1e9).max(1e-9),
            pairs: self.device.streams()?,
            drops: self.device.drops()?.since(&before),
            cut,
        }))
    }

    fn stop(&mut self) -> Result<Option<StreamTrial>> {
        self.device.change(Change::Load(Load::Times(0.0)));
        Ok(None)
    }

    /// Waits until no packet arrives any more.
    fn drain(&mut self) -> Result<()> {
        let step = Duration::from_millis(20);
        let (mut quiet, mut waited) = (Duration::ZERO, Duration::ZERO);
        let mut last = self.device.progress()?;
        while quiet < QUIET && waited < DRAIN {
            self.device.wait(step, &|| false);
            waited += step;
            let now = self.device.progress()?;
            let same = |at: usize| now[at].received == last[at].received;
            quiet = if same(0) && same(1) { quiet + step } else { Duration::ZERO };
            last = now;
        }
        Ok(())
    }
}

/// Returns a share of a load.
fn scaled(load: Load, share: f64) -> Load {
    match load {
        Load::Times(factor) => Load::Times(factor * share),
        Load::Total(rate) => Load::Total(match rate {
            Rate::Packets(value) => Rate::Packets(value * share),
            Rate::Bits(value) => Rate::Bits(value * share),
            Rate::WireBits(value) => Rate::WireBits(value * share),
            Rate::Percent(value) => Rate::Percent(value * share),
        }),
    }
}
