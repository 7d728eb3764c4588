//! The servers: they answer.

use std::collections::HashMap;

use super::counts::Counts;
use super::machine::{End, Ends, Machine, Syn};
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
    /// Numbers of addresses that are not the plan's clients.
    peers: HashMap<u128, u32>,
    /// Slots by the hash of their addresses and ports, at the hash or behind it: see
    /// `hash`. The upper bits of an entry are some of the hash, so that the slots of others need
    /// not be looked at.
    places: Vec<u32>,
    /// Bits of an entry that are a slot's number.
    number: u32,
    seed: u64,
    /// The first slot that was never used.
    unused: u32,
    /// The slot that became free last: slots that are free are linked by `next`.
    free: u32,
}

/// Maximum number of different addresses that are not the plan's clients.
const MAX_PEERS: usize = 1 << 24;
/// Places in a cache line, a power of two.
const LINE: u32 = 16;

impl Servers {
    /// Creates the servers of a plan.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(plan: &Plan, seed: u64, now: Micros) -> Result<Servers, PlanError> {
        plan.check()?;
        // A third stays free, so that look-ups are short.
        let places = (u64::from(plan.room) * 3 / 2).next_power_of_two().max(u64::from(LINE));
        Ok(Servers {
            machine: Machine::new(plan, false, plan.room, seed, now),
            is_v4: plan.clients.first.is_ipv4(),
            servers: plan.servers.range(),
            peers: HashMap::new(),
            places: vec![NONE; places as usize],
            // No number has only ones.
            number: (2u32 << plan.room.ilog2()) - 1,
            seed: seed | 1,
            unused: 0,
            free: NONE,
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

    /// True if a frame is for these servers, and not for others behind the same port. The client's
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

    #[inline(always)]
    fn heard(&mut self, now: Micros, length: usize, heard: Heard<'_>, out: &mut impl Sink) {
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
        let hash = self.hash(&key);
        let found = self.find(&key, hash);
        let known = found.ok().filter(|number| {
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
                if let Some(number) = self.slot_for(&key, hash, found) {
                    let Heard { seq, window, mss, .. } = heard;
                    let syn = Some(Syn { seq, window, mss });
                    self.machine.begin(number, talk, false, syn, now, out);
                }
            }
            known => {
                let number = known.or_else(|| {
                    let number = self.slot_for(&key, hash, found)?;
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

    /// Takes a slot for a new conversation, and enters it. `found`: what [`Servers::find`] said.
    fn slot_for(
        &mut self,
        key: &Key,
        hash: (usize, u32),
        found: Result<u32, usize>,
    ) -> Option<u32> {
        let place = match found {
            Ok(old) => {
                self.machine.finish(old, End::Completed);
                self.reclaim();
                self.find(key, hash).err()?
            }
            Err(place) => place,
        };
        let number = if self.free == NONE { self.unused } else { self.free };
        let peer = match (number as usize) < self.machine.slots.len() {
            true => self.peer(key.client),
            false => None,
        };
        let Some(peer) = peer else {
            self.machine.counts.no_tuple += 1;
            return None;
        };
        let tcb = &mut self.machine.slots[number as usize];
        match self.free {
            NONE => self.unused += 1,
            _ => self.free = std::mem::replace(&mut tcb.next, NONE),
        }
        (tcb.peer, tcb.port, tcb.server, tcb.talk) = (peer, key.port, key.server, key.talk);
        *self.at_mut(place) = number | hash.1;
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

    /// Returns the first slot to look for a conversation, and the upper bits of its entry.
    ///
    /// The lowest bits of addresses and ports decide on the place within a cache line, and the
    /// others on the line: conversations of clients that follow each other, as they are opened,
    /// have places in the same line.
    #[inline]
    fn hash(&self, key: &Key) -> (usize, u32) {
        let low = |number: u64| number & u64::from(LINE - 1);
        let (client, server) = (key.client as u64, u64::from(key.server));
        // Clients and servers advance together, which must not cancel out.
        let within = low(client.wrapping_sub(2 * server).wrapping_add(key.port.into()));
        let address = (key.client >> 64) as u64 ^ (client - low(client)).rotate_left(23);
        let others = u64::from(key.port) << 32 | (server - low(server)) << 8 | u64::from(key.talk);
        let mixed = (address ^ others.rotate_left(17)).wrapping_mul(self.seed);
        let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let lines = self.places.len() / LINE as usize;
        let place = within as usize * lines + ((mixed >> 8) as usize & (lines - 1));
        (place, (mixed >> 32) as u32 & !self.number)
    }

    /// The index of the nth place: places that follow each other are in lines that follow each
    /// other, each in the same part of it.
    #[inline]
    fn index(&self, place: usize) -> usize {
        let shift = self.places.len().trailing_zeros() - LINE.trailing_zeros();
        (place & ((1 << shift) - 1)) << LINE.trailing_zeros() | place >> shift
    }

    #[inline]
    fn at(&self, place: usize) -> u32 {
        self.places[self.index(place)]
    }

    fn at_mut(&mut self, place: usize) -> &mut u32 {
        let index = self.index(place);
        &mut self.places[index]
    }

    fn key(&self, number: u32) -> Option<Key> {
        let tcb = &self.machine.slots[number as usize];
        let client = self.machine.ends.peer(tcb.peer)?;
        Some(Key { client, port: tcb.port, server: tcb.server, talk: tcb.talk })
    }

    /// Returns the slot of a conversation, or else the place where it would be entered.
    #[inline]
    fn find(&self, key: &Key, (mut place, tag): (usize, u32)) -> Result<u32, usize> {
        let mask = self.places.len() - 1;
        loop {
            let entry = self.at(place);
            if entry == NONE {
                return Err(place);
            }
            if entry & !self.number == tag {
                let number = entry & self.number;
                let tcb = &self.machine.slots[number as usize];
                let cheap = (tcb.port, tcb.server, tcb.talk) == (key.port, key.server, key.talk);
                if cheap && self.key(number).as_ref() == Some(key) {
                    return Ok(number);
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Removes the conversations that have ended.
    fn reclaim(&mut self) {
        while let Some(number) = self.machine.freed.pop() {
            self.remove(number);
            let next = std::mem::replace(&mut self.free, number);
            self.machine.slots[number as usize].next = next;
        }
    }

    fn remove(&mut self, number: u32) {
        let Some(key) = self.key(number) else { return };
        let mask = self.places.len() - 1;
        let (mut hole, tag) = self.hash(&key);
        while self.at(hole) != number | tag {
            if self.at(hole) == NONE {
                return;
            }
            hole = (hole + 1) & mask;
        }
        // Entries behind move up, as far as their hash lets them.
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let other = self.at(place);
            let of = |number| self.key(number & self.number);
            let Some(key) = (other != NONE).then(|| of(other)).flatten() else { break };
            let (home, _) = self.hash(&key);
            let from_home = place.wrapping_sub(home) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                *self.at_mut(hole) = other;
                hole = place;
            }
        }
        *self.at_mut(hole) = NONE;
    }

    #[cfg(test)]
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// Parts that tell conversations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    client: u128,
    port: u16,
    server: u16,
    talk: u8,
}
