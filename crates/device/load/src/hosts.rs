//! The hosts behind a worker's ports.

use std::collections::HashMap;
use std::sync::mpsc::Sender;

use thalweg_buffer::{Frame, Packet};
use thalweg_device::SwIfIndex;
use thalweg_graph::{NodeCx, clock};
use thalweg_load::talk::{Clients, Counts, Opening, Servers};
use thalweg_load::{Micros, Sink};

use crate::impair::Impairment;
use crate::line::Line;

/// Hosts behind a port.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are two of them")]
pub(crate) enum Hosts {
    /// Clients.
    Clients(Clients),
    /// Servers.
    Servers(Servers),
}

/// What hosts have done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// When the counters were read, in microseconds since an arbitrary origin.
    pub at: Micros,
    /// Counters since the hosts were put there.
    pub counts: Counts,
    /// Conversations open.
    pub open: u32,
    /// Conversations in TIME_WAIT.
    pub time_wait: u32,
    /// Longest time between two turns of the hosts since the last report, in microseconds.
    pub longest_turn: Micros,
}

/// From the main thread.
pub(crate) enum Message {
    Hosts(SwIfIndex, Box<Hosts>),
    Opening(SwIfIndex, Opening),
    Judging(SwIfIndex, bool),
    Abandon(SwIfIndex),
    Line(SwIfIndex, Impairment),
    Report(Vec<SwIfIndex>, Sender<Vec<Option<Report>>>),
}

/// A port with its hosts.
struct Port {
    sw_if: SwIfIndex,
    hosts: Box<Hosts>,
    /// What they have said, to be received next.
    said: Vec<Box<Frame>>,
    /// Their last turn, and the longest time between two.
    turn: Micros,
    longest: Micros,
}

/// All hosts of a worker.
#[derive(Default)]
pub(crate) struct All {
    ports: Vec<Port>,
    /// What is between hosts and their ports, where there is anything.
    lines: HashMap<SwIfIndex, Line>,
}

/// Conversations opened, and timers looked at, per turn.
const AT_ONCE: usize = 256;

/// Returns the hosts' time at a count of the clock.
fn micros(ticks: u64) -> Micros {
    (ticks as f64 * 1e6 / clock::hz()) as Micros
}

/// Returns the hosts' time: new hosts begin with it.
pub(crate) fn now() -> Micros {
    micros(clock::ticks())
}

impl Hosts {
    fn poll(&mut self, now: Micros, out: &mut impl Sink) {
        match self {
            Hosts::Clients(clients) => clients.poll(now, AT_ONCE, out),
            Hosts::Servers(servers) => servers.poll(now, AT_ONCE, out),
        }
    }

    fn receive(&mut self, now: Micros, frame: &[u8], out: &mut impl Sink) {
        match self {
            Hosts::Clients(clients) => clients.receive(now, frame, out),
            Hosts::Servers(servers) => servers.receive(now, frame, out),
        }
    }

    fn counts(&self) -> (Counts, (u32, u32)) {
        match self {
            Hosts::Clients(clients) => (clients.counts(), clients.open()),
            Hosts::Servers(servers) => (servers.counts(), servers.open()),
        }
    }
}

impl All {
    fn port(&mut self, sw_if: SwIfIndex) -> Option<&mut Port> {
        self.ports.iter_mut().find(|port| port.sw_if == sw_if)
    }

    fn clients(&mut self, sw_if: SwIfIndex) -> Option<&mut Clients> {
        match &mut *self.port(sw_if)?.hosts {
            Hosts::Clients(clients) => Some(clients),
            Hosts::Servers(_) => None,
        }
    }

    /// Gives all hosts their turn, and passes on what they have said.
    pub(crate) fn poll(&mut self, cx: &mut NodeCx<'_>) -> usize {
        let now = micros(cx.now());
        let mut packets = 0;
        for port in &mut self.ports {
            port.longest = port.longest.max(now.saturating_sub(port.turn));
            port.turn = now;
            let mut out = Frames::new(cx);
            port.hosts.poll(now, &mut out);
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

    /// Time until the next packet arrives at the end of a line, in microseconds.
    pub(crate) fn next_due(&self, cx: &NodeCx<'_>) -> Option<Micros> {
        let due = self.lines.values().filter_map(Line::due).min()?;
        Some(due.saturating_sub(micros(cx.now())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Has the hosts behind a port hear what it sends.
    pub(crate) fn hear(&mut self, cx: &mut NodeCx<'_>, sw_if: SwIfIndex, frame: &Frame) {
        let now = micros(cx.now());
        let Some(port) = self.port(sw_if) else { return };
        let mut out = Frames::new(cx);
        let mut whole = Vec::new();
        for i in 0..frame.len() {
            frame.prefetch_data(i + 8);
            let i = i as u8;
            let data = frame.data(i);
            if data.len() == frame.total_len(i) {
                port.hosts.receive(now, data, &mut out);
            } else {
                // A packet in several buffers.
                whole.clear();
                frame.segments(i).for_each(|segment| whole.extend_from_slice(segment));
                port.hosts.receive(now, &whole, &mut out);
            }
        }
        out.finish(&mut port.said);
    }

    pub(crate) fn message(&mut self, cx: &mut NodeCx<'_>, message: Message) {
        let now = micros(cx.now());
        match message {
            Message::Hosts(sw_if, hosts) => {
                match self.port(sw_if) {
                    // What the others have said is still received.
                    Some(port) => {
                        let old = std::mem::replace(&mut port.hosts, hosts);
                        // Returning their memory takes time.
                        cx.discard(old);
                    }
                    None => {
                        let said = Vec::new();
                        let port = Port { sw_if, hosts, said, turn: now, longest: 0 };
                        self.ports.push(port);
                    }
                }
            }
            Message::Opening(sw_if, opening) => {
                if let Some(clients) = self.clients(sw_if) {
                    clients.set_opening(opening, now);
                }
            }
            Message::Judging(sw_if, judging) => {
                if let Some(clients) = self.clients(sw_if) {
                    clients.set_judging(judging);
                }
            }
            Message::Abandon(sw_if) => {
                if let Some(port) = self.port(sw_if) {
                    match &mut *port.hosts {
                        Hosts::Clients(clients) => clients.abandon(),
                        Hosts::Servers(servers) => servers.abandon(),
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
            Message::Report(ports, answer) => {
                let mut report = |sw_if: &SwIfIndex| {
                    let port = self.port(*sw_if)?;
                    let (counts, (open, time_wait)) = port.hosts.counts();
                    let longest_turn = std::mem::take(&mut port.longest);
                    Some(Report { at: now, counts, open, time_wait, longest_turn })
                };
                // Who asked may be gone.
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
    full: Vec<Box<Frame>>,
    frame: Option<Box<Frame>>,
}

/// Longest frame that hosts send.
const LONGEST: usize = 1600;

impl<'a, 'w> Frames<'a, 'w> {
    fn new(cx: &'a mut NodeCx<'w>) -> Self {
        Frames { cx, packet: None, full: Vec::new(), frame: None }
    }

    fn flush(&mut self) {
        let Some(packet) = self.packet.take() else { return };
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
        // Packets that fit into one buffer are written in place.
        let empty = [0; LONGEST];
        let room = packet.push(length).is_some()
            || (length <= LONGEST && packet.fill(&empty[..length], self.cx.cache()));
        if !room || packet.data().len() < length {
            self.cx.consume(packet);
            return None;
        }
        Some(self.packet.insert(packet).data_mut())
    }
}
