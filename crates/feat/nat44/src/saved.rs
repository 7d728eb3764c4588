//! File format of saved sessions.
//!
//! A file consists of a header and records of the same length, little-endian. The header has the
//! number of records and a checksum, so that truncated files are rejected.

use crate::session::{ACROSS, BALANCED, Class, DIRECT, FROM_OUTSIDE, HAIRPIN, STATIC, TWICE, VIA};
use thalweg_tables::hash::mix64;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::tuple::{Key, Tuple};

/// Length of the header, and of each record, in bytes.
pub const RECORD: usize = 64;
/// Magic number of the file.
pub(crate) const MAGIC: [u8; 16] = *b"thalweg-nat44\n\0\0";
/// Version of the format.
const VERSION: u32 = 1;

/// All valid marks.
const MARKS: u16 = FROM_OUTSIDE | STATIC | TWICE | HAIRPIN | BALANCED | ACROSS | VIA | DIRECT;
/// Flag: the external port is from a pool.
const POOL: u8 = 1;
/// Flag: the port of the external host, as seen from inside, is from a twice-NAT pool.
const TWICE_POOL: u8 = 2;
/// Flag: packets were seen in both directions.
const GROWN: u8 = 4;

/// Reason why a file is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FormatError {
    /// The file is no session file.
    #[error("not a file of nat44 sessions")]
    Foreign,
    /// An unknown version.
    #[error("the file has version {0}; this router reads version {VERSION}")]
    Version(u32),
    /// The length does not match the header.
    #[error(
        "{found} bytes follow the header, which promises {said} sessions of {RECORD} bytes: the file is truncated or damaged"
    )]
    Length {
        /// Bytes after the header.
        found: u64,
        /// Number of sessions according to the header.
        said: u64,
    },
    /// The checksum does not match.
    #[error("the checksum does not match: the file is damaged")]
    Damaged,
}

/// The header of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Number of sessions.
    pub count: u64,
    /// Time of the save, in milliseconds since 1970.
    pub at: u64,
    /// Checksum over all records.
    pub sum: u64,
}

/// A saved session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Saved {
    /// Key of packets from inside.
    pub inside: Key,
    /// Key of packets from outside.
    pub outside: Key,
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Milliseconds until it expires.
    pub left: u32,
    /// Milliseconds since it was created.
    pub age: u32,
    /// TCP state.
    pub state: u8,
    /// Timeout class.
    pub class: Class,
    /// Marks.
    pub marks: u16,
    /// True if the external port is from a pool.
    pub has_port: bool,
    /// True if the port of the external host, as seen from inside, is from a twice-NAT pool.
    pub has_twice_port: bool,
    /// True if packets were seen in both directions, so that it is not recycled.
    pub grown: bool,
}

fn word(bytes: &[u8; RECORD], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

fn put(bytes: &mut [u8; RECORD], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

/// Adds a record to a checksum.
pub fn sum(before: u64, record: &[u8; RECORD]) -> u64 {
    (0..RECORD / 8).fold(before, |sum, i| mix64(sum ^ word(record, 8 * i)).wrapping_add(1))
}

impl Header {
    /// The header as bytes.
    pub fn bytes(&self) -> [u8; RECORD] {
        let mut b = [0; RECORD];
        put(&mut b, 0, &MAGIC);
        put(&mut b, 16, &VERSION.to_le_bytes());
        put(&mut b, 20, &(RECORD as u32).to_le_bytes());
        put(&mut b, 24, &self.count.to_le_bytes());
        put(&mut b, 32, &self.at.to_le_bytes());
        put(&mut b, 40, &self.sum.to_le_bytes());
        b
    }

    /// Parses a header that is followed by `rest` bytes.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn read(b: &[u8; RECORD], rest: u64) -> Result<Header, FormatError> {
        if b[..16] != MAGIC {
            return Err(FormatError::Foreign);
        }
        let (version, record) = (word(b, 16) as u32, (word(b, 16) >> 32) as usize);
        if version != VERSION || record != RECORD {
            return Err(FormatError::Version(version));
        }
        let header = Header { count: word(b, 24), at: word(b, 32), sum: word(b, 40) };
        if header.count.checked_mul(RECORD as u64) != Some(rest) {
            return Err(FormatError::Length { found: rest, said: header.count });
        }
        Ok(header)
    }
}

impl Saved {
    /// The session as a record.
    pub fn record(&self) -> [u8; RECORD] {
        let mut b = [0; RECORD];
        let words = [self.inside[0], self.inside[1], self.outside[0], self.outside[1]];
        for (i, word) in words.into_iter().chain([self.packets, self.bytes]).enumerate() {
            put(&mut b, 8 * i, &word.to_le_bytes());
        }
        put(&mut b, 48, &self.left.to_le_bytes());
        put(&mut b, 52, &self.age.to_le_bytes());
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let flags = flag(self.has_port, POOL)
            | flag(self.has_twice_port, TWICE_POOL)
            | flag(self.grown, GROWN);
        put(&mut b, 56, &[self.state, self.class as u8]);
        put(&mut b, 58, &self.marks.to_le_bytes());
        b[60] = flags;
        b
    }

    /// Parses a record; `None` if it is invalid.
    pub fn read(b: &[u8; RECORD]) -> Option<Saved> {
        let (times, rest) = (word(b, 48), word(b, 56));
        let (class, flags) = ((rest >> 8) as u8, (rest >> 32) as u8);
        let saved = Saved {
            inside: [word(b, 0), word(b, 8)],
            outside: [word(b, 16), word(b, 24)],
            packets: word(b, 32),
            bytes: word(b, 40),
            left: times as u32,
            age: (times >> 32) as u32,
            state: rest as u8,
            class: *Class::ALL.get(usize::from(class))?,
            marks: (rest >> 16) as u16,
            has_port: flags & POOL != 0,
            has_twice_port: flags & TWICE_POOL != 0,
            grown: flags & GROWN != 0,
        };
        let known = flags & !(POOL | TWICE_POOL | GROWN) == 0 && rest >> 40 == 0;
        (known && saved.makes_sense()).then_some(saved)
    }

    fn makes_sense(&self) -> bool {
        let (inside, outside) = (Tuple::of(&self.inside), Tuple::of(&self.outside));
        let is_tcp = inside.protocol == protocol::TCP;
        let class = match self.class {
            Class::TcpEstablished | Class::TcpTransitory => is_tcp,
            Class::Icmp => inside.protocol == protocol::ICMP,
            Class::Udp => !is_tcp && inside.protocol != protocol::ICMP,
        };
        let real = |a: std::net::Ipv4Addr| !a.is_unspecified() && !a.is_multicast();
        let all = [inside.src, inside.dst, outside.src, outside.dst];
        class
            && self.marks & !MARKS == 0
            && self.state < 64
            && (is_tcp || self.state == 0)
            && inside.protocol == outside.protocol
            && all.into_iter().all(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn saved() -> impl Strategy<Value = Saved> {
        let numbers = (any::<[u64; 2]>(), any::<[u32; 2]>(), 0u8..64, 0u16..=MARKS);
        (any::<[u32; 4]>(), any::<[u16; 4]>(), 0u8..4, any::<[bool; 3]>(), numbers).prop_map(
            |(a, p, class, flags, (counts, times, state, marks))| {
                let class = Class::ALL[usize::from(class)];
                let protocol = match class {
                    Class::TcpEstablished | Class::TcpTransitory => protocol::TCP,
                    Class::Icmp => protocol::ICMP,
                    Class::Udp => [17, 47][usize::from(flags[0])],
                };
                let key = |i: usize| {
                    let (src, dst) = ((a[i] >> 3 | 1).into(), (a[i + 1] >> 3 | 1).into());
                    Tuple { src, sport: p[i], dst, dport: p[i + 1], protocol, table: 3 }.key()
                };
                Saved {
                    inside: key(0),
                    outside: key(2),
                    packets: counts[0],
                    bytes: counts[1],
                    left: times[0],
                    age: times[1],
                    state: if protocol == protocol::TCP { state } else { 0 },
                    class,
                    marks: marks & MARKS,
                    has_port: flags[0],
                    has_twice_port: flags[1],
                    grown: flags[2],
                }
            },
        )
    }

    proptest! {
        #[test]
        fn records_say_all(s in saved()) {
            prop_assert_eq!(Saved::read(&s.record()), Some(s));
        }

        #[test]
        fn any_bytes_may_be_read(b in prop::collection::vec(any::<u8>(), RECORD)) {
            let b: [u8; RECORD] = b.try_into().unwrap();
            if let Some(s) = Saved::read(&b) {
                prop_assert_eq!(&s.record()[..61], &b[..61]);
            }
            let _ = Header::read(&b, 0);
        }

        #[test]
        fn headers_say_all(count in 0u64..1 << 40, at in any::<u64>(), sum in any::<u64>()) {
            let h = Header { count, at, sum };
            prop_assert_eq!(Header::read(&h.bytes(), count * RECORD as u64), Ok(h));
            let short = Header::read(&h.bytes(), count * RECORD as u64 + 1);
            prop_assert!(matches!(short, Err(FormatError::Length { .. })), "{:?}", short);
        }
    }

    #[test]
    fn other_files_are_refused() {
        let good = Header { count: 1, at: 2, sum: 3 }.bytes();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            Header::read(&bytes, 64)
        };
        assert_eq!(with(0, b'x'), Err(FormatError::Foreign));
        assert_eq!(with(16, 2), Err(FormatError::Version(2)));
        assert_eq!(with(31, 0xff).map_err(|e| e.to_string().contains("promises")), Err(true));
        let one = sum(0, &[1; RECORD]);
        assert_ne!(one, sum(0, &[0; RECORD]));
        assert_ne!(sum(one, &[0; RECORD]), one);
    }
}
