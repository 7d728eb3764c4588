//! The tag in the last bytes of a packet's payload: which packet it is, and when it was due.
//!
//! | bytes | long form (18) | bytes | short form (12) |
//! | --: | --- | --: | --- |
//! | 2 | mark of the run | 2 | mark of the run, inverted |
//! | 2 | check | 2 | check |
//! | 1 | version 1, window flag, side | 1 | window flag, side, trial (6 bits) |
//! | 1 | trial | 1 | stream |
//! | 2 | stream | 3 | sequence number |
//! | 4 | sequence number | 3 | time in µs |
//! | 6 | time in ns | | |
//!
//! The check makes the one's complement sum of the whole payload zero: a damaged payload is found,
//! and the checksum of UDP or TCP does not depend on the payload.

use super::{Nanos, Side};

/// Bytes of the long form.
pub(super) const LONG: usize = 18;
/// Bytes of the short form.
pub(super) const SHORT: usize = 12;

/// Version of the long form, in the top bits of its fifth byte.
const VERSION: u8 = 0x40;
const WINDOW: u8 = 0x20;
const SIDE_B: u8 = 0x10;
/// The same flags in the short form.
const SHORT_WINDOW: u8 = 0x80;
const SHORT_SIDE_B: u8 = 0x40;

/// Form that a packet has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// None: packets are counted by port, not by stream.
    #[default]
    None,
    Short,
    Long,
}

impl Form {
    /// Bytes of the form.
    pub(super) fn len(self) -> usize {
        match self {
            Form::None => 0,
            Form::Short => SHORT,
            Form::Long => LONG,
        }
    }
}

/// Content of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Stream.
    pub stream: u16,
    /// Trial, modulo 64.
    pub trial: u8,
    /// Side that sent it.
    pub side: Side,
    /// True if it was due in the window of the trial.
    pub judged: bool,
    /// Lower bits of the sequence number.
    pub sequence: u32,
    /// Lower bits of the time when it was due, in nanoseconds; in the short form, of whole
    /// microseconds.
    pub due: Nanos,
    /// Number of bits of the sequence number, and of the time.
    pub bits: (u32, u32),
}

/// The sum of the 16-bit words of a number.
#[inline]
fn halves(n: u64) -> u32 {
    ((n >> 48) + (n >> 32 & 0xffff) + (n >> 16 & 0xffff) + (n & 0xffff)) as u32
}

#[inline]
fn check(target: u16, others: u32) -> u16 {
    thalweg_wire::checksum::fold(
        u32::from(target) + u32::from(!thalweg_wire::checksum::fold(others)),
    )
}

/// Parts that all tags of a stream have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writer {
    mark: u16,
    /// Bytes 4 to 8 of the long form, and 4 to 6 of the short one, with the window flag unset.
    head: u32,
    short: u16,
}

impl Writer {
    pub(super) fn new(mark: u16, trial: u8, side: Side, stream: u16) -> Writer {
        let b = side == Side::B;
        let [high, low] = stream.to_be_bytes();
        let trial = trial & 0x3f;
        let flags = VERSION | if b { SIDE_B } else { 0 };
        let short = if b { SHORT_SIDE_B } else { 0 } | trial;
        Writer {
            mark,
            head: u32::from_be_bytes([flags, trial, high, low]),
            short: u16::from_be_bytes([short, low]),
        }
    }

    /// Writes a long tag. `target`: what its words must sum up to.
    #[inline]
    pub(super) fn long(
        &self,
        tag: &mut [u8; LONG],
        target: u16,
        judged: bool,
        sequence: u32,
        due: Nanos,
    ) {
        let head = self.head | u32::from(judged) << (24 + WINDOW.trailing_zeros());
        let time = due & TIME;
        let first = u64::from(head) << 32 | u64::from(sequence);
        let sum = u32::from(self.mark) + halves(first) + halves(time);
        let check = check(target, sum);
        let mark = u32::from(self.mark) << 16 | u32::from(check);
        tag[..4].copy_from_slice(&mark.to_be_bytes());
        tag[4..12].copy_from_slice(&first.to_be_bytes());
        tag[12..].copy_from_slice(&time.to_be_bytes()[2..]);
    }

    /// Writes a short tag.
    #[inline]
    pub(super) fn short(
        &self,
        tag: &mut [u8; SHORT],
        target: u16,
        judged: bool,
        sequence: u32,
        due: Nanos,
    ) {
        let mark = !self.mark;
        let head = self.short | u16::from(judged) << (8 + SHORT_WINDOW.trailing_zeros());
        let time = (due / 1000) & 0xff_ffff;
        let rest = u64::from(head) << 48 | u64::from(sequence & 0xff_ffff) << 24 | time;
        let check = check(target, u32::from(mark) + halves(rest));
        let mark = u32::from(mark) << 16 | u32::from(check);
        tag[..4].copy_from_slice(&mark.to_be_bytes());
        tag[4..].copy_from_slice(&rest.to_be_bytes());
    }
}

/// The time of a long tag.
const TIME: u64 = (1 << 48) - 1;

impl Tag {
    /// Reads a long tag; `None` if it has another mark.
    #[inline]
    pub(super) fn long(mark: u16, tag: &[u8; LONG]) -> Option<Tag> {
        let (first, rest) = tag.split_first_chunk::<12>()?;
        let (marked, rest_of_first) = first.split_first_chunk::<4>()?;
        let fields = u64::from_be_bytes(*rest_of_first.first_chunk()?);
        let flags = (fields >> 56) as u8;
        if u16::from_be_bytes([marked[0], marked[1]]) != mark || flags & 0xc0 != VERSION {
            return None;
        }
        let [a, b, c, d, e, f] = *rest.first_chunk::<6>()?;
        Some(Tag {
            stream: (fields >> 32) as u16,
            trial: (fields >> 48) as u8,
            side: if flags & SIDE_B == 0 { Side::A } else { Side::B },
            judged: flags & WINDOW != 0,
            sequence: fields as u32,
            due: u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
            bits: (32, 48),
        })
    }

    /// Reads a short tag; `None` if it has another mark.
    #[inline]
    pub(super) fn short(mark: u16, tag: &[u8; SHORT]) -> Option<Tag> {
        let (marked, rest) = tag.split_first_chunk::<4>()?;
        if u16::from_be_bytes([marked[0], marked[1]]) != !mark {
            return None;
        }
        let fields = u64::from_be_bytes(*rest.first_chunk()?);
        let flags = (fields >> 56) as u8;
        Some(Tag {
            stream: (fields >> 48 & 0xff) as u16,
            trial: flags & 0x3f,
            side: if flags & SHORT_SIDE_B == 0 { Side::A } else { Side::B },
            judged: flags & SHORT_WINDOW != 0,
            sequence: (fields >> 24) as u32 & 0xff_ffff,
            due: (fields & 0xff_ffff) * 1000,
            bits: (24, 24),
        })
    }

    /// Returns the time from when it was due until `now`, in nanoseconds: of a long tag up to 39
    /// hours, of a short one up to 8 seconds. A packet that was not due yet has none.
    #[inline]
    pub fn latency(&self, now: Nanos) -> Nanos {
        match self.bits.1 {
            48 => {
                let passed = now.wrapping_sub(self.due) & TIME;
                if passed > TIME / 2 { 0 } else { passed }
            }
            _ => {
                let passed = (now / 1000).wrapping_sub(self.due / 1000) & 0xff_ffff;
                if passed > 0x7f_ffff { 0 } else { passed * 1000 }
            }
        }
    }
}
