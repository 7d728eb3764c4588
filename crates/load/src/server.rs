//! The side that answers.

use thalweg_wire::MacAddr;
use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN};

use crate::Sink;
use crate::frame::Segment;

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Frames that arrived with a segment in them.
    pub received: u64,
    /// Frames that arrived with anything else.
    pub foreign: u64,
    /// Connections that were asked for.
    pub opened: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Connections that the client closed.
    pub closed: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames for which there was no room.
    pub no_room: u64,
}

/// A server that keeps nothing: what it says follows from what it hears.
#[derive(Clone, Debug)]
pub struct Server {
    macs: (MacAddr, MacAddr),
    port: u16,
    answer: u16,
    counts: Answered,
}

impl Server {
    /// A server on a port, which answers each request with so many bytes, at most
    /// [`MAX_DATA`](crate::MAX_DATA); with its Ethernet address, and where it sends frames.
    pub fn new(macs: (MacAddr, MacAddr), port: u16, answer: u16) -> Server {
        Server { macs, port, answer: answer.min(crate::MAX_DATA), counts: Answered::default() }
    }

    /// What it has done so far.
    pub fn counts(&self) -> Answered {
        self.counts
    }

    /// Takes a frame that arrived, and answers it if it asks for something.
    pub fn receive(&mut self, frame: &[u8], out: &mut impl Sink) {
        let heard = Segment::read(frame).filter(|segment| segment.dst.1 == self.port);
        let Some(heard) = heard else {
            self.counts.foreign += 1;
            return;
        };
        self.counts.received += 1;
        if let Some(said) = self.answer(&heard) {
            match out.frame(said.frame_len()) {
                Some(frame) => {
                    said.write(self.macs, frame);
                    self.counts.sent += 1;
                }
                None => self.counts.no_room += 1,
            }
        }
    }

    fn answer(&mut self, heard: &Segment) -> Option<Segment> {
        let Segment { src, dst, seq, ack, flags, data } = *heard;
        let numbers = u32::from(data) + u32::from(flags & (SYN | FIN) != 0);
        let back = Segment {
            src: dst,
            dst: src,
            seq: ack,
            ack: seq.wrapping_add(numbers),
            flags: ACK,
            data: 0,
        };
        if flags & RST != 0 {
            None
        } else if flags & (SYN | ACK) == SYN {
            self.counts.opened += 1;
            Some(Segment { seq: first_number(heard), flags: SYN | ACK, ..back })
        } else if flags & FIN != 0 {
            self.counts.closed += 1;
            Some(Segment { flags: FIN | ACK, ..back })
        } else if data > 0 {
            self.counts.requests += 1;
            Some(Segment { flags: PSH | ACK, data: self.answer, ..back })
        } else {
            None
        }
    }
}

/// The number that a connection starts with, which differs from connection to connection.
fn first_number(heard: &Segment) -> u32 {
    let tuple = u64::from(heard.src.0.to_bits()) << 16 | u64::from(heard.src.1);
    let mixed = (tuple ^ u64::from(heard.seq)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}
