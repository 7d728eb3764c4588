//! Stateless streams of packets between two ports.
//!
//! A [`Plan`] has streams; [`Senders`] sends those of one side at their rates, and a [`Receiver`]
//! on the other side counts what arrives. Neither knows what lies between them.
//!
//! Each packet has a tag in the last bytes of its payload: stream, sequence number, the time when
//! it was due, and whether that was in the window of a trial. Each stream has books of its own:
//!
//! - intended = sent + late + refused ([`Sent`]);
//! - sent = received + lost ([`Books`]), with all lost packets known by their sequence numbers;
//! - latency counts from the time when a packet was *due*, so that a tester that falls behind does
//!   not hide it.
//!
//! Times are in nanoseconds since an arbitrary origin, the same one for both sides.
//!
//! Packets that are too short for a tag (see [`Senders::tagged`]) are counted by port.

mod compile;
mod field;
mod fuzz;
mod latency;
mod layer;
mod order;
mod rate;
mod receiver;
mod senders;
mod shape;
mod tag;
#[cfg(test)]
mod tests;
mod turns;

pub use field::{Field, Steps, Values};
pub use fuzz::fuzz_frames;
pub use latency::Latency;
pub use layer::{Fill, Layer, Sum};
pub use rate::{Cap, Load, Rate, Totals};
pub use receiver::{Books, Port, Received, Receiver, Whose, find_tag};
pub use senders::{Senders, Sent};
pub use tag::Tag;

use crate::MacAddr;

/// Time since an arbitrary origin, in nanoseconds.
pub type Nanos = u64;

/// Longest packet with FCS, in bytes.
pub const MAX_FRAME: usize = 9216;
/// Most streams of a plan.
pub const MAX_STREAMS: usize = 4096;

/// One of two ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The first one.
    #[default]
    A,
    /// The second one.
    B,
}

impl Side {
    /// The opposite side.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// Direction of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Direction from the first port to the second.
    #[default]
    AToB,
    /// Direction from the second port to the first, with source and destination addresses
    /// exchanged.
    BToA,
    /// Both, each at the stream's rate.
    Both,
}

impl Direction {
    /// True if a side sends.
    pub fn sends(self, side: Side) -> bool {
        match self {
            Direction::AToB => side == Side::A,
            Direction::BToA => side == Side::B,
            Direction::Both => true,
        }
    }
}

/// Sizes of packets in bytes, with FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// All have this one.
    One(u16),
    /// Sizes from the least to the greatest.
    Range {
        /// Least size.
        least: u16,
        /// Greatest size.
        most: u16,
        /// Drawn at random; otherwise each is a byte longer than the one before.
        random: bool,
    },
    /// Sizes, and how many packets of all have each.
    Shares(Vec<(u16, u32)>),
}

impl Size {
    /// 28 : 16 : 4 packets of 64, 594 and 1518 bytes, as TRex's `stl/imix.py` sends them.
    pub fn imix() -> Size {
        Size::Shares(vec![(64, 28), (594, 16), (1518, 4)])
    }
}

/// Times when packets are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Packets are sent without end.
    #[default]
    Continuous,
    /// A number of packets.
    Burst {
        /// Packets.
        packets: u64,
    },
    /// Several times this many.
    Bursts {
        /// Packets of a burst.
        packets: u64,
        /// Time from the begin of a burst to that of the next.
        every: Nanos,
        /// Number of bursts; 0: without end.
        count: u64,
    },
}

/// Start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Time after the trial's start.
    After(Nanos),
    /// Pause after the end of the stream of this number in the plan.
    Behind {
        /// Number of the stream, from 0.
        stream: usize,
        /// Pause.
        pause: Nanos,
    },
}

impl Default for Start {
    fn default() -> Start {
        Start::After(0)
    }
}

/// Mode of rendering packets beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// If they are few before all repeats.
    #[default]
    Auto,
    /// No.
    Off,
    /// Number of packets, which then repeat, even if more would differ.
    Packets(u32),
}

/// A stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Name in reports.
    pub name: String,
    /// Headers and payload as the first port sends them; Ethernet may be left out.
    pub layers: Vec<Layer>,
    /// Sizes.
    pub size: Size,
    /// Rate in each direction.
    pub rate: Rate,
    /// True if [`Senders::set_load`] leaves its rate alone.
    pub fixed_rate: bool,
    /// Continuous, or bursts.
    pub mode: Mode,
    /// Start.
    pub start: Start,
    /// Number of times that start and bursts are repeated, at least once.
    pub times: u32,
    /// Direction.
    pub direction: Direction,
    /// True if packets have tags.
    pub tagged: bool,
    /// Mode of rendering packets beforehand.
    pub caching: Caching,
}

impl Stream {
    /// UDP over IPv4 from the first port, of 64 bytes and at one packet per second.
    pub fn udp(name: &str, source: Field, destination: Field, ports: (Field, Field)) -> Stream {
        Stream {
            name: name.to_owned(),
            layers: vec![Layer::ipv4(source, destination), Layer::udp(ports.0, ports.1)],
            size: Size::One(64),
            rate: Rate::Packets(1.0),
            fixed_rate: false,
            mode: Mode::Continuous,
            start: Start::default(),
            times: 1,
            direction: Direction::AToB,
            tagged: true,
            caching: Caching::Auto,
        }
    }
}

/// Streams between two ports.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Streams.
    pub streams: Vec<Stream>,
    /// MAC addresses of each side: its own, and the one that it sends to.
    pub macs: [(MacAddr, MacAddr); 2],
    /// Base of percentages: the most that the transport bears in a direction.
    pub cap: Cap,
    /// Time by which packets may be sent late; those due longer ago are not sent.
    pub late: Nanos,
}

impl Plan {
    /// Streams between ports that face each other, of 10 Gbit/s.
    pub fn of(streams: Vec<Stream>) -> Plan {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        Plan { streams, macs: [(a, b), (b, a)], cap: Cap::Bits(10e9), late: 10_000_000 }
    }
}

/// Fault of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct StreamError {
    /// Place of the fault: a field as `ipv4.source`, or `size`, `rate`, `mode`, `start`, `layers`,
    /// `cache`.
    pub path: String,
    /// The fault, and a correct form.
    pub message: String,
}

/// A plan that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A stream.
    #[error("stream {name}: {error}")]
    Stream {
        /// Its number, from 0.
        number: usize,
        /// Its name.
        name: String,
        /// The fault.
        error: StreamError,
    },
    /// Number of streams.
    #[error("{0} streams: there must be 1 to {MAX_STREAMS}")]
    Streams(usize),
    /// Compiled streams exceed a limit.
    #[error("{sum} {what} in all streams: the limit is {most}")]
    Large {
        /// The counted objects.
        what: &'static str,
        /// Their number.
        sum: usize,
        /// The limit.
        most: usize,
    },
    /// The cap.
    #[error("a cap of {0}: it must be above 0")]
    Cap(String),
}
