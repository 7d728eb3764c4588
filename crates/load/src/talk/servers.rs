//! The servers: they answer.

use std::collections::HashMap;

use super::counts::Counts;
use super::machine::{End, Ends, Machine};
use super::packet::{Heard, Incoming, Unread};
use super::pool::Range;
use super::tcb::State;
use super::wheel::NONE;
use super::{Plan, PlanError, Protocol};
use crate::{Micros, Sink};
use thalweg_wire::tcp::flag::{ACK, RST, SYN};

/// Many servers.
#[derive(Debug)]
pub struct Servers {
    machine: Machine,
    is_v4: bool,
    servers: Range,
    /// Numbers of addresses that are none of the plan's clients.
    peers: HashMap<u128, u32>,
    /// Slots by the hash of their addresses and ports, at the hash or behind it.
    places: Vec<u32>,
    seed: u64,
    /// Slots never used, and those that became free.
    unused: u32,
    free: Vec<u32>,
}

/// Maximum number of different addresses that are none of the plan's clients.
const MAX_PEERS: usize = 1 << 24;

impl Servers {
    /// Creates the servers of a plan.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(plan: &Plan, seed: u64, now: Micros) -> Result<Servers, PlanError> {
        plan.check()?;
        // A third stays free, so that look-ups are short.
        let places = (u64::from(plan.room) * 3 / 2).next_power_of_two();
        Ok(Servers {
            machine: Machine::new(plan, false, plan.room, seed, now),
            is_v4: plan.clients.first.is_ipv4(),
            servers: plan.servers.range(),
            peers: HashMap::new(),
            places: vec![NONE; places as usize],
            seed: seed | 1,
            unused: 0,
            free: Vec::new(),
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

    /// Ends all conversations without a packet.
    pub fn abandon(&mut self) {
        for number in 0..self.unused {
            self.machine.finish(number, End::Abandoned);
        }
        self.reclaim();
    }

    /// Does what times ask for, at most `most` times. Must be called regularly.
    pub fn poll(&mut self, now: Micros, most: usize, out: &mut impl Sink) {
        self.machine.timers(now, most, out);
        self.reclaim();
    }

    /// Takes in a received frame, and sends what follows from it.
    #[inline]
    pub fn receive(&mut self, now: Micros, frame: &[u8], out: &mut impl Sink) {
        self.take(now, &Incoming::read(frame), out);
    }

    /// The same with a frame that was read before.
    #[inline]
    pub fn take(&mut self, now: Micros, incoming: &Incoming<'_>, out: &mut impl Sink) {
        match &incoming.heard {
            Ok(heard) => self.heard(now, incoming.length, heard, out),
            Err(Unread::Foreign) => self.machine.counts.foreign += 1,
            Err(Unread::Checksum) => self.machine.counts.bad_checksum += 1,
        }
    }

    /// Whether a frame is for these servers, and not for others behind the same port. The client's
    /// address says nothing: a device may translate it.
    pub fn claims(&self, incoming: &Incoming<'_>) -> bool {
        let Ok(heard) = &incoming.heard else { return false };
        let kind = |side: &super::machine::Side| {
            (side.protocol, side.port) == (heard.protocol, heard.ports.1)
        };
        heard.is_v4 == self.is_v4
            && self.servers.number(heard.destination).is_some()
            && self.machine.sides.iter().any(kind)
    }

    fn heard(&mut self, now: Micros, length: usize, heard: &Heard<'_>, out: &mut impl Sink) {
        let same = |side: &super::machine::Side| {
            (side.protocol, side.port) == (heard.protocol, heard.ports.1)
        };
        let server = self.servers.number(heard.destination);
        let talk = self.machine.sides.iter().position(same);
        let (Some(server), Some(talk), true) = (server, talk, heard.is_v4 == self.is_v4) else {
            self.machine.counts.foreign += 1;
            return;
        };
        let talk = talk as u8;
        self.machine.counts.received += 1;
        self.machine.counts.received_bytes += length as u64;
        let key = Key { client: heard.source, port: heard.ports.0, server: server as u16, talk };
        let tcp = heard.protocol == Protocol::Tcp;
        let syn = tcp && heard.flags & (SYN | ACK | RST) == SYN;
        let known = self.find(&key).filter(|number| {
            // A connection in TIME_WAIT gives way to a new one (RFC 9293 §3.6.1).
            !(syn && self.machine.slots[*number as usize].state == State::TimeWait)
        });
        match known {
            Some(number) if tcp => self.machine.segment(number, heard, now, out),
            None if tcp && !syn => {
                self.machine.counts.unknown += 1;
                self.machine.refuse(heard, out);
            }
            None if tcp => {
                if let Some(number) = self.slot_for(&key) {
                    self.machine.begin(number, talk, false, Some(heard), now, out);
                }
            }
            known => {
                let number = known.or_else(|| {
                    let number = self.slot_for(&key)?;
                    self.machine.begin(number, talk, false, None, now, out);
                    Some(number)
                });
                if let Some(number) = number {
                    self.machine.datagram(number, heard.payload, now, out);
                }
            }
        }
        self.reclaim();
    }

    /// Takes a slot for a new conversation, and enters it.
    fn slot_for(&mut self, key: &Key) -> Option<u32> {
        if let Some(old) = self.find(key) {
            self.machine.finish(old, End::Completed);
            self.reclaim();
        }
        let peer = self.peer(key.client);
        let number = self.free.pop().or_else(|| {
            let number = self.unused;
            ((number as usize) < self.machine.slots.len()).then(|| {
                self.unused += 1;
                number
            })
        });
        let (Some(number), Some(peer)) = (number, peer) else {
            self.free.extend(number);
            self.machine.counts.no_tuple += 1;
            return None;
        };
        let tcb = &mut self.machine.slots[number as usize];
        (tcb.peer, tcb.port, tcb.server, tcb.talk) = (peer, key.port, key.server, key.talk);
        let mask = self.places.len() - 1;
        let mut place = self.hash(key) & mask;
        while self.places[place] != NONE {
            place = (place + 1) & mask;
        }
        self.places[place] = number;
        Some(number)
    }

    /// The number of a client's address.
    #[inline]
    fn peer(&mut self, client: u128) -> Option<u32> {
        let Ends::Server { clients, peers, .. } = &mut self.machine.ends else { return None };
        if let Some(number) = clients.number(client) {
            return Some(number);
        }
        if let Some(number) = self.peers.get(&client) {
            return Some(*number);
        }
        // A plan has no more clients than slots are numbered.
        let number = clients.count + peers.len() as u32;
        (peers.len() < MAX_PEERS).then(|| {
            peers.push(client);
            self.peers.insert(client, number);
            number
        })
    }

    fn hash(&self, key: &Key) -> usize {
        let address = (key.client >> 64) as u64 ^ (key.client as u64).rotate_left(23);
        let rest = u64::from(key.port) << 32 | u64::from(key.server) << 8 | u64::from(key.talk);
        let mixed = (address ^ rest.rotate_left(17)).wrapping_mul(self.seed);
        let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 20) as usize
    }

    fn key(&self, number: u32) -> Option<Key> {
        let tcb = &self.machine.slots[number as usize];
        let client = self.machine.ends.peer(tcb.peer)?;
        Some(Key { client, port: tcb.port, server: tcb.server, talk: tcb.talk })
    }

    fn find(&self, key: &Key) -> Option<u32> {
        let mask = self.places.len() - 1;
        let mut place = self.hash(key) & mask;
        loop {
            let number = self.places[place];
            if number == NONE {
                return None;
            }
            let tcb = &self.machine.slots[number as usize];
            let cheap = (tcb.port, tcb.server, tcb.talk) == (key.port, key.server, key.talk);
            if cheap && self.key(number).as_ref() == Some(key) {
                return Some(number);
            }
            place = (place + 1) & mask;
        }
    }

    /// Removes the conversations that have ended.
    fn reclaim(&mut self) {
        while let Some(number) = self.machine.freed.pop() {
            self.remove(number);
            self.free.push(number);
        }
    }

    fn remove(&mut self, number: u32) {
        let Some(key) = self.key(number) else { return };
        let mask = self.places.len() - 1;
        let mut hole = self.hash(&key) & mask;
        while self.places[hole] != number {
            if self.places[hole] == NONE {
                return;
            }
            hole = (hole + 1) & mask;
        }
        // Those behind move up, as far as their hash lets them.
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let other = self.places[place];
            let Some(key) = (other != NONE).then(|| self.key(other)).flatten() else { break };
            let home = self.hash(&key) & mask;
            let from_home = place.wrapping_sub(home) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.places[hole] = other;
                hole = place;
            }
        }
        self.places[hole] = NONE;
    }

    #[cfg(test)]
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// What tells conversations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    client: u128,
    port: u16,
    server: u16,
    talk: u8,
}
