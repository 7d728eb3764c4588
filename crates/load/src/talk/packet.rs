//! Writes the frames of conversations, and reads them.

use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

use thalweg_wire::MacAddr;
use thalweg_wire::bytes;
use thalweg_wire::checksum;
use thalweg_wire::ip::protocol::{TCP, UDP};
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::tcp::TcpView;
use thalweg_wire::tcp::flag::SYN;
use thalweg_wire::udp::UdpView;

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
/// Maximum payload of a packet.
pub(super) const MAX_DATA: usize = 1460;
/// What we offer as receive window.
pub(super) const WINDOW: u16 = 65535;

/// Source and destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    V4(u32, u32),
    V6(u128, u128),
}

/// The fields of a transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp { seq: u32, ack: u32, flags: u8, window: u16, mss: Option<u16> },
    Udp,
}

/// A packet to send: its payload is one byte, repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) addresses: Addresses,
    /// Source and destination port.
    pub(super) ports: (u16, u16),
    pub(super) transport: Transport,
    /// Length of the payload, at most [`MAX_DATA`].
    pub(super) data: usize,
    pub(super) fill: u8,
}

/// A packet received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard<'a> {
    pub(super) addresses: Addresses,
    pub(super) ports: (u16, u16),
    pub(super) transport: Transport,
    pub(super) payload: &'a [u8],
}

/// Why a frame is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is none of ours: another protocol, a fragment, too short.
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

/// Writes bytes at an offset; the frame is long enough by construction.
fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(to) = frame.get_mut(at..at + N) {
        to.copy_from_slice(&bytes);
    }
}

impl Packet {
    fn l3(&self) -> usize {
        match self.addresses {
            Addresses::V4(..) => 20,
            Addresses::V6(..) => 40,
        }
    }

    fn l4(&self) -> usize {
        match self.transport {
            Transport::Tcp { mss: Some(_), .. } => TCP_HEADER + MSS_OPTION,
            Transport::Tcp { .. } => TCP_HEADER,
            Transport::Udp => UDP_HEADER,
        }
    }

    fn headers(&self) -> usize {
        ETHERNET + self.l3() + self.l4()
    }

    /// Length of the frame, without FCS.
    pub(super) fn frame_len(&self) -> usize {
        (self.headers() + self.data).max(SHORTEST)
    }

    /// Writes the frame, which has [`frame_len`](Self::frame_len) bytes. `macs`: source and
    /// destination.
    pub(super) fn write(&self, macs: (MacAddr, MacAddr), frame: &mut [u8]) {
        let (l3, l4) = (self.l3(), self.l4());
        put(frame, 0, macs.1.0);
        put(frame, 6, macs.0.0);
        let length = (l4 + self.data) as u16;
        let protocol = match self.transport {
            Transport::Tcp { .. } => TCP,
            Transport::Udp => UDP,
        };
        let addresses = match self.addresses {
            Addresses::V4(source, destination) => {
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
            Addresses::V6(source, destination) => {
                put(frame, 12, [0x86, 0xdd]);
                put(frame, ETHERNET, [0x60, 0, 0, 0]);
                put(frame, ETHERNET + 4, length.to_be_bytes());
                put(frame, ETHERNET + 6, [protocol, HOPS]);
                put(frame, ETHERNET + 8, source.to_be_bytes());
                put(frame, ETHERNET + 24, destination.to_be_bytes());
                sum128(source) + sum128(destination)
            }
        };
        let fill = u32::from(self.fill);
        let pairs = (fill << 8 | fill) * (self.data as u32 / 2);
        let payload = pairs + (fill << 8) * (self.data as u32 % 2);
        let ports = u32::from(self.ports.0) + u32::from(self.ports.1);
        let pseudo = addresses + u32::from(protocol) + u32::from(length) + ports + payload;
        let at = ETHERNET + l3;
        put(frame, at, self.ports.0.to_be_bytes());
        put(frame, at + 2, self.ports.1.to_be_bytes());
        match self.transport {
            Transport::Tcp { seq, ack, flags, window, mss } => {
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
            Transport::Udp => {
                put(frame, at + 4, length.to_be_bytes());
                let sum = !checksum::fold(pseudo + u32::from(length));
                put(frame, at + 6, if sum == 0 { [0xff; 2] } else { sum.to_be_bytes() });
            }
        }
        let Some(rest) = frame.get_mut(at + l4..) else { return };
        let (data, padding) = rest.split_at_mut(self.data.min(rest.len()));
        // black_box keeps the compiler from turning these into memset calls, which are slow on some
        // processors for a few bytes.
        let fill = black_box(self.fill);
        data.iter_mut().for_each(|byte| *byte = fill);
        padding.iter_mut().for_each(|byte| *byte = black_box(0));
    }
}

impl<'a> Heard<'a> {
    /// Reads a frame of a conversation.
    ///
    /// # Errors
    /// [`Unread`] says why it is none.
    #[inline]
    pub(super) fn read(frame: &'a [u8]) -> Result<Heard<'a>, Unread> {
        match Heard::read_plain(frame) {
            Some(heard) => Ok(heard),
            None => Heard::read_any(frame),
        }
    }

    /// Reads the most frequent kind of frame: IPv4 and TCP, valid, and without options.
    #[inline]
    fn read_plain(frame: &'a [u8]) -> Option<Heard<'a>> {
        const IP: usize = ETHERNET;
        const AT: usize = ETHERNET + 20;
        let (h, rest) = frame.split_first_chunk::<{ AT + TCP_HEADER }>()?;
        let (be16, be32) = (|at| bytes::be16(h, at), |at| bytes::be32(h, at));
        let plain = (be16(12) == 0x0800)
            & (h[IP] == 0x45)
            & (h[IP + 9] == TCP)
            & (be16(IP + 6) & 0x3fff == 0)
            & (h[AT + 12] >> 4 == 5)
            & (h[AT + 13] & SYN == 0);
        if !plain {
            return None;
        }
        let total = be16(IP + 2);
        let payload = rest.get(..usize::from(total).checked_sub(40)?)?;
        let (ip, mut tcp) = checksum::ipv4_and_tcp(h[IP..].first_chunk()?);
        tcp.add_u16(u16::from(TCP) + (total - 20));
        if !payload.is_empty() {
            tcp.add(payload);
        }
        if !ip.is_valid() || !tcp.is_valid() {
            return None;
        }
        Some(Heard {
            addresses: Addresses::V4(be32(IP + 12), be32(IP + 16)),
            ports: (be16(AT), be16(AT + 2)),
            transport: Transport::Tcp {
                seq: be32(AT + 4),
                ack: be32(AT + 8),
                flags: h[AT + 13],
                window: be16(AT + 14),
                mss: None,
            },
            payload,
        })
    }

    fn read_any(frame: &'a [u8]) -> Result<Heard<'a>, Unread> {
        let l3 = frame.get(ETHERNET..).ok_or(Unread::Foreign)?;
        let (addresses, protocol, l4, pseudo) = match frame.get(12..ETHERNET) {
            Some([0x08, 0x00]) => {
                let ip = Ipv4View::parse(l3).map_err(|_| Unread::Foreign)?;
                if ip.is_fragment() {
                    return Err(Unread::Foreign);
                }
                if !ip.checksum_ok() {
                    return Err(Unread::Checksum);
                }
                let addresses = Addresses::V4(ip.src().to_bits(), ip.dst().to_bits());
                (addresses, ip.protocol(), ip.payload(), ip.pseudo_header())
            }
            Some([0x86, 0xdd]) => {
                let ip = Ipv6View::parse(l3).map_err(|_| Unread::Foreign)?;
                // We send no extension headers, and a device adds none.
                let length = ip.payload().len() as u32;
                let addresses = Addresses::V6(ip.src().to_bits(), ip.dst().to_bits());
                let protocol = ip.next_header();
                (addresses, protocol, ip.payload(), ip.pseudo_header(protocol, length))
            }
            _ => return Err(Unread::Foreign),
        };
        match protocol {
            TCP => {
                let tcp = TcpView::parse(l4).map_err(|_| Unread::Foreign)?;
                if !tcp.checksum_ok(pseudo) {
                    return Err(Unread::Checksum);
                }
                let transport = Transport::Tcp {
                    seq: tcp.seq(),
                    ack: tcp.ack(),
                    flags: tcp.flags(),
                    window: tcp.window(),
                    mss: tcp.mss(),
                };
                let ports = (tcp.src_port(), tcp.dst_port());
                Ok(Heard { addresses, ports, transport, payload: tcp.payload() })
            }
            UDP => {
                let udp = UdpView::parse(l4).map_err(|_| Unread::Foreign)?;
                if !udp.checksum_ok(pseudo) {
                    return Err(Unread::Checksum);
                }
                let ports = (udp.src_port(), udp.dst_port());
                Ok(Heard { addresses, ports, transport: Transport::Udp, payload: udp.payload() })
            }
            _ => Err(Unread::Foreign),
        }
    }
}

impl Addresses {
    /// The same, seen from the other side.
    pub(super) fn reversed(self) -> Addresses {
        match self {
            Addresses::V4(source, destination) => Addresses::V4(destination, source),
            Addresses::V6(source, destination) => Addresses::V6(destination, source),
        }
    }

    /// Puts two addresses of one family together.
    pub(super) fn of(source: std::net::IpAddr, destination: std::net::IpAddr) -> Option<Addresses> {
        use std::net::IpAddr::{V4, V6};
        match (source, destination) {
            (V4(source), V4(destination)) => {
                Some(Addresses::V4(source.to_bits(), destination.to_bits()))
            }
            (V6(source), V6(destination)) => {
                Some(Addresses::V6(source.to_bits(), destination.to_bits()))
            }
            _ => None,
        }
    }

    /// Source and destination.
    pub(super) fn pair(self) -> (std::net::IpAddr, std::net::IpAddr) {
        match self {
            Addresses::V4(source, destination) => {
                (Ipv4Addr::from_bits(source).into(), Ipv4Addr::from_bits(destination).into())
            }
            Addresses::V6(source, destination) => {
                (Ipv6Addr::from_bits(source).into(), Ipv6Addr::from_bits(destination).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses() -> impl Strategy<Value = Addresses> {
        prop_oneof![
            any::<(u32, u32)>().prop_map(|(a, b)| Addresses::V4(a, b)),
            any::<(u128, u128)>().prop_map(|(a, b)| Addresses::V6(a, b)),
        ]
    }

    fn transport() -> impl Strategy<Value = Transport> {
        let tcp = any::<(u32, u32, u8, u16, Option<u16>)>();
        prop_oneof![
            Just(Transport::Udp),
            tcp.prop_map(|(seq, ack, flags, window, mss)| Transport::Tcp {
                seq,
                ack,
                flags,
                window,
                mss
            }),
        ]
    }

    const MACS: (MacAddr, MacAddr) = (MacAddr([1; 6]), MacAddr([2; 6]));

    proptest! {
        #[test]
        fn what_is_written_is_read(
            addresses in addresses(), ports: (u16, u16), transport in transport(),
            data in 0..MAX_DATA, fill: u8, flip: prop::sample::Index, with in 1u8..,
        ) {
            let packet = Packet { addresses, ports, transport, data, fill };
            let mut frame = vec![0xaa; packet.frame_len()];
            packet.write(MACS, &mut frame);
            let payload = vec![fill; data];
            let heard = Heard { addresses, ports, transport, payload: &payload };
            prop_assert_eq!(Heard::read(&frame), Ok(heard));
            let at = flip.index(frame.len());
            frame[at] ^= with;
            if let Ok(read) = Heard::read(&frame) {
                // Checksums do not cover Ethernet addresses, padding, and the version, class, flow
                // label and hop limit of IPv6; and a checksum of zero has two representations.
                let (l3, l4) = (packet.l3(), packet.l4());
                let sum = match transport {
                    Transport::Udp => ETHERNET + l3 + 6,
                    Transport::Tcp { .. } => ETHERNET + l3 + 16,
                };
                let free = at < 14 || at >= ETHERNET + l3 + l4 + data
                    || (l3 == 40 && (at < 18 || at == 21)) || at / 2 == sum / 2
                    || (l3 == 20 && at / 2 == 12);
                prop_assert!(free, "{at}");
                // UDP without a checksum is valid.
                prop_assert_eq!(read, heard);
            }
        }

        /// The fast reader agrees with the general one on everything it accepts.
        #[test]
        fn fast_reader_agrees_with_the_general_one(
            addresses: (u32, u32), ports: (u16, u16), data in 0usize..20, window: u16,
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let transport = Transport::Tcp { seq: 1, ack: 2, flags: 16, window, mss: None };
            let addresses = Addresses::V4(addresses.0, addresses.1);
            let packet = Packet { addresses, ports, transport, data, fill: 7 };
            let mut frame = vec![0; packet.frame_len()];
            packet.write(MACS, &mut frame);
            for (at, with) in flips {
                let at = at.index(frame.len());
                frame[at] = with;
            }
            if let Some(short) = Heard::read_plain(&frame) {
                prop_assert_eq!(Heard::read_any(&frame), Ok(short));
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Heard::read(&bytes);
        }
    }
}
