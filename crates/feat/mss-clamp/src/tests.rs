//! SYNs through a router with limits.

use crate::FEATURE;
use thalweg_buffer::Offload;
use thalweg_device::testing::{Lab, ip4, ip6};
use thalweg_wire::build::Packet;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::tcp::{TcpView, flag};

fn lab(workers: usize) -> Lab {
    let setup = Lab::of(&FEATURE).with(&thalweg_feat_ip4::FEATURE).with(&thalweg_feat_ip6::FEATURE);
    setup.workers(workers).interfaces(2).ip4(2..=2).ip6(2..=2).start()
}

/// A segment from host 0 to host 1 with these flags and options.
fn segment(flags: u8, options: &[u8]) -> Packet {
    Packet::new().ipv4(ip4::ip(0, 2), ip4::ip(1, 2)).tcp(1000, 80).flags(flags).tcp_options(options)
}

/// Passes a frame from host 0 to host 1; returns the packet.
fn pass(lab: &mut Lab, frame: Vec<u8>) -> Vec<u8> {
    lab.receive(0, vec![frame]);
    let sent = lab.sent();
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    sent[0].1[14..].to_vec()
}

fn mss_of(packet: &[u8]) -> Option<u16> {
    let ip = Ipv4View::parse(packet).unwrap();
    let tcp = TcpView::parse(ip.payload()).unwrap();
    assert!(tcp.checksum_ok(ip.pseudo_header()), "checksum of {packet:02x?}");
    tcp.mss()
}

const MSS_1460: &[u8] = &[2, 4, 0x05, 0xb4];

#[test]
fn syns_are_clamped_in_their_directions_only() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        let cases: [(&str, u16); 8] = [
            ("test0 ip4 rx ip4-mss 1400 ip6 disable", 1400),
            ("test0 ip4 tx ip4-mss 1300 ip6 disable", 1460),
            ("test0 ip4 enable ip4-mss 1200", 1200),
            ("test0 ip4 disable ip6 disable", 1460),
            ("test1 ip4 rx ip4-mss 1400", 1460),
            ("test1 ip4 tx ip4-mss 1300", 1300),
            ("test1 ip4 enable ip4-mss 9000", 1460),
            ("test1 ip4 disable", 1460),
        ];
        for (words, want) in cases {
            lab.ok(&format!("set interface tcp-mss-clamp {words}"));
            for flags in [flag::SYN, flag::SYN | flag::ACK, flag::SYN | flag::ECE | flag::CWR] {
                let packet = pass(&mut lab, ip4::framed(0, 2, &segment(flags, MSS_1460).build()));
                assert_eq!(mss_of(&packet), Some(want), "{words}");
            }
            let other = pass(&mut lab, ip4::framed(0, 2, &segment(flag::ACK, MSS_1460).build()));
            assert_eq!(mss_of(&other), Some(1460), "not a SYN");
        }
        assert_eq!(lab.count("tcp-mss-clamping-ip4-in", "clamped"), 6);
        assert_eq!(lab.count("tcp-mss-clamping-ip4-out", "clamped"), 3);
        lab.close();
    }
}

#[test]
fn options_are_found_wherever_they_are_and_bad_ones_are_left() {
    let mut lab = lab(1);
    lab.ok("set interface tcp-mss-clamp test0 ip4 rx ip4-mss 536");
    // The option is at an odd offset, after others, and twice: the first counts.
    for options in [
        &[1, 2, 4, 0x05, 0xb4, 1, 1, 1][..],
        &[3, 3, 7, 2, 4, 0x05, 0xb4, 0],
        &[2, 4, 0x05, 0xb4, 2, 4, 0x05, 0xb4],
    ] {
        let packet = pass(&mut lab, ip4::framed(0, 2, &segment(flag::SYN, options).build()));
        assert_eq!(mss_of(&packet), Some(536), "{options:02x?}");
    }
    // The option is after the end of the list, of a wrong length, or missing.
    for options in [&[0, 2, 4, 0x05, 0xb4, 0, 0, 0][..], &[2, 3, 0x05, 0], &[1, 1, 1, 2], &[]] {
        let packet = segment(flag::SYN, options).build();
        let passed = pass(&mut lab, ip4::framed(0, 2, &packet));
        assert_eq!(passed[20..], packet[20..], "{options:02x?}");
    }
    assert_eq!(lab.count("tcp-mss-clamping-ip4-in", "clamped"), 3);
    lab.close();
}

#[test]
fn nothing_behind_the_end_of_a_packet_is_read_or_written() {
    let mut lab = lab(1);
    lab.ok("set interface tcp-mss-clamp test0 ip4 rx ip4-mss 536");
    let whole = segment(flag::SYN, MSS_1460).build();
    // The IP packet ends before the option, or within it; the rest is a trailer.
    for end in [20, 28, 33, 40, 41, 43] {
        let mut packet = whole.clone();
        packet[2..4].copy_from_slice(&(end as u16).to_be_bytes());
        packet[10..12].fill(0);
        let sum = thalweg_wire::checksum::checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let passed = pass(&mut lab, ip4::framed(0, 2, &packet));
        assert_eq!(passed[12..end], packet[12..end], "{end}");
    }
    // Later fragments have data where a header would be.
    let mut later = whole.clone();
    later[6..8].copy_from_slice(&3u16.to_be_bytes());
    later[10..12].fill(0);
    let sum = thalweg_wire::checksum::checksum(&later[..20]);
    later[10..12].copy_from_slice(&sum.to_be_bytes());
    let passed = pass(&mut lab, ip4::framed(0, 2, &later));
    assert_eq!(passed[20..], later[20..]);
    assert_eq!(lab.count("tcp-mss-clamping-ip4-in", "clamped"), 0);
    lab.close();
}

#[test]
fn a_checksum_that_the_device_completes_stays_as_it_is() {
    let mut lab = lab(1);
    lab.ok("set interface tcp-mss-clamp test0 ip4 rx ip4-mss 536");
    let mut packet = segment(flag::SYN, MSS_1460).build();
    packet[36..38].copy_from_slice(&[0x12, 0x34]);
    let offload =
        Offload { needs_csum: true, csum_start: 34, csum_offset: 16, ..Offload::default() };
    lab.receive_offload(0, ip4::framed(0, 2, &packet), offload);
    lab.settle();
    let sent = lab.sent();
    assert_eq!(sent.len(), 1);
    let tcp = TcpView::parse(&sent[0].1[34..]).unwrap();
    assert_eq!(tcp.mss(), Some(536));
    lab.close();
}

#[test]
fn an_interface_takes_its_limit_along_and_words_are_checked() {
    let mut lab = lab(1);
    assert_eq!(
        lab.cli("show interface tcp-mss-clamp test0").trim_end(),
        "test0: ip4: disabled ip6: disabled"
    );
    lab.ok("set interface tcp-mss-clamp test0 ip4 enable ip4-mss 1424 ip6 disable");
    assert_eq!(
        lab.cli("show interface tcp-mss-clamp test0").trim_end(),
        "test0: ip4: 1424 [RX TX] ip6: disabled"
    );
    for (bad, why) in [
        ("test0 ip4 rx", "ip4-mss"),
        ("test0 ip4 rx ip4-mss 63", "between 64 and 65535"),
        ("test0 ip4 rx ip4-mss 65536", "MSS"),
        ("test0 ip4 up ip4-mss 1400", "enable"),
        ("test0 ip6 rx", "ip6-mss"),
        ("test0 ip6 rx ip6-mss 63 ip4 disable", "between 64 and 65535"),
        ("test0 ip6-mss 1400 ip4 disable", "direction"),
        ("test0", "ip4"),
        ("test9 ip4 disable", "test9"),
    ] {
        let said = lab.cli(&format!("set interface tcp-mss-clamp {bad}"));
        assert!(said.contains(why), "{bad}: {said}");
    }
    assert_eq!(crate::all(&lab.c).len(), 1);
    let shown = |lab: &mut Lab| lab.cli("show interface tcp-mss-clamp test0").trim_end().to_owned();
    lab.ok("set interface tcp-mss-clamp test0 ip6 tx ip6-mss 1380");
    assert_eq!(shown(&mut lab), "test0: ip4: 1424 [RX TX] ip6: 1380 [TX]");
    lab.ok("set interface tcp-mss-clamp test0 ip4 disable");
    assert_eq!(shown(&mut lab), "test0: ip4: disabled ip6: 1380 [TX]");
    lab.ok("set interface tcp-mss-clamp test0 ip6 disable");
    assert!(crate::all(&lab.c).is_empty());
    lab.close();
}

/// A segment over IPv6 from host 0 to host 1, behind extension headers: the type of the first, and
/// their bytes.
fn segment6(flags: u8, options: &[u8], (first, extensions): (u8, &[u8])) -> Vec<u8> {
    let plain = Packet::new()
        .ipv6(ip6::ip(0, 2), ip6::ip(1, 2))
        .tcp(1000, 80)
        .flags(flags)
        .tcp_options(options);
    let plain = plain.build();
    let mut packet = [&plain[..40], extensions, &plain[40..]].concat();
    let length = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet[6] = first;
    packet
}

fn mss_of6(packet: &[u8]) -> Option<u16> {
    let ip = Ipv6View::parse(packet).unwrap();
    let transport = ip.transport().unwrap();
    let tcp = TcpView::parse(transport.payload).unwrap();
    let sum = ip.pseudo_header(protocol::TCP, transport.payload.len() as u32);
    assert!(tcp.checksum_ok(sum), "checksum of {packet:02x?}");
    tcp.mss()
}

const PLAIN: (u8, &[u8]) = (protocol::TCP, &[]);
/// Destination options of eight bytes, all padding.
const DESTINATION: (u8, &[u8]) = (protocol::DESTINATION, &[6, 0, 1, 4, 0, 0, 0, 0]);
/// An atomic fragment (RFC 6946).
const ATOMIC: (u8, &[u8]) = (protocol::FRAGMENT, &[6, 0, 0, 0, 0, 0, 0, 9]);

#[test]
fn syns_over_ipv6_are_clamped_behind_extension_headers_too() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        for (words, want) in [
            ("test0 ip6 rx ip6-mss 1400", 1400),
            ("test0 ip6 tx ip6-mss 1300", 1460),
            ("test0 ip6 enable ip6-mss 1200 ip4 rx ip4-mss 500", 1200),
            ("test0 ip6 disable", 1460),
            ("test1 ip6 tx ip6-mss 1300", 1300),
            ("test1 ip6 enable ip6-mss 9000", 1460),
            ("test1 ip6 disable", 1460),
        ] {
            lab.ok(&format!("set interface tcp-mss-clamp {words}"));
            for extensions in [PLAIN, DESTINATION, ATOMIC] {
                for (flags, want) in
                    [(flag::SYN, want), (flag::SYN | flag::ACK, want), (0x10, 1460)]
                {
                    let frame = ip6::framed(0, 2, &segment6(flags, MSS_1460, extensions));
                    let packet = pass(&mut lab, frame);
                    assert_eq!(mss_of6(&packet), Some(want), "{words} {extensions:?}");
                }
            }
        }
        assert_eq!(lab.count("tcp-mss-clamping-ip6-in", "clamped"), 12);
        assert_eq!(lab.count("tcp-mss-clamping-ip6-out", "clamped"), 6);
        assert_eq!(lab.count("tcp-mss-clamping-ip4-in", "clamped"), 0);
        lab.close();
    }
}

#[test]
fn of_ipv6_nothing_but_a_whole_syn_is_touched() {
    let mut lab = lab(1);
    lab.ok("set interface tcp-mss-clamp test0 ip6 rx ip6-mss 536");
    // The packet ends before the option, or within it; the rest is a trailer.
    for extensions in [PLAIN, DESTINATION] {
        let whole = segment6(flag::SYN, MSS_1460, extensions);
        let l4 = 40 + extensions.1.len();
        for end in [l4, l4 + 8, l4 + 13, l4 + 20, l4 + 21, l4 + 23] {
            let mut packet = whole.clone();
            packet[4..6].copy_from_slice(&((end - 40) as u16).to_be_bytes());
            let passed = pass(&mut lab, ip6::framed(0, 2, &packet));
            assert_eq!(passed[8..end], packet[8..end], "{end}");
        }
    }
    // Later fragments have data where a header would be; what is not TCP may look like it.
    let later = (protocol::FRAGMENT, &[6, 0, 0, 8, 0, 0, 0, 9][..]);
    let hidden = (protocol::ESP, &[6, 0, 0, 0, 0, 0, 0, 9][..]);
    let udp = (protocol::DESTINATION, &[protocol::UDP, 0, 1, 4, 0, 0, 0, 0][..]);
    for extensions in [later, hidden, udp] {
        let packet = segment6(flag::SYN, MSS_1460, extensions);
        let passed = pass(&mut lab, ip6::framed(0, 2, &packet));
        assert_eq!(passed[8..], packet[8..], "{extensions:?}");
    }
    assert_eq!(lab.count("tcp-mss-clamping-ip6-in", "clamped"), 0);
    lab.close();
}
