//! Rates of streams and of all of them.

use super::{Mode, Plan, PlanError, Side, Size, Stream, StreamError};

/// Bytes on the wire that a packet with FCS does not have: preamble and gap.
const WIRE: f64 = 20.0;
/// Greatest rate: a packet each tenth of a nanosecond.
const MAX_RATE: f64 = 1e10;

/// The rate of a stream in a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Packets per second.
    Packets(f64),
    /// Bits per second of packets with FCS (layer 2).
    Bits(f64),
    /// Bits per second with preamble and gap (layer 1).
    WireBits(f64),
    /// Percent of the [`Cap`].
    Percent(f64),
}

/// The most that a transport bears in a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cap {
    /// Packets per second, as measured.
    Packets(f64),
    /// Bits per second with preamble and gap: the speed of a line.
    Bits(f64),
}

/// Load of all streams of a direction together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// The plan's own rates times this factor.
    Times(f64),
    /// Total rate; each stream keeps its share of it.
    Total(Rate),
}

/// Rates of a direction's streams by the plan, on average over bursts and the pauses between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets per second.
    pub packets: f64,
    /// Bits per second of packets with FCS.
    pub bits: f64,
    /// Bits per second with preamble and gap.
    pub wire_bits: f64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.packets += other.packets;
        self.bits += other.bits;
        self.wire_bits += other.wire_bits;
    }

    /// Totals of packets with this mean size.
    fn of(packets: f64, size: f64) -> Totals {
        let bits = packets * size * 8.0;
        Totals { packets, bits, wire_bits: bits + packets * WIRE * 8.0 }
    }
}

impl Size {
    /// Number of sizes.
    pub(super) fn count(&self) -> usize {
        match self {
            Size::One(_) => 1,
            Size::Range { least, most, .. } => usize::from(most.saturating_sub(*least)) + 1,
            Size::Shares(list) => list.len(),
        }
    }

    /// Greatest size.
    pub(super) fn most(&self) -> u16 {
        match self {
            Size::One(bytes) => *bytes,
            Size::Range { most, .. } => *most,
            Size::Shares(list) => list.iter().map(|(bytes, _)| *bytes).max().unwrap_or_default(),
        }
    }

    /// Mean size in bytes with FCS.
    pub fn mean(&self) -> f64 {
        match self {
            Size::One(bytes) => f64::from(*bytes),
            Size::Range { least, most, .. } => (f64::from(*least) + f64::from(*most)) / 2.0,
            Size::Shares(list) => {
                let all: f64 = list.iter().map(|(_, share)| f64::from(*share)).sum();
                let bytes = |(size, share): &(u16, u32)| f64::from(*size) * f64::from(*share);
                list.iter().map(bytes).sum::<f64>() / all.max(1.0)
            }
        }
    }
}

impl Rate {
    /// Packets per second of this mean size.
    pub fn packets(self, size: f64, cap: Cap) -> f64 {
        match self {
            Rate::Packets(packets) => packets,
            Rate::Bits(bits) => bits / (size * 8.0),
            Rate::WireBits(bits) => bits / ((size + WIRE) * 8.0),
            Rate::Percent(percent) => match cap {
                Cap::Packets(packets) => packets * percent / 100.0,
                Cap::Bits(bits) => Rate::WireBits(bits * percent / 100.0).packets(size, cap),
            },
        }
    }

    pub(super) fn check(self, size: f64, cap: Cap) -> Result<f64, StreamError> {
        match self.packets(size, cap) {
            packets if packets > 0.0 && packets <= MAX_RATE => Ok(packets),
            packets => Err(StreamError {
                path: "rate".into(),
                message: format!("{packets} packets/s; it must be above 0 and at most {MAX_RATE}"),
            }),
        }
    }
}

impl Stream {
    /// Packets per second in a direction, on average. Bursts that end have no rate: it is 0.
    pub fn mean_rate(&self, cap: Cap) -> f64 {
        let rate = self.rate.packets(self.size.mean(), cap);
        match self.mode {
            Mode::Continuous => rate,
            Mode::Bursts { packets, every, count: 0 } => {
                // A burst that takes longer is followed at once.
                let packets = packets as f64;
                packets / (every as f64 / 1e9).max(packets / rate)
            }
            Mode::Burst { .. } | Mode::Bursts { .. } => 0.0,
        }
    }
}

impl Plan {
    /// Rates of a side's streams by the plan: those that follow a load, and those of fixed rate.
    pub fn totals(&self, side: Side) -> (Totals, Totals) {
        let mut totals = (Totals::default(), Totals::default());
        for stream in self.streams.iter().filter(|stream| stream.direction.sends(side)) {
            let of = Totals::of(stream.mean_rate(self.cap), stream.size.mean());
            if stream.fixed_rate { totals.1.add(of) } else { totals.0.add(of) }
        }
        totals
    }

    /// The factor by which a load scales the streams of a side. Fixed rates count toward a total.
    pub fn factor(&self, load: Load, side: Side) -> f64 {
        let Load::Total(rate) = load else {
            let Load::Times(factor) = load else { return 0.0 };
            return clean(factor);
        };
        let (own, fixed) = self.totals(side);
        if own.packets <= 0.0 {
            // Bursts that end are no part of a total.
            return 1.0;
        }
        let share = |wanted: f64, own: f64, fixed: f64| (wanted - fixed) / own;
        clean(match rate {
            Rate::Packets(wanted) => share(wanted, own.packets, fixed.packets),
            Rate::Bits(wanted) => share(wanted, own.bits, fixed.bits),
            Rate::WireBits(wanted) => share(wanted, own.wire_bits, fixed.wire_bits),
            Rate::Percent(percent) => match self.cap {
                Cap::Packets(cap) => share(cap * percent / 100.0, own.packets, fixed.packets),
                Cap::Bits(cap) => share(cap * percent / 100.0, own.wire_bits, fixed.wire_bits),
            },
        })
    }

    pub(super) fn check_cap(&self) -> Result<(), PlanError> {
        let (Cap::Packets(cap) | Cap::Bits(cap)) = self.cap;
        if cap > 0.0 && cap.is_finite() { Ok(()) } else { Err(PlanError::Cap(cap.to_string())) }
    }
}

fn clean(factor: f64) -> f64 {
    if factor.is_finite() { factor.max(0.0) } else { 0.0 }
}
