//! Timers: patience, waits, retransmission and delayed acknowledgements.

use thalweg_wire::tcp::flag::{ACK, SYN};

use super::super::tcb::{State, Tcb, flag};
use super::super::wheel::{Clock, due};
use super::super::{Protocol, TcpTimes};
use super::{AFTER_TIMEOUT, End, Machine, after, clock};
use crate::{Micros, Sink};

/// The most that time advances from turn to turn, in microseconds.
const LONGEST_TURN: Micros = 1 << 29;

impl Machine {
    /// Returns whether `until` is a time at which something happens.
    #[inline]
    pub(super) fn is_limited(&self, tcb: &Tcb) -> bool {
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
        if let Some(silence) = self.silence(tcb) {
            earlier(tcb.sent.wrapping_add(silence));
        }
        if tcb.has(flag::ACK_DUE) {
            earlier(now.wrapping_add(clock(self.times.delayed_ack)));
        }
        at
    }

    /// Returns the time of silence after which the other side is asked whether it is there; `None`
    /// if it is not asked.
    #[inline]
    fn silence(&self, tcb: &Tcb) -> Option<Clock> {
        let asks = self.keepalive != 0
            && matches!(tcb.state, State::Established | State::CloseWait)
            && tcb.in_flight() == 0
            && tcb.end == tcb.nxt
            && self.sides[usize::from(tcb.talk)].protocol == Protocol::Tcp;
        asks.then(|| match tcb.retries() {
            0 => self.keepalive,
            _ => self.timeout(tcb),
        })
    }

    /// Asks whether the other side is there; false if it has been asked often enough.
    fn ask(&mut self, number: u32, now: Micros, out: &mut impl Sink) -> bool {
        let tcb = &mut self.slots[number as usize];
        if tcb.retries() > self.times.retries.min(14) {
            return false;
        }
        if tcb.retries() > 0 {
            tcb.set(flag::RETRIED);
        }
        tcb.retried();
        tcb.sent = clock(now);
        let seq = tcb.una.wrapping_sub(1);
        self.counts.keepalives += 1;
        self.send(number, seq, ACK, 0, out);
        true
    }

    #[inline]
    fn timeout(&self, tcb: &Tcb) -> Clock {
        let TcpTimes { first, least, most, .. } = self.times;
        tcb.timeout(clock(first), clock(least), clock(most))
    }

    /// Sets a connection's timer. One that is earlier stays: it looks again then.
    #[inline(always)]
    pub(super) fn arm(&mut self, number: u32, now: Micros) {
        let tcb = &self.slots[number as usize];
        if tcb.state == State::Free {
            return;
        }
        // A changed slot asks for attention after these times at the soonest.
        let soonest = if tcb.has(flag::ACK_DUE) { self.soonest_ack } else { self.soonest };
        if tcb.is_filed
            && !tcb.has(flag::WAITING)
            && after(tcb.filed, clock(now).wrapping_add(soonest)) <= 0
        {
            return;
        }
        self.arm_anew(number, now);
    }

    #[inline(never)]
    fn arm_anew(&mut self, number: u32, now: Micros) {
        let tcb = &self.slots[number as usize];
        let Some(at) = self.deadline(tcb, clock(now)) else { return };
        if !tcb.is_filed || after(at, tcb.filed) < 0 {
            self.wheel.file(&mut self.slots, number, at);
        }
    }

    /// Does what is due at most `most` times; false if more remains. Each turn begins with it.
    pub(in crate::talk) fn timers(
        &mut self,
        now: Micros,
        most: usize,
        out: &mut impl Sink,
    ) -> bool {
        // The clock has 32 bits: a longer sleep is made up for in steps.
        let now = now.min(self.turn.saturating_add(LONGEST_TURN));
        self.counts.held += u64::from(self.open) * now.saturating_sub(self.turn);
        self.turn = self.turn.max(now);
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
                    // The initial window is reduced, too, if a SYN or its answer was lost (RFC 5681
                    // §3.1).
                    tcb.cwnd = AFTER_TIMEOUT;
                    self.counts.syn_retries += 1;
                    let first = tcb.una;
                    self.send(number, first, flags, 0, out);
                }
                None => {
                    self.counts.data_retries += 1;
                    self.go_back(number, AFTER_TIMEOUT, now, out);
                }
            }
        }
        let tcb = &self.slots[number as usize];
        let silent = self.silence(tcb).map(|silence| tcb.sent.wrapping_add(silence));
        if silent.is_some_and(|at| due(at, clock(now))) && !self.ask(number, now, out) {
            return self.finish(number, End::Lost);
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
