//! The transport protocols of one side, for all its conversations.

mod receive;
mod speak;
mod timers;

use thalweg_wire::tcp::flag::{ACK, FIN, RST, SYN};

use super::counts::Counts;
use super::packet::{Heard, Packet, Plain, Template, WINDOW};
use super::pool::Range;
use super::tcb::{State, Tcb, flag};
use super::wheel::{Clock, Wheel};
use super::{Plan, Program, Protocol, TcpTimes};
use crate::{Micros, Sink};

/// Addresses that belong to a slot.
#[derive(Debug)]
pub(super) enum Ends {
    /// Ends of a client: its number follows from the slot.
    Client { clients: Range, servers: Range },
    /// Ends of a server: the plan's clients have the first numbers, and others, whose addresses a
    /// device has translated, the ones behind them.
    Server { clients: Range, peers: Vec<u128>, servers: Range },
}

impl Ends {
    /// The address of a server's peer by its number.
    #[inline]
    pub(super) fn peer(&self, number: u32) -> Option<u128> {
        match self {
            Ends::Server { clients, peers, .. } => match number.checked_sub(clients.count) {
                None => Some(clients.address(number)),
                Some(other) => peers.get(other as usize).copied(),
            },
            Ends::Client { .. } => None,
        }
    }
}

/// Values of a kind of conversation that a side needs.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) protocol: Protocol,
    /// The servers' port.
    pub(super) port: u16,
    program: Program,
    fill: u8,
    expected: u8,
    /// Neither side closes: the other one may be silent for as long as it likes.
    endless: bool,
    /// Number open.
    pub(super) open: u32,
}

/// Content of a client's SYN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) seq: u32,
    pub(super) window: u16,
    pub(super) mss: Option<u16>,
}

/// End of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Ended as its program says.
    Completed,
    /// Reset by the other side's RST.
    Reset,
    /// Reset by the program's.
    Aborted,
    /// Given up.
    Lost,
    /// Given up by the tester.
    Abandoned,
}

/// All conversations of one side.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) slots: Vec<Tcb>,
    pub(super) wheel: Wheel,
    pub(super) sides: Vec<Side>,
    pub(super) ends: Ends,
    is_v4: bool,
    template: Template,
    times: TcpTimes,
    patience: Clock,
    /// Time of silence after which the other side is asked whether it is there; 0: never.
    keepalive: Clock,
    /// The least time after which anything new can be due, an acknowledgement left aside; and with
    /// it. Waits are apart.
    soonest: Clock,
    soonest_ack: Clock,
    /// The smallest segment size that any peer asked for, and ours.
    mss: u16,
    pub(super) counts: Counts,
    /// Conversations that have a slot, without those in TIME_WAIT.
    pub(super) open: u32,
    /// Open conversations in their handshake.
    pub(super) half_open: u32,
    /// Conversations in TIME_WAIT.
    pub(super) time_wait: u32,
    /// Slots that have become free.
    pub(super) freed: Vec<u32>,
    random: u64,
    /// Secret that mixes the address and port of a connection into its first sequence number.
    secret: u64,
    /// The time of the last turn.
    turn: Micros,
}

/// Smallest segment size that is taken from others, as in Linux: it holds for all connections, and
/// with less they would be headers only.
const LEAST_MSS: u16 = 48;
/// Congestion window after a loss that acknowledgements show, in segments: the least that RFC 5681
/// §3.2 leaves.
const AFTER_LOSS: u8 = 2;
/// The same after a timeout (RFC 5681 §3.1).
const AFTER_TIMEOUT: u8 = 1;
/// Congestion window at first, in segments (RFC 6928).
const AT_FIRST: u8 = 10;
/// Duplicate acknowledgements that stand for a loss (RFC 5681 §3.2).
const DUPLICATES: u8 = 3;

/// The low half of a time.
pub(super) fn clock(now: Micros) -> Clock {
    now as u32
}

fn mix(value: u64) -> u64 {
    let mixed = (value ^ (value >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Returns `a - b` as a signed distance of sequence numbers.
fn after(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

impl Machine {
    /// `client`: which side of the plan it is; `slots`: number of conversations.
    pub(super) fn new(plan: &Plan, client: bool, slots: u32, seed: u64, now: Micros) -> Machine {
        let side = |talk: &super::Talk| Side {
            protocol: talk.protocol,
            port: talk.port,
            program: if client { talk.client.clone() } else { talk.server.clone() },
            fill: if client { talk.fill.0 } else { talk.fill.1 },
            expected: if client { talk.fill.1 } else { talk.fill.0 },
            endless: talk.is_endless(),
            open: 0,
        };
        let ends = if client {
            Ends::Client { clients: plan.clients.range(), servers: plan.servers.range() }
        } else {
            let (clients, servers) = (plan.clients.range(), plan.servers.range());
            Ends::Server { clients, peers: Vec::new(), servers }
        };
        let TcpTimes { first, least, most, time_wait, .. } = plan.times;
        let keepalive = plan.times.keepalive.filter(|_| client);
        let soonest = first.min(least).min(most).min(time_wait).min(plan.patience);
        let soonest = soonest.min(keepalive.unwrap_or(soonest));
        Machine {
            slots: vec![Tcb::default(); slots as usize],
            wheel: Wheel::new(clock(now)),
            sides: plan.talks.iter().map(side).collect(),
            ends,
            is_v4: plan.clients.first.is_ipv4(),
            template: Template::new(if client { plan.client_macs } else { plan.server_macs }),
            times: plan.times,
            patience: clock(plan.patience),
            keepalive: clock(keepalive.unwrap_or(0)),
            soonest: clock(soonest),
            soonest_ack: clock(soonest.min(plan.times.delayed_ack)),
            mss: plan.mss,
            counts: Counts::default(),
            open: 0,
            half_open: 0,
            time_wait: 0,
            freed: Vec::new(),
            random: mix(seed ^ 1),
            secret: mix(seed ^ 2),
            turn: now,
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random)
    }

    /// The other side takes segments of this size, or a device says so.
    fn takes(&mut self, mss: u16) {
        self.mss = self.mss.min(mss.max(LEAST_MSS));
    }

    /// Draws from the exponential distribution with a mean of 1.
    pub(super) fn exponential(&mut self) -> f64 {
        const BITS: u32 = f64::MANTISSA_DIGITS;
        let above_zero = (self.random() >> (64 - BITS)) + 1;
        -(above_zero as f64 / (1u64 << BITS) as f64).ln()
    }

    fn is_client(&self) -> bool {
        matches!(self.ends, Ends::Client { .. })
    }

    /// Returns a packet of a slot's conversation; without a number of its client, none.
    #[inline(always)]
    fn packet(&self, number: u32, data: u32) -> Option<Packet> {
        let tcb = &self.slots[number as usize];
        let side = &self.sides[usize::from(tcb.talk)];
        let (source, destination, ports) = match &self.ends {
            Ends::Client { clients, servers } => {
                let client = clients.address(number % clients.count);
                (client, servers.address(tcb.server.into()), (tcb.port, side.port))
            }
            Ends::Server { servers, .. } => {
                let client = self.ends.peer(tcb.peer)?;
                (servers.address(tcb.server.into()), client, (side.port, tcb.port))
            }
        };
        Some(Packet {
            source,
            destination,
            is_v4: self.is_v4,
            ports,
            protocol: side.protocol,
            seq: 0,
            ack: 0,
            flags: 0,
            window: WINDOW,
            mss: None,
            data: data as usize,
            fill: side.fill,
        })
    }

    /// The first sequence number of a connection (RFC 6528): it grows with time, so that a
    /// connection between the same ports begins behind the last one's numbers.
    fn first_number(&self, number: u32, now: Micros) -> u32 {
        let tcb = &self.slots[number as usize];
        let tuple = u64::from(number) << 32 | u64::from(tcb.port) << 16 | u64::from(tcb.server);
        (mix(self.secret ^ tuple) as u32).wrapping_add((now / 4) as u32)
    }

    /// Writes a frame; false if there was no room for it.
    #[inline(always)]
    fn write(&mut self, packet: &Packet, out: &mut impl Sink) -> bool {
        let length = packet.frame_len();
        let Some(frame) = out.frame(length) else {
            self.counts.no_room += 1;
            return false;
        };
        packet.write(&self.template, frame);
        self.counts.sent += 1;
        self.counts.sent_bytes += length as u64;
        true
    }

    /// Sends a segment of a connection; it acknowledges all that was received.
    #[inline]
    fn send(&mut self, number: u32, seq: u32, flags: u8, data: u32, out: &mut impl Sink) {
        match self.is_v4 && flags & SYN == 0 {
            true => self.send_plain(number, seq, flags, data, out),
            false => self.send_any(number, seq, flags, data, out),
        }
    }

    /// The same over IPv4, and without options.
    fn send_plain(&mut self, number: u32, seq: u32, flags: u8, data: u32, out: &mut impl Sink) {
        let tcb = &mut self.slots[number as usize];
        let side = &self.sides[usize::from(tcb.talk)];
        let (source, destination, ports) = match &self.ends {
            Ends::Client { clients, servers } => {
                let client = clients.address_v4(number % clients.count);
                (client, servers.address_v4(tcb.server.into()), (tcb.port, side.port))
            }
            ends @ Ends::Server { servers, .. } => {
                let Some(client) = ends.peer(tcb.peer) else { return };
                (servers.address_v4(tcb.server.into()), client as u32, (side.port, tcb.port))
            }
        };
        let mut ack = 0;
        if flags & ACK != 0 {
            ack = tcb.rcv;
            tcb.clear(flag::ACK_DUE);
        }
        let (data, fill) = (data as usize, side.fill);
        let plain = Plain { source, destination, ports, seq, ack, flags, data, fill };
        let length = plain.frame_len();
        let Some(frame) = out.frame(length) else {
            self.counts.no_room += 1;
            return;
        };
        plain.write(&self.template, frame);
        self.counts.sent += 1;
        self.counts.sent_bytes += length as u64;
    }

    fn send_any(&mut self, number: u32, seq: u32, flags: u8, data: u32, out: &mut impl Sink) {
        let Some(mut packet) = self.packet(number, data) else { return };
        let tcb = &mut self.slots[number as usize];
        (packet.seq, packet.flags) = (seq, flags);
        if flags & ACK != 0 {
            packet.ack = tcb.rcv;
            tcb.clear(flag::ACK_DUE);
        }
        if flags & SYN != 0 {
            packet.mss = Some(self.mss);
        }
        self.write(&packet, out);
    }

    /// Answers a segment for which there is no connection with RST (RFC 9293 §3.10.7.1).
    #[cold]
    pub(super) fn refuse(&mut self, heard: Heard<'_>, out: &mut impl Sink) {
        if heard.flags & RST != 0 {
            return;
        }
        let numbers = heard.payload.len() as u32
            + u32::from(heard.flags & SYN != 0)
            + u32::from(heard.flags & FIN != 0);
        let (seq, ack, flags) = match heard.flags & ACK {
            0 => (0, heard.seq.wrapping_add(numbers), RST | ACK),
            _ => (heard.ack, 0, RST),
        };
        let packet = Packet {
            source: heard.destination,
            destination: heard.source,
            is_v4: heard.is_v4,
            ports: (heard.ports.1, heard.ports.0),
            protocol: Protocol::Tcp,
            seq,
            ack,
            flags,
            window: 0,
            mss: None,
            data: 0,
            fill: 0,
        };
        if self.write(&packet, out) {
            self.counts.resets_sent += 1;
        }
    }

    /// Begins a conversation in a free slot, whose addresses are set. On a server, `syn` is what
    /// the client's SYN says.
    pub(super) fn begin(
        &mut self,
        number: u32,
        talk: u8,
        judged: bool,
        syn: Option<Syn>,
        now: Micros,
        out: &mut impl Sink,
    ) {
        let tcb = &mut self.slots[number as usize];
        let (peer, port, server) = (tcb.peer, tcb.port, tcb.server);
        self.wheel.remove(&mut self.slots, number);
        let tcb = &mut self.slots[number as usize];
        *tcb = Tcb { talk, peer, port, server, cwnd: AT_FIRST, ..Tcb::default() };
        if judged {
            tcb.set(flag::JUDGED);
            self.counts.judged.begun += 1;
        }
        tcb.until = clock(now).wrapping_add(self.patience);
        let side = &mut self.sides[usize::from(talk)];
        side.open += 1;
        self.open += 1;
        self.counts.begun += 1;
        if side.protocol == Protocol::Udp {
            self.slots[number as usize].state = State::Established;
            if self.is_client() {
                self.go_on(number, now, out);
            }
            return;
        }
        self.half_open += 1;
        let first = self.first_number(number, now);
        let tcb = &mut self.slots[number as usize];
        (tcb.una, tcb.nxt) = (first, first.wrapping_add(1));
        tcb.end = tcb.nxt;
        tcb.sent = clock(now);
        tcb.set(flag::TIMED);
        let flags = match syn {
            Some(syn) => {
                tcb.state = State::SynReceived;
                tcb.rcv = syn.seq.wrapping_add(1);
                tcb.window = syn.window;
                SYN | ACK
            }
            None => {
                tcb.state = State::SynSent;
                SYN
            }
        };
        if let Some(mss) = syn.and_then(|syn| syn.mss) {
            self.takes(mss);
        }
        self.send(number, first, flags, 0, out);
        // No later than the timeout that the first round trip allows: it needs not be filed again
        // when that is known.
        self.wheel.file(&mut self.slots, number, clock(now).wrapping_add(self.soonest));
    }

    /// Ends a conversation, and frees its slot.
    pub(super) fn finish(&mut self, number: u32, end: End) {
        let tcb = self.slots[number as usize];
        if tcb.state == State::Free {
            return;
        }
        if tcb.state == State::TimeWait {
            self.time_wait -= 1;
        } else {
            self.count_end(number, end);
        }
        self.wheel.remove(&mut self.slots, number);
        self.slots[number as usize].state = State::Free;
        self.freed.push(number);
    }

    /// Counts the end of a conversation, which keeps its slot.
    fn count_end(&mut self, number: u32, end: End) {
        let tcb = self.slots[number as usize];
        self.open -= 1;
        self.half_open -= u32::from(matches!(tcb.state, State::SynSent | State::SynReceived));
        self.sides[usize::from(tcb.talk)].open -= 1;
        let is_client = self.is_client();
        let counts = &mut self.counts;
        if is_client && end != End::Abandoned {
            // Opened and ended in whole milliseconds: as many are too long as too short.
            counts.lived += u64::from(((self.turn / 1000) as u32).wrapping_sub(tcb.peer));
            counts.ended += 1;
        }
        let good = matches!(end, End::Completed | End::Aborted) && !tcb.has(flag::WRONG);
        match end {
            End::Completed if !good => counts.wrong += 1,
            End::Completed => {
                counts.completed += 1;
                counts.clean += u64::from(!tcb.has(flag::RETRIED));
            }
            End::Reset => counts.reset += 1,
            End::Aborted => counts.aborted += 1,
            End::Abandoned => counts.abandoned += 1,
            End::Lost => {
                let what = match tcb.state {
                    State::SynSent | State::SynReceived => &mut counts.lost.syn,
                    State::Established | State::CloseWait if tcb.in_flight() > 0 => {
                        &mut counts.lost.sent
                    }
                    State::Established => &mut counts.lost.expected,
                    _ => &mut counts.lost.fin,
                };
                *what += 1;
            }
        }
        if tcb.has(flag::JUDGED) {
            let judged = &mut counts.judged;
            if good {
                judged.completed += 1;
                judged.clean += u64::from(!tcb.has(flag::RETRIED));
            } else if end != End::Abandoned {
                judged.failed += 1;
            }
        }
    }
}
