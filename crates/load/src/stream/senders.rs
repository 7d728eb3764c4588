//! One side's streams: they send.

use std::ops::Range;

use super::compile::{Source, compile};
use super::field::mix;
use super::layer::Layer;
use super::shape::Shape;
use super::tag::{Form, Writer};
use super::turns::Turns;
use super::{Load, MAX_STREAMS, Mode, Nanos, Plan, PlanError, Side, Start, Stream, StreamError};
use crate::{Part, Sink};

/// Counts of packets that were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// All of them.
    pub intended: u64,
    /// Handed over.
    pub sent: u64,
    /// Bytes handed over, without FCS.
    pub bytes: u64,
    /// Packets that were not sent, because the tester was late.
    pub late: u64,
    /// Packets that were not sent, because the transport had no room until it was too late.
    pub refused: u64,
}

impl Sent {
    /// True if all packets are accounted for.
    pub fn balances(&self) -> bool {
        self.intended == self.sent + self.late + self.refused
    }

    /// Adds the packets of another stream.
    pub fn add(&mut self, other: &Sent) {
        self.intended += other.intended;
        self.sent += other.sent;
        self.bytes += other.bytes;
        self.late += other.late;
        self.refused += other.refused;
    }
}

/// A time with 32 bits behind the nanosecond, so that rates are exact over hours.
type Fine = u128;

fn fine(time: Nanos) -> Fine {
    Fine::from(time) << 32
}

#[inline]
fn coarse(time: Fine) -> Nanos {
    (time >> 32) as Nanos
}

/// Most changes of pace of a stream whose times are remembered.
const PACES: usize = 4096;
/// Most windows of a trial.
const WINDOWS: usize = 1024;

/// A stream that this side sends.
#[derive(Clone, Debug)]
struct Sending {
    shape: Shape,
    writer: Writer,
    mode: Mode,
    start: Start,
    times: u32,
    fixed: bool,
    /// Packets per second by the plan, and which part of the stream this is.
    rate: f64,
    part: Part,
    /// Time between two packets; `None`: paused.
    step: Option<Fine>,
    /// Time from the begin of a burst to that of the next.
    every: Fine,
    /// Time when the next packet is due, if the stream runs.
    due: Option<Fine>,
    /// The next packet's number.
    number: u64,
    /// Packets left of the burst at hand, bursts left behind it, and rounds left behind these.
    left: u64,
    bursts: u64,
    rounds: u32,
    /// Time when the burst at hand began, or begins.
    burst: Fine,
    /// True if it follows another one of its round.
    follows: bool,
    /// True if the transport had no room for the packet that is due.
    refused: bool,
    /// Counters of packets outside and inside windows.
    counts: [Sent; 2],
    /// Numbers from which on packets are due at this time, with this step.
    paces: Vec<(u64, Fine, Fine)>,
    /// Numbers of packets that are judged.
    judged: Vec<Range<u64>>,
}

/// The streams that one side sends.
#[derive(Clone, Debug)]
pub struct Senders {
    streams: Vec<Option<Sending>>,
    names: Vec<String>,
    plan: Plan,
    side: Side,
    mark: u16,
    /// End of sequence numbers: bits, and their value.
    end: (u32, u64),
    turns: Turns,
    /// The window in which packets are judged.
    window: (Nanos, Nanos),
    factor: f64,
}

/// Bytes of packets that all streams together have rendered beforehand without being asked to.
const CACHED_BYTES: u64 = 2 << 20;
/// Most sizes, and values of lists, that all streams together have.
const MOST_SIZES: usize = 1 << 16;
const MOST_VALUES: usize = 1 << 22;
/// Most bytes of packets that all streams together have rendered beforehand.
const MOST_CACHED: usize = 64 << 20;

impl Plan {
    /// Checks that compiled streams take a reasonable amount of memory.
    fn check_size(&self) -> Result<(), PlanError> {
        let sum = |of: &dyn Fn(&Stream) -> usize| {
            self.streams.iter().map(of).fold(0usize, usize::saturating_add)
        };
        let cached = |stream: &Stream| match stream.caching {
            super::Caching::Packets(packets) => {
                (packets as usize).saturating_mul(stream.size.most().into())
            }
            _ => 0,
        };
        for (what, sum, most) in [
            ("sizes", sum(&|stream| stream.size.count()), MOST_SIZES),
            ("values of fields", sum(&|stream| stream.values()), MOST_VALUES),
            ("bytes of cached packets", sum(&cached), MOST_CACHED),
        ] {
            if sum > most {
                return Err(PlanError::Large { what, sum, most });
            }
        }
        Ok(())
    }

    /// Checks the plan, on both sides.
    ///
    /// # Errors
    /// [`PlanError`] names what is wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        shapes(self, Side::A, 0, Part::WHOLE)?;
        shapes(self, Side::B, 0, Part::WHOLE).map(drop)
    }
}

/// The mark of a run's tags.
pub(super) fn mark(seed: u64) -> u16 {
    // The value and its inverse are no frequent contents of packets.
    match mix(seed) as u16 {
        0 | 0xffff => 0x7a1c,
        mark => mark,
    }
}

/// Part of a stream that one of several workers sends, if any. One that never ends is shared out;
/// bursts, and streams that start behind each other, are sent by one worker.
fn part_of(streams: &[Stream], number: usize, worker: Part) -> Option<Part> {
    let mut root = number;
    // Circles have been refused.
    while let Some(Stream { start: Start::Behind { stream, .. }, .. }) = streams.get(root) {
        root = *stream;
    }
    if root == number && streams.get(number)?.mode == Mode::Continuous {
        return Some(worker);
    }
    let owner = root % worker.count() as usize;
    (owner == worker.number() as usize).then_some(Part::WHOLE)
}

/// A worker's share of a stream: packets, how many a second, and which part of them all.
pub(super) type Compiled = (Shape, f64, Part);

/// Compiles what a side sends of each stream, as one of several workers.
pub(super) fn shapes(
    plan: &Plan,
    side: Side,
    seed: u64,
    worker: Part,
) -> Result<Vec<Option<Compiled>>, PlanError> {
    plan.check_cap()?;
    if plan.streams.is_empty() || plan.streams.len() > MAX_STREAMS {
        return Err(PlanError::Streams(plan.streams.len()));
    }
    plan.check_size()?;
    let compiled = plan.streams.iter().enumerate().map(|(number, stream)| {
        let error = |error| PlanError::Stream { number, name: stream.name.clone(), error };
        stream.check(number, &plan.streams).map_err(error)?;
        let rate = stream.rate.check(stream.size.mean(), plan.cap).map_err(error)?;
        let part = part_of(&plan.streams, number, worker);
        let chance = seed ^ part.map_or(0, |part| u64::from(part.number()) << 32);
        let source = Source {
            layers: &stream.layers,
            size: &stream.size,
            macs: plan.macs[side as usize],
            side,
            tagged: stream.tagged,
            caching: stream.caching,
            cached: CACHED_BYTES / plan.streams.len() as u64,
            seed: mix(chance ^ mix(number as u64)),
        };
        let mut shape = compile(&source).map_err(error)?;
        // The short form has no room for greater numbers.
        let short = shape.variants.iter().any(|variant| variant.form == Form::Short);
        if number > 0xff && short {
            shape = compile(&Source { tagged: false, ..source }).map_err(error)?;
        }
        let Some(part) = part.filter(|_| stream.direction.sends(side)) else { return Ok(None) };
        shape.begin_at(part);
        Ok(Some((shape, rate * part.share(), part)))
    });
    compiled.collect()
}

impl Stream {
    /// Number of values in lists, and of different random ones.
    fn values(&self) -> usize {
        let fields = self.layers.iter().flat_map(Layer::fields);
        fields.map(|field| field.values.listed()).fold(0, usize::saturating_add)
    }

    /// Checks all but layers and sizes.
    fn check(&self, number: usize, all: &[Stream]) -> Result<(), StreamError> {
        let wrong =
            |path: &str, message: String| Err(StreamError { path: path.to_owned(), message });
        match self.mode {
            Mode::Burst { packets: 0 } | Mode::Bursts { packets: 0, .. } => {
                return wrong("mode", "a burst of 0 packets; it must have at least 1".into());
            }
            Mode::Bursts { every: 0, .. } => {
                return wrong("mode", "bursts each 0 ns; they must be at least 1 ns apart".into());
            }
            _ => {}
        }
        if self.times == 0 {
            return wrong("times", "0; it must be at least 1".into());
        }
        // Each stream waits for one: their row either ends or is a circle.
        let mut at = number;
        for _ in 0..=all.len() {
            let Some(Stream { start: Start::Behind { stream, .. }, direction, .. }) = all.get(at)
            else {
                return Ok(());
            };
            let Some(before) = all.get(*stream) else {
                return wrong("start", format!("there is no stream {stream} to start behind"));
            };
            let endless = matches!(before.mode, Mode::Continuous | Mode::Bursts { count: 0, .. });
            if endless {
                let name = &before.name;
                return wrong("start", format!("stream {name} never ends; give it a burst"));
            }
            for side in [Side::A, Side::B] {
                if direction.sends(side) && !before.direction.sends(side) {
                    let name = &before.name;
                    return wrong("start", format!("stream {name} goes another direction"));
                }
            }
            at = *stream;
        }
        wrong("start", "it waits for itself: streams start behind each other in a circle".into())
    }
}

impl Senders {
    /// Creates the streams of a side. `seed` decides random values, and marks the tags: the
    /// [`Receiver`](super::Receiver) must have the same one. Nothing is sent before
    /// [`Self::set_load`].
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(plan: &Plan, side: Side, seed: u64, now: Nanos) -> Result<Senders, PlanError> {
        Senders::part(plan, side, seed, Part::WHOLE, now)
    }

    /// The same of one of several workers, which share out the packets: together they send at the
    /// plan's rates, and no two have a sequence number in common.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn part(
        plan: &Plan,
        side: Side,
        seed: u64,
        worker: Part,
        now: Nanos,
    ) -> Result<Senders, PlanError> {
        let streams = shapes(plan, side, seed, worker)?.into_iter().zip(&plan.streams);
        let streams = streams.map(|(compiled, stream)| {
            let (shape, rate, part) = compiled?;
            Some(Sending {
                shape,
                writer: Writer::default(),
                mode: stream.mode,
                start: stream.start,
                times: stream.times,
                fixed: stream.fixed_rate,
                rate,
                part,
                step: None,
                every: 0,
                due: None,
                number: 0,
                left: 0,
                bursts: 0,
                rounds: 0,
                burst: 0,
                follows: false,
                refused: false,
                counts: [Sent::default(); 2],
                paces: Vec::new(),
                judged: Vec::new(),
            })
        });
        let mut senders = Senders {
            streams: streams.collect(),
            names: plan.streams.iter().map(|stream| stream.name.clone()).collect(),
            plan: plan.clone(),
            side,
            mark: mark(seed),
            end: (worker.bits(), worker.number().into()),
            turns: Turns::default(),
            window: (Nanos::MAX, Nanos::MAX),
            factor: 0.0,
        };
        senders.begin(0, now);
        Ok(senders)
    }

    /// Begins a trial with no load: counters are 0, and all streams begin with their first packet.
    /// `trial` counts modulo 64, and must be the receiver's.
    pub fn begin(&mut self, trial: u8, now: Nanos) {
        self.window = (Nanos::MAX, Nanos::MAX);
        self.factor = 0.0;
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let Some(stream) = stream else { continue };
            stream.writer = Writer::new(self.mark, trial, self.side, number as u16);
            stream.shape.rewind();
            stream.step = None;
            stream.number = 0;
            stream.refused = false;
            stream.counts = [Sent::default(); 2];
            stream.paces.clear();
            stream.judged.clear();
            stream.rounds = stream.times;
            stream.due = None;
            if let Start::After(pause) = stream.start {
                stream.round(fine(now) + fine(pause));
            }
        }
        self.order();
    }

    /// Sets the load from now on.
    pub fn set_load(&mut self, load: Load, now: Nanos) {
        self.factor = self.plan.factor(load, self.side);
        for stream in self.streams.iter_mut().flatten() {
            let factor = if stream.fixed { 1.0 } else { self.factor };
            stream.pace(factor, fine(now));
        }
        self.order();
    }

    /// The factor by which the plan's rates are multiplied.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Packets due from `at` on are judged, or not any more.
    pub fn set_judging(&mut self, judging: bool, at: Nanos) {
        self.window = match judging {
            true => (at, Nanos::MAX),
            false => (self.window.0.min(at), at),
        };
    }

    /// Sends the packets that are due, at most this many; returns the number sent.
    #[inline]
    pub fn poll(&mut self, now: Nanos, most: usize, out: &mut impl Sink) -> usize {
        let late = now.saturating_sub(self.plan.late);
        let mut handed = 0;
        while handed < most {
            let Some(number) = self.turns.first() else { break };
            let Some(Some(stream)) = self.streams.get_mut(number) else { break };
            let Some(due) = stream.due.map(coarse).filter(|due| *due <= now) else { break };
            let next = if due < late {
                stream.skip(fine(late), self.window)
            } else {
                let judged = self.window.0 <= due && due < self.window.1;
                if !stream.send(due, judged, self.end, out) {
                    break;
                }
                handed += 1;
                stream.next()
            };
            self.turns.set(number, next);
            if next.is_none() {
                self.ended(number, now);
            }
        }
        handed
    }

    /// Returns the time when the next packet is due; `None` if none is.
    pub fn next_due(&self) -> Option<Nanos> {
        self.stream(self.turns.first()?)?.due.map(coarse)
    }

    /// Number of the plan's streams.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// True if there are no streams, which a plan does not allow.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Name of a stream.
    pub fn name(&self, stream: usize) -> &str {
        self.names.get(stream).map_or("", String::as_str)
    }

    /// True if this side sends a stream.
    pub fn sends(&self, stream: usize) -> bool {
        self.stream(stream).is_some()
    }

    /// True if all packets of a stream have room for a tag; otherwise some are counted by port, not
    /// by stream.
    pub fn tagged(&self, stream: usize) -> bool {
        self.stream(stream).is_some_and(|stream| {
            stream.shape.variants.iter().all(|variant| variant.form != Form::None)
        })
    }

    /// Counters of a stream since the trial began.
    pub fn counts(&self, stream: usize) -> Sent {
        let mut all = self.judged(stream);
        if let Some(stream) = self.stream(stream) {
            all.add(&stream.counts[0]);
        }
        all
    }

    /// Counters of a stream's judged packets.
    pub fn judged(&self, stream: usize) -> Sent {
        self.stream(stream).map_or(Sent::default(), |stream| stream.counts[1])
    }

    /// Counters of all streams, and of their judged packets.
    pub fn totals(&self) -> (Sent, Sent) {
        let mut totals = (Sent::default(), Sent::default());
        for stream in self.streams.iter().flatten() {
            totals.1.add(&stream.counts[1]);
            totals.0.add(&stream.counts[0]);
        }
        totals.0.add(&totals.1.clone());
        totals
    }

    /// End of the sequence numbers of this worker's packets: bits, and their value.
    pub(super) fn end(&self) -> (u32, u64) {
        self.end
    }

    /// Numbers of a stream's judged packets, as this worker counts them.
    pub fn judged_numbers(&self, stream: usize) -> &[Range<u64>] {
        self.stream(stream).map_or(&[], |stream| &stream.judged)
    }

    /// Returns the time when a packet was due that was sent; `None` if it was not, or too long ago.
    pub fn due(&self, stream: usize, sequence: u64) -> Option<Nanos> {
        let stream = self.stream(stream)?;
        if sequence >= stream.number {
            return None;
        }
        let at = stream.paces.partition_point(|(first, ..)| *first <= sequence).checked_sub(1)?;
        let (first, due, step) = stream.paces.get(at)?;
        Some(coarse(due + step * Fine::from(sequence - first)))
    }

    fn stream(&self, stream: usize) -> Option<&Sending> {
        self.streams.get(stream)?.as_ref()
    }

    /// Puts the streams in the order of their next packets.
    fn order(&mut self) {
        let running = |stream: &Sending| stream.step.and(stream.due).map(coarse);
        let times = || self.streams.iter().map(|stream| stream.as_ref().and_then(running));
        self.turns.clear(self.streams.len(), times().flatten().min().unwrap_or(0));
        for (number, due) in times().enumerate() {
            self.turns.set(number, due);
        }
    }

    /// A stream has ended: others start.
    #[cold]
    fn ended(&mut self, ended: usize, now: Nanos) {
        for number in 0..self.streams.len() {
            let Some(Some(stream)) = self.streams.get_mut(number) else { continue };
            let Start::Behind { stream: before, pause } = stream.start else { continue };
            if before == ended && stream.due.is_none() && stream.number == 0 {
                stream.round(fine(now) + fine(pause));
                self.turns.set(number, stream.step.and(stream.due).map(coarse));
            }
        }
    }
}

impl Sending {
    /// Starts a round of bursts at a time.
    fn round(&mut self, at: Fine) {
        self.rounds = self.rounds.saturating_sub(1);
        self.bursts = match self.mode {
            Mode::Continuous | Mode::Burst { .. } => 0,
            Mode::Bursts { count: 0, .. } => u64::MAX,
            Mode::Bursts { count, .. } => count - 1,
        };
        self.follows = false;
        self.fill(at);
    }

    /// Starts a burst at a time.
    fn fill(&mut self, at: Fine) {
        self.left = match self.mode {
            Mode::Continuous => u64::MAX,
            Mode::Burst { packets } | Mode::Bursts { packets, .. } => packets,
        };
        self.burst = at;
        self.due = Some(at);
        self.note();
    }

    /// Notes when packets are due from here on.
    fn note(&mut self) {
        let (Some(due), Some(step)) = (self.due, self.step) else { return };
        match self.paces.last_mut() {
            Some(last) if last.0 == self.number => *last = (self.number, due, step),
            _ => {
                if self.paces.len() == PACES {
                    self.paces.drain(..PACES / 2);
                }
                self.paces.push((self.number, due, step));
            }
        }
    }

    /// Sets the rate to its own times a factor. Bursts come as much faster as their packets do, so
    /// that the mean rate has that factor, too.
    fn pace(&mut self, factor: f64, now: Fine) {
        let rate = self.rate * factor;
        let step = (rate > 0.0).then(|| (1e9 / rate * 2f64.powi(32)).min(1e28) as Fine);
        let step = step.map(|step| step.max(1));
        // A stream that was paused goes on from now. Its parts send in turn.
        if self.step.is_none() {
            let turn = Fine::from(self.part.number());
            let from_now = now + step.unwrap_or(0) * turn / Fine::from(self.part.count());
            self.due = self.due.map(|due| if due > now { due } else { from_now });
        }
        // The next packet of a faster stream comes earlier, unless a start or burst has not begun.
        if let (Some(due), Some(step), Some(old)) = (self.due, step, self.step)
            && due > now
            && due > self.burst
            && step < old
        {
            self.due = Some(match self.part {
                Part::WHOLE => due.min(now + step),
                // Keeps its distance behind other parts, by the new measure.
                _ => now + ((due - now) as f64 * (step as f64 / old as f64)) as Fine,
            });
        }
        self.step = step;
        if step.is_some() {
            self.space(factor, now);
        }
        self.note();
    }

    /// Sets how far apart bursts are, by a factor on how often they come.
    fn space(&mut self, factor: f64, now: Fine) {
        let Mode::Bursts { every, .. } = self.mode else { return };
        let new = match factor {
            1.0 => fine(every),
            factor => (fine(every) as f64 / factor).min(1e28) as Fine,
        };
        let old = std::mem::replace(&mut self.every, new);
        // A burst that is yet to follow comes earlier or later by the new measure.
        if let Some(due) = self.due
            && self.follows
            && due == self.burst
            && due > now
            && old > 0
        {
            let due = now + ((due - now) as f64 * (new as f64 / old as f64)) as Fine;
            (self.due, self.burst) = (Some(due), due);
        }
    }

    /// Sends the packet that is due; false if there is no room.
    #[inline]
    fn send(&mut self, due: Nanos, judged: bool, end: (u32, u64), out: &mut impl Sink) -> bool {
        let shape = &mut self.shape;
        let number = self.number;
        let sequence = number << end.0 | end.1;
        let len;
        if let Some((at, variant)) = shape.cache.packets.get(shape.cache.next).copied() {
            let Some(variant) = shape.variants.get(usize::from(variant)) else { return false };
            len = variant.len;
            let Some(frame) = out.frame(len) else {
                self.refused = true;
                return false;
            };
            let at = at as usize;
            let (Some(bytes), true) = (shape.cache.bytes.get(at..at + len), frame.len() == len)
            else {
                return false;
            };
            frame.copy_from_slice(bytes);
            let next = shape.cache.next + 1;
            shape.cache.next = if next == shape.cache.packets.len() { 0 } else { next };
            tag(&self.writer, frame, variant.form, variant.target, judged, sequence, due);
        } else {
            let at = shape.turns.variant(number);
            let Some(variant) = shape.variants.get(at).copied() else { return false };
            len = variant.len;
            let Some(frame) = out.frame(len) else {
                self.refused = true;
                return false;
            };
            shape.write(number, at, frame);
            tag(&self.writer, frame, variant.form, variant.target, judged, sequence, due);
        }
        self.refused = false;
        let counts = &mut self.counts[usize::from(judged)];
        counts.intended += 1;
        counts.sent += 1;
        counts.bytes += len as u64;
        self.number = number + 1;
        if judged {
            let windows = self.judged.len();
            match self.judged.last_mut() {
                Some(range) if range.end == number => range.end = number + 1,
                _ if windows < WINDOWS => self.judged.push(number..number + 1),
                _ => {}
            }
        }
        true
    }

    /// Goes on to the next packet; returns when it is due.
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        self.left -= 1;
        let due = self.due? + self.step?;
        self.due = Some(due);
        if self.left == 0 {
            self.turn();
        }
        self.due.map(coarse)
    }

    /// A burst has ended: what follows?
    #[cold]
    fn turn(&mut self) {
        let due = self.due.take().unwrap_or_default();
        if let (Mode::Bursts { .. }, 1..) = (self.mode, self.bursts) {
            self.bursts -= 1;
            self.follows = true;
            self.fill((self.burst + self.every).max(due));
        } else if self.rounds > 0 {
            let pause = match self.start {
                Start::After(pause) | Start::Behind { pause, .. } => pause,
            };
            self.round(due + fine(pause));
        }
    }

    /// Leaves out the packets due before a time; returns when the next one is due.
    #[cold]
    fn skip(&mut self, until: Fine, window: (Nanos, Nanos)) -> Option<Nanos> {
        let (due, step) = (self.due?, self.step?);
        let most = Fine::from(self.left);
        let before = |time: Fine, most| time.saturating_sub(due).div_ceil(step).min(most);
        let skipped = before(until, most).max(1);
        let judged = before(fine(window.1), skipped) - before(fine(window.0), skipped);
        let (skipped, judged) = (skipped as u64, judged as u64);
        for (counts, packets) in self.counts.iter_mut().zip([skipped - judged, judged]) {
            counts.intended += packets;
            match self.refused {
                true => counts.refused += packets,
                false => counts.late += packets,
            }
        }
        self.refused = false;
        self.left -= skipped;
        self.due = Some(due + step * Fine::from(skipped));
        self.note();
        if self.left == 0 {
            self.turn();
        }
        self.due.map(coarse)
    }
}

/// Writes the tag of a packet.
#[inline]
fn tag(
    writer: &Writer,
    frame: &mut [u8],
    form: Form,
    target: u16,
    judged: bool,
    sequence: u64,
    due: Nanos,
) {
    match form {
        Form::Long => {
            if let Some(tag) = frame.last_chunk_mut() {
                writer.long(tag, target, judged, sequence as u32, due);
            }
        }
        Form::Short => {
            if let Some(tag) = frame.last_chunk_mut() {
                writer.short(tag, target, judged, sequence as u32, due);
            }
        }
        Form::None => {}
    }
}
