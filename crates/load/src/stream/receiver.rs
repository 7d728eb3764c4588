//! The other side of streams: it counts what arrives.

use std::collections::BTreeSet;
use std::ops::Range;

use thalweg_wire::checksum::Checksum;

use super::layer::{Layer, Sum};
use super::order::{Arrival, Seen};
use super::senders::{mark, shapes};
use super::shape::Turns;
use super::tag::{Form, LONG, SHORT, Tag};
use super::{Latency, Nanos, Plan, PlanError, Senders, Sent, Side, Stream};
use crate::Part;

/// Packets of a stream that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that arrived intact, each counted once.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets that arrived after one sent later (RFC 4737 §3).
    pub reordered: u64,
    /// Packets that arrived with another payload, cut, or with a wrong checksum. They count as
    /// lost, too.
    pub damaged: u64,
    /// Packets that were so late that nobody can tell whether they are duplicates. They count as
    /// lost, too.
    pub ancient: u64,
}

impl Received {
    /// Adds the packets of another stream.
    pub fn add(&mut self, other: &Received) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.damaged += other.damaged;
        self.ancient += other.ancient;
    }
}

/// Packets that arrived at a port and belong to no stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Packets of the kinds that the plan's streams without tags send.
    pub untagged: u64,
    /// Their bytes, without FCS.
    pub untagged_bytes: u64,
    /// Packets of an earlier trial.
    pub stale: u64,
    /// Packets that this side has sent itself.
    pub returned: u64,
    /// Other packets.
    pub foreign: u64,
}

impl Port {
    /// Adds what other workers have received.
    pub fn add(&mut self, other: &Port) {
        self.untagged += other.untagged;
        self.untagged_bytes += other.untagged_bytes;
        self.stale += other.stale;
        self.returned += other.returned;
        self.foreign += other.foreign;
    }
}

/// Owner of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The receiver's, which has taken it in.
    Mine,
    /// Packet of the worker with this number.
    Worker(usize),
    /// Nobody's, as far as tags say.
    Untagged,
}

/// A stream that the other side sends.
#[derive(Clone, Debug)]
struct Known {
    turns: Turns,
    /// Bytes of the payload by variant.
    payloads: Vec<usize>,
    /// `Some` if checksums of headers are right when sent: true if there is an IP header.
    verify: Option<bool>,
    seen: Seen,
    /// Counters of packets outside and inside windows.
    counts: [Received; 2],
    latency: Latency,
}

/// Counts what arrives at a side.
#[derive(Clone, Debug)]
pub struct Receiver {
    streams: Vec<Option<Known>>,
    side: Side,
    mark: u16,
    worker: Part,
    trial: u8,
    port: Port,
    /// Kinds of packets without tags: IP version, or Ethernet type, and protocol.
    untagged: BTreeSet<(u16, u8)>,
    last: Option<Nanos>,
}

impl Receiver {
    /// Creates the receiver of a side. `seed` must be that of the [`Senders`] on the other side.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(plan: &Plan, side: Side, seed: u64) -> Result<Receiver, PlanError> {
        Receiver::part(plan, side, seed, Part::WHOLE)
    }

    /// The same of one of several workers: it counts the packets that the senders of this worker
    /// have sent, and those without tags.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn part(plan: &Plan, side: Side, seed: u64, worker: Part) -> Result<Receiver, PlanError> {
        let mut untagged = BTreeSet::new();
        // Packets without tags go to any worker.
        for (shape, ..) in shapes(plan, side.other(), seed, Part::WHOLE)?.iter().flatten() {
            if shape.variants.iter().any(|variant| variant.form == Form::None) {
                untagged.extend(kind(&shape.template));
            }
        }
        let compiled = shapes(plan, side.other(), seed, worker)?.into_iter().zip(&plan.streams);
        let streams = compiled.map(|(compiled, stream)| {
            let (shape, ..) = compiled?;
            Some(Known {
                payloads: shape.variants.iter().map(|v| v.len - shape.payload).collect(),
                turns: shape.turns,
                verify: verifiable(stream).then(|| ip(&shape.template).is_some()),
                seen: Seen::default(),
                counts: [Received::default(); 2],
                latency: Latency::of(plan.streams.len()),
            })
        });
        Ok(Receiver {
            streams: streams.collect(),
            side,
            mark: mark(seed),
            worker,
            trial: 0,
            port: Port::default(),
            untagged,
            last: None,
        })
    }

    /// Begins a trial: counters are 0. `trial` counts modulo 64, and must be the senders'.
    pub fn begin(&mut self, trial: u8) {
        self.trial = trial & 0x3f;
        self.port = Port::default();
        self.last = None;
        let streams = self.streams.len();
        for stream in self.streams.iter_mut().flatten() {
            stream.seen = Seen::default();
            stream.counts = [Received::default(); 2];
            stream.latency = Latency::of(streams);
        }
    }

    /// Takes in a packet.
    #[inline]
    pub fn receive(&mut self, now: Nanos, frame: &[u8]) {
        let Some((tag, end)) = find(self.mark, frame) else {
            return self.other(now, frame);
        };
        self.take(now, &tag, &frame[..end], frame.len());
    }

    /// Takes in a packet with a tag of this worker; otherwise says whose it is.
    #[inline]
    pub fn sort(&mut self, now: Nanos, frame: &[u8]) -> Whose {
        let Some((tag, end)) = tag(self.mark, frame) else { return Whose::Untagged };
        let worker = tag.sequence & ((1 << self.worker.bits()) - 1);
        if worker != self.worker.number() && worker < self.worker.count() {
            return Whose::Worker(worker as usize);
        }
        self.take(now, &tag, &frame[..end], frame.len());
        Whose::Mine
    }

    #[inline]
    fn take(&mut self, now: Nanos, tag: &Tag, frame: &[u8], whole: usize) {
        if tag.side == self.side {
            self.port.returned += 1;
            return;
        }
        if tag.trial != self.trial {
            self.port.stale += 1;
            return;
        }
        let bits = self.worker.bits();
        let is_ours = tag.sequence & ((1 << bits) - 1) == self.worker.number();
        let stream = self.streams.get_mut(usize::from(tag.stream)).and_then(Option::as_mut);
        let Some(stream) = stream.filter(|_| is_ours) else {
            self.port.foreign += 1;
            return;
        };
        self.last = Some(now);
        let Known { turns, payloads, verify, seen, counts, latency } = stream;
        let counts = &mut counts[usize::from(tag.judged)];
        let number = seen.full(tag.sequence >> bits, tag.bits.0 - bits);
        let payload = number.and_then(|number| payloads.get(turns.variant(number)));
        let intact = payload.is_some_and(|payload| is_intact(frame, *payload, *verify));
        let (true, Some(number)) = (intact, number) else {
            counts.damaged += 1;
            return;
        };
        match seen.arrived(number) {
            Arrival::InOrder => {}
            Arrival::Reordered => counts.reordered += 1,
            Arrival::Repeated => {
                counts.duplicates += 1;
                return;
            }
            Arrival::Ancient => {
                counts.ancient += 1;
                return;
            }
        }
        counts.packets += 1;
        counts.bytes += whole as u64;
        if tag.judged {
            latency.record(tag.latency(now));
        }
    }

    /// True if a frame surely belongs to a stream, whoever else hears the same port: it has a tag
    /// of ours, and if it is TCP or UDP, the tag is in its payload, whose sum is zero as a tag
    /// makes it. The mark alone is 16 bits: packets of connections have it by chance, in a number
    /// of TCP for instance, and then in each retransmission, too.
    pub fn claims(&self, frame: &[u8]) -> bool {
        let Some((tag, end)) = tag(self.mark, frame) else { return false };
        let length = if tag.bits.0 == 32 { LONG } else { SHORT };
        payload(frame, end).is_none_or(|payload| {
            let mut sum = Checksum::new();
            sum.add(payload);
            payload.len() >= length && sum.is_valid()
        })
    }

    /// Takes in a packet without a tag of ours at its end.
    #[cold]
    fn other(&mut self, now: Nanos, frame: &[u8]) {
        // A device that takes headers away may leave padding behind the payload.
        let end = ip(frame).and_then(|ip| ip_end(frame, ip)).filter(|end| *end < frame.len());
        if let Some(packet) = end.and_then(|end| frame.get(..end))
            && let Some((tag, _)) = find(self.mark, packet)
        {
            return self.take(now, &tag, packet, frame.len());
        }
        if kind(frame).is_some_and(|kind| self.untagged.contains(&kind)) {
            self.port.untagged += 1;
            self.port.untagged_bytes += frame.len() as u64;
            self.last = Some(now);
        } else {
            self.port.foreign += 1;
        }
    }

    /// Returns the time when the last packet of this trial arrived.
    pub fn last(&self) -> Option<Nanos> {
        self.last
    }

    /// Packets that belong to no stream.
    pub fn port(&self) -> Port {
        self.port
    }

    /// Counters of a stream since the trial began.
    pub fn counts(&self, stream: usize) -> Received {
        let mut all = self.judged(stream);
        if let Some(stream) = self.stream(stream) {
            all.add(&stream.counts[0]);
        }
        all
    }

    /// Counters of a stream's judged packets.
    pub fn judged(&self, stream: usize) -> Received {
        self.stream(stream).map_or(Received::default(), |stream| stream.counts[1])
    }

    /// Counters of all streams, and of their judged packets.
    pub fn totals(&self) -> (Received, Received) {
        let mut totals = (Received::default(), Received::default());
        for stream in self.streams.iter().flatten() {
            totals.1.add(&stream.counts[1]);
            totals.0.add(&stream.counts[0]);
        }
        totals.0.add(&totals.1.clone());
        totals
    }

    /// Latency of a stream's judged packets.
    pub fn latency(&self, stream: usize) -> Option<&Latency> {
        self.stream(stream).map(|stream| &stream.latency)
    }

    /// Ranges of a stream's packets below `sent` that have not arrived, as this worker counts them,
    /// in order, and whether that is all of them.
    pub fn missing(&self, stream: usize, sent: u64) -> (Vec<Range<u64>>, bool) {
        self.stream(stream).map_or((Vec::new(), true), |stream| stream.seen.missing(sent))
    }

    fn stream(&self, stream: usize) -> Option<&Known> {
        self.streams.get(stream)?.as_ref()
    }
}

/// Most ranges of lost packets that the books of several workers name.
const NAMED: usize = 4096;

/// The books of a stream in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Packets sent.
    pub sent: Sent,
    /// Packets received.
    pub received: Received,
    /// Packets sent that have not arrived intact.
    pub lost: u64,
    /// Their sequence numbers: ranges, in order.
    pub missing: Vec<Range<u64>>,
    /// True if these are all of them.
    pub complete: bool,
    /// The sequence number of the first one, and when it was due.
    pub first: Option<(u64, Option<Nanos>)>,
}

impl Books {
    /// Balances a stream, once no more packets are on their way; of its judged packets, or of all.
    /// A stream without tags has no books: all its packets would be missing.
    pub fn of(senders: &Senders, receiver: &Receiver, stream: usize, judged: bool) -> Books {
        let all = senders.counts(stream);
        let (mut missing, complete) = receiver.missing(stream, all.sent);
        let (sent, received) = match judged {
            true => {
                missing = common(&missing, senders.judged_numbers(stream));
                (senders.judged(stream), receiver.judged(stream))
            }
            false => (all, receiver.counts(stream)),
        };
        let first = missing.first().map(|range| range.start);
        let (bits, value) = senders.end();
        let sequence = |number: u64| number << bits | value;
        let mut complete = complete;
        if bits > 0 {
            let numbers = missing.into_iter().flatten().map(sequence);
            // One more shows that others follow.
            let mut named: Vec<_> =
                numbers.take(NAMED + 1).map(|sequence| sequence..sequence + 1).collect();
            complete &= named.len() <= NAMED;
            named.truncate(NAMED);
            missing = named;
        }
        Books {
            lost: sent.sent.saturating_sub(received.packets),
            first: first.map(|first| (sequence(first), senders.due(stream, first))),
            sent,
            received,
            missing,
            complete,
        }
    }

    /// Adds the books of another worker.
    pub fn add(&mut self, other: Books) {
        self.sent.add(&other.sent);
        self.received.add(&other.received);
        self.lost += other.lost;
        let mut all = std::mem::take(&mut self.missing);
        all.extend(other.missing);
        all.sort_unstable_by_key(|range| range.start);
        for range in all {
            match self.missing.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.missing.push(range),
            }
        }
        self.complete &= other.complete && self.missing.len() <= NAMED;
        self.missing.truncate(NAMED);
        let due = |first: &(u64, Option<Nanos>)| (first.1.unwrap_or(Nanos::MAX), first.0);
        self.first = self.first.into_iter().chain(other.first).min_by_key(due);
    }

    /// True if all packets are accounted for, and each lost one is named.
    pub fn balances(&self) -> bool {
        let named: u64 = self.missing.iter().map(|range| range.end - range.start).sum();
        self.sent.balances()
            && self.sent.sent == self.received.packets + self.lost
            && (!self.complete || named == self.lost)
    }
}

/// The numbers that two lists of ranges in order have in common.
fn common(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut all = Vec::new();
    let mut from = 0;
    for range in a {
        while b.get(from).is_some_and(|other| other.end <= range.start) {
            from += 1;
        }
        let others = b[from..].iter().take_while(|other| other.start < range.end);
        all.extend(others.map(|o| range.start.max(o.start)..range.end.min(o.end)));
    }
    all
}

/// True if a device that verifies checksums would find those of a stream right.
fn verifiable(stream: &Stream) -> bool {
    stream.layers.iter().all(|layer| match layer {
        Layer::Ipv4 { sum, .. } | Layer::Tcp { sum, .. } | Layer::Icmp { sum, .. } => {
            *sum == Sum::Right
        }
        Layer::Udp { sum, .. } => matches!(sum, Sum::Right | Sum::Zero),
        _ => true,
    })
}

/// Finds the tag at the end of a packet; returns it and where it ends.
#[inline]
fn find(mark: u16, frame: &[u8]) -> Option<(Tag, usize)> {
    let long = frame.last_chunk::<LONG>().and_then(|tag| Tag::long(mark, tag));
    let tag = long.or_else(|| Tag::short(mark, frame.last_chunk::<SHORT>()?))?;
    Some((tag, frame.len()))
}

/// The same before the padding that a device may leave behind the payload, if there is any.
#[cold]
fn find_before_padding(mark: u16, frame: &[u8]) -> Option<(Tag, usize)> {
    let end = ip_end(frame, ip(frame)?).filter(|end| *end < frame.len())?;
    find(mark, frame.get(..end)?)
}

/// Finds the tag at the end of a packet, or before its padding; returns it and where it ends.
fn tag(mark: u16, frame: &[u8]) -> Option<(Tag, usize)> {
    find(mark, frame).or_else(|| find_before_padding(mark, frame))
}

/// Returns the tag of a packet that senders of this seed have sent, wherever it was seen. `packet`
/// ends with its payload, or is a whole frame.
pub fn find_tag(seed: u64, packet: &[u8]) -> Option<Tag> {
    tag(self::mark(seed), packet).map(|(tag, _)| tag)
}

#[inline]
fn be16(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// True if a packet arrived as it was sent, as far as payload and checksums say. `frame` ends with
/// the tag.
#[inline]
fn is_intact(frame: &[u8], payload: usize, verify: Option<bool>) -> bool {
    let Some(start) = frame.len().checked_sub(payload).filter(|start| *start >= 14) else {
        return false;
    };
    let mut sum = Checksum::new();
    sum.add(&frame[start..]);
    let Some(has_ip) = verify else { return sum.is_valid() };
    sum.is_valid() && (is_plain_udp(frame, start) || headers_are_right(frame, start, has_ip))
}

/// True if the frame is UDP over IPv4 without tags and options, with right checksums. Its payload's
/// sum is zero.
#[inline]
fn is_plain_udp(frame: &[u8], start: usize) -> bool {
    let Some((head, _)) = frame.split_first_chunk::<42>() else { return false };
    if start != 42 || head[12..15] != [8, 0, 0x45] || head[23] != 17 || head[40..42] == [0, 0] {
        return false;
    }
    let mut ip = Checksum::new();
    ip.add(&head[14..34]);
    let mut udp = Checksum::new();
    udp.add(&head[26..42]);
    udp.add_u16(17);
    udp.add_u16((frame.len() - 34) as u16);
    ip.is_valid() && udp.is_valid()
}

/// Returns where the first IP header is, behind VLAN tags and labels.
fn ip(frame: &[u8]) -> Option<usize> {
    let mut at = 14;
    loop {
        match be16(frame, at - 2)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x8847 => {
                while frame.get(at + 2)? & 1 == 0 {
                    at += 4;
                }
                at += 4;
                return matches!(frame.get(at)? >> 4, 4 | 6).then_some(at);
            }
            0x0800 | 0x86dd => return Some(at),
            _ => return None,
        }
    }
}

/// Returns where the IP packet ends whose header is at a place.
fn ip_end(frame: &[u8], at: usize) -> Option<usize> {
    let length = match frame.get(at)? >> 4 {
        4 => usize::from(be16(frame, at + 2)?),
        6 => usize::from(be16(frame, at + 4)?) + 40,
        _ => return None,
    };
    Some(at + length)
}

/// The payload of TCP or UDP behind the first IP header of a packet that ends with a tag; empty if
/// it would begin behind that.
fn payload(frame: &[u8], end: usize) -> Option<&[u8]> {
    let at = ip(frame)?;
    let first = *frame.get(at)?;
    let (protocol, l4) = match first >> 4 {
        4 => (*frame.get(at + 9)?, at + usize::from(first & 15) * 4),
        _ => (*frame.get(at + 6)?, at + 40),
    };
    let start = match protocol {
        6 => l4 + usize::from(frame.get(l4 + 12)? >> 4) * 4,
        17 => l4 + 8,
        _ => return None,
    };
    Some(frame.get(start..end).unwrap_or_default())
}

/// The kind of a packet: IP version, or Ethernet type, and protocol.
fn kind(frame: &[u8]) -> Option<(u16, u8)> {
    match ip(frame) {
        Some(at) => match frame.get(at)? >> 4 {
            4 => Some((4, *frame.get(at + 9)?)),
            6 => Some((6, *frame.get(at + 6)?)),
            _ => None,
        },
        None => Some((be16(frame, 12)?, 0)),
    }
}

/// True if the checksums of a packet's headers are right. The payload begins at `start`, and its
/// sum is zero.
fn headers_are_right(frame: &[u8], start: usize, has_ip: bool) -> bool {
    let Some(mut at) = ip(frame) else { return !has_ip };
    loop {
        match ip_header_is_right(frame, at, start) {
            Some(Ok(inner)) => at = inner,
            Some(Err(right)) => return right,
            None => return false,
        }
    }
}

/// Returns where the next IP header is, or whether all is right; `None` if the packet is cut.
fn ip_header_is_right(frame: &[u8], at: usize, start: usize) -> Option<Result<usize, bool>> {
    let end = ip_end(frame, at)?;
    let (protocol, l4, addresses) = match frame.get(at)? >> 4 {
        4 => {
            let header = usize::from(frame.get(at)? & 15) * 4;
            let mut sum = Checksum::new();
            sum.add(frame.get(at..at + header)?);
            if header < 20 || !sum.is_valid() {
                return Some(Err(false));
            }
            if be16(frame, at + 6)? & 0x3fff != 0 {
                // A fragment has no checksum of its own.
                return Some(Err(true));
            }
            (*frame.get(at + 9)?, at + header, frame.get(at + 12..at + 20)?)
        }
        _ => (*frame.get(at + 6)?, at + 40, frame.get(at + 8..at + 40)?),
    };
    if matches!(protocol, 4 | 41) && l4 + 20 <= start {
        return Some(Ok(l4));
    }
    let (checksum_at, pseudo) = match protocol {
        1 => (2, false),
        6 => (16, true),
        17 => (6, true),
        58 => (2, true),
        _ => return Some(Err(end == frame.len())),
    };
    let header = frame.get(l4..start)?;
    if protocol == 17 && be16(header, checksum_at)? == 0 {
        // None: allowed over IPv4 only (RFC 768, RFC 8200 §8.1).
        return Some(Err(end == frame.len() && frame.get(at)? >> 4 == 4));
    }
    let mut sum = Checksum::new();
    if pseudo {
        sum.add(addresses);
        sum.add_u16(protocol.into());
        sum.add_u16((end - l4) as u16);
    }
    sum.add(header);
    Some(Err(end == frame.len() && sum.is_valid()))
}

/// True if all checksums of a packet are right, wherever its payload begins.
#[cfg(test)]
pub(super) fn intact_for_tests(frame: &[u8]) -> bool {
    headers_are_right(frame, frame.len(), false)
}
