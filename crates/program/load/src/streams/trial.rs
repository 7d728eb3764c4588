//! Fates of the packets of streams in a trial.

use thalweg_device_load::DirectionReport;

use crate::blame::Place;
use crate::spot::{Drops, Missing, Side};

/// Share of packets that the tester may fail to send; with more, the trial does not judge the
/// device.
const UNSENT: f64 = 1e-4;
/// Bytes of a packet on the wire beyond those counted: the FCS; with preamble and gap.
pub(super) const FCS: u64 = 4;
pub(super) const WIRE: u64 = FCS + 20;

/// Outcome of a trial.
pub(crate) struct StreamTrial {
    /// Length of its window in seconds.
    pub(crate) seconds: f64,
    /// Pairs of ports with streams: number, reports from the first port to the second, and back.
    pub(crate) pairs: Vec<(usize, [DirectionReport; 2])>,
    /// Drops from its beginning to its end.
    pub(crate) drops: Drops,
    /// The first packet of the window that was lost, and where.
    pub(crate) first: Option<First>,
    /// Packets of connections that were lost at the same time, there and back, and of those, the
    /// ones that have arrived damaged.
    pub(crate) others: [[u64; 2]; 2],
}

/// The first packet of the window that was lost: of all, the one that was due first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) stream: String,
    pub(crate) way: String,
    /// Its number in its stream.
    pub(crate) number: u64,
    /// Time when it was due, since the window began, in nanoseconds.
    pub(crate) due: u64,
    pub(crate) place: Place,
}

/// Packets of a trial's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) intended: u64,
    pub(crate) sent: u64,
    /// Packets of the window that were sent: as many as `sent`, unless some have no tags.
    pub(crate) window: u64,
    /// Packets that were not sent, because the tester was late, and because it had no room.
    pub(crate) late: u64,
    pub(crate) refused: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    /// Bytes sent and received, without FCS.
    pub(crate) bytes: (u64, u64),
}

impl Sum {
    /// Adds another one.
    pub(crate) fn add(&mut self, other: Sum) {
        self.intended += other.intended;
        self.sent += other.sent;
        self.window += other.window;
        self.late += other.late;
        self.refused += other.refused;
        self.received += other.received;
        self.lost += other.lost;
        self.bytes.0 += other.bytes.0;
        self.bytes.1 += other.bytes.1;
    }

    /// Bits received, with FCS, preamble and gap.
    pub(crate) fn l1_received(&self) -> u64 {
        8 * (self.bytes.1 + WIRE * self.received)
    }

    /// Share of the packets sent that were lost, 0 to 1.
    pub(crate) fn loss_ratio(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    /// Sum of a direction: its judged packets, or all, if those without tags are among them.
    pub(crate) fn of(direction: &DirectionReport) -> Sum {
        let mut sum = Sum::default();
        let all_tagged = direction.streams.iter().all(|stream| stream.tagged);
        for stream in &direction.streams {
            let books = if all_tagged { &stream.judged } else { &stream.all };
            sum.add(Sum {
                intended: books.sent.intended,
                sent: books.sent.sent,
                window: stream.judged.sent.sent,
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
    pub(crate) fn directions(&self) -> impl Iterator<Item = (&DirectionReport, String)> {
        let several = self.pairs.len() > 1 || self.pairs.iter().any(|(number, _)| *number > 0);
        self.pairs.iter().flat_map(move |(number, pair)| {
            let named = move |way: &str| match several {
                true => format!("{number} {way}"),
                false => way.to_owned(),
            };
            let [there, back] = pair;
            [(there, named("a-b")), (back, named("b-a"))]
        })
    }

    /// Packets of both directions.
    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        self.directions().for_each(|(direction, _)| sum.add(Sum::of(direction)));
        sum
    }

    /// True if the tester spoiled it.
    pub(crate) fn is_spoiled(&self) -> bool {
        let sum = self.sum();
        (sum.late + sum.refused) as f64 > UNSENT * sum.intended.max(1) as f64
            || self.drops.of(Side::Tester) > 0
    }

    /// Packets sent since the trial began that have not arrived as they were.
    pub(crate) fn missing(&self) -> Missing {
        let of = |direction: &DirectionReport| {
            let sent: u64 = direction.streams.iter().map(|stream| stream.all.sent.sent).sum();
            let tagged: u64 =
                direction.streams.iter().map(|stream| stream.all.received.packets).sum();
            sent.saturating_sub(tagged + direction.port.untagged)
        };
        let damaged = |direction: &DirectionReport| -> u64 {
            direction.streams.iter().map(|stream| stream.all.received.damaged).sum()
        };
        let [mut lost, mut bad] = self.others;
        for (_, pair) in &self.pairs {
            lost.iter_mut().zip(pair).for_each(|(lost, direction)| *lost += of(direction));
            bad.iter_mut().zip(pair).for_each(|(bad, direction)| *bad += damaged(direction));
        }
        self.drops.missing(lost, bad)
    }
}
