//! Capture files of what datagrams hold: sampled packets, discarded packets, or the datagrams
//! themselves.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use thalweg_wire::checksum::{checksum, pseudo_v6};
use thalweg_wire::ip::protocol::UDP;
use thalweg_wire::pcap;

use crate::decode::{Datagram, Records, Sample};
use crate::header::{HeaderProtocol, SampledHeader};
use crate::model::{FlowRecord, RawHeader};
use crate::text::Moment;
use crate::xdr::DecodeError;

/// Packets of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// Sampled headers.
    Sampled,
    /// Headers of discarded packets.
    Discarded,
    /// The datagrams, with the headers of the layers below made up where they are not known.
    Datagrams,
}

/// Writes a classic pcap file of Ethernet frames with microseconds, in little-endian order.
#[derive(Debug)]
pub struct PcapOut {
    packets: Packets,
    redact: bool,
    port: u16,
    out: pcap::File,
    skipped: u64,
}

/// The same length as in sflowtool's files.
const SNAP_LENGTH: u32 = 65_536;
const ETHERNET_BYTES: usize = 14;

impl PcapOut {
    /// A file whose header is in [`PcapOut::bytes`]. `port` is the one that datagrams were sent to.
    #[must_use]
    pub fn new(packets: Packets, port: u16) -> Self {
        let out = pcap::File::new(pcap::LINK_ETHERNET, SNAP_LENGTH);
        PcapOut { packets, redact: false, port, out, skipped: 0 }
    }

    /// Chooses whether to leave out what follows the TCP, UDP or other last known header.
    #[must_use]
    pub fn with_redaction(mut self, redact: bool) -> Self {
        self.redact = redact;
        self
    }

    /// Returns the bytes that were written and not yet cleared.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.out.bytes()
    }

    /// Forgets what has been written.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Sampled headers of link layers that the file cannot hold.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Appends the packets of a datagram.
    pub fn add(
        &mut self,
        time: Moment,
        source: Option<SocketAddr>,
        payload: &[u8],
    ) -> Vec<DecodeError> {
        if self.packets == Packets::Datagrams {
            self.datagram(time, source, payload);
            return Vec::new();
        }
        let datagram = match Datagram::parse(payload) {
            Ok(datagram) => datagram,
            Err(error) => return vec![error],
        };
        let mut errors = Vec::new();
        for sample in datagram.samples() {
            match (sample, self.packets) {
                (Ok(Sample::Flow(flow)), Packets::Sampled) => {
                    self.records(time, flow.records, &mut errors);
                }
                (Ok(Sample::Discard(discard)), Packets::Discarded) => {
                    self.records(time, discard.records, &mut errors);
                }
                (Ok(_), _) => {}
                (Err(error), _) => errors.push(error),
            }
        }
        errors
    }

    fn records<'a>(
        &mut self,
        time: Moment,
        records: Records<'a, FlowRecord<'a>>,
        errors: &mut Vec<DecodeError>,
    ) {
        for record in records {
            match record {
                Ok(FlowRecord::RawHeader(raw)) => self.header(time, &raw),
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
    }

    fn header(&mut self, time: Moment, raw: &RawHeader<'_>) {
        let mut bytes = raw.header;
        if self.redact {
            let parsed = SampledHeader::parse(raw.protocol, raw.header);
            bytes = &bytes[..parsed.payload_offset(raw).min(bytes.len())];
        }
        let ether_type: u16 = match raw.protocol {
            HeaderProtocol::ETHERNET => {
                self.record(time, raw.frame_length as usize, &[bytes]);
                return;
            }
            HeaderProtocol::IPV4 => 0x0800,
            HeaderProtocol::IPV6 => 0x86dd,
            _ => {
                self.skipped += 1;
                return;
            }
        };
        let link = link_header(ether_type);
        self.record(time, raw.frame_length as usize + link.len(), &[&link, bytes]);
    }

    fn datagram(&mut self, time: Moment, source: Option<SocketAddr>, payload: &[u8]) {
        let length = (8 + payload.len()) as u16;
        let from = source.map_or(0, |source| source.port());
        let mut udp = [0; 8];
        for (at, word) in [from, self.port, length].into_iter().enumerate() {
            udp[2 * at..2 * at + 2].copy_from_slice(&word.to_be_bytes());
        }
        match source.map(|source| source.ip()) {
            Some(IpAddr::V6(ip)) => {
                let mut header = [0; 40];
                header[0] = 0x60;
                header[4..6].copy_from_slice(&length.to_be_bytes());
                header[6..8].copy_from_slice(&[17, 64]);
                header[8..24].copy_from_slice(&ip.octets());
                // RFC 8200 section 8.1: the checksum is not optional.
                let mut sum = pseudo_v6(&ip, &Ipv6Addr::UNSPECIFIED, UDP, length.into());
                sum.add(&udp);
                sum.add(payload);
                udp[6..].copy_from_slice(&sum.finish_udp().to_be_bytes());
                self.frame(time, 0x86dd, &[&header, &udp, payload]);
            }
            ip => {
                let mut header = [0; 20];
                header[0] = 0x45;
                header[2..4].copy_from_slice(&length.saturating_add(20).to_be_bytes());
                header[8..10].copy_from_slice(&[64, 17]);
                if let Some(IpAddr::V4(ip)) = ip {
                    header[12..16].copy_from_slice(&ip.octets());
                }
                let sum = checksum(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                self.frame(time, 0x0800, &[&header, &udp, payload]);
            }
        }
    }

    fn frame(&mut self, time: Moment, ether_type: u16, parts: &[&[u8]; 3]) {
        let link = link_header(ether_type);
        let parts = [&link[..], parts[0], parts[1], parts[2]];
        let length = parts.iter().map(|part| part.len()).sum();
        self.record(time, length, &parts);
    }

    /// Appends a packet of `original` bytes, of which `parts` are there.
    fn record(&mut self, time: Moment, original: usize, parts: &[&[u8]]) {
        let at = time.seconds.saturating_mul(1_000_000).saturating_add(time.micros.into());
        self.out.packet(at, original as u32, parts.iter().copied());
    }
}

fn link_header(ether_type: u16) -> [u8; ETHERNET_BYTES] {
    let mut header = [0; ETHERNET_BYTES];
    header[12..].copy_from_slice(&ether_type.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::encode::{DatagramEncoder, FlowSampleOut, Push};
    use crate::model::{DataSource, Interface};
    use crate::pcapfile::PcapReader;

    const TIME: Moment = Moment { seconds: 1_795_218_988, micros: 487_342 };

    #[test]
    fn datagrams_are_read_back() {
        let sources = ["192.0.2.7:50000", "[2001:db8::7]:50001"].map(|s| s.parse().unwrap());
        let mut out = PcapOut::new(Packets::Datagrams, 6343);
        for source in sources {
            assert!(out.add(TIME, Some(source), b"odd").is_empty());
        }
        let mut reader = PcapReader::new(Cursor::new(out.bytes().to_vec()), 6343).unwrap();
        for source in sources {
            let found = reader.next_datagram().unwrap().unwrap();
            assert_eq!((found.source, found.time, found.payload), (source, TIME, &b"odd"[..]));
        }
        assert!(reader.next_datagram().unwrap().is_none());
    }

    fn one_sample(protocol: u32, header: &[u8]) -> Vec<u8> {
        let mut encoder = DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400);
        let sample = FlowSampleOut {
            sequence: 1,
            source: DataSource::interface(1),
            rate: 1,
            pool: 1,
            drops: 0,
            input: Interface::Index(1),
            output: Interface::UNKNOWN,
        };
        let protocol = HeaderProtocol(protocol);
        let raw = RawHeader { protocol, frame_length: 1500, stripped: 0, header };
        let pushed = encoder.flow_sample(&sample, None, &[FlowRecord::RawHeader(raw)]);
        assert_eq!(pushed.unwrap(), Push::Added);
        encoder.finish(0).unwrap().to_vec()
    }

    /// Caplen and original length of the only packet, and its bytes.
    fn written(protocol: u32, header: &[u8], redact: bool) -> Option<(u32, u32, Vec<u8>)> {
        let mut out = PcapOut::new(Packets::Sampled, 6343).with_redaction(redact);
        assert!(out.add(TIME, None, &one_sample(protocol, header)).is_empty());
        let packet = out.bytes().get(24..)?;
        let word = |at: usize| Some(u32::from_le_bytes(packet.get(at..at + 4)?.try_into().ok()?));
        Some((word(8)?, word(12)?, packet[16..].to_vec()))
    }

    #[test]
    fn bare_ip_gets_a_link_header() {
        let mut ip = vec![0; 48];
        (ip[0], ip[9]) = (0x45, 17);
        let (captured, original, bytes) = written(11, &ip, false).unwrap();
        assert_eq!((captured, original), (62, 1514));
        assert_eq!((&bytes[12..14], &bytes[14..]), (&[8, 0][..], &ip[..]));
        // 14 made up, 20 of IPv4, 8 of UDP.
        assert_eq!(written(11, &ip, true).unwrap().0, 42);
        assert!(written(13, &ip, false).is_none(), "MPLS cannot stand in the file");
    }

    #[test]
    fn redaction_keeps_headers_only() {
        let mut frame = vec![0; 100];
        frame[12..14].copy_from_slice(&[8, 0]);
        (frame[14], frame[23]) = (0x45, 6);
        frame[46] = 0x80; // 32 bytes of TCP header
        assert_eq!(written(1, &frame, true).unwrap().0, 14 + 20 + 32);
        frame[23] = 47;
        assert_eq!(written(1, &frame, true).unwrap().0, 14 + 20);
        frame[12..14].copy_from_slice(&[0x88, 0x47]);
        assert_eq!(written(1, &frame, true).unwrap().0, 14);
    }
}
