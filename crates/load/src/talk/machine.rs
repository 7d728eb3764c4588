//! The transport protocols of one side, for all its conversations.

use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN};

use super::counts::Counts;
use super::packet::{Heard, Packet, WINDOW};
use super::pool::Range;
use super::program::Step;
use super::tcb::{State, Tcb, flag};
use super::wheel::{Clock, Wheel, due};
use super::{Plan, Program, Protocol, TcpTimes};
use crate::{MacAddr, Micros, Sink};

/// Which addresses belong to a slot.
#[derive(Debug)]
pub(super) enum Ends {
    /// Of a client: its number follows from the slot.
    Client { clients: Range, servers: Range },
    /// Of a server: addresses of clients by number.
    Server { peers: Vec<u128>, servers: Range },
}

/// What a side needs of a kind of conversation.
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

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As its program says.
    Completed,
    /// By the other side's RST.
    Reset,
    /// By the program's.
    Aborted,
    /// Given up.
    Lost,
    /// By the tester.
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
    macs: (MacAddr, MacAddr),
    times: TcpTimes,
    patience: Clock,
    /// The smallest segment size that any peer asked for, and ours.
    mss: u16,
    pub(super) counts: Counts,
    /// Conversations that have a slot, without those in TIME_WAIT.
    pub(super) open: u32,
    /// Those in TIME_WAIT.
    pub(super) time_wait: u32,
    /// Slots that have become free.
    pub(super) freed: Vec<u32>,
    random: u64,
    /// What the address and port of a connection add to its first sequence number.
    secret: u64,
}

/// Congestion window after a loss, in segments.
const AFTER_LOSS: u8 = 2;
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
            Ends::Server { peers: Vec::new(), servers: plan.servers.range() }
        };
        Machine {
            slots: vec![Tcb::default(); slots as usize],
            wheel: Wheel::new(clock(now)),
            sides: plan.talks.iter().map(side).collect(),
            ends,
            is_v4: plan.clients.first.is_ipv4(),
            macs: if client { plan.client_macs } else { plan.server_macs },
            times: plan.times,
            patience: clock(plan.patience),
            mss: plan.mss,
            counts: Counts::default(),
            open: 0,
            time_wait: 0,
            freed: Vec::new(),
            random: mix(seed ^ 1),
            secret: mix(seed ^ 2),
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random)
    }

    fn is_client(&self) -> bool {
        matches!(self.ends, Ends::Client { .. })
    }

    /// Returns a packet of a slot's conversation; without a number of its client, none.
    #[inline]
    fn packet(&self, number: u32, data: u32) -> Option<Packet> {
        let tcb = &self.slots[number as usize];
        let side = &self.sides[usize::from(tcb.talk)];
        let (source, destination, ports) = match &self.ends {
            Ends::Client { clients, servers } => {
                let client = clients.address(number % clients.count);
                (client, servers.address(tcb.server.into()), (tcb.port, side.port))
            }
            Ends::Server { peers, servers } => {
                let client = *peers.get(tcb.peer as usize)?;
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
    #[inline]
    fn write(&mut self, packet: &Packet, out: &mut impl Sink) -> bool {
        let length = packet.frame_len();
        let Some(frame) = out.frame(length) else {
            self.counts.no_room += 1;
            return false;
        };
        packet.write(self.macs, frame);
        self.counts.sent += 1;
        self.counts.sent_bytes += length as u64;
        true
    }

    /// Sends a segment of a connection; it acknowledges all that was received.
    #[inline]
    fn send(&mut self, number: u32, seq: u32, flags: u8, data: u32, out: &mut impl Sink) {
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
    pub(super) fn refuse(&mut self, heard: &Heard<'_>, out: &mut impl Sink) {
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

    /// Begins a conversation in a free slot, whose addresses are set. On a server, `heard` is the
    /// client's SYN.
    pub(super) fn begin(
        &mut self,
        number: u32,
        talk: u8,
        judged: bool,
        heard: Option<&Heard<'_>>,
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
        let first = self.first_number(number, now);
        let tcb = &mut self.slots[number as usize];
        (tcb.una, tcb.nxt) = (first, first.wrapping_add(1));
        tcb.end = tcb.nxt;
        tcb.sent = clock(now);
        tcb.set(flag::TIMED);
        let flags = match heard {
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
        if let Some(mss) = heard.and_then(|syn| syn.mss) {
            self.mss = self.mss.min(mss.max(1));
        }
        self.send(number, first, flags, 0, out);
        self.arm(number, now);
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

    /// Counts how a conversation ended. It keeps its slot.
    fn count_end(&mut self, number: u32, end: End) {
        let tcb = self.slots[number as usize];
        self.open -= 1;
        self.sides[usize::from(tcb.talk)].open -= 1;
        let counts = &mut self.counts;
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

    /// Takes in a segment of a connection.
    #[inline]
    pub(super) fn segment(
        &mut self,
        number: u32,
        segment: &Heard<'_>,
        now: Micros,
        out: &mut impl Sink,
    ) {
        let tcb = &mut self.slots[number as usize];
        if tcb.state == State::SynSent {
            return self.answer_to_syn(number, segment, now, out);
        }
        if segment.flags & RST != 0 {
            // Only one that fits exactly (RFC 5961 §3.2).
            match segment.seq == tcb.rcv {
                true => self.finish(number, End::Reset),
                false => self.counts.unexpected += 1,
            }
            return;
        }
        if segment.flags & SYN != 0 {
            if tcb.state == State::SynReceived && segment.seq.wrapping_add(1) == tcb.rcv {
                self.counts.duplicates += 1;
                let first = tcb.una;
                return self.send(number, first, SYN | ACK, 0, out);
            }
            // The one that began the connection, once more; data may have come meanwhile.
            let behind = tcb.rcv.wrapping_sub(segment.seq.wrapping_add(1));
            match (behind as i32) >= 0 {
                true => self.counts.duplicates += 1,
                false => self.counts.unexpected += 1,
            }
            let nxt = tcb.nxt;
            return self.send(number, nxt, ACK, 0, out);
        }
        if segment.flags & ACK == 0 || !self.acknowledged(number, segment, now, out) {
            self.counts.unexpected += 1;
            return;
        }
        match self.slots[number as usize].state {
            State::Free => return,
            // It does not acknowledge our SYN.
            State::SynReceived => {
                self.counts.unexpected += 1;
                return;
            }
            _ => {}
        }
        let at_once = self.data(number, segment, now);
        self.go_on(number, now, out);
        let tcb = &self.slots[number as usize];
        if tcb.state != State::Free && tcb.has(flag::ACK_DUE) && at_once {
            let nxt = tcb.nxt;
            self.send(number, nxt, ACK, 0, out);
        }
    }

    fn answer_to_syn(
        &mut self,
        number: u32,
        segment: &Heard<'_>,
        now: Micros,
        out: &mut impl Sink,
    ) {
        let tcb = &mut self.slots[number as usize];
        let fits = segment.flags & ACK != 0 && segment.ack == tcb.nxt;
        if segment.flags & RST != 0 && fits {
            return self.finish(number, End::Reset);
        }
        if !fits || segment.flags & (SYN | RST) != SYN {
            self.counts.unexpected += 1;
            // The rest of an earlier connection must end (RFC 9293 §3.10.7.3).
            if segment.flags & (ACK | RST) == ACK && !fits {
                self.refuse(segment, out);
            }
            return;
        }
        if tcb.has(flag::TIMED) {
            let round = clock(now).wrapping_sub(tcb.sent);
            tcb.measured(round);
            tcb.clear(flag::TIMED);
        }
        tcb.progressed();
        tcb.state = State::Established;
        tcb.una = tcb.nxt;
        tcb.rcv = segment.seq.wrapping_add(1);
        tcb.window = segment.window;
        tcb.until = clock(now).wrapping_add(self.patience);
        tcb.set(flag::ACK_DUE);
        self.counts.established += 1;
        if let Some(mss) = segment.mss {
            self.mss = self.mss.min(mss.max(1));
        }
        self.go_on(number, now, out);
        let tcb = &self.slots[number as usize];
        if tcb.state != State::Free && tcb.has(flag::ACK_DUE) {
            let nxt = tcb.nxt;
            self.send(number, nxt, ACK, 0, out);
        }
    }

    /// Takes in an acknowledgement; false if it acknowledges what was never sent.
    #[inline]
    fn acknowledged(
        &mut self,
        number: u32,
        segment: &Heard<'_>,
        now: Micros,
        out: &mut impl Sink,
    ) -> bool {
        let tcb = &mut self.slots[number as usize];
        // After going back, the other side may have more than was sent since.
        let last = tcb.end.wrapping_add(u32::from(tcb.has(flag::FIN_QUEUED)));
        let new = after(segment.ack, tcb.una);
        if new > after(last, tcb.una) {
            let nxt = tcb.nxt;
            self.send(number, nxt, ACK, 0, out);
            return false;
        }
        if new < 0 {
            // An old one: its data may be new all the same.
            return true;
        }
        let same_window = tcb.window == segment.window;
        tcb.window = segment.window;
        if new == 0 {
            let empty = segment.payload.is_empty() && segment.flags & FIN == 0;
            let waits = tcb.in_flight() > 0 && tcb.state != State::SynReceived;
            if empty && same_window && waits && tcb.duplicate_ack() == DUPLICATES {
                self.counts.fast_retries += 1;
                self.go_back(number, now, out);
            }
            return true;
        }
        if tcb.has(flag::TIMED) {
            let round = clock(now).wrapping_sub(tcb.sent);
            tcb.measured(round);
            tcb.clear(flag::TIMED);
        }
        tcb.una = segment.ack;
        if after(tcb.nxt, tcb.una) < 0 {
            tcb.nxt = tcb.una;
        }
        tcb.sent = clock(now);
        if !tcb.has(flag::WAITING) {
            tcb.until = clock(now).wrapping_add(self.patience);
        }
        tcb.progressed();
        tcb.cwnd = tcb.cwnd.saturating_add(1);
        if tcb.state == State::SynReceived {
            tcb.state = State::Established;
            self.counts.established += 1;
        }
        let fin_acknowledged = tcb.fin_sent() && tcb.una == tcb.nxt;
        match (tcb.state, fin_acknowledged) {
            (State::FinWait1, true) => tcb.state = State::FinWait2,
            (State::Closing, true) => self.enter_time_wait(number, now),
            (State::LastAck, true) => self.finish(number, End::Completed),
            _ => {}
        }
        true
    }

    /// Takes in data and FIN. Returns whether they must be acknowledged at once.
    #[inline]
    fn data(&mut self, number: u32, segment: &Heard<'_>, now: Micros) -> bool {
        let tcb = &mut self.slots[number as usize];
        let fin = segment.flags & FIN != 0;
        if segment.payload.is_empty() && !fin {
            return false;
        }
        let second = tcb.has(flag::ACK_DUE);
        tcb.set(flag::ACK_DUE);
        let ahead = after(segment.seq, tcb.rcv);
        if ahead > 0 {
            self.counts.reordered += 1;
            return true;
        }
        let known = ahead.unsigned_abs() as usize;
        let length = segment.payload.len();
        let closed = matches!(
            tcb.state,
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait
        );
        if closed || known >= length + usize::from(fin) {
            self.counts.duplicates += 1;
            if tcb.state == State::TimeWait {
                tcb.until = clock(now).wrapping_add(clock(self.times.time_wait));
            }
            return true;
        }
        let new = segment.payload.get(known..).unwrap_or(&[]);
        let side = &self.sides[usize::from(tcb.talk)];
        if new.iter().any(|byte| *byte != side.expected) {
            tcb.set(flag::WRONG);
        }
        tcb.rcv = tcb.rcv.wrapping_add(new.len() as u32);
        tcb.have = tcb.have.saturating_add(new.len() as u32);
        tcb.until = match tcb.has(flag::WAITING) {
            true => tcb.until,
            false => clock(now).wrapping_add(self.patience),
        };
        self.counts.heard += new.len() as u64;
        if fin {
            tcb.rcv = tcb.rcv.wrapping_add(1);
            match tcb.state {
                State::Established | State::SynReceived => tcb.state = State::CloseWait,
                State::FinWait1 => tcb.state = State::Closing,
                State::FinWait2 => self.enter_time_wait(number, now),
                _ => {}
            }
        }
        second || fin
    }

    /// Takes in a datagram.
    pub(super) fn datagram(
        &mut self,
        number: u32,
        payload: &[u8],
        now: Micros,
        out: &mut impl Sink,
    ) {
        let tcb = &mut self.slots[number as usize];
        let side = &self.sides[usize::from(tcb.talk)];
        if payload.iter().any(|byte| *byte != side.expected) {
            tcb.set(flag::WRONG);
        }
        tcb.have = tcb.have.saturating_add(1);
        self.counts.heard += payload.len() as u64;
        if !tcb.has(flag::WAITING) {
            tcb.until = clock(now).wrapping_add(self.patience);
        }
        self.go_on(number, now, out);
    }

    fn enter_time_wait(&mut self, number: u32, now: Micros) {
        self.count_end(number, End::Completed);
        self.time_wait += 1;
        let tcb = &mut self.slots[number as usize];
        tcb.state = State::TimeWait;
        tcb.until = clock(now).wrapping_add(clock(self.times.time_wait));
    }

    /// Runs the program as far as it goes, sends what there is to send, and sets the timer.
    #[inline]
    fn go_on(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        if self.run(number, now, out) {
            self.output(number, now, out);
            self.arm(number, now);
        }
    }

    /// Runs the program as far as it goes; false if the conversation has ended.
    fn run(&mut self, number: u32, now: Micros, out: &mut impl Sink) -> bool {
        loop {
            let tcb = &mut self.slots[number as usize];
            let running = matches!(tcb.state, State::Established | State::CloseWait);
            if !running || tcb.has(flag::WAITING) || tcb.has(flag::FIN_QUEUED) {
                return tcb.state != State::Free;
            }
            let side = &self.sides[usize::from(tcb.talk)];
            let udp = side.protocol == Protocol::Udp;
            let closed = tcb.state == State::CloseWait;
            let step = side.program.get(usize::from(tcb.step)).copied();
            tcb.step = tcb.step.saturating_add(1);
            match step {
                Some(Step::Send { bytes }) if udp => self.send_datagram(number, bytes, out),
                Some(Step::Send { bytes }) => {
                    // Sequence numbers must not lap each other.
                    if tcb.end.wrapping_sub(tcb.una) > super::MAX_MESSAGE {
                        tcb.step -= 1;
                        return true;
                    }
                    tcb.end = tcb.end.wrapping_add(bytes);
                    self.counts.said += u64::from(bytes);
                }
                Some(Step::Expect { count }) if tcb.have >= count => tcb.have -= count,
                // What is missing will not come.
                Some(Step::Expect { .. }) if closed => tcb.set(flag::WRONG),
                Some(Step::AwaitClose) if closed || udp => {}
                Some(Step::Expect { .. } | Step::AwaitClose) => {
                    tcb.step -= 1;
                    return true;
                }
                Some(Step::Wait { least, most }) => {
                    let extra = self.random() % (most - least + 1);
                    let tcb = &mut self.slots[number as usize];
                    tcb.until = clock(now).wrapping_add(clock(least + extra));
                    tcb.set(flag::WAITING);
                    return true;
                }
                Some(Step::Repeat { from, times }) => {
                    tcb.loops += 1;
                    match tcb.loops < times {
                        true => tcb.step = from,
                        false => tcb.loops = 0,
                    }
                }
                Some(Step::Reset) => {
                    let nxt = tcb.nxt;
                    self.send(number, nxt, RST | ACK, 0, out);
                    self.counts.resets_sent += 1;
                    self.finish(number, End::Aborted);
                    return false;
                }
                _ if udp => {
                    self.finish(number, End::Completed);
                    return false;
                }
                Some(Step::Close) | None => {
                    tcb.set(flag::FIN_QUEUED);
                    tcb.state = match closed {
                        true => State::LastAck,
                        false => State::FinWait1,
                    };
                }
            }
        }
    }

    fn send_datagram(&mut self, number: u32, bytes: u32, out: &mut impl Sink) {
        let Some(packet) = self.packet(number, bytes) else { return };
        self.counts.said += u64::from(bytes);
        self.write(&packet, out);
    }

    /// Sends what the windows allow.
    #[inline]
    fn output(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        loop {
            let tcb = &mut self.slots[number as usize];
            if matches!(tcb.state, State::Free | State::SynSent | State::SynReceived) {
                return;
            }
            let fin = tcb.has(flag::FIN_QUEUED);
            let flight = tcb.in_flight();
            let unsent = after(tcb.end, tcb.nxt);
            let window = u32::from(tcb.window).min(u32::from(tcb.cwnd) * u32::from(self.mss));
            let seq = tcb.nxt;
            let (flags, data) = if unsent > 0 && flight < window {
                let data = (unsent as u32).min(self.mss.into()).min(window - flight);
                let push = if data == unsent as u32 { PSH } else { 0 };
                (ACK | push, data)
            } else if fin && unsent == 0 {
                (FIN | ACK, 0)
            } else {
                return;
            };
            if flight == 0 {
                tcb.sent = clock(now);
                if !tcb.has(flag::RETRIED) {
                    tcb.set(flag::TIMED);
                }
            }
            tcb.nxt = tcb.nxt.wrapping_add(data + u32::from(flags & FIN != 0));
            self.send(number, seq, flags, data, out);
        }
    }

    /// Sends again from the first byte that is not acknowledged.
    fn go_back(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        let tcb = &mut self.slots[number as usize];
        tcb.set(flag::RETRIED);
        // The answer could be to either copy (Karn's rule).
        tcb.clear(flag::TIMED);
        tcb.nxt = tcb.una;
        tcb.cwnd = AFTER_LOSS;
        tcb.sent = clock(now);
        // With a closed window, one byte asks whether it is open again (RFC 9293 §3.8.6.1).
        if tcb.window == 0 && after(tcb.end, tcb.una) > 0 {
            let seq = tcb.una;
            tcb.nxt = seq.wrapping_add(1);
            return self.send(number, seq, ACK | PSH, 1, out);
        }
        self.output(number, now, out);
    }

    /// Returns whether `until` is a time at which something happens.
    #[inline]
    fn is_limited(&self, tcb: &Tcb) -> bool {
        let endless = self.sides[usize::from(tcb.talk)].endless;
        !endless || tcb.has(flag::WAITING) || tcb.state != State::Established
    }

    /// Returns when a connection needs attention next; `None` if it only waits for the other side
    /// and has no limit to that.
    #[inline]
    fn deadline(&self, tcb: &Tcb, now: Clock) -> Option<Clock> {
        let mut at = self.is_limited(tcb).then_some(tcb.until);
        let mut earlier = |other: Clock| {
            if at.is_none_or(|at| after(other, at) < 0) {
                at = Some(other);
            }
        };
        if tcb.in_flight() > 0 || after(tcb.end, tcb.nxt) > 0 {
            earlier(tcb.sent.wrapping_add(self.timeout(tcb)));
        }
        if tcb.has(flag::ACK_DUE) {
            earlier(now.wrapping_add(clock(self.times.delayed_ack)));
        }
        at
    }

    #[inline]
    fn timeout(&self, tcb: &Tcb) -> Clock {
        let TcpTimes { first, least, most, .. } = self.times;
        tcb.timeout(clock(first), clock(least), clock(most))
    }

    /// Sets a connection's timer. One that is earlier stays: it looks again then.
    #[inline]
    fn arm(&mut self, number: u32, now: Micros) {
        let tcb = &self.slots[number as usize];
        if tcb.state == State::Free {
            return;
        }
        let Some(at) = self.deadline(tcb, clock(now)) else { return };
        if !tcb.is_filed || after(at, tcb.filed) < 0 {
            self.wheel.file(&mut self.slots, number, at);
        }
    }

    /// Does what is due at most `most` times; false if more remains.
    pub(super) fn timers(&mut self, now: Micros, most: usize, out: &mut impl Sink) -> bool {
        for _ in 0..most {
            match self.wheel.expired(&mut self.slots, clock(now)) {
                Some(number) => self.timer(number, now, out),
                None => return true,
            }
        }
        false
    }

    fn timer(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        let limited = self.is_limited(&self.slots[number as usize]);
        let tcb = &mut self.slots[number as usize];
        let filed_for_ack = tcb.has(flag::ACK_DUE);
        let state = tcb.state;
        if limited && due(tcb.until, clock(now)) {
            if tcb.has(flag::WAITING) {
                tcb.clear(flag::WAITING);
                tcb.until = clock(now).wrapping_add(self.patience);
                self.go_on(number, now, out);
            } else {
                let end = match state {
                    // A server of datagrams is done when nothing more comes.
                    State::Established if self.is_idle_server(number) => End::Completed,
                    _ => End::Lost,
                };
                return self.finish(number, end);
            }
        }
        let tcb = &mut self.slots[number as usize];
        if tcb.state == State::Free {
            return;
        }
        let waits = tcb.in_flight() > 0 || after(tcb.end, tcb.nxt) > 0;
        let timeout = self.timeout(&self.slots[number as usize]);
        let tcb = &mut self.slots[number as usize];
        if waits && due(tcb.sent.wrapping_add(timeout), clock(now)) {
            // A closed window is not a loss, and patience is its limit.
            let synchronised = !matches!(tcb.state, State::SynSent | State::SynReceived);
            let closed = synchronised && tcb.window == 0 && after(tcb.end, tcb.una) > 0;
            if tcb.retries() >= self.times.retries && !closed {
                return self.finish(number, End::Lost);
            }
            if !closed {
                tcb.retried();
            }
            let flags = match tcb.state {
                State::SynSent => Some(SYN),
                State::SynReceived => Some(SYN | ACK),
                _ => None,
            };
            match flags {
                Some(flags) => {
                    tcb.set(flag::RETRIED);
                    tcb.clear(flag::TIMED);
                    tcb.sent = clock(now);
                    self.counts.syn_retries += 1;
                    let first = tcb.una;
                    self.send(number, first, flags, 0, out);
                }
                None => {
                    self.counts.data_retries += 1;
                    self.go_back(number, now, out);
                }
            }
        }
        let tcb = &self.slots[number as usize];
        if filed_for_ack && tcb.has(flag::ACK_DUE) && tcb.state != State::Free {
            let nxt = tcb.nxt;
            self.send(number, nxt, ACK, 0, out);
        }
        self.arm(number, now);
    }

    /// Returns whether a conversation is one over UDP on a server that has answered all.
    fn is_idle_server(&self, number: u32) -> bool {
        let tcb = &self.slots[number as usize];
        let side = &self.sides[usize::from(tcb.talk)];
        !self.is_client() && side.protocol == Protocol::Udp && tcb.step == 0
    }
}
