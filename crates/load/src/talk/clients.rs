//! The clients: they open conversations.

use super::counts::Counts;
use super::machine::{End, Machine};
use super::packet::{Heard, Incoming, Unread};
use super::pool::Range;
use super::tcb::State;
use super::{Gaps, Plan, PlanError, Protocol};
use crate::{Micros, Sink};

/// Number of conversations that are opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opening {
    /// Conversations per second.
    pub rate: f64,
    /// Number that is held: no more are open at a time, and one is opened for each that ends.
    pub hold: Option<u32>,
    /// Number after which no more are opened, counted since the clients' creation.
    pub total: Option<u64>,
}

/// Many clients of many servers.
#[derive(Debug)]
pub struct Clients {
    machine: Machine,
    is_v4: bool,
    clients: Range,
    servers: Range,
    ports: (u16, u16),
    /// Number of slots of each client.
    each: u32,
    opening: Opening,
    /// Time when the next conversation is due, in microseconds.
    due: f64,
    /// Number of the next pair of client and port.
    next: u64,
    /// Credit of each kind of conversation: the one with most comes next.
    credits: Vec<(i64, u32)>,
    limits: Vec<Option<u32>>,
    gaps: Gaps,
    judging: bool,
    late: f64,
}

/// Pairs of client and port tried for a conversation.
const TRIES: u32 = 64;

impl Clients {
    /// Creates the clients of a plan. `seed` decides times and sequence numbers.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(plan: &Plan, seed: u64, now: Micros) -> Result<Clients, PlanError> {
        plan.check()?;
        let each = slots_of_each(plan);
        Ok(Clients {
            machine: Machine::new(plan, true, plan.slots() as u32, seed, now),
            is_v4: plan.clients.first.is_ipv4(),
            clients: plan.clients.range(),
            servers: plan.servers.range(),
            ports: plan.ports,
            each,
            opening: Opening { rate: 0.0, hold: None, total: None },
            due: now as f64,
            next: 0,
            credits: plan.talks.iter().map(|talk| (0, talk.share)).collect(),
            limits: plan.talks.iter().map(|talk| talk.limit).collect(),
            gaps: plan.gaps,
            judging: false,
            late: plan.late as f64,
        })
    }

    /// Counters since creation.
    pub fn counts(&self) -> Counts {
        self.machine.counts
    }

    /// Number of open conversations, and of those in TIME_WAIT.
    pub fn open(&self) -> (u32, u32) {
        (self.machine.open, self.machine.time_wait)
    }

    /// Number of open conversations in their handshake.
    pub fn half_open(&self) -> u32 {
        self.machine.half_open
    }

    /// Sets how many conversations to open from now on.
    pub fn set_opening(&mut self, opening: Opening, now: Micros) {
        let (old, new, now) = (self.opening.rate, opening.rate, now as f64);
        // The next one is as near as before, by the new measure: a rate that changes often, as in a
        // ramp, opens no more than its mean.
        let left = if old > 0.0 && new > 0.0 { (self.due - now).max(0.0) * old / new } else { 0.0 };
        self.due = now + left;
        self.opening = opening;
    }

    /// Sets whether the conversations opened from now on belong to the window of a trial.
    pub fn set_judging(&mut self, judging: bool) {
        self.judging = judging;
    }

    /// Ends all conversations without a packet.
    pub fn abandon(&mut self) {
        for number in 0..self.machine.slots.len() as u32 {
            self.machine.finish(number, End::Abandoned);
        }
        self.machine.freed.clear();
    }

    /// Opens the conversations that are due and does what times ask for, each at most `most` times.
    /// Must be called regularly, at least each millisecond.
    pub fn poll(&mut self, now: Micros, most: usize, out: &mut impl Sink) {
        self.machine.timers(now, most, out);
        self.machine.freed.clear();
        let Opening { rate, hold, total } = self.opening;
        let enough = |begun| total.is_some_and(|total| begun >= total);
        if rate <= 0.0 || enough(self.machine.counts.begun) {
            self.due = now as f64;
            return;
        }
        let step = 1e6 / rate;
        let late = ((now as f64 - self.due - self.late) / step).floor();
        if late > 0.0 {
            self.due += late * step;
            if hold.is_none() {
                self.machine.counts.unsent += late as u64;
            }
        }
        for _ in 0..most {
            if self.due > now as f64 || enough(self.machine.counts.begun) {
                break;
            }
            if hold.is_some_and(|hold| self.machine.open >= hold) {
                // Nothing is owed: the next one is due when one has ended.
                self.due = now as f64;
                break;
            }
            self.due += match self.gaps {
                Gaps::Even => step,
                Gaps::Exponential => step * self.machine.exponential(),
            };
            self.open_one(now, out);
        }
    }

    fn open_one(&mut self, now: Micros, out: &mut impl Sink) {
        let Some(talk) = self.next_talk() else { return };
        if self.limits[talk].is_some_and(|limit| self.machine.sides[talk].open >= limit) {
            self.machine.counts.held_back += 1;
            return;
        }
        let Some(number) = self.free_slot() else {
            self.machine.counts.no_tuple += 1;
            return;
        };
        // Time when it was opened, in milliseconds: 49 days.
        self.machine.slots[number as usize].peer = (now / 1000) as u32;
        self.machine.begin(number, talk as u8, self.judging, None, now, out);
    }

    /// Returns the kind of the next conversation: each comes as often as its share says.
    fn next_talk(&mut self) -> Option<usize> {
        if self.credits.len() == 1 {
            return Some(0);
        }
        let total: i64 = self.credits.iter().map(|(_, share)| i64::from(*share)).sum();
        self.credits.iter_mut().for_each(|(credit, share)| *credit += i64::from(*share));
        let most = self.credits.iter().map(|(credit, _)| *credit).max()?;
        let talk = self.credits.iter().position(|(credit, _)| *credit == most)?;
        self.credits[talk].0 -= total;
        Some(talk)
    }

    /// Returns the next free slot, with its port and server set.
    fn free_slot(&mut self) -> Option<u32> {
        let clients = u64::from(self.clients.count);
        for _ in 0..TRIES {
            let next = self.next;
            self.next += 1;
            let client = (next % clients) as u32;
            let port = (next / clients % u64::from(self.ports.1)) as u32;
            let number = client + self.clients.count * (port % self.each);
            let tcb = &mut self.machine.slots[number as usize];
            if tcb.state == State::Free {
                tcb.port = self.ports.0 + port as u16;
                tcb.server = (next % u64::from(self.servers.count)) as u16;
                return Some(number);
            }
        }
        None
    }

    /// Takes in a received frame, and sends what follows from it.
    #[inline]
    pub fn receive(&mut self, now: Micros, frame: &[u8], out: &mut impl Sink) {
        match Heard::read_plain(frame) {
            Some(heard) => self.heard(now, frame.len(), heard, out),
            None => self.take(now, &Incoming::read(frame), out),
        }
    }

    /// The same with a frame that was read before.
    #[inline]
    pub fn take(&mut self, now: Micros, incoming: &Incoming<'_>, out: &mut impl Sink) {
        match &incoming.heard {
            Ok(heard) => self.heard(now, incoming.length, *heard, out),
            Err(Unread::Foreign) => self.machine.counts.foreign += 1,
            Err(Unread::Checksum) => self.machine.counts.bad_checksum += 1,
        }
    }

    /// True if a frame is for these clients, and not for others behind the same port: it comes from
    /// one of their servers' ports, and goes to one of theirs.
    pub fn claims(&self, incoming: &Incoming<'_>) -> bool {
        let Ok(heard) = &incoming.heard else { return false };
        let (server_port, port) = heard.ports;
        let kind = |side: &super::machine::Side| {
            (side.protocol, side.port) == (heard.protocol, server_port)
        };
        heard.is_v4 == self.is_v4
            && self.clients.number(heard.destination).is_some()
            && self.servers.number(heard.source).is_some()
            && port.checked_sub(self.ports.0).is_some_and(|nth| nth < self.ports.1)
            && self.machine.sides.iter().any(kind)
    }

    #[inline(always)]
    fn heard(&mut self, now: Micros, length: usize, heard: Heard<'_>, out: &mut impl Sink) {
        let client = self.clients.number(heard.destination);
        let server = self.servers.number(heard.source);
        let (Some(client), Some(server), true) = (client, server, heard.is_v4 == self.is_v4) else {
            self.machine.counts.foreign += 1;
            return;
        };
        self.machine.counts.received += 1;
        self.machine.counts.received_bytes += length as u64;
        match (heard.protocol, self.slot(client, server, heard.ports, heard.protocol)) {
            (Protocol::Tcp, Some(number)) => self.machine.segment(number, heard, now, out),
            (Protocol::Udp, Some(number)) => {
                self.machine.datagram(number, heard.payload, now, out);
            }
            (protocol, None) => {
                self.machine.counts.unknown += 1;
                if protocol == Protocol::Tcp {
                    self.machine.refuse(heard, out);
                }
            }
        }
        self.machine.freed.clear();
    }

    /// Returns the slot of a conversation.
    #[inline]
    fn slot(
        &self,
        client: u32,
        server: u32,
        (server_port, port): (u16, u16),
        protocol: Protocol,
    ) -> Option<u32> {
        let nth = port.checked_sub(self.ports.0).filter(|nth| *nth < self.ports.1)?;
        let number = client + self.clients.count * (u32::from(nth) % self.each);
        let tcb = &self.machine.slots[number as usize];
        let side = &self.machine.sides[usize::from(tcb.talk)];
        let same = tcb.state != State::Free
            && (tcb.port, u32::from(tcb.server)) == (port, server)
            && (side.port, side.protocol) == (server_port, protocol);
        same.then_some(number)
    }

    #[cfg(test)]
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// Number of slots of each client: a divisor of its number of ports, so that a port always has the
/// same slot.
pub(super) fn slots_of_each(plan: &Plan) -> u32 {
    let ports = u32::from(plan.ports.1);
    let needed = plan.room.div_ceil(plan.clients.count.max(1)).max(1);
    (needed..=ports).find(|slots| ports.is_multiple_of(*slots)).unwrap_or(ports)
}
