//! Output: the steps of programs, and data within the windows.

use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST};

use super::super::program::Step;
use super::super::tcb::{State, flag};
use super::super::{LONGEST_PAUSE, MAX_MESSAGE, Protocol};
use super::{End, Machine, after, clock};
use crate::{Micros, Sink};

impl Machine {
    /// Runs the program as far as it goes, sends what is ready, and sets the timer.
    #[inline]
    pub(super) fn go_on(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        let tcb = &self.slots[number as usize];
        if !tcb.is_running() || self.run(number, now, out) {
            self.output(number, now, out);
            self.arm(number, now);
        }
    }

    /// Runs the program as far as it goes; false if the conversation has ended.
    fn run(&mut self, number: u32, now: Micros, out: &mut impl Sink) -> bool {
        loop {
            let tcb = &mut self.slots[number as usize];
            if !tcb.is_running() {
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
                    if tcb.end.wrapping_sub(tcb.una) > MAX_MESSAGE {
                        tcb.step -= 1;
                        return true;
                    }
                    tcb.end = tcb.end.wrapping_add(bytes);
                    self.counts.said += u64::from(bytes);
                }
                Some(Step::Expect { count }) if tcb.have >= count => tcb.have -= count,
                // Missing bytes will not come.
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
                Some(Step::Pause { mean }) => {
                    let times = self.exponential().min(LONGEST_PAUSE as f64);
                    let tcb = &mut self.slots[number as usize];
                    tcb.until = clock(now).wrapping_add(clock((mean as f64 * times) as Micros));
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
    pub(super) fn output(&mut self, number: u32, now: Micros, out: &mut impl Sink) {
        loop {
            let tcb = &mut self.slots[number as usize];
            if matches!(tcb.state, State::Free | State::SynSent | State::SynReceived) {
                return;
            }
            let flight = tcb.in_flight();
            let unsent = after(tcb.end, tcb.nxt);
            let seq = tcb.nxt;
            let (flags, data) = if unsent > 0 {
                let window = u32::from(tcb.window).min(u32::from(tcb.cwnd) * u32::from(self.mss));
                if flight >= window {
                    return;
                }
                let data = (unsent as u32).min(self.mss.into()).min(window - flight);
                let push = if data == unsent as u32 { PSH } else { 0 };
                (ACK | push, data)
            } else if unsent == 0 && tcb.has(flag::FIN_QUEUED) {
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

    /// Sends again from the first byte that is not acknowledged, with a congestion window in
    /// segments.
    pub(super) fn go_back(&mut self, number: u32, cwnd: u8, now: Micros, out: &mut impl Sink) {
        let tcb = &mut self.slots[number as usize];
        tcb.set(flag::RETRIED);
        // The answer could be to either copy (Karn's rule).
        tcb.clear(flag::TIMED);
        tcb.nxt = tcb.una;
        tcb.cwnd = cwnd;
        tcb.sent = clock(now);
        // One byte asks whether a closed window is open again (RFC 9293 §3.8.6.1).
        if tcb.window == 0 && after(tcb.end, tcb.una) > 0 {
            let seq = tcb.una;
            tcb.nxt = seq.wrapping_add(1);
            return self.send(number, seq, ACK | PSH, 1, out);
        }
        self.output(number, now, out);
    }
}
