//! The server side.

use thalweg_wire::MacAddr;
use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN};

use crate::Sink;
use crate::frame::Segment;

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Frames received with a segment.
    pub received: u64,
    /// Other frames received.
    pub foreign: u64,
    /// Connections opened.
    pub opened: u64,
    /// Requests answered.
    pub requests: u64,
    /// Connections closed by the client.
    pub closed: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames lost because the sink had no room.
    pub no_room: u64,
}

/// A stateless server: each segment it sends follows from the one received.
#[derive(Clone, Debug)]
pub struct Server {
    macs: (MacAddr, MacAddr),
    port: u16,
    answer: u16,
    counts: ServerCounts,
}

impl Server {
    /// A server on a port, which answers each request with `answer` bytes, at most
    /// [`MAX_DATA`](crate::MAX_DATA). `macs`: its own MAC address, and the one it sends to.
    pub fn new(macs: (MacAddr, MacAddr), port: u16, answer: u16) -> Server {
        Server { macs, port, answer: answer.min(crate::MAX_DATA), counts: ServerCounts::default() }
    }

    /// Counters since creation.
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// Receives a frame, and sends the answer if there is one.
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

/// The initial sequence number, which differs from connection to connection.
fn first_number(heard: &Segment) -> u32 {
    let tuple = u64::from(heard.src.0.to_bits()) << 16 | u64::from(heard.src.1);
    let mixed = (tuple ^ u64::from(heard.seq)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}
