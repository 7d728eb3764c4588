//! Packets of a stream, compiled: a template, and what differs from it.

use thalweg_wire::checksum::{self, Checksum};

use super::field::{below, mix};
use super::layer::Sum;
use super::tag::Form;
use crate::Part;

/// Checksums of a packet that depend on its fields.
pub(super) const MAX_SUMS: usize = 4;

/// Packets of one side of a stream.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The longest packet, with the variable fields, lengths and checksums zero.
    pub(super) template: Vec<u8>,
    /// Variants by size.
    pub(super) variants: Vec<Variant>,
    pub(super) turns: Turns,
    pub(super) fields: Vec<Variable>,
    pub(super) sums: Vec<SumAt>,
    /// Places of 16-bit lengths, and by how many bytes they are less than the packet.
    pub(super) lengths: Vec<(usize, usize)>,
    /// Offset of the payload.
    pub(super) payload: usize,
    /// Packets rendered beforehand.
    pub(super) cache: Cache,
}

/// Packets of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Variant {
    /// Bytes without FCS.
    pub(super) len: usize,
    pub(super) form: Form,
    /// Sum that the words of the tag must have.
    pub(super) target: u16,
    /// Sums of all that the checksums cover, without the variable fields.
    pub(super) sums: [u32; MAX_SUMS],
}

/// Sizes of packets, by number.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    pub(super) order: Order,
    /// Number of packets rendered beforehand, which repeat; 0: none are.
    pub(super) cached: u64,
    /// Number of the packet that comes first.
    pub(super) first: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    One,
    /// Sizes that repeat.
    Cycle(Vec<u16>),
    Count(u32),
    Random(u64, u32),
}

/// A checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumAt {
    pub(super) at: usize,
    pub(super) is_udp: bool,
    pub(super) sum: Sum,
    /// Its value in all packets, if that is kept.
    pub(super) kept: u16,
}

/// A field that differs between packets.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    /// Place of the word that holds it, its bytes, and bits behind the field in it.
    pub(super) at: usize,
    pub(super) width: Width,
    pub(super) shift: u32,
    /// Checksums that it is part of, by bit.
    pub(super) covered: u8,
    pub(super) values: Numbers,
    pub(super) index: Index,
    /// Position of the next packet's value, packets that had this one, and the last packet's index.
    pub(super) position: u64,
    pub(super) ticks: u64,
    pub(super) last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Two,
    Four,
    Eight,
}

/// Values by index.
#[derive(Clone, Debug)]
pub(super) enum Numbers {
    Line { first: u64, step: u64 },
    List(Vec<u64>),
}

/// Source of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// A step each `every` packets, up to `count`, from `start`.
    Steps { start: u64, count: u64, every: u64 },
    /// Drawn below `count`.
    Random { seed: u64, count: u64 },
    /// The index of a field before it, modulo `count`.
    With { field: usize, count: u64 },
}

/// Packets rendered beforehand, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    pub(super) bytes: Vec<u8>,
    /// Offset of each, and its variant.
    pub(super) packets: Vec<(u32, u16)>,
    /// The next one.
    pub(super) next: usize,
}

/// Most packets rendered beforehand, and their bytes: they must stay in a core's cache.
const CACHED: u64 = 4096;
const CACHED_BYTES: u64 = 256 << 10;

/// Sums the 16-bit words of a number.
#[inline]
fn halves(n: u64) -> u32 {
    ((n >> 48) + (n >> 32 & 0xffff) + (n >> 16 & 0xffff) + (n & 0xffff)) as u32
}

impl Variable {
    /// Returns the next packet's index, and goes on.
    #[inline]
    fn step(&mut self, number: u64, with: u64) -> u64 {
        match self.index {
            Index::Steps { count, every, .. } => {
                let index = self.position;
                self.ticks += 1;
                if self.ticks == every {
                    self.ticks = 0;
                    self.position = if index + 1 == count { 0 } else { index + 1 };
                }
                index
            }
            Index::Random { seed, count } => below(mix(seed ^ number), count),
            Index::With { count, .. } => with % count,
        }
    }

    #[inline]
    fn value(&self, index: u64) -> u64 {
        match &self.values {
            Numbers::Line { first, step } => first.wrapping_add(index.wrapping_mul(*step)),
            Numbers::List(list) => list.get(index as usize).copied().unwrap_or_default(),
        }
    }

    /// Writes a value over zeros; returns the sum of its words.
    #[inline]
    fn write(&self, value: u64, frame: &mut [u8]) -> u32 {
        let word = value << self.shift;
        let Some(bytes) = frame.get_mut(self.at..) else { return 0 };
        match self.width {
            Width::Two => {
                if let Some(bytes) = bytes.first_chunk_mut() {
                    *bytes = (u16::from_be_bytes(*bytes) | word as u16).to_be_bytes();
                }
                word as u32
            }
            Width::Four => {
                if let Some(bytes) = bytes.first_chunk_mut() {
                    *bytes = (u32::from_be_bytes(*bytes) | word as u32).to_be_bytes();
                }
                (word >> 16) as u32 + (word & 0xffff) as u32
            }
            Width::Eight => {
                if let Some(bytes) = bytes.first_chunk_mut() {
                    *bytes = (u64::from_be_bytes(*bytes) | word).to_be_bytes();
                }
                halves(word)
            }
        }
    }

    /// Number of packets after which it begins again; `None` if never.
    pub(super) fn period(&self, fields: &[Variable]) -> Option<u64> {
        match self.index {
            Index::Steps { count, every, .. } => count.checked_mul(every),
            Index::Random { .. } => None,
            Index::With { field, .. } => fields.get(field)?.period(fields),
        }
    }
}

impl SumAt {
    /// Writes the checksum over a sum.
    #[inline]
    fn write(&self, sum: u32, frame: &mut [u8]) {
        let value = match self.sum {
            Sum::Right => self.value(sum),
            Sum::Zero => 0,
            Sum::Keep => self.kept,
            // The sum must not be 0, which is the same as 0xffff, and which UDP takes for none.
            Sum::Wrong => match self.value(sum) {
                0xffff => 2,
                right => right + 1,
            },
        };
        if let Some(bytes) = frame.get_mut(self.at..self.at + 2) {
            bytes.copy_from_slice(&value.to_be_bytes());
        }
    }

    #[inline]
    pub(super) fn value(&self, sum: u32) -> u16 {
        match !checksum::fold(sum) {
            0 if self.is_udp => 0xffff,
            value => value,
        }
    }
}

impl Turns {
    /// Returns the variant of a packet.
    #[inline]
    pub(super) fn variant(&self, number: u64) -> usize {
        if matches!(self.order, Order::One) {
            return 0;
        }
        let number = number.wrapping_add(self.first);
        let number = if self.cached > 0 { number % self.cached } else { number };
        match &self.order {
            Order::One => 0,
            Order::Cycle(order) => {
                let at = number % order.len().max(1) as u64;
                order.get(at as usize).copied().unwrap_or_default().into()
            }
            Order::Count(count) => (number % u64::from(*count).max(1)) as usize,
            Order::Random(seed, count) => below(mix(seed ^ number), u64::from(*count)) as usize,
        }
    }
}

impl Shape {
    /// Begins again with the first packet.
    pub(super) fn rewind(&mut self) {
        let first = self.turns.first;
        self.cache.next = first.checked_rem(self.cache.packets.len() as u64).unwrap_or(0) as usize;
        for field in &mut self.fields {
            (field.position, field.ticks) = match field.index {
                Index::Steps { start, count, every } => {
                    let steps = u128::from(start) + u128::from(first / every.max(1));
                    ((steps % u128::from(count.max(1))) as u64, first % every.max(1))
                }
                _ => (0, 0),
            };
        }
    }

    /// Begins from now on where a part of all packets does: parts that send the same ones begin at
    /// different places.
    pub(super) fn begin_at(&mut self, part: Part) {
        let steps = self.fields.iter().filter(|field| matches!(field.index, Index::Steps { .. }));
        let longest = steps.filter_map(|field| field.period(&self.fields)).max();
        let all = match self.turns.cached {
            0 => self.period().or(longest).unwrap_or(1),
            cached => cached,
        };
        self.turns.first = part.range(all).start;
        self.rewind();
    }

    /// Writes a packet without its tag. `frame` has the length of the variant.
    #[inline]
    pub(super) fn write(&mut self, number: u64, variant: usize, frame: &mut [u8]) {
        let Shape { template, variants, fields, sums, lengths, .. } = self;
        let Some(shape) = variants.get(variant) else { return };
        let Some(template) = template.get(..frame.len()) else { return };
        frame.copy_from_slice(template);
        for (at, less) in lengths {
            let length = (frame.len() - *less) as u16;
            if let Some(bytes) = frame.get_mut(*at..*at + 2) {
                bytes.copy_from_slice(&length.to_be_bytes());
            }
        }
        let mut totals = shape.sums;
        for at in 0..fields.len() {
            let with = match fields[at].index {
                Index::With { field, .. } => fields[field].last,
                _ => 0,
            };
            let field = &mut fields[at];
            let index = field.step(number, with);
            field.last = index;
            let sum = field.write(field.value(index), frame);
            for (bit, total) in totals.iter_mut().enumerate() {
                *total += sum & 0u32.wrapping_sub(u32::from(field.covered >> bit & 1));
            }
        }
        for (sum, total) in sums.iter().zip(totals) {
            sum.write(total, frame);
        }
    }

    /// Computes the sums of all variants, once template, sizes and fields are known. `covers`: for
    /// each checksum, the range that it covers, its pseudo header's addresses, and its protocol.
    pub(super) fn finish(&mut self, covers: &[Covered], explicit: usize, marked: bool) {
        for variant in &mut self.variants {
            let Some(template) = self.template.get(..variant.len) else { continue };
            let mut packet = template.to_vec();
            for (at, less) in &self.lengths {
                let length = (variant.len - less) as u16;
                packet[*at..at + 2].copy_from_slice(&length.to_be_bytes());
            }
            let room = variant.len - self.payload - explicit.min(variant.len - self.payload);
            variant.form = match room {
                _ if !marked => Form::None,
                super::tag::LONG.. => Form::Long,
                super::tag::SHORT.. => Form::Short,
                _ => Form::None,
            };
            let tag_at = variant.len - variant.form.len();
            let before = !checksum::checksum(&packet[self.payload..tag_at]);
            let odd = (tag_at - self.payload) % 2 == 1;
            variant.target = if odd { (!before).swap_bytes() } else { !before };
            for (covered, sum) in covers.iter().zip(&mut variant.sums) {
                let mut all = Checksum::new();
                if let Some((from, to)) = covered.addresses {
                    all.add(&packet[from..to]);
                    all.add_u16(covered.protocol.into());
                    all.add_u16((variant.len - covered.from) as u16);
                }
                all.add(&packet[covered.from..covered.to]);
                // A tag makes the payload's sum zero.
                if covered.to == self.payload && covered.with_payload && variant.form == Form::None
                {
                    all.add(&packet[self.payload..]);
                }
                *sum = all.fold().into();
            }
        }
    }

    /// Computes checksums that are kept.
    pub(super) fn keep(&mut self) {
        if self.sums.iter().all(|sum| sum.sum != Sum::Keep) {
            return;
        }
        let kept: Vec<Sum> = self.sums.iter().map(|sum| sum.sum).collect();
        self.sums.iter_mut().for_each(|sum| sum.sum = Sum::Right);
        self.rewind();
        let variant = self.turns.variant(0);
        let mut frame = vec![0; self.variants[variant].len];
        self.write(0, variant, &mut frame);
        self.rewind();
        for (sum, kind) in self.sums.iter_mut().zip(kept) {
            let Some([high, low]) = frame.get(sum.at..sum.at + 2) else { continue };
            (sum.sum, sum.kept) = (kind, u16::from_be_bytes([*high, *low]));
        }
    }

    /// Renders packets beforehand: this many, or if not said, all if they take few bytes.
    pub(super) fn render(&mut self, wanted: Option<u32>, bytes: u64) {
        let longest = self.template.len() as u64;
        let packets = match wanted {
            Some(packets) => u64::from(packets),
            None => self.period().unwrap_or(0),
        };
        let few = packets <= CACHED && packets.saturating_mul(longest) <= bytes.min(CACHED_BYTES);
        if packets == 0 || (wanted.is_none() && !few) {
            return;
        }
        self.rewind();
        let mut cache = Cache::default();
        for number in 0..packets {
            let variant = self.turns.variant(number);
            let at = cache.bytes.len();
            cache.bytes.resize(at + self.variants[variant].len, 0);
            self.write(number, variant, &mut cache.bytes[at..]);
            cache.packets.push((at as u32, variant as u16));
        }
        self.turns.cached = packets;
        self.cache = cache;
        self.rewind();
    }

    /// Number of packets after which all is repeated; `None` if never.
    fn period(&self) -> Option<u64> {
        let sizes = match &self.turns.order {
            Order::One => 1,
            Order::Cycle(order) => order.len() as u64,
            Order::Count(count) => u64::from(*count),
            Order::Random(..) => return None,
        };
        self.fields
            .iter()
            .try_fold(sizes, |all, field| least_common(all, field.period(&self.fields)?))
    }
}

/// Coverage of a checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    /// Bytes of headers.
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if it covers the payload too.
    pub(super) with_payload: bool,
    /// The pseudo header's addresses, and protocol.
    pub(super) addresses: Option<(usize, usize)>,
    pub(super) protocol: u8,
}

/// Least common multiple.
fn least_common(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b)
}
