//! The state of a connection on one side, in 64 bytes.

use super::wheel::{Clock, NONE};

/// States of TCP (RFC 9293 §3.3.2), and of a UDP conversation, which is open or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// The slot is free.
    #[default]
    Free,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    Closing,
    TimeWait,
    CloseWait,
    LastAck,
}

/// Flags of a connection.
pub(super) mod flag {
    /// The program has closed this direction: a FIN follows the last byte.
    pub(crate) const FIN_QUEUED: u8 = 1;
    /// An acknowledgement is due.
    pub(crate) const ACK_DUE: u8 = 2;
    /// `sent` is when the oldest byte that is not acknowledged was sent first.
    pub(crate) const TIMED: u8 = 4;
    /// The program waits until `until`.
    pub(crate) const WAITING: u8 = 8;
    /// Something was sent again.
    pub(crate) const RETRIED: u8 = 16;
    /// The trial judges it: it was opened in the trial's window.
    pub(crate) const JUDGED: u8 = 32;
    /// A sample of the round trip has been taken.
    pub(crate) const MEASURED: u8 = 64;
    /// Data came that the program does not expect, or too little.
    pub(crate) const WRONG: u8 = 128;
}

/// The state of a connection on one side.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Tcb {
    pub(super) state: State,
    pub(super) flags: u8,
    /// Number of times that the oldest segment was sent again, 4 bits, and of duplicate
    /// acknowledgements, 3 bits.
    pub(super) counts: u8,
    /// Congestion window in segments.
    pub(super) cwnd: u8,
    /// Number of its kind of conversation.
    pub(super) talk: u8,
    pub(super) is_filed: bool,
    /// The program's next step, and how often it has repeated.
    pub(super) step: u16,
    pub(super) loops: u16,
    /// The other side's window.
    pub(super) window: u16,
    /// Smoothed round trip and its deviation, in units of 64 µs.
    pub(super) rtt: u16,
    pub(super) deviation: u16,
    /// First sequence number that is not acknowledged, next one to send, end of what the program
    /// has sent.
    pub(super) una: u32,
    pub(super) nxt: u32,
    pub(super) end: u32,
    /// Next sequence number expected.
    pub(super) rcv: u32,
    /// Bytes or datagrams received that the program has not consumed.
    pub(super) have: u32,
    /// Links of the timers.
    pub(super) filed: Clock,
    pub(super) next: u32,
    pub(super) previous: u32,
    /// End of the program's wait, of TIME_WAIT, or of patience.
    pub(super) until: Clock,
    /// Time when the oldest segment that is not acknowledged was sent.
    pub(super) sent: Clock,
    /// Number of the other side's address on a server; when it was opened, in milliseconds, on a
    /// client.
    pub(super) peer: u32,
    /// The client's port, and the number of the server's address.
    pub(super) port: u16,
    pub(super) server: u16,
}

const _: () = assert!(size_of::<Tcb>() == 64);

impl Default for Tcb {
    fn default() -> Self {
        Tcb {
            state: State::Free,
            flags: 0,
            counts: 0,
            cwnd: 10,
            talk: 0,
            is_filed: false,
            step: 0,
            loops: 0,
            window: 0,
            rtt: 0,
            deviation: 0,
            una: 0,
            nxt: 0,
            end: 0,
            rcv: 0,
            have: 0,
            filed: 0,
            next: NONE,
            previous: NONE,
            until: 0,
            sent: 0,
            peer: 0,
            port: 0,
            server: 0,
        }
    }
}

/// Time that one unit of a stored round trip stands for, in microseconds.
const UNIT: u32 = 64;

impl Tcb {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn set(&mut self, flag: u8) {
        self.flags |= flag;
    }

    pub(super) fn clear(&mut self, flag: u8) {
        self.flags &= !flag;
    }

    /// Returns whether the program goes on.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
            && self.flags & (flag::WAITING | flag::FIN_QUEUED) == 0
    }

    pub(super) fn retries(&self) -> u8 {
        self.counts & 15
    }

    /// Counts that the oldest segment was sent again.
    pub(super) fn retried(&mut self) {
        self.counts = (self.counts & 0xf0) | (self.retries() + 1).min(15);
    }

    /// Counts a duplicate acknowledgement, and returns how many there were in a row.
    pub(super) fn duplicate_ack(&mut self) -> u8 {
        let row = (self.counts >> 4).saturating_add(1).min(7);
        self.counts = row << 4 | self.retries();
        row
    }

    /// Something new was acknowledged.
    pub(super) fn progressed(&mut self) {
        self.counts = 0;
    }

    /// Returns whether the FIN has been sent.
    pub(super) fn fin_sent(&self) -> bool {
        self.has(flag::FIN_QUEUED) && self.nxt == self.end.wrapping_add(1)
    }

    /// Number of sequence numbers that are not acknowledged.
    pub(super) fn in_flight(&self) -> u32 {
        self.nxt.wrapping_sub(self.una)
    }

    /// Takes a sample of the round trip into the estimate (RFC 6298 §2).
    pub(super) fn measured(&mut self, micros: u32) {
        let sample = u16::try_from(micros / UNIT).unwrap_or(u16::MAX);
        if self.has(flag::MEASURED) {
            let error = sample.abs_diff(self.rtt);
            self.deviation = (u32::from(self.deviation) * 3 / 4 + u32::from(error) / 4) as u16;
            self.rtt = (u32::from(self.rtt) * 7 / 8 + u32::from(sample) / 8) as u16;
        } else {
            (self.rtt, self.deviation) = (sample, sample / 2);
            self.set(flag::MEASURED);
        }
    }

    /// Returns the time after which a segment counts as lost, in microseconds (RFC 6298 §2), each
    /// retry twice as long, between `least` and `most`; `first` without a sample.
    pub(super) fn timeout(&self, first: u32, least: u32, most: u32) -> u32 {
        let base = match self.has(flag::MEASURED) {
            false => first,
            true => (u32::from(self.rtt) + 4 * u32::from(self.deviation)) * UNIT,
        };
        base.clamp(least, most).saturating_mul(1 << self.retries()).min(most)
    }
}
