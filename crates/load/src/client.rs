//! The client side.

use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN};

use crate::frame::Segment;
use crate::{Micros, Profile, ProfileError, Sink};

/// Counters of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections opened.
    pub opened: u64,
    /// Connections accepted by the server.
    pub accepted: u64,
    /// Requests answered.
    pub answered: u64,
    /// Connections completed, up to the server's FIN.
    pub completed: u64,
    /// Connections given up because they made no progress.
    pub lost: u64,
    /// Connections reset.
    pub reset: u64,
    /// Segments for a connection that it did not expect.
    pub unexpected: u64,
    /// Other frames received.
    pub foreign: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// Frames lost because the sink had no room.
    pub no_room: u64,
    /// Number of times that no pair of address and port was free.
    pub no_slot: u64,
}

/// Event that a connection waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waits {
    /// The slot is free.
    #[default]
    Free,
    /// The slot must not be used.
    Barred,
    /// The SYN-ACK.
    Accept,
    /// An answer.
    Answer,
    /// The server's FIN.
    Fin,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    waits: Waits,
    /// Number of requests answered.
    answered: u16,
    seq: u32,
    ack: u32,
    /// Time of the last progress.
    at: Micros,
    /// Neighbours in the list of open connections, as slot + 1; 0 = none.
    next: u32,
    previous: u32,
}

/// Many clients of one server.
#[derive(Debug)]
pub struct Client {
    profile: Profile,
    slots: Vec<Slot>,
    /// The slot tried next for a new connection.
    next: u32,
    /// Head and tail of the list of open connections, as slot + 1; 0 = none. The head is checked
    /// for progress next.
    first: u32,
    last: u32,
    open: u32,
    /// Time at which the next connection is due, with a rate.
    due: f64,
    counts: Counts,
}

/// Number of slots tried for a new connection per poll.
const TRIES: u32 = 64;

impl Client {
    /// Creates the clients that a profile describes.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn new(profile: Profile, now: Micros) -> Result<Client, ProfileError> {
        profile.check()?;
        let slots = vec![Slot::default(); profile.slots() as usize];
        let due = now as f64;
        let counts = Counts::default();
        Ok(Client { profile, slots, next: 0, first: 0, last: 0, open: 0, due, counts })
    }

    /// Counters since creation.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of open connections.
    pub fn open(&self) -> u32 {
        self.open
    }

    /// Sets the number of connections opened per second; `None` = as fast as possible.
    pub fn set_rate(&mut self, rate: Option<f64>, now: Micros) {
        self.profile.rate = rate;
        self.due = now as f64;
    }

    /// Sets the maximum number of open connections; 0 lets the open ones finish.
    pub fn set_concurrent(&mut self, concurrent: u32) {
        self.profile.concurrent = concurrent;
    }

    /// Restricts the clients to the addresses and ports for which `allowed` returns true, so that
    /// several instances can share them. `allowed` is called once for each, here.
    pub fn allow_only(&mut self, allowed: impl Fn(std::net::Ipv4Addr, u16) -> bool) {
        for number in 0..self.slots.len() as u32 {
            let (address, port) = self.address(number);
            let slot = &mut self.slots[number as usize];
            match (slot.waits, allowed(address.into(), port)) {
                (Waits::Free, false) => slot.waits = Waits::Barred,
                (Waits::Barred, true) => slot.waits = Waits::Free,
                _ => {}
            }
        }
    }

    /// Opens the connections that are due, at most `most`, and gives up on some that make no
    /// progress. Must be called regularly.
    pub fn poll(&mut self, now: Micros, most: usize, out: &mut impl Sink) {
        self.sweep(now, 4);
        for _ in 0..most {
            let due = self.profile.rate.is_none_or(|_| self.due <= now as f64);
            if self.open >= self.profile.concurrent || !due {
                break;
            }
            let Some(slot) = self.free_slot() else {
                self.counts.no_slot += 1;
                break;
            };
            if let Some(rate) = self.profile.rate {
                // A backlog is limited to a tenth of a second.
                let step = 1e6 / rate.max(1e-3);
                self.due = (self.due + step).max(now as f64 - 1e5);
            }
            self.begin(slot, now, out);
        }
    }

    fn free_slot(&mut self) -> Option<u32> {
        for _ in 0..TRIES {
            let slot = self.next;
            self.next = if slot + 1 == self.slots.len() as u32 { 0 } else { slot + 1 };
            if self.slots[slot as usize].waits == Waits::Free {
                return Some(slot);
            }
        }
        None
    }

    fn address(&self, slot: u32) -> (u32, u16) {
        let ports = u32::from(self.profile.ports.1);
        let client = self.profile.client.to_bits().wrapping_add(slot / ports);
        (client, self.profile.ports.0 + (slot % ports) as u16)
    }

    /// Checks the connections checked longest ago, in `steps` steps, and gives up on those that
    /// make no progress.
    fn sweep(&mut self, now: Micros, steps: u32) {
        for _ in 0..steps {
            let Some(number) = self.first.checked_sub(1) else { return };
            if now.saturating_sub(self.slots[number as usize].at) > self.profile.patience {
                self.close(number);
                self.counts.lost += 1;
            } else if self.first != self.last {
                self.unlink(number);
                self.link(number);
            }
        }
    }

    fn link(&mut self, number: u32) {
        let previous = std::mem::replace(&mut self.last, number + 1);
        match previous {
            0 => self.first = number + 1,
            _ => self.slots[previous as usize - 1].next = number + 1,
        }
        let slot = &mut self.slots[number as usize];
        (slot.next, slot.previous) = (0, previous);
    }

    fn unlink(&mut self, number: u32) {
        let Slot { next, previous, .. } = self.slots[number as usize];
        match next {
            0 => self.last = previous,
            _ => self.slots[next as usize - 1].previous = previous,
        }
        match previous {
            0 => self.first = next,
            _ => self.slots[previous as usize - 1].next = next,
        }
    }

    fn close(&mut self, number: u32) {
        self.unlink(number);
        self.slots[number as usize].waits = Waits::Free;
        self.open -= 1;
    }

    fn begin(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        let slot = &mut self.slots[number as usize];
        // Sequence numbers continue well after those of the slot's last connection.
        let seq = slot.seq.wrapping_add(100_000);
        *slot = Slot { waits: Waits::Accept, seq, at: now, ..Slot::default() };
        self.link(number);
        self.open += 1;
        self.counts.opened += 1;
        self.send(number, SYN, 0, out);
    }

    /// Sends a segment of a connection, and advances its sequence number.
    fn send(&mut self, number: u32, flags: u8, data: u16, out: &mut impl Sink) {
        let (client, port) = self.address(number);
        let slot = &mut self.slots[number as usize];
        let segment = Segment {
            src: (client.into(), port),
            dst: self.profile.server,
            seq: slot.seq,
            ack: slot.ack,
            flags,
            data,
        };
        let numbers = u32::from(data) + u32::from(flags & (SYN | FIN) != 0);
        slot.seq = slot.seq.wrapping_add(numbers);
        match out.frame(segment.frame_len()) {
            Some(frame) => {
                segment.write(self.profile.client_mac, frame);
                self.counts.sent += 1;
            }
            None => self.counts.no_room += 1,
        }
    }

    fn slot_of(&self, heard: &Segment) -> Option<u32> {
        let (first, ports) = self.profile.ports;
        let client = heard.dst.0.to_bits().wrapping_sub(self.profile.client.to_bits());
        let port = heard.dst.1.checked_sub(first).filter(|port| *port < ports)?;
        let known = heard.src == self.profile.server && client < self.profile.clients;
        known.then(|| client * u32::from(ports) + u32::from(port))
    }

    /// Receives a frame, and sends the next segment of its connection.
    pub fn receive(&mut self, now: Micros, frame: &[u8], out: &mut impl Sink) {
        let heard = Segment::read(frame);
        let Some((heard, number)) = heard.and_then(|h| Some((h, self.slot_of(&h)?))) else {
            self.counts.foreign += 1;
            return;
        };
        self.counts.received += 1;
        let slot = &mut self.slots[number as usize];
        if heard.flags & RST != 0 && !matches!(slot.waits, Waits::Free | Waits::Barred) {
            self.close(number);
            self.counts.reset += 1;
            return;
        }
        let numbers = u32::from(heard.data) + u32::from(heard.flags & (SYN | FIN) != 0);
        let after = heard.seq.wrapping_add(numbers);
        let fits = heard.ack == slot.seq && (slot.waits == Waits::Accept || heard.seq == slot.ack);
        let kind = heard.flags & (SYN | FIN | ACK);
        let step = match (slot.waits, kind) {
            (Waits::Accept, k) if k == SYN | ACK => fits,
            (Waits::Answer, ACK) => fits && heard.data == self.profile.answer,
            (Waits::Fin, k) if k == FIN | ACK => fits,
            _ => false,
        };
        if !step {
            self.counts.unexpected += 1;
            return;
        }
        (slot.at, slot.ack) = (now, after);
        self.go_on(number, out);
    }

    /// Continues after the expected segment has arrived.
    fn go_on(&mut self, number: u32, out: &mut impl Sink) {
        let slot = &mut self.slots[number as usize];
        match slot.waits {
            Waits::Free | Waits::Barred => return,
            Waits::Accept => {
                self.counts.accepted += 1;
                self.send(number, ACK, 0, out);
            }
            Waits::Answer => {
                slot.answered += 1;
                self.counts.answered += 1;
            }
            Waits::Fin => {
                self.close(number);
                self.counts.completed += 1;
                self.send(number, ACK, 0, out);
                return;
            }
        }
        let slot = &mut self.slots[number as usize];
        if slot.answered < self.profile.requests {
            slot.waits = Waits::Answer;
            self.send(number, PSH | ACK, self.profile.request, out);
        } else {
            slot.waits = Waits::Fin;
            self.send(number, FIN | ACK, 0, out);
        }
    }
}
