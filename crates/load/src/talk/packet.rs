//! Writes the frames of conversations, and reads them.

use std::hint::black_box;

use thalweg_wire::MacAddr;
use thalweg_wire::bytes;
use thalweg_wire::checksum;
use thalweg_wire::ip::protocol::{TCP, UDP};
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::tcp::TcpView;
use thalweg_wire::udp::UdpView;

use super::Protocol;

/// Length of the Ethernet header.
const ETHERNET: usize = 14;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// Length of the option "maximum segment size".
const MSS_OPTION: usize = 4;
/// Minimum frame length, without FCS.
const SHORTEST: usize = 60;
/// Hop limit of what is sent.
const HOPS: u8 = 64;
/// Maximum length of an IP packet: what Ethernet carries.
const MTU: u16 = 1500;
/// Receive window that we offer.
pub(super) const WINDOW: u16 = 65535;

/// Maximum payload of a packet, without options.
pub(super) const fn max_data(protocol: Protocol, is_v4: bool) -> u16 {
    let ip = if is_v4 { 20 } else { 40 };
    MTU - ip
        - match protocol {
            Protocol::Tcp => TCP_HEADER as u16,
            Protocol::Udp => UDP_HEADER as u16,
        }
}

/// A packet to send: its payload is one byte, repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Addresses; those of IPv4 in the low 32 bits.
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) is_v4: bool,
    /// Source and destination port.
    pub(super) ports: (u16, u16),
    pub(super) protocol: Protocol,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) mss: Option<u16>,
    /// Length of the payload, at most [`max_data`].
    pub(super) data: usize,
    pub(super) fill: u8,
}

/// A packet received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard<'a> {
    /// Addresses; those of IPv4 in the low 32 bits.
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) is_v4: bool,
    /// Source and destination port.
    pub(super) ports: (u16, u16),
    pub(super) protocol: Protocol,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) mss: Option<u16>,
    pub(super) payload: &'a [u8],
}

/// A frame that has arrived, read once for all who might take it.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    pub(super) heard: Result<Heard<'a>, Unread>,
    /// Length of the frame.
    pub(super) length: usize,
}

impl<'a> Incoming<'a> {
    /// Reads a frame, from its Ethernet header on.
    #[inline(always)]
    pub fn read(frame: &'a [u8]) -> Incoming<'a> {
        Incoming { heard: Heard::read(frame), length: frame.len() }
    }
}

/// Reason why a frame is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Frame of others: another protocol, a fragment, too short.
    Foreign,
    /// One of its checksums is wrong.
    Checksum,
}

/// The sum of a number's 16-bit halves.
fn halves(word: u32) -> u32 {
    (word >> 16) + (word & 0xffff)
}

fn sum128(word: u128) -> u32 {
    [0, 32, 64, 96].iter().map(|shift| halves((word >> shift) as u32)).sum()
}

/// Parts that the frames of one side have in common.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// Source and destination.
    macs: (MacAddr, MacAddr),
    /// The shortest frame of IPv4 and TCP without options, with zeros for what differs.
    plain: [u8; SHORTEST],
    /// The sum of what is the same in all IPv4 headers, and in all TCP headers without options.
    ip: u64,
    tcp: u64,
}

/// A segment over IPv4 without options, most of all that is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub(super) source: u32,
    pub(super) destination: u32,
    /// Source and destination port.
    pub(super) ports: (u16, u16),
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// Length of the payload, at most [`max_data`].
    pub(super) data: usize,
    pub(super) fill: u8,
}

impl Plain {
    /// Length of the frame, without FCS.
    #[inline(always)]
    pub(super) fn frame_len(&self) -> usize {
        (ETHERNET + 20 + TCP_HEADER + self.data).max(SHORTEST)
    }

    /// Writes the frame, which has [`frame_len`](Self::frame_len) bytes, as [`Packet::write`] does
    /// with the window that we offer.
    #[inline(always)]
    pub(super) fn write(&self, template: &Template, frame: &mut [u8]) {
        const IP: usize = ETHERNET;
        const AT: usize = ETHERNET + 20;
        const DATA: usize = AT + TCP_HEADER;
        let Plain { source, destination, seq, ack, flags, .. } = *self;
        let Some(h) = frame.first_chunk_mut::<SHORTEST>() else { return };
        *h = template.plain;
        let total = (40 + self.data) as u16;
        let ports = u32::from(self.ports.0) << 16 | u32::from(self.ports.1);
        // Words of 32 bits are added as they are, and folded once.
        let addresses = u64::from(source) + u64::from(destination);
        let sum = template.ip + u64::from(total) + addresses;
        h[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
        h[IP + 10..IP + 12].copy_from_slice(&(!fold(sum)).to_be_bytes());
        h[IP + 12..IP + 16].copy_from_slice(&source.to_be_bytes());
        h[IP + 16..IP + 20].copy_from_slice(&destination.to_be_bytes());
        h[AT..AT + 4].copy_from_slice(&ports.to_be_bytes());
        h[AT + 4..AT + 8].copy_from_slice(&seq.to_be_bytes());
        h[AT + 8..AT + 12].copy_from_slice(&ack.to_be_bytes());
        h[AT + 13] = flags;
        let mut sum = addresses + template.tcp + u64::from(total) + u64::from(flags);
        sum += u64::from(ports) + u64::from(seq) + u64::from(ack);
        if self.data > 0 {
            sum += u64::from(filled_sum(self.fill, self.data));
        }
        h[AT + 16..AT + 18].copy_from_slice(&(!fold(sum)).to_be_bytes());
        if self.data > 0
            && let Some(data) = frame.get_mut(DATA..DATA + self.data)
        {
            fill(data, self.fill);
        }
    }
}

/// Folds a sum of 16-bit words, or of wider ones, to 16 bits.
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    checksum::fold(sum as u32)
}

/// The sum of the 16-bit words of a payload that is one byte, repeated.
#[inline(always)]
fn filled_sum(fill: u8, data: usize) -> u32 {
    let (fill, data) = (u32::from(fill), data as u32);
    (fill << 8 | fill) * (data / 2) + (fill << 8) * (data % 2)
}

impl Template {
    /// `macs`: source and destination.
    pub(super) fn new(macs: (MacAddr, MacAddr)) -> Template {
        let mut plain = [0; SHORTEST];
        put(&mut plain, 0, macs.1.0);
        put(&mut plain, 6, macs.0.0);
        put(&mut plain, 12, [8, 0]);
        put(&mut plain, ETHERNET, [0x45, 0, 0, 0, 0, 0, 0x40, 0, HOPS, TCP]);
        put(&mut plain, ETHERNET + 32, [0x50, 0]);
        put(&mut plain, ETHERNET + 34, WINDOW.to_be_bytes());
        let ip = 0x4500 + 0x4000 + (u64::from(HOPS) << 8 | u64::from(TCP));
        // The length in the pseudo-header is 20 less than that of the IP packet.
        let tcp = u64::from(TCP) + 0x5000 + u64::from(WINDOW) + (0xffff - 20);
        Template { macs, plain, ip, tcp }
    }
}

/// Fills messages with a byte.
#[inline]
fn fill(to: &mut [u8], with: u8) {
    // black_box keeps the compiler from turning this into calls of memset, which are slow on some
    // processors for a few bytes.
    let word = black_box([with; 8]);
    match to.last_chunk_mut::<8>() {
        Some(last) => *last = word,
        None => to.iter_mut().for_each(|byte| *byte = black_box(with)),
    }
    to.as_chunks_mut::<8>().0.iter_mut().for_each(|chunk| *chunk = word);
}

/// True if all bytes are this one.
#[inline]
pub(super) fn is_filled(bytes: &[u8], with: u8) -> bool {
    let word = u64::from_ne_bytes([with; 8]);
    let differs = |chunk: &[u8; 8]| u64::from_ne_bytes(*chunk) ^ word;
    let last = match bytes.last_chunk::<8>() {
        Some(last) => differs(last),
        None => u64::from(bytes.iter().any(|byte| *byte != with)),
    };
    bytes.as_chunks::<8>().0.iter().fold(last, |sum, chunk| sum | differs(chunk)) == 0
}

/// Writes bytes at an offset; the frame is long enough by construction.
fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(to) = frame.get_mut(at..at + N) {
        to.copy_from_slice(&bytes);
    }
}

impl Packet {
    fn l3(&self) -> usize {
        if self.is_v4 { 20 } else { 40 }
    }

    fn l4(&self) -> usize {
        match (self.protocol, self.mss) {
            (Protocol::Tcp, Some(_)) => TCP_HEADER + MSS_OPTION,
            (Protocol::Tcp, None) => TCP_HEADER,
            (Protocol::Udp, _) => UDP_HEADER,
        }
    }

    fn headers(&self) -> usize {
        ETHERNET + self.l3() + self.l4()
    }

    /// Length of the frame, without FCS.
    pub(super) fn frame_len(&self) -> usize {
        (self.headers() + self.data).max(SHORTEST)
    }

    /// Writes the frame, which has [`frame_len`](Self::frame_len) bytes.
    #[inline(always)]
    pub(super) fn write(&self, template: &Template, frame: &mut [u8]) {
        match (self.is_v4, self.protocol) {
            (true, Protocol::Tcp) => self.write_plain(template, frame),
            _ => self.write_any(template.macs, frame),
        }
    }

    /// Writes the most frequent kind of frame: IPv4 and TCP.
    #[inline(always)]
    fn write_plain(&self, template: &Template, frame: &mut [u8]) {
        let (source, destination) = (self.source as u32, self.destination as u32);
        let Packet { seq, ack, flags, window, .. } = *self;
        const IP: usize = ETHERNET;
        const AT: usize = ETHERNET + 20;
        const DATA: usize = AT + TCP_HEADER;
        let Some(h) = frame.first_chunk_mut::<SHORTEST>() else { return };
        *h = template.plain;
        let (words, option) = match self.mss {
            None => (0x50, 0),
            Some(mss) => {
                let [high, low] = mss.to_be_bytes();
                h[DATA..DATA + MSS_OPTION].copy_from_slice(&[2, 4, high, low]);
                (0x60, 0x0204 + u32::from(mss))
            }
        };
        let header = 20 + usize::from(words >> 2);
        let total = (header + self.data) as u16;
        // The sum over constant fields is precomputed, and the rest is added from registers.
        let addresses = halves(source) + halves(destination);
        let fixed = 0x4500 + 0x4000 + (u32::from(HOPS) << 8 | u32::from(TCP));
        let sum = !checksum::fold(fixed + u32::from(total) + addresses);
        h[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
        h[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
        h[IP + 12..IP + 16].copy_from_slice(&source.to_be_bytes());
        h[IP + 16..IP + 20].copy_from_slice(&destination.to_be_bytes());
        h[AT..AT + 2].copy_from_slice(&self.ports.0.to_be_bytes());
        h[AT + 2..AT + 4].copy_from_slice(&self.ports.1.to_be_bytes());
        h[AT + 4..AT + 8].copy_from_slice(&seq.to_be_bytes());
        h[AT + 8..AT + 12].copy_from_slice(&ack.to_be_bytes());
        h[AT + 12..AT + 14].copy_from_slice(&[words, flags]);
        h[AT + 14..AT + 16].copy_from_slice(&window.to_be_bytes());
        let ports = u32::from(self.ports.0) + u32::from(self.ports.1);
        let fixed = u32::from(TCP) + (u32::from(words) << 8) + u32::from(window) + option;
        let lengths = u32::from(total) - 20 + u32::from(flags);
        let numbers = halves(seq) + halves(ack);
        let payload = if self.data > 0 { self.payload_sum() } else { 0 };
        let sum = addresses + ports + fixed + lengths + numbers + payload;
        h[AT + 16..AT + 18].copy_from_slice(&(!checksum::fold(sum)).to_be_bytes());
        if self.data > 0 {
            let at = ETHERNET + header;
            if let Some(data) = frame.get_mut(at..at + self.data) {
                fill(data, self.fill);
            }
        }
    }

    /// The sum of the payload's 16-bit words.
    #[inline]
    fn payload_sum(&self) -> u32 {
        filled_sum(self.fill, self.data)
    }

    /// Writes payload and padding.
    #[inline]
    fn fill(&self, rest: &mut [u8]) {
        let (data, padding) = rest.split_at_mut(self.data.min(rest.len()));
        fill(data, self.fill);
        fill(padding, 0);
    }

    fn write_any(&self, macs: (MacAddr, MacAddr), frame: &mut [u8]) {
        let (l3, l4) = (self.l3(), self.l4());
        put(frame, 0, macs.1.0);
        put(frame, 6, macs.0.0);
        let length = (l4 + self.data) as u16;
        let protocol = match self.protocol {
            Protocol::Tcp => TCP,
            Protocol::Udp => UDP,
        };
        let addresses = match self.is_v4 {
            true => {
                let (source, destination) = (self.source as u32, self.destination as u32);
                put(frame, 12, [8, 0]);
                let total = length + 20;
                put(frame, ETHERNET, [0x45, 0, 0, 0, 0, 0, 0x40, 0, HOPS, protocol]);
                put(frame, ETHERNET + 2, total.to_be_bytes());
                let sum = halves(source) + halves(destination);
                let fixed = 0x4500 + 0x4000 + (u32::from(HOPS) << 8 | u32::from(protocol));
                let header = !checksum::fold(fixed + u32::from(total) + sum);
                put(frame, ETHERNET + 10, header.to_be_bytes());
                put(frame, ETHERNET + 12, source.to_be_bytes());
                put(frame, ETHERNET + 16, destination.to_be_bytes());
                sum
            }
            false => {
                let (source, destination) = (self.source, self.destination);
                put(frame, 12, [0x86, 0xdd]);
                put(frame, ETHERNET, [0x60, 0, 0, 0]);
                put(frame, ETHERNET + 4, length.to_be_bytes());
                put(frame, ETHERNET + 6, [protocol, HOPS]);
                put(frame, ETHERNET + 8, source.to_be_bytes());
                put(frame, ETHERNET + 24, destination.to_be_bytes());
                sum128(source) + sum128(destination)
            }
        };
        let ports = u32::from(self.ports.0) + u32::from(self.ports.1);
        let pseudo =
            addresses + u32::from(protocol) + u32::from(length) + ports + self.payload_sum();
        let at = ETHERNET + l3;
        put(frame, at, self.ports.0.to_be_bytes());
        put(frame, at + 2, self.ports.1.to_be_bytes());
        match self.protocol {
            Protocol::Tcp => {
                let Packet { seq, ack, flags, window, mss, .. } = *self;
                put(frame, at + 4, seq.to_be_bytes());
                put(frame, at + 8, ack.to_be_bytes());
                let words = (l4 as u8 / 4) << 4;
                put(frame, at + 12, [words, flags]);
                put(frame, at + 14, window.to_be_bytes());
                let option = mss.map_or(0, |mss| 0x0204 + u32::from(mss));
                let fixed = (u32::from(words) << 8 | u32::from(flags)) + u32::from(window);
                let numbers = halves(seq) + halves(ack);
                let sum = !checksum::fold(pseudo + fixed + numbers + option);
                put(frame, at + 16, sum.to_be_bytes());
                put(frame, at + 18, [0; 2]);
                if let Some(mss) = mss {
                    let [high, low] = mss.to_be_bytes();
                    put(frame, at + TCP_HEADER, [2, 4, high, low]);
                }
            }
            Protocol::Udp => {
                put(frame, at + 4, length.to_be_bytes());
                let sum = !checksum::fold(pseudo + u32::from(length));
                put(frame, at + 6, if sum == 0 { [0xff; 2] } else { sum.to_be_bytes() });
            }
        }
        if let Some(rest) = frame.get_mut(at + l4..) {
            self.fill(rest);
        }
    }
}

impl<'a> Heard<'a> {
    /// Reads a frame of a conversation.
    ///
    /// # Errors
    /// [`Unread`] says why it is none.
    #[inline(always)]
    pub(super) fn read(frame: &'a [u8]) -> Result<Heard<'a>, Unread> {
        match Heard::read_plain(frame) {
            Some(heard) => Ok(heard),
            None => Heard::read_any(frame),
        }
    }

    /// Reads the most frequent kind of frame: IPv4 and TCP, valid, and without options but a SYN's
    /// segment size.
    #[inline(always)]
    pub(super) fn read_plain(frame: &'a [u8]) -> Option<Heard<'a>> {
        const IP: usize = ETHERNET;
        const AT: usize = ETHERNET + 20;
        let (h, rest) = frame.split_first_chunk::<{ AT + TCP_HEADER }>()?;
        let (be16, be32) = (|at| bytes::be16(h, at), |at| bytes::be32(h, at));
        let plain = (be16(12) == 0x0800)
            & (h[IP] == 0x45)
            & (h[IP + 9] == TCP)
            & (be16(IP + 6) & 0x3fff == 0)
            & (matches!(h[AT + 12] >> 4, 5 | 6));
        if !plain {
            return None;
        }
        let total = be16(IP + 2);
        let mut payload = rest.get(..usize::from(total).checked_sub(40)?)?;
        let (ip, mut tcp) = checksum::ipv4_and_tcp(h[IP..].first_chunk()?);
        tcp.add_u16(u16::from(TCP) + (total - 20));
        if !payload.is_empty() {
            tcp.add(payload);
        }
        let mut mss = None;
        if h[AT + 12] >> 4 == 6 {
            let (option, behind) = payload.split_first_chunk::<MSS_OPTION>()?;
            let [2, 4, high, low] = *option else { return None };
            mss = Some(u16::from_be_bytes([high, low]));
            payload = behind;
        }
        if !ip.is_valid() || !tcp.is_valid() {
            return None;
        }
        Some(Heard {
            source: be32(IP + 12).into(),
            destination: be32(IP + 16).into(),
            is_v4: true,
            ports: (be16(AT), be16(AT + 2)),
            protocol: Protocol::Tcp,
            seq: be32(AT + 4),
            ack: be32(AT + 8),
            flags: h[AT + 13],
            window: be16(AT + 14),
            mss,
            payload,
        })
    }

    #[cold]
    fn read_any(frame: &'a [u8]) -> Result<Heard<'a>, Unread> {
        let l3 = frame.get(ETHERNET..).ok_or(Unread::Foreign)?;
        let (source, destination, protocol, l4, pseudo) = match frame.get(12..ETHERNET) {
            Some([0x08, 0x00]) => {
                let ip = Ipv4View::parse(l3).map_err(|_| Unread::Foreign)?;
                if ip.is_fragment() {
                    return Err(Unread::Foreign);
                }
                if !ip.checksum_ok() {
                    return Err(Unread::Checksum);
                }
                let (source, destination) = (ip.src().to_bits(), ip.dst().to_bits());
                let pseudo = ip.pseudo_header();
                (source.into(), destination.into(), ip.protocol(), ip.payload(), pseudo)
            }
            Some([0x86, 0xdd]) => {
                let ip = Ipv6View::parse(l3).map_err(|_| Unread::Foreign)?;
                // We send no extension headers, and a device adds none.
                let length = ip.payload().len() as u32;
                let (source, destination) = (ip.src().to_bits(), ip.dst().to_bits());
                let protocol = ip.next_header();
                let pseudo = ip.pseudo_header(protocol, length);
                (source, destination, protocol, ip.payload(), pseudo)
            }
            _ => return Err(Unread::Foreign),
        };
        let heard = Heard {
            source,
            destination,
            is_v4: frame[12..ETHERNET] == [8, 0],
            ports: (0, 0),
            protocol: Protocol::Udp,
            seq: 0,
            ack: 0,
            flags: 0,
            window: 0,
            mss: None,
            payload: &[],
        };
        match protocol {
            TCP => {
                let tcp = TcpView::parse(l4).map_err(|_| Unread::Foreign)?;
                if !tcp.checksum_ok(pseudo) {
                    return Err(Unread::Checksum);
                }
                Ok(Heard {
                    ports: (tcp.src_port(), tcp.dst_port()),
                    protocol: Protocol::Tcp,
                    seq: tcp.seq(),
                    ack: tcp.ack(),
                    flags: tcp.flags(),
                    window: tcp.window(),
                    mss: tcp.mss(),
                    payload: tcp.payload(),
                    ..heard
                })
            }
            UDP => {
                let udp = UdpView::parse(l4).map_err(|_| Unread::Foreign)?;
                if !udp.checksum_ok(pseudo) {
                    return Err(Unread::Checksum);
                }
                let ports = (udp.src_port(), udp.dst_port());
                Ok(Heard { ports, payload: udp.payload(), ..heard })
            }
            _ => Err(Unread::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MACS: (MacAddr, MacAddr) = (MacAddr([1; 6]), MacAddr([2; 6]));

    prop_compose! {
        fn packets()(
            addresses: (u128, u128), is_v4: bool, ports: (u16, u16), udp: bool,
            numbers: (u32, u32), flags: u8, window: u16, mss: Option<u16>, data in 0..1472usize,
            fill: u8,
        ) -> Packet {
            let bits = if is_v4 { u128::from(u32::MAX) } else { u128::MAX };
            let packet = Packet {
                source: addresses.0 & bits,
                destination: addresses.1 & bits,
                is_v4,
                ports,
                protocol: Protocol::Tcp,
                seq: numbers.0,
                ack: numbers.1,
                flags,
                window,
                mss,
                data,
                fill,
            };
            match udp {
                true => Packet {
                    protocol: Protocol::Udp, seq: 0, ack: 0, flags: 0, window: 0, mss: None,
                    ..packet
                },
                false => packet,
            }
        }
    }

    fn heard<'a>(packet: &Packet, payload: &'a [u8]) -> Heard<'a> {
        let Packet { source, destination, is_v4, ports, protocol, seq, ack, .. } = *packet;
        let Packet { flags, window, mss, .. } = *packet;
        Heard { source, destination, is_v4, ports, protocol, seq, ack, flags, window, mss, payload }
    }

    #[test]
    fn the_longest_packets_fill_ethernet() {
        for (protocol, is_v4, most) in [
            (Protocol::Tcp, true, 1460),
            (Protocol::Tcp, false, 1440),
            (Protocol::Udp, true, 1472),
            (Protocol::Udp, false, 1452),
        ] {
            assert_eq!(max_data(protocol, is_v4), most);
            let packet = Packet {
                source: 1,
                destination: 2,
                is_v4,
                ports: (3, 4),
                protocol,
                seq: 0,
                ack: 0,
                flags: 0,
                window: 0,
                mss: None,
                data: most.into(),
                fill: 0,
            };
            assert_eq!(packet.frame_len(), ETHERNET + 1500);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(packet in packets(), flip: prop::sample::Index, with in 1u8..) {
            let mut frame = vec![0xaa; packet.frame_len()];
            packet.write(&Template::new(MACS), &mut frame);
            let payload = vec![packet.fill; packet.data];
            prop_assert_eq!(Heard::read(&frame), Ok(heard(&packet, &payload)));
            let at = flip.index(frame.len());
            frame[at] ^= with;
            if let Ok(read) = Heard::read(&frame) {
                // Checksums do not cover Ethernet addresses, padding, and the version, class, flow
                // label and hop limit of IPv6; and a checksum of zero has two representations.
                let (l3, l4) = (packet.l3(), packet.l4());
                let sum = match packet.protocol {
                    Protocol::Udp => ETHERNET + l3 + 6,
                    Protocol::Tcp => ETHERNET + l3 + 16,
                };
                let free = at < 14 || at >= ETHERNET + l3 + l4 + packet.data
                    || (l3 == 40 && (at < 18 || at == 21)) || at / 2 == sum / 2
                    || (l3 == 20 && at / 2 == 12);
                prop_assert!(free, "{at}");
                prop_assert_eq!(read, heard(&packet, &payload));
            }
        }

        /// The fast reader agrees with the general one on everything it accepts, and the fast
        /// writer writes the same.
        #[test]
        fn fast_ways_agree_with_the_general_ones(
            packet in packets(),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let packet = Packet { data: packet.data % 20, protocol: Protocol::Tcp, ..packet };
            let mut frame = vec![0; packet.frame_len()];
            packet.write(&Template::new(MACS), &mut frame);
            let mut other = vec![0; packet.frame_len()];
            packet.write_any(MACS, &mut other);
            prop_assert_eq!(&frame, &other);
            if packet.is_v4 {
                let packet = Packet { mss: None, window: WINDOW, ..packet };
                let Packet { ports, seq, ack, flags, data, fill, .. } = packet;
                let (source, destination) = (packet.source as u32, packet.destination as u32);
                let plain = Plain { source, destination, ports, seq, ack, flags, data, fill };
                let mut short = vec![0xaa; plain.frame_len()];
                plain.write(&Template::new(MACS), &mut short);
                let mut other = vec![0xaa; packet.frame_len()];
                packet.write_any(MACS, &mut other);
                prop_assert_eq!(short, other);
            }
            for (at, with) in flips {
                let at = at.index(frame.len());
                frame[at] = with;
            }
            if let Some(short) = Heard::read_plain(&frame) {
                prop_assert_eq!(Heard::read_any(&frame), Ok(short));
            }
        }

        #[test]
        fn filled_bytes_are_known(length in 0usize..40, with: u8, at: prop::sample::Index, flip: u8) {
            let mut bytes = vec![!with; length];
            fill(&mut bytes, with);
            prop_assert_eq!(&bytes, &vec![with; length]);
            prop_assert!(is_filled(&bytes, with));
            if length > 0 {
                bytes[at.index(length)] ^= flip;
                prop_assert_eq!(is_filled(&bytes, with), flip == 0);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Heard::read(&bytes);
        }
    }
}
