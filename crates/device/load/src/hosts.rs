//! The hosts behind a worker's ports.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::time::Duration;

use thalweg_buffer::{Frame, Packet};
use thalweg_device::SwIfIndex;
use thalweg_graph::{NodeCx, clock};
use thalweg_load::stream::{Nanos, Whose};
use thalweg_load::talk::{Clients, Counts, Incoming, Opening, Servers, Share, Split};
use thalweg_load::{Micros, Sink};

use crate::ends::{Change, DirectionReport, Ends, Progress, Times};
use crate::impair::Impairment;
use crate::line::Line;

/// Hosts of a kind behind a port.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few of them")]
pub(crate) enum Hosts {
    /// Clients.
    Clients(Clients),
    /// Servers.
    Servers(Servers),
    /// Clients or servers that only other workers have, since there are few of them.
    Elsewhere,
    /// Streams.
    Streams(Ends),
}

/// Hosts of a worker behind a port: connections first, in the order of their plans.
pub(crate) struct Behind {
    pub(crate) hosts: Vec<Hosts>,
    /// Shares of each plan's conversations among several workers, and the share of this one.
    pub(crate) splits: Vec<(Split, Share)>,
    /// True if the conversations' hosts are clients.
    pub(crate) has_clients: bool,
    /// True if there are several workers.
    pub(crate) several: bool,
}

/// Counts of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Time when the counters were read, in microseconds since an arbitrary origin.
    pub at: Micros,
    /// Counters since the hosts were put there.
    pub counts: Counts,
    /// Conversations open.
    pub open: u32,
    /// Open conversations in their handshake.
    pub half_open: u32,
    /// Conversations in TIME_WAIT.
    pub time_wait: u32,
    /// Longest time between two turns of the hosts since the last report, in microseconds.
    pub longest_turn: Micros,
}

impl Report {
    /// Conversations established, without those in TIME_WAIT.
    pub fn established(&self) -> u32 {
        self.open.saturating_sub(self.half_open)
    }

    /// Adds what other hosts have done.
    pub fn add(&mut self, other: &Report) {
        self.at = self.at.max(other.at);
        self.counts = self.counts.plus(&other.counts);
        self.open += other.open;
        self.half_open += other.half_open;
        self.time_wait += other.time_wait;
        self.longest_turn = self.longest_turn.max(other.longest_turn);
    }
}

/// Message from the main thread.
pub(crate) enum Message {
    /// Hosts in place of all that are behind the port.
    Hosts(SwIfIndex, Behind),
    /// Concerns the clients with this number behind the port.
    Opening(SwIfIndex, usize, Opening),
    Judging(SwIfIndex, usize, bool),
    Abandon(SwIfIndex),
    Line(SwIfIndex, Impairment),
    Change(SwIfIndex, Change),
    /// Concerns the streams between two ports, in both directions.
    Streams([SwIfIndex; 2], Sender<[DirectionReport; 2]>),
    Progress([SwIfIndex; 2], Sender<[Progress; 2]>),
    Times([SwIfIndex; 2], Sender<Times>),
    Report(Vec<SwIfIndex>, Sender<Vec<Vec<Report>>>),
}

/// A port with its hosts.
struct Port {
    sw_if: SwIfIndex,
    behind: Behind,
    /// Frames that they have sent, to be received next.
    said: Vec<Box<Frame>>,
    /// Their last turn, and the longest time between two.
    turn: Micros,
    longest: Micros,
}

/// All hosts of a worker.
#[derive(Default)]
pub(crate) struct All {
    ports: Vec<Port>,
    /// Impairments between hosts and their ports.
    lines: HashMap<SwIfIndex, Line>,
}

/// Conversations opened, and timers looked at, per turn.
const AT_ONCE: usize = 256;

/// Returns the hosts' time at a count of the clock.
fn micros(ticks: u64) -> Micros {
    (ticks as f64 * 1e6 / clock::hz()) as Micros
}

/// The same in nanoseconds.
fn nanos(ticks: u64) -> Nanos {
    (ticks as f64 * 1e9 / clock::hz()) as Nanos
}

/// Returns the hosts' time: new hosts begin with it.
pub(crate) fn now() -> Micros {
    micros(clock::ticks())
}

/// The same in nanoseconds, for streams.
pub(crate) fn now_nanos() -> Nanos {
    nanos(clock::ticks())
}

impl Hosts {
    fn poll(&mut self, ticks: u64, out: &mut impl Sink) {
        match self {
            Hosts::Clients(clients) => clients.poll(micros(ticks), AT_ONCE, out),
            Hosts::Servers(servers) => servers.poll(micros(ticks), AT_ONCE, out),
            Hosts::Elsewhere => {}
            Hosts::Streams(ends) => {
                ends.senders.poll(nanos(ticks), AT_ONCE, out);
            }
        }
    }

    #[inline]
    fn receive(&mut self, ticks: u64, frame: &[u8], out: &mut impl Sink) {
        match self {
            Hosts::Clients(clients) => clients.receive(micros(ticks), frame, out),
            Hosts::Servers(servers) => servers.receive(micros(ticks), frame, out),
            Hosts::Elsewhere => {}
            Hosts::Streams(ends) => ends.receiver.receive(nanos(ticks), frame),
        }
    }

    /// Returns the time when they have something to send, in nanoseconds, if that is known.
    fn next_due(&self) -> Option<Nanos> {
        match self {
            Hosts::Streams(ends) => ends.senders.next_due(),
            _ => None,
        }
    }

    /// Counts of clients or servers.
    fn report(&self, at: Micros, longest_turn: Micros) -> Option<Report> {
        let (counts, (open, time_wait), half_open) = match self {
            Hosts::Clients(hosts) => (hosts.counts(), hosts.open(), hosts.half_open()),
            Hosts::Servers(hosts) => (hosts.counts(), hosts.open(), hosts.half_open()),
            Hosts::Elsewhere => Default::default(),
            Hosts::Streams(_) => return None,
        };
        Some(Report { at, counts, open, half_open, time_wait, longest_turn })
    }

    fn claims(&self, incoming: &Incoming<'_>) -> bool {
        match self {
            Hosts::Clients(clients) => clients.claims(incoming),
            Hosts::Servers(servers) => servers.claims(incoming),
            Hosts::Elsewhere | Hosts::Streams(_) => false,
        }
    }

    fn ends(&self) -> Option<&Ends> {
        match self {
            Hosts::Streams(ends) => Some(ends),
            Hosts::Clients(_) | Hosts::Servers(_) | Hosts::Elsewhere => None,
        }
    }
}

/// Passes a frame to those of several hosts that it is for. A tag that surely is one decides first;
/// what nobody claims is counted by the streams, or else by the first hosts.
#[inline(never)]
fn receive_one_of(hosts: &mut [Hosts], ticks: u64, frame: &[u8], out: &mut impl Sink) {
    let streams = hosts.iter().position(|hosts| hosts.ends().is_some());
    let ends = streams.and_then(|at| hosts[at].ends());
    let incoming = match ends.is_some_and(|ends| ends.receiver.claims(frame)) {
        true => None,
        false => Some(Incoming::read(frame)),
    };
    let claimed = match &incoming {
        Some(incoming) => hosts.iter().position(|hosts| hosts.claims(incoming)),
        None => None,
    };
    let at = claimed.or(streams).unwrap_or_default();
    match (hosts.get_mut(at), &incoming) {
        (Some(Hosts::Clients(clients)), Some(incoming)) => {
            clients.take(micros(ticks), incoming, out);
        }
        (Some(Hosts::Servers(servers)), Some(incoming)) => {
            servers.take(micros(ticks), incoming, out);
        }
        (Some(hosts), _) => hosts.receive(ticks, frame, out),
        (None, _) => {}
    }
}

/// Passes a frame to the hosts of this worker that it is for, or returns the worker that owns it,
/// whose number is not `me`. A packet for no host stays with the first worker that has hosts.
#[inline(never)]
fn receive_shared(
    behind: &mut Behind,
    (me, ticks): (usize, u64),
    frame: &[u8],
    out: &mut impl Sink,
) -> Option<usize> {
    let Behind { hosts, splits, has_clients, .. } = behind;
    if let Some(Hosts::Streams(ends)) = hosts.last_mut()
        && (splits.is_empty() || ends.receiver.claims(frame))
    {
        return sort(ends, ticks, frame);
    }
    let incoming = Incoming::read(frame);
    let owned = splits.iter().enumerate().find_map(|(group, (split, _))| {
        split.owner(&incoming, *has_clients).map(|owner| (group, owner))
    });
    let at = match owned {
        Some((_, owner)) if owner != me => return Some(owner),
        Some((group, _)) => group,
        None => {
            let streams = hosts.iter().position(|hosts| hosts.ends().is_some());
            let any = || hosts.iter().position(|hosts| !matches!(hosts, Hosts::Elsewhere));
            match streams.or_else(any) {
                Some(at) => at,
                None => return Some(0),
            }
        }
    };
    match hosts.get_mut(at) {
        Some(Hosts::Clients(clients)) => clients.take(micros(ticks), &incoming, out),
        Some(Hosts::Servers(servers)) => servers.take(micros(ticks), &incoming, out),
        Some(Hosts::Streams(ends)) => return sort(ends, ticks, frame),
        Some(Hosts::Elsewhere) | None => {}
    }
    None
}

/// Passes a frame to the streams of this worker, or returns the worker that its tag names.
#[inline]
fn sort(ends: &mut Ends, ticks: u64, frame: &[u8]) -> Option<usize> {
    match ends.receiver.sort(nanos(ticks), frame) {
        Whose::Mine => None,
        Whose::Worker(owner) => Some(owner),
        Whose::Untagged => {
            ends.receiver.receive(nanos(ticks), frame);
            None
        }
    }
}

impl Port {
    #[inline]
    fn receive(&mut self, ticks: u64, frame: &[u8], out: &mut impl Sink) {
        match &mut self.behind.hosts[..] {
            [only] => only.receive(ticks, frame, out),
            several => receive_one_of(several, ticks, frame, out),
        }
    }
}

impl All {
    fn port(&mut self, sw_if: SwIfIndex) -> Option<&mut Port> {
        self.ports.iter_mut().find(|port| port.sw_if == sw_if)
    }

    /// The clients with this number behind a port, and this worker's share of them.
    fn clients(&mut self, sw_if: SwIfIndex, number: usize) -> Option<(&mut Clients, Share)> {
        let behind = &mut self.port(sw_if)?.behind;
        let share = behind.splits.get(number).map_or(Share::WHOLE, |(_, share)| *share);
        match behind.hosts.get_mut(number)? {
            Hosts::Clients(clients) => Some((clients, share)),
            Hosts::Servers(_) | Hosts::Elsewhere | Hosts::Streams(_) => None,
        }
    }

    fn ends(&self, sw_if: SwIfIndex) -> Option<&Ends> {
        let port = self.ports.iter().find(|port| port.sw_if == sw_if)?;
        port.behind.hosts.iter().find_map(Hosts::ends)
    }

    /// Both ends of the streams between two ports.
    fn both(&self, [a, b]: [SwIfIndex; 2]) -> Option<(&Ends, &Ends)> {
        Some((self.ends(a)?, self.ends(b)?))
    }

    /// Gives all hosts their turn, and passes on what they send.
    pub(crate) fn poll(&mut self, cx: &mut NodeCx<'_>) -> usize {
        let ticks = cx.now();
        let now = micros(ticks);
        let mut packets = 0;
        for port in &mut self.ports {
            port.longest = port.longest.max(now.saturating_sub(port.turn));
            port.turn = now;
            let mut out = Frames::new(cx);
            port.behind.hosts.iter_mut().for_each(|hosts| hosts.poll(ticks, &mut out));
            out.finish(&mut port.said);
            if let Some(line) = self.lines.get_mut(&port.sw_if) {
                for frame in std::mem::take(&mut port.said) {
                    line.put(cx, now, frame);
                }
                port.said.extend(std::iter::from_fn(|| line.arrived(cx, now)));
            }
            for frame in port.said.drain(..) {
                packets += frame.len();
                cx.device_input(frame, port.sw_if, |f, i, out| {
                    let _ = writeln!(out, "load tester, {} bytes", f.total_len(i));
                });
            }
        }
        packets
    }

    /// Time until the next packet is due, or arrives at the end of a line, if that is known.
    pub(crate) fn next_due(&self, cx: &NodeCx<'_>) -> Option<Duration> {
        let hosts = self.ports.iter().flat_map(|port| &port.behind.hosts);
        let sent = hosts.filter_map(Hosts::next_due);
        let arrived = self.lines.values().filter_map(Line::due).map(|due| due * 1000);
        let due = sent.chain(arrived).min()?;
        Some(Duration::from_nanos(due.saturating_sub(nanos(cx.now()))))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Lets the hosts behind a port hear some of the packets of a frame. Rows of those that are for
    /// other workers are put into `away`, with the worker; without it, they are counted here.
    pub(crate) fn hear(
        &mut self,
        cx: &mut NodeCx<'_>,
        sw_if: SwIfIndex,
        (frame, rows): (&Frame, Range<usize>),
        mut away: Option<&mut Vec<(usize, usize)>>,
    ) {
        let (ticks, me) = (cx.now(), cx.worker());
        let Some(port) = self.port(sw_if) else { return };
        let mut out = Frames::new(cx);
        let mut whole = Vec::new();
        for row in rows {
            frame.prefetch_data(row + 8);
            let i = row as u8;
            let mut data = frame.data(i);
            if data.len() != frame.total_len(i) {
                // A packet in several buffers.
                whole.clear();
                frame.segments(i).for_each(|segment| whole.extend_from_slice(segment));
                data = &whole;
            }
            if !port.behind.several {
                port.receive(ticks, data, &mut out);
                continue;
            }
            let owner = receive_shared(&mut port.behind, (me, ticks), data, &mut out);
            match (owner, &mut away) {
                (None, _) => {}
                (Some(owner), Some(away)) => away.push((row, owner)),
                // Hosts have changed while it was on its way.
                (Some(_), None) => port.receive(ticks, data, &mut out),
            }
        }
        out.finish(&mut port.said);
    }

    pub(crate) fn message(&mut self, cx: &mut NodeCx<'_>, message: Message) {
        let now = micros(cx.now());
        match message {
            Message::Hosts(sw_if, behind) => {
                match self.port(sw_if) {
                    // Frames of the old hosts are still received.
                    Some(port) => {
                        let old = std::mem::replace(&mut port.behind, behind);
                        // Returning their memory takes time.
                        cx.discard(Box::new(old));
                    }
                    None => {
                        let said = Vec::new();
                        let port = Port { sw_if, behind, said, turn: now, longest: 0 };
                        self.ports.push(port);
                    }
                }
            }
            Message::Opening(sw_if, number, opening) => {
                if let Some((clients, share)) = self.clients(sw_if, number) {
                    clients.set_opening(share.of_opening(opening), now);
                }
            }
            Message::Judging(sw_if, number, judging) => {
                if let Some((clients, _)) = self.clients(sw_if, number) {
                    clients.set_judging(judging);
                }
            }
            Message::Abandon(sw_if) => {
                for hosts in self.port(sw_if).into_iter().flat_map(|port| &mut port.behind.hosts) {
                    match hosts {
                        Hosts::Clients(clients) => clients.abandon(),
                        Hosts::Servers(servers) => servers.abandon(),
                        Hosts::Elsewhere | Hosts::Streams(_) => {}
                    }
                }
            }
            Message::Line(sw_if, is) => {
                let old = match Line::new(is) {
                    Some(line) => self.lines.insert(sw_if, line),
                    None => self.lines.remove(&sw_if),
                };
                if let Some(old) = old {
                    old.clear(cx);
                }
            }
            Message::Change(sw_if, change) => {
                let at = nanos(cx.now());
                for hosts in self.port(sw_if).into_iter().flat_map(|port| &mut port.behind.hosts) {
                    if let Hosts::Streams(ends) = hosts {
                        ends.change(change, at);
                    }
                }
            }
            // The asker may be gone.
            Message::Streams(ports, answer) => {
                let at = nanos(cx.now());
                if let Some((a, b)) = self.both(ports) {
                    let reports = [(a, b), (b, a)];
                    let _ = answer.send(reports.map(|(a, b)| DirectionReport::of(a, b, at)));
                }
            }
            Message::Progress(ports, answer) => {
                let at = nanos(cx.now());
                if let Some((a, b)) = self.both(ports) {
                    let _ = answer.send([(a, b), (b, a)].map(|(a, b)| Progress::of(a, b, at)));
                }
            }
            Message::Times(ports, answer) => {
                if let Some((a, b)) = self.both(ports) {
                    let _ = answer.send(Times::of(a, b).max(Times::of(b, a)));
                }
            }
            Message::Report(ports, answer) => {
                let mut report = |sw_if: &SwIfIndex| {
                    let Some(port) = self.port(*sw_if) else { return Vec::new() };
                    let longest_turn = std::mem::take(&mut port.longest);
                    let hosts = port.behind.hosts.iter();
                    hosts.filter_map(|hosts| hosts.report(now, longest_turn)).collect()
                };
                // The asker may be gone.
                let _ = answer.send(ports.iter().map(&mut report).collect());
            }
        }
    }
}

/// Turns what hosts say into frames.
struct Frames<'a, 'w> {
    cx: &'a mut NodeCx<'w>,
    /// The packet being written.
    packet: Option<Packet>,
    /// Its bytes, if they do not fit into one buffer.
    long: Vec<u8>,
    full: Vec<Box<Frame>>,
    frame: Option<Box<Frame>>,
}

/// Longest frame that fits into one buffer for sure.
const SHORT: usize = 1600;

impl<'a, 'w> Frames<'a, 'w> {
    fn new(cx: &'a mut NodeCx<'w>) -> Self {
        Frames { cx, packet: None, long: Vec::new(), full: Vec::new(), frame: None }
    }

    fn flush(&mut self) {
        let Some(mut packet) = self.packet.take() else { return };
        if !self.long.is_empty() {
            let whole = packet.fill(&self.long, self.cx.cache());
            self.long.clear();
            if !whole {
                return self.cx.consume(packet);
            }
        }
        let frame = match self.frame.take() {
            Some(frame) if frame.room() > 0 => self.frame.insert(frame),
            full => {
                self.full.extend(full);
                let new = self.cx.new_frame();
                self.frame.insert(new)
            }
        };
        if let Err(packet) = frame.push(packet) {
            self.cx.consume(packet);
        }
    }

    fn finish(mut self, said: &mut Vec<Box<Frame>>) {
        self.flush();
        said.append(&mut self.full);
        said.extend(self.frame.take());
    }
}

impl Sink for Frames<'_, '_> {
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        self.flush();
        let mut packet = self.cx.cache().alloc()?;
        if length > SHORT {
            self.packet = Some(packet);
            self.long.resize(length, 0);
            return Some(&mut self.long);
        }
        // Packets are written in place.
        let room =
            packet.push(length).is_some() || packet.fill(&[0; SHORT][..length], self.cx.cache());
        if !room || packet.data().len() < length {
            self.cx.consume(packet);
            return None;
        }
        Some(self.packet.insert(packet).data_mut())
    }
}
