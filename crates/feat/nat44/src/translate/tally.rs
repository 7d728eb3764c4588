//! Counts packets by interface.

use super::{NOT_COUNTED, Translator};
use crate::counters::{What, position};
use crate::direction::Direction;
use crate::kernel::Done;
use crate::worker::Nat;
use thalweg_buffer::{Frame, Iface, PktMut};
use thalweg_graph::Verdict;
use thalweg_wire::ip::protocol;

impl Translator {
    /// Counts a packet.
    #[inline]
    pub(super) fn count_one(&self, p: &PktMut<'_>, verdict: Verdict) {
        let counter = if verdict.is_drop() || verdict == self.outcomes.icmp_error {
            position(self.direction == Direction::Out2In, true, What::Drop)
        } else if self.counted == NOT_COUNTED {
            return;
        } else {
            self.counted
        };
        let sw_if = if self.direction == Direction::Output { p.tx_if() } else { p.rx_if() };
        self.counters.add(self.worker, sw_if, counter, 1);
    }

    /// Returns whether a packet counts as one from outside, which of an interface with both roles
    /// its session says.
    pub(super) fn counts_as_outside(&self, by_second: bool) -> bool {
        match self.direction {
            Direction::Both => by_second,
            direction => direction == Direction::Out2In,
        }
    }

    /// Counts what a kernel has translated.
    #[inline(always)]
    pub(super) fn count_frame(&self, nat: &Nat, frame: &Frame, done: &Done, one_flow: bool) {
        let all = (frame.len() - done.rest.len()) as u64;
        if all == 0 {
            return;
        }
        let iface = if self.direction == Direction::Output { frame.tx() } else { frame.rx() };
        let known = one_flow || self.direction != Direction::Both;
        let (Iface::Uniform(sw_if), true) = (iface, known) else {
            return self.count_each(nat, frame, done, one_flow);
        };
        let outside = self.counts_as_outside(done.second);
        for (protocol, packets) in [(protocol::TCP, done.tcp), (protocol::UDP, all - done.tcp)] {
            if packets > 0 {
                let position = position(outside, false, What::Protocol(protocol));
                self.counters.add(self.worker, sw_if, position, packets);
            }
        }
    }

    /// Counts packets of several interfaces or directions.
    #[inline(never)]
    fn count_each(&self, nat: &Nat, frame: &Frame, done: &Done, one_flow: bool) {
        for i in (0..frame.len() as u16).map(|i| i as u8).filter(|i| !done.rest.contains(*i)) {
            let output = self.direction == Direction::Output;
            let sw_if = if output { frame.tx_if(i) } else { frame.rx_if(i) };
            let found = nat.columns.found[usize::from(i)].as_ref();
            let second =
                if one_flow { done.second } else { found.is_some_and(|found| found.by_second()) };
            let protocol = frame.data(i).get(9).copied().unwrap_or(0);
            let at = position(self.counts_as_outside(second), false, What::Protocol(protocol));
            self.counters.add(self.worker, sw_if, at, 1);
        }
    }
}
