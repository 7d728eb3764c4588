//! Capture files of every kind, built byte by byte.

#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Read};
use std::net::IpAddr;

use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow::pcapfile::{CaptureError, CaptureStats, PcapReader};

const PAYLOAD: &[u8] = b"sFlow datagram";

fn udp(port: u16) -> Vec<u8> {
    let mut out = 50_000_u16.to_be_bytes().to_vec();
    out.extend(port.to_be_bytes());
    out.extend((8 + PAYLOAD.len() as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(PAYLOAD);
    out
}

fn ipv4(fragment: u16, udp: &[u8]) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend((20 + udp.len() as u16).to_be_bytes());
    out.extend([0, 1]);
    out.extend(fragment.to_be_bytes());
    out.extend([64, 17, 0, 0, 192, 0, 2, 7, 192, 0, 2, 8]);
    out.extend(udp);
    out
}

fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut out = vec![0x60, 0, 0, 0];
    out.extend((rest.len() as u16).to_be_bytes());
    out.extend([next, 64]);
    out.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    out.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8]);
    out.extend(rest);
    out
}

fn ethernet(tags: &[u16], ether_type: u16, rest: &[u8]) -> Vec<u8> {
    let mut out = vec![2; 12];
    for tag in tags {
        out.extend(tag.to_be_bytes());
        out.extend([0, 100]);
    }
    out.extend(ether_type.to_be_bytes());
    out.extend(rest);
    out
}

/// Writes numbers in the byte order of the file.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn u32(self, n: u32) -> [u8; 4] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn u16(self, n: u16) -> [u8; 2] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn pcap(self, magic: u32, link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
        let mut out = self.u32(magic).to_vec();
        out.extend(self.u16(2));
        out.extend(self.u16(4));
        for word in [0, 0, 65_535, link] {
            out.extend(self.u32(word));
        }
        for packet in packets {
            for word in [1_795_218_988, 487_342, packet.len() as u32, packet.len() as u32] {
                out.extend(self.u32(word));
            }
            out.extend(packet);
        }
        out
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(padded as u32 + 12);
        let mut out = self.u32(kind).to_vec();
        out.extend(length);
        out.extend(body);
        out.resize(8 + padded, 0);
        out.extend(length);
        out
    }

    /// A section with an interface whose clock ticks in nanoseconds.
    fn pcapng(self, link: u16, packets: &[Vec<u8>]) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend([0xff; 8]);
        let mut out = self.block(0x0a0d_0d0a, &body);
        let mut body = self.u16(link).to_vec();
        body.extend(self.u16(0));
        body.extend(self.u32(0));
        body.extend(self.u16(9));
        body.extend(self.u16(1));
        body.extend([9, 0, 0, 0]);
        body.extend([0, 0, 0, 0]);
        out.extend(self.block(1, &body));
        for packet in packets {
            let ticks = 1_795_218_988_487_342_999_u64;
            let mut body = self.u32(0).to_vec();
            body.extend(self.u32((ticks >> 32) as u32));
            body.extend(self.u32(ticks as u32));
            body.extend(self.u32(packet.len() as u32));
            body.extend(self.u32(packet.len() as u32));
            body.extend(packet);
            out.extend(self.block(6, &body));
        }
        out
    }
}

const LITTLE: Order = Order { big: false };
const BIG: Order = Order { big: true };

fn read(file: impl Read + Send + 'static) -> (Vec<(IpAddr, u64, u32)>, CaptureStats) {
    let mut reader = PcapReader::new(file, SFLOW_PORT).unwrap();
    let mut found = Vec::new();
    while let Some(datagram) = reader.next_datagram().unwrap() {
        assert_eq!(datagram.payload, PAYLOAD);
        assert_eq!(datagram.source.port(), 50_000);
        found.push((datagram.source.ip(), datagram.time.seconds, datagram.time.micros));
    }
    (found, reader.stats())
}

fn one(file: Vec<u8>) -> (IpAddr, u64, u32) {
    let (found, stats) = read(Cursor::new(file));
    assert_eq!((found.len(), stats.packets), (1, 1));
    found[0]
}

fn v4() -> IpAddr {
    "192.0.2.7".parse().unwrap()
}

fn v6() -> IpAddr {
    "2001:db8::7".parse().unwrap()
}

#[test]
fn byte_orders_and_resolutions() {
    let packet = [ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)))];
    let expected = (v4(), 1_795_218_988, 487_342);
    assert_eq!(one(LITTLE.pcap(0xa1b2_c3d4, 1, &packet)), expected);
    assert_eq!(one(BIG.pcap(0xa1b2_c3d4, 1, &packet)), expected);
    assert_eq!(one(LITTLE.pcap(0xa1b2_3c4d, 1, &packet)), (v4(), 1_795_218_988, 487));
    assert_eq!(one(LITTLE.pcapng(1, &packet)), expected);
    assert_eq!(one(BIG.pcapng(1, &packet)), expected);
}

#[test]
fn link_types_and_tags() {
    let v4_packet = ipv4(0, &udp(SFLOW_PORT));
    let v6_packet = ipv6(17, &udp(SFLOW_PORT));
    let frames = [
        (1, ethernet(&[0x8100], 0x0800, &v4_packet), v4()),
        (1, ethernet(&[0x88a8, 0x8100], 0x86dd, &v6_packet), v6()),
        (113, [vec![0; 14], vec![8, 0], v4_packet.clone()].concat(), v4()),
        (276, [vec![0x86, 0xdd], vec![0; 18], v6_packet.clone()].concat(), v6()),
        (101, v4_packet.clone(), v4()),
        (229, v6_packet.clone(), v6()),
        (0, [vec![2, 0, 0, 0], v4_packet].concat(), v4()),
        (101, ipv6(0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(SFLOW_PORT)].concat()), v6()),
    ];
    for (link, frame, source) in frames {
        assert_eq!(
            one(LITTLE.pcap(0xa1b2_c3d4, link, std::slice::from_ref(&frame))).0,
            source,
            "{link}"
        );
        assert_eq!(one(BIG.pcapng(link as u16, &[frame])).0, source, "{link}");
    }
}

#[test]
fn what_is_not_sflow_is_counted() {
    let whole = ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)));
    let packets = [
        whole.clone(),
        ethernet(&[], 0x0800, &ipv4(0, &udp(53))),
        ethernet(&[], 0x0806, &[0; 46]),
        ethernet(&[], 0x0800, &ipv4(0x2000, &udp(SFLOW_PORT))),
        ethernet(&[], 0x0800, &ipv4(0x0010, &udp(SFLOW_PORT))),
        ethernet(&[], 0x86dd, &ipv6(44, &[0; 16])),
        whole[..whole.len() - 1].to_vec(),
        whole[..30].to_vec(),
        Vec::new(),
        whole.clone(),
    ];
    let (found, stats) = read(Cursor::new(LITTLE.pcap(0xa1b2_c3d4, 1, &packets)));
    assert_eq!(found.len(), 2);
    let expected = CaptureStats {
        packets: 10,
        datagrams: 2,
        fragments: 3,
        cut: 2,
        other: 3,
        ..read_nothing()
    };
    assert_eq!(stats, expected);
}

fn read_nothing() -> CaptureStats {
    CaptureStats::default()
}

/// MPLS, PPP and PPPoE, in front of IP and behind Ethernet.
#[test]
fn labels_and_point_to_point_links_are_stepped_over() {
    let v4_packet = ipv4(0, &udp(SFLOW_PORT));
    let v6_packet = ipv6(17, &udp(SFLOW_PORT));
    let labels = [0, 1, 0x40, 0xff, 0, 1, 0x41, 0xff];
    let on = |front: &[u8], packet: &[u8]| [front, packet].concat();
    let pppoe = [0x11, 0, 0, 7, 0, 99];
    let frames = [
        (1, ethernet(&[], 0x8847, &on(&labels, &v4_packet)), v4()),
        (1, ethernet(&[0x8100], 0x8848, &on(&labels[4..], &v6_packet)), v6()),
        (1, ethernet(&[], 0x8864, &on(&[&pppoe[..], &[0, 0x21]].concat(), &v4_packet)), v4()),
        (113, [vec![0; 14], vec![0x88, 0x47], on(&labels, &v4_packet)].concat(), v4()),
        (276, [vec![0x88, 0x47], vec![0; 18], on(&labels, &v4_packet)].concat(), v4()),
        (219, on(&labels, &v6_packet), v6()),
        (9, on(&[0xff, 3, 0, 0x21], &v4_packet), v4()),
        (9, on(&[0, 0x57], &v6_packet), v6()),
        (9, on(&[0x21], &v4_packet), v4()),
        (50, on(&[0xff, 3, 2, 0x81, 0, 1, 0x41, 0xff], &v4_packet), v4()),
        (50, on(&[0x0f, 0, 8, 0], &v4_packet), v4()),
        (51, on(&[&pppoe[..], &[0, 0x57]].concat(), &v6_packet), v6()),
        (104, on(&[0x8f, 0, 0x86, 0xdd], &v6_packet), v6()),
    ];
    for (link, frame, source) in frames {
        let file = LITTLE.pcap(0xa1b2_c3d4, link, std::slice::from_ref(&frame));
        assert_eq!(one(file).0, source, "{link}: {frame:02x?}");
        // Prefixes of the frame hold no datagram.
        for n in 0..frame.len() {
            let cut = LITTLE.pcap(0xa1b2_c3d4, link, &[frame[..n].to_vec()]);
            assert_eq!(read(Cursor::new(cut)).0, []);
        }
    }
}

/// The link type may say how long the frame check sequence is that follows each packet.
#[test]
fn a_frame_check_sequence_changes_nothing() {
    let mut frame = ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)));
    frame.extend([0xde, 0xad, 0xbe, 0xef]);
    let link = 2 << 28 | 1 << 26 | 1;
    for order in [LITTLE, BIG] {
        assert_eq!(one(order.pcap(0xa1b2_c3d4, link, std::slice::from_ref(&frame))).0, v4());
    }
}

#[test]
fn older_forms_of_files_are_read() {
    let packet = ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)));
    for order in [LITTLE, BIG] {
        // pcapng's Packet Block.
        let ticks = 1_795_218_988_487_342_999_u64;
        let mut body = [order.u16(0), order.u16(7)].concat();
        let length = packet.len() as u32;
        for word in [(ticks >> 32) as u32, ticks as u32, length, length] {
            body.extend(order.u32(word));
        }
        body.extend(&packet);
        let file = [order.pcapng(1, &[]), order.block(2, &body)].concat();
        assert_eq!(one(file), (v4(), 1_795_218_988, 487_342));
        // The modified form of pcap: eight bytes more in front of each packet.
        let mut file = order.pcap(0xa1b2_cd34, 1, &[]);
        for _ in 0..30 {
            for word in [1_795_218_988, 487_342, length, length] {
                file.extend(order.u32(word));
            }
            file.extend([0, 0, 0, 1, 0, 8, 0, 0]);
            file.extend(&packet);
        }
        let (found, stats) = read(Cursor::new(file.clone()));
        assert_eq!((found.len(), stats.packets), (30, 30));
        assert_eq!(found[29], (v4(), 1_795_218_988, 487_342));
        assert_eq!(read(Drip(Cursor::new(file.clone()))).0.len(), 30);
        let cut = Cursor::new(file[..file.len() - 5].to_vec());
        let mut reader = PcapReader::new(cut, SFLOW_PORT).unwrap();
        for _ in 0..29 {
            assert!(reader.next_datagram().unwrap().is_some());
        }
        assert!(matches!(reader.next_datagram(), Err(CaptureError::Truncated { packets: 29 })));
    }
}

#[test]
fn links_that_are_not_known_are_named() {
    let packets = vec![ipv4(0, &udp(SFLOW_PORT)); 3];
    let (found, stats) = read(Cursor::new(LITTLE.pcap(0xa1b2_c3d4, 127, &packets)));
    assert_eq!(found, []);
    let expected =
        CaptureStats { packets: 3, unknown_links: 3, unknown_link: 127, ..read_nothing() };
    assert_eq!(stats, expected);
}

/// Segmentation offload leaves one packet in a capture that holds several datagrams. Its UDP header
/// gives the length of all of them or that of the first.
#[test]
fn merged_datagrams_are_taken_apart() {
    let datagram = |n: u8| {
        let mut bytes = vec![0, 0, 0, 5, 0, 0, 0, 1, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, n];
        bytes.extend([0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 99, 0, 0, 0, 4, n, n, n, n]);
        bytes
    };
    let together: Vec<u8> = (1..=3).flat_map(datagram).collect();
    let packet = |length: usize| {
        let mut udp = [50_000_u16.to_be_bytes(), SFLOW_PORT.to_be_bytes()].concat();
        udp.extend((8 + length as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(&together);
        // Frames may be padded.
        [ethernet(&[], 0x0800, &ipv4(0, &udp)), vec![0, 0, 0, 5]].concat()
    };
    let packets = [packet(together.len()), packet(40)];
    let mut reader =
        PcapReader::new(Cursor::new(LITTLE.pcap(0xa1b2_c3d4, 1, &packets)), SFLOW_PORT).unwrap();
    for n in [1, 2, 3, 1, 2, 3] {
        let found = reader.next_datagram().unwrap().unwrap();
        assert_eq!((found.payload, found.source.port()), (&datagram(n)[..], 50_000));
    }
    assert_eq!(reader.next_datagram().unwrap(), None);
    let expected = CaptureStats { packets: 2, datagrams: 6, merged: 2, ..CaptureStats::default() };
    assert_eq!(reader.stats(), expected);
}

#[test]
fn a_file_that_ends_early_delivers_what_it_has() {
    let packet = ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)));
    for file in [
        LITTLE.pcap(0xa1b2_c3d4, 1, &vec![packet.clone(); 3]),
        LITTLE.pcapng(1, &vec![packet.clone(); 3]),
    ] {
        let cut = Cursor::new(file[..file.len() - 5].to_vec());
        let mut reader = PcapReader::new(cut, SFLOW_PORT).unwrap();
        for _ in 0..2 {
            assert!(reader.next_datagram().unwrap().is_some());
        }
        let error = reader.next_datagram().unwrap_err();
        let text = "the capture file ends in the middle of a packet, after 2 whole packets";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"startDatagram", &[0; 100]] {
        let error = PcapReader::new(bytes, SFLOW_PORT).err().unwrap();
        assert!(matches!(error, CaptureError::Format), "{error}");
    }
    let error = PcapReader::open("/nonexistent/file.pcap", SFLOW_PORT).err().unwrap();
    assert!(error.to_string().starts_with("cannot open /nonexistent/file.pcap: "), "{error}");
}

/// Gives a byte at a time, as a slow pipe might.
struct Drip(Cursor<Vec<u8>>);

impl Read for Drip {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let end = buf.len().min(1);
        self.0.read(&mut buf[..end])
    }
}

#[test]
fn pipes_may_be_slow() {
    let packet = ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)));
    for file in
        [LITTLE.pcap(0xa1b2_c3d4, 1, &vec![packet.clone(); 30]), BIG.pcapng(1, &vec![packet; 30])]
    {
        let (found, _) = read(Drip(Cursor::new(file)));
        assert_eq!(found.len(), 30);
    }
}

/// More than the reader's buffer holds, so that packets straddle its end.
#[test]
fn long_files_are_read_to_the_end() {
    let small = ethernet(&[], 0x0800, &ipv4(0, &udp(SFLOW_PORT)));
    let mut big = small.clone();
    big.resize(60_001, 7);
    let packets: Vec<_> = (0..40).flat_map(|_| [small.clone(), big.clone()]).collect();
    for file in [LITTLE.pcap(0xa1b2_c3d4, 1, &packets), LITTLE.pcapng(1, &packets)] {
        assert!(file.len() > 2_000_000);
        let (found, stats) = read(Cursor::new(file));
        assert_eq!((found.len(), stats.packets), (80, 80));
    }
}
