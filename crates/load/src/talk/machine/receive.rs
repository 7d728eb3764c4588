//! Input: segments and datagrams of conversations.

use thalweg_wire::tcp::flag::{ACK, FIN, RST, SYN};

use super::super::packet::{Heard, is_filled};
use super::super::tcb::{State, flag};
use super::{AFTER_LOSS, DUPLICATES, End, Machine, after, clock};
use crate::{Micros, Sink};

impl Machine {
    /// Takes in a segment of a connection.
    #[inline(always)]
    pub(in crate::talk) fn segment(
        &mut self,
        number: u32,
        segment: Heard<'_>,
        now: Micros,
        out: &mut impl Sink,
    ) {
        let state = self.slots[number as usize].state;
        if state == State::SynSent {
            return self.answer_to_syn(number, segment, now, out);
        }
        if segment.flags & (RST | SYN | ACK) != ACK {
            return self.odd_segment(number, segment, out);
        }
        if !self.acknowledged(number, segment, now, out) {
            self.counts.unexpected += 1;
            return;
        }
        match self.slots[number as usize].state {
            State::Free => return,
            // The segment does not acknowledge our SYN.
            State::SynReceived => {
                self.counts.unexpected += 1;
                return;
            }
            _ => {}
        }
        if self.keepalive != 0 {
            self.is_there(number, now);
        }
        let at_once = self.data(number, segment, now);
        self.go_on(number, now, out);
        let tcb = &self.slots[number as usize];
        if at_once && tcb.has(flag::ACK_DUE) && tcb.state != State::Free {
            let nxt = tcb.nxt;
            self.send(number, nxt, ACK, 0, out);
        }
    }

    /// The other side is there: it need not be asked for a time.
    fn is_there(&mut self, number: u32, now: Micros) {
        let tcb = &mut self.slots[number as usize];
        if tcb.in_flight() > 0 || !matches!(tcb.state, State::Established | State::CloseWait) {
            return;
        }
        tcb.sent = clock(now);
        if tcb.retries() > 0 {
            tcb.progressed();
            if !tcb.has(flag::WAITING) {
                tcb.until = clock(now).wrapping_add(self.patience);
            }
        }
    }

    /// Takes in a segment with RST or SYN, or without ACK.
    #[cold]
    fn odd_segment(&mut self, number: u32, segment: Heard<'_>, out: &mut impl Sink) {
        let tcb = &mut self.slots[number as usize];
        if segment.flags & RST != 0 {
            // An RST counts only if it fits exactly (RFC 5961 §3.2), and never in TIME_WAIT (RFC
            // 1337).
            match segment.seq == tcb.rcv && tcb.state != State::TimeWait {
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
        self.counts.unexpected += 1;
    }

    fn answer_to_syn(&mut self, number: u32, segment: Heard<'_>, now: Micros, out: &mut impl Sink) {
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
        self.half_open -= 1;
        if let Some(mss) = segment.mss {
            self.takes(mss);
        }
        self.go_on(number, now, out);
        let tcb = &self.slots[number as usize];
        if tcb.state != State::Free && tcb.has(flag::ACK_DUE) {
            let nxt = tcb.nxt;
            self.send(number, nxt, ACK, 0, out);
        }
    }

    /// Takes in an acknowledgement; false if it acknowledges what was never sent.
    #[inline(always)]
    fn acknowledged(
        &mut self,
        number: u32,
        segment: Heard<'_>,
        now: Micros,
        out: &mut impl Sink,
    ) -> bool {
        let tcb = &mut self.slots[number as usize];
        // The other side may have more than was sent since, after going back.
        let last = tcb.end.wrapping_add(u32::from(tcb.has(flag::FIN_QUEUED)));
        let new = after(segment.ack, tcb.una);
        if new > after(last, tcb.una) {
            // An answer to what has only this number would be answered in turn, and so on.
            if !segment.payload.is_empty() || segment.flags & FIN != 0 {
                let nxt = tcb.nxt;
                self.send(number, nxt, ACK, 0, out);
            }
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
                self.go_back(number, AFTER_LOSS, now, out);
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
        if tcb.state == State::SynReceived {
            // The handshake leaves the initial window as it is (RFC 6928 §2).
            tcb.state = State::Established;
            self.counts.established += 1;
            self.half_open -= 1;
        } else {
            tcb.cwnd = tcb.cwnd.saturating_add(1);
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
    #[inline(always)]
    fn data(&mut self, number: u32, segment: Heard<'_>, now: Micros) -> bool {
        let tcb = &mut self.slots[number as usize];
        let fin = segment.flags & FIN != 0;
        if segment.payload.is_empty() && !fin {
            if segment.seq.wrapping_add(1) != tcb.rcv {
                return false;
            }
            // The other side asks whether this one is there (RFC 9293 §3.8.4).
            tcb.set(flag::ACK_DUE);
            if matches!(tcb.state, State::Established | State::CloseWait) && !tcb.has(flag::WAITING)
            {
                tcb.until = clock(now).wrapping_add(self.patience);
            }
            return true;
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
        if !is_filled(new, side.expected) {
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
                State::Established => tcb.state = State::CloseWait,
                State::SynReceived => {
                    tcb.state = State::CloseWait;
                    self.half_open -= 1;
                }
                State::FinWait1 => tcb.state = State::Closing,
                State::FinWait2 => self.enter_time_wait(number, now),
                _ => {}
            }
        }
        second || fin
    }

    /// Takes in a datagram.
    pub(in crate::talk) fn datagram(
        &mut self,
        number: u32,
        payload: &[u8],
        now: Micros,
        out: &mut impl Sink,
    ) {
        let tcb = &mut self.slots[number as usize];
        let side = &self.sides[usize::from(tcb.talk)];
        if !is_filled(payload, side.expected) {
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
        let until = clock(now).wrapping_add(clock(self.times.time_wait));
        tcb.until = until;
        // The slot is at hand here; what is filed earlier would only be put back.
        self.wheel.file(&mut self.slots, number, until);
    }
}
