//! Packets from a template: constant bytes, fields that vary from packet to packet, and lengths and
//! checksums derived from both.
//!
//! Checksums are never computed over a whole packet at run time: the sum over the constant bytes is
//! precomputed for every length, and each varying field adds its words.

use crate::error::PgError;
use thalweg_tables::random::Random;

/// Minimum and maximum size of a packet in bytes.
pub const SIZES: (usize, usize) = (1, 65_535);
/// Maximum size of the prepared packets of one stream in bytes.
const RING_BYTES: usize = 4 << 20;
/// Maximum number of prepared packets of one stream.
const RING_PACKETS: u64 = 2048;

/// Change of a value from packet to packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vary {
    /// Counts from low to high and starts again.
    Increment,
    /// Uniformly random between low and high.
    Random,
}

/// Sizes of a stream's packets in bytes, without Ethernet's FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Minimum.
    pub min: usize,
    /// Maximum.
    pub max: usize,
    /// Change of sizes.
    pub vary: Vary,
}

/// A varying field of up to eight bytes, in network byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Offset in the packet.
    pub offset: usize,
    /// Width in bytes.
    pub width: usize,
    /// Minimum.
    pub low: u64,
    /// Maximum.
    pub high: u64,
    /// Change of the value.
    pub vary: Vary,
}

/// Network header whose length and checksum are filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Offset.
    pub offset: usize,
    /// IPv6 rather than IPv4.
    pub v6: bool,
    /// Its length field is set.
    pub length: bool,
    /// Its checksum is set (IPv4).
    pub checksum: bool,
}

/// Kind of a transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportKind {
    /// UDP, RFC 768.
    Udp,
    /// TCP, RFC 9293.
    Tcp,
    /// ICMP for IPv4, RFC 792: no pseudo-header.
    Icmp,
    /// ICMP for IPv6, RFC 4443.
    Icmp6,
}

/// Transport header whose length and checksum are filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Offset.
    pub offset: usize,
    /// Kind.
    pub kind: TransportKind,
    /// Its length field is set (UDP).
    pub length: bool,
    /// Its checksum is set.
    pub checksum: bool,
}

/// Bytes after the headers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Payload {
    /// Zeros up to the packet's size.
    #[default]
    None,
    /// Bytes 0, 1, 2 … up to this modulus, and again from 0.
    Incrementing(u16),
    /// Bytes, then zeros.
    Bytes(Vec<u8>),
}

/// Checksums that a device would compute, as `buffer-offload-flags` names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// Checksum of the IPv4 header.
    pub ip: bool,
    /// Checksum of TCP.
    pub tcp: bool,
    /// Checksum of UDP.
    pub udp: bool,
}

/// A parsed packet description, before its size is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    /// Headers with the values of fixed fields; varying fields are zero.
    pub headers: Vec<u8>,
    /// Varying fields.
    pub fields: Vec<Field>,
    /// The outermost IP header.
    pub network: Option<Network>,
    /// The transport header after it.
    pub transport: Option<Transport>,
    /// Payload.
    pub payload: Payload,
}

impl Layers {
    fn least(&self) -> usize {
        match &self.payload {
            Payload::Bytes(b) => self.headers.len() + b.len(),
            _ => self.headers.len(),
        }
    }

    /// Computes checksums of these headers, whatever the description says of them.
    pub fn compute(&mut self, offload: Offload) {
        let mut places = Vec::new();
        if let Some(n) = self.network.as_mut().filter(|n| offload.ip && !n.v6) {
            n.checksum = true;
            places.push(n.offset + 10);
        }
        if let Some(t) = &mut self.transport {
            let at = match t.kind {
                TransportKind::Udp if offload.udp => Some(6),
                TransportKind::Tcp if offload.tcp => Some(16),
                _ => None,
            };
            if let Some(at) = at {
                t.checksum = true;
                places.push(t.offset + at);
            }
        }
        for at in places {
            self.fields.retain(|f| f.offset != at);
            if let Some(bytes) = self.headers.get_mut(at..at + 2) {
                bytes.fill(0);
            }
        }
    }

    /// Default sizes: that of bytes given in full, otherwise 64 bytes or the size of the headers.
    pub fn default_sizes(&self) -> Sizes {
        let n = match &self.payload {
            Payload::Bytes(_) => self.least(),
            _ => self.least().max(64),
        };
        Sizes { min: n, max: n, vary: Vary::Increment }
    }

    /// Sets the size and precomputes everything possible.
    ///
    /// # Errors
    /// [`PgError::Size`] if the headers do not fit, or a size is out of range.
    pub fn compile(&self, sizes: Sizes) -> Result<Generator, PgError> {
        let (least, most) = (self.least().max(SIZES.0), SIZES.1);
        if sizes.min < least || sizes.max < sizes.min || sizes.max > most {
            return Err(PgError::Size { min: sizes.min, max: sizes.max, least, most });
        }
        let mut bytes = self.headers.clone();
        match &self.payload {
            Payload::None => {}
            Payload::Bytes(b) => bytes.extend_from_slice(b),
            Payload::Incrementing(n) => {
                let modulus = usize::from((*n).max(1));
                bytes.extend((0..sizes.max - bytes.len()).map(|i| (i % modulus) as u8));
            }
        }
        bytes.resize(sizes.max, 0);
        let base = self.network.map_or(0, |n| n.offset);
        let moving = self.fields.iter().map(|f| Moving::new(f, self, base)).collect();
        Ok(Generator {
            sums: Sums::new(self, &bytes),
            bytes,
            moving,
            sizes,
            size: sizes.min,
            random: Random::with_seed(0),
        })
    }
}

/// Sums the 16-bit words of a value in a checksummed range; `odd` if its last byte is the high half
/// of a word: the halves of the sum then swap (RFC 1071, section 2).
#[inline]
fn words(v: u64, odd: bool) -> u64 {
    let sum = (v & 0xffff) + ((v >> 16) & 0xffff) + ((v >> 32) & 0xffff) + (v >> 48);
    if odd { u64::from(fold(sum).swap_bytes()) } else { sum }
}

#[inline]
fn fold(sum: u64) -> u16 {
    // Sums here are below 2^48: two steps leave at most one carry.
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

fn sum_bytes(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|c| u64::from(c[0]) << 8 | c.get(1).map_or(0, |b| u64::from(*b))).sum()
}

/// State of a varying field.
#[derive(Clone, Debug)]
struct Moving {
    field: Field,
    at: u64,
    odd: bool,
    in_network: bool,
    in_transport: bool,
}

impl Moving {
    fn new(field: &Field, layers: &Layers, base: usize) -> Moving {
        let end = field.offset + field.width;
        // Range of the network header, and the fields repeated in the pseudo-header: protocol and
        // addresses.
        let (mut in_network, mut pseudo) = (false, false);
        if let Some(n) = layers.network {
            let (addresses, header) = if n.v6 { (8, 40) } else { (12, 20) };
            in_network = field.offset >= n.offset && end <= n.offset + header;
            pseudo = in_network && field.offset >= n.offset + addresses;
            pseudo |= !n.v6 && field.offset == n.offset + 9;
        }
        let in_transport = layers
            .transport
            .is_some_and(|t| field.offset >= t.offset || (pseudo && t.kind != TransportKind::Icmp));
        let odd = end.wrapping_sub(base) % 2 == 1;
        Moving { field: *field, at: field.low, odd, in_network, in_transport }
    }

    /// Returns the value for this packet and advances.
    #[inline]
    fn step(&mut self, random: &mut Random) -> u64 {
        match self.field.vary {
            Vary::Increment => {
                let v = self.at;
                self.at = if v >= self.field.high { self.field.low } else { v + 1 };
                v
            }
            Vary::Random => random.between(self.field.low, self.field.high),
        }
    }
}

/// Checksum sums over the constant bytes.
#[derive(Clone, Debug)]
struct Sums {
    network: Option<Network>,
    transport: Option<Transport>,
    /// Sum over the IPv4 header.
    header: u64,
    /// Sum over the pseudo-header's addresses and protocol.
    pseudo: u64,
    /// Sums over the transport header and payload up to each length.
    upto: Vec<u16>,
}

impl Sums {
    fn new(layers: &Layers, bytes: &[u8]) -> Sums {
        let mut s = Sums {
            network: layers.network,
            transport: layers.transport,
            header: 0,
            pseudo: 0,
            upto: Vec::new(),
        };
        if let Some(n) = s.network {
            let header = &bytes[n.offset..];
            let (addresses, protocol) = match n.v6 {
                true => (&header[8..40], header[6]),
                false => (&header[12..20], header[9]),
            };
            s.pseudo = sum_bytes(addresses) + u64::from(protocol);
            s.header = if n.v6 { 0 } else { sum_bytes(&header[..20]) };
        }
        if let Some(t) = s.transport.filter(|t| t.checksum) {
            if t.kind == TransportKind::Icmp {
                s.pseudo = 0;
            }
            let mut sum = 0u64;
            s.upto.push(0);
            for (i, b) in bytes[t.offset..].iter().enumerate() {
                sum += u64::from(*b) << if i % 2 == 0 { 8 } else { 0 };
                s.upto.push(fold(sum));
            }
        }
        s
    }

    /// Writes lengths and checksums into a packet; the arguments are the sums of its varying
    /// fields.
    #[inline]
    fn finish(&self, out: &mut [u8], network: u64, transport: u64) {
        let len = out.len();
        if let Some(n) = self.network {
            let mut sum = self.header + network;
            if n.length {
                let (at, value) = match n.v6 {
                    true => (n.offset + 4, (len - n.offset - 40) as u16),
                    false => (n.offset + 2, (len - n.offset) as u16),
                };
                put16(out, at, value);
                sum += u64::from(value);
            }
            if n.checksum {
                put16(out, n.offset + 10, !fold(sum));
            }
        }
        let Some(t) = self.transport else { return };
        let l4 = len - t.offset;
        let mut sum = self.pseudo + transport;
        if t.kind != TransportKind::Icmp {
            sum += l4 as u64;
        }
        if t.length {
            put16(out, t.offset + 4, l4 as u16);
            sum += l4 as u64;
        }
        if t.checksum {
            sum += u64::from(self.upto[l4]);
            let (at, value) = match t.kind {
                // Zero would mean "no checksum".
                TransportKind::Udp => (6, if fold(sum) == 0xffff { 0xffff } else { !fold(sum) }),
                TransportKind::Tcp => (16, !fold(sum)),
                TransportKind::Icmp | TransportKind::Icmp6 => (2, !fold(sum)),
            };
            put16(out, t.offset + at, value);
        }
    }
}

#[inline]
fn put16(out: &mut [u8], at: usize, value: u16) {
    out[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Copies a packet; both slices have the same length. Short ones in fixed-size moves, as a call of
/// `memcpy` costs more.
#[inline]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    fn moves<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        let first: &[u8; N] = from.first_chunk()?;
        *to.first_chunk_mut()? = *first;
        let last: &[u8; N] = from.last_chunk()?;
        *to.last_chunk_mut()? = *last;
        Some(())
    }
    let done = match from.len() {
        16..=32 => moves::<16>(to, from),
        33..=64 => moves::<32>(to, from),
        65..=128 => moves::<64>(to, from),
        _ => None,
    };
    if done.is_none() {
        to.copy_from_slice(from);
    }
}

/// Generates packets one after the other.
#[derive(Clone, Debug)]
pub struct Generator {
    bytes: Vec<u8>,
    moving: Vec<Moving>,
    sums: Sums,
    sizes: Sizes,
    size: usize,
    random: Random,
}

impl Generator {
    /// Maximum size.
    pub fn max_len(&self) -> usize {
        self.sizes.max
    }

    /// Size of the next packet; each call advances.
    #[inline]
    pub fn next_len(&mut self) -> usize {
        let Sizes { min, max, vary } = self.sizes;
        if min == max {
            return min;
        }
        match vary {
            Vary::Increment => {
                let n = self.size;
                self.size = if n >= max { min } else { n + 1 };
                n
            }
            Vary::Random => self.random.between(min as u64, max as u64) as usize,
        }
    }

    /// Writes the next packet, with the length returned by [`next_len`](Self::next_len).
    ///
    /// # Panics
    /// If `out` is shorter than the headers or longer than the maximum size.
    #[inline]
    pub fn write(&mut self, out: &mut [u8]) {
        copy(out, &self.bytes[..out.len()]);
        let (mut network, mut transport) = (0, 0);
        for m in &mut self.moving {
            let value = m.step(&mut self.random);
            let at = m.field.offset;
            let wide = value.to_be_bytes();
            match m.field.width {
                4 => out[at..at + 4].copy_from_slice(&wide[4..]),
                2 => out[at..at + 2].copy_from_slice(&wide[6..]),
                w => out[at..at + w].copy_from_slice(&wide[8 - w..]),
            }
            let sum = words(value, m.odd);
            network += if m.in_network { sum } else { 0 };
            transport += if m.in_transport { sum } else { 0 };
        }
        self.sums.finish(out, network, transport);
    }

    /// Number of packets after which the first repeats; `None` if never or too many to matter.
    pub fn period(&self) -> Option<u64> {
        let spans = self.moving.iter().map(|m| {
            let span = (m.field.high - m.field.low).checked_add(1)?;
            (m.field.vary == Vary::Increment).then_some(span)
        });
        let size = (self.sizes.max - self.sizes.min + 1) as u64;
        let counted = size == 1 || self.sizes.vary == Vary::Increment;
        spans.chain([counted.then_some(size)]).try_fold(1u64, |all, span| {
            let span = span?;
            let all = all.checked_mul(span / gcd(all, span))?;
            (all <= RING_PACKETS).then_some(all)
        })
    }

    /// All packets of a period, if they are few and small enough to keep.
    pub fn ring(&self) -> Option<Vec<Vec<u8>>> {
        let n = self.period()? as usize;
        if n * self.sizes.max > RING_BYTES && n > 1 {
            return None;
        }
        let mut g = self.clone();
        Some(
            (0..n)
                .map(|_| {
                    let mut packet = vec![0; g.next_len()];
                    g.write(&mut packet);
                    packet
                })
                .collect(),
        )
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
