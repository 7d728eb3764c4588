//! Ends of streams: what a port's side sends, and what it receives.

use thalweg_load::Part;
use thalweg_load::stream::{
    Books, Latency, Load, Nanos, Plan, PlanError, Port, Receiver, Senders, Side,
};

/// Senders and receiver of one side.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) senders: Senders,
    pub(crate) receiver: Receiver,
}

impl Ends {
    /// Ends of one of several workers.
    pub(crate) fn new(
        plan: &Plan,
        side: Side,
        seed: u64,
        worker: Part,
        now: Nanos,
    ) -> Result<Ends, PlanError> {
        let senders = Senders::part(plan, side, seed, worker, now)?;
        Ok(Ends { senders, receiver: Receiver::part(plan, side, seed, worker)? })
    }

    pub(crate) fn change(&mut self, change: Change, now: Nanos) {
        match change {
            Change::Begin(trial) => {
                self.senders.begin(trial, now);
                self.receiver.begin(trial);
            }
            Change::Load(load) => self.senders.set_load(load, now),
            Change::Judging(judging) => self.senders.set_judging(judging, now),
        }
    }
}

/// A change to the streams of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// A trial of this number begins: counters start at zero, and nothing is sent yet.
    Begin(u8),
    /// The load to send from now on.
    Load(Load),
    /// True if packets due from now on belong to the trial's window.
    Judging(bool),
}

/// Books of a stream in one direction.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// Its number in the plan.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// True if its packets have tags; without, only sent packets are known.
    pub tagged: bool,
    /// Its judged packets.
    pub judged: Books,
    /// All of them.
    pub all: Books,
    /// Latency of the judged packets.
    pub latency: Latency,
}

impl StreamReport {
    fn add(&mut self, other: StreamReport) {
        self.judged.add(other.judged);
        self.all.add(other.all);
        self.latency.add(&other.latency);
    }
}

/// Books of all streams in one direction.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// Time when it was read.
    pub at: Nanos,
    /// Streams that this direction has, in the order of the plan.
    pub streams: Vec<StreamReport>,
    /// Packets that arrived and belong to no stream.
    pub port: Port,
    /// Time when the last packet of a stream arrived.
    pub last: Option<Nanos>,
}

impl DirectionReport {
    /// Adds what other workers have sent and received.
    pub(crate) fn add(&mut self, other: DirectionReport) {
        self.at = self.at.max(other.at);
        self.port.add(&other.port);
        self.last = self.last.max(other.last);
        for stream in other.streams {
            match self.streams.binary_search_by_key(&stream.number, |own| own.number) {
                Ok(at) => self.streams[at].add(stream),
                Err(at) => self.streams.insert(at, stream),
            }
        }
    }

    pub(crate) fn of(from: &Ends, to: &Ends, at: Nanos) -> DirectionReport {
        let senders = &from.senders;
        let of = |number| {
            let books = |judged| Books::of(senders, &to.receiver, number, judged);
            StreamReport {
                number,
                name: senders.name(number).to_owned(),
                tagged: senders.tagged(number),
                judged: books(true),
                all: books(false),
                latency: to.receiver.latency(number).cloned().unwrap_or_default(),
            }
        };
        DirectionReport {
            at,
            streams: (0..senders.len()).filter(|number| senders.sends(*number)).map(of).collect(),
            port: to.receiver.port(),
            last: to.receiver.last(),
        }
    }
}

/// Times of packets of the window so far, in nanoseconds, where there are enough for them. Reading
/// them while packets are sent takes little time, and leaves the distributions where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time that half of the packets took at most.
    pub half: Option<Nanos>,
    /// 99 % of them.
    pub most: Option<Nanos>,
    /// 99.9 % of them.
    pub nearly_all: Option<Nanos>,
    /// The longest.
    pub longest: Option<Nanos>,
}

/// Streams that are looked at for [`Times`]: more would delay what is due.
const LOOKED_AT: usize = 8;

impl Times {
    /// The longer ones of both.
    #[must_use]
    pub fn max(self, other: Times) -> Times {
        Times {
            half: self.half.max(other.half),
            most: self.most.max(other.most),
            nearly_all: self.nearly_all.max(other.nearly_all),
            longest: self.longest.max(other.longest),
        }
    }

    pub(crate) fn of(from: &Ends, to: &Ends) -> Times {
        let numbers = (0..from.senders.len()).filter(|number| from.senders.sends(*number));
        let latencies = numbers.filter_map(|number| to.receiver.latency(number)).take(LOOKED_AT);
        latencies.fold(Times::default(), |times, latency| {
            times.max(Times {
                half: latency.quantile(0.5),
                most: latency.quantile(0.99),
                nearly_all: latency.quantile(0.999),
                longest: latency.most(),
            })
        })
    }
}

/// Packets sent and received so far in one direction, without the books: cheap to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time when it was read.
    pub at: Nanos,
    /// Packets sent, and their bytes without FCS.
    pub sent: (u64, u64),
    /// Packets received, and their bytes without FCS.
    pub received: (u64, u64),
    /// Time when the last packet of a stream arrived.
    pub last: Option<Nanos>,
}

impl Progress {
    /// Adds what other ports or workers have sent and received.
    pub fn add(&mut self, other: Progress) {
        self.at = self.at.max(other.at);
        self.sent = (self.sent.0 + other.sent.0, self.sent.1 + other.sent.1);
        self.received.0 += other.received.0;
        self.received.1 += other.received.1;
        self.last = self.last.max(other.last);
    }

    pub(crate) fn of(from: &Ends, to: &Ends, at: Nanos) -> Progress {
        let sent = from.senders.totals().0;
        let received = to.receiver.totals().0;
        let port = to.receiver.port();
        Progress {
            at,
            sent: (sent.sent, sent.bytes),
            received: (received.packets + port.untagged, received.bytes + port.untagged_bytes),
            last: to.receiver.last(),
        }
    }
}
