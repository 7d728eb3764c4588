//! Messages, each behind a hop-by-hop header with the router alert option (RFC 3810 section 5).

use crate::port::{Message, Record};
use std::net::Ipv6Addr;
use thalweg_wire::MacAddr;
use thalweg_wire::ethernet::{EthernetRepr, HEADER_LEN, ethertype};
use thalweg_wire::icmpv6::{fill_checksum, kind};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{self, Ipv6Repr};
use thalweg_wire::mld::HOP_LIMIT;

/// The group of all routers of the link.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// The group of its routers that know version 2.
const ALL_NEW_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// Router alert with the value 0, and two bytes of padding.
const HOP_BY_HOP: [u8; 8] = [protocol::ICMPV6, 0, 5, 2, 0, 0, 1, 0];

/// Bytes that the records of a report may take, which fits the smallest MTU of a link.
const ROOM: usize = 1280 - ipv6::HEADER_LEN - HOP_BY_HOP.len() - 8;
/// Most sources of a record, which fits a report.
pub(crate) const MAX_SOURCES: usize = 64;
const _: () = assert!(20 + 16 * MAX_SOURCES <= ROOM);

impl Record {
    fn bytes(&self) -> usize {
        20 + 16 * self.sources.len()
    }
}

/// Deals records to reports.
pub(crate) fn reports(records: impl Iterator<Item = Record>, out: &mut Vec<Message>) {
    let (mut some, mut left) = (Vec::new(), ROOM);
    for record in records {
        if record.bytes() > left {
            out.push(Message::Report(std::mem::take(&mut some)));
            left = ROOM;
        }
        left = left.saturating_sub(record.bytes());
        some.push(record);
    }
    if !some.is_empty() {
        out.push(Message::Report(some));
    }
}

fn old(kind: u8, group: Ipv6Addr) -> Vec<u8> {
    let mut m = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    m.extend(group.octets());
    m
}

fn report(records: &[Record]) -> Vec<u8> {
    let mut m = vec![kind::LISTENER_REPORT_V2, 0, 0, 0, 0, 0];
    m.extend((records.len() as u16).to_be_bytes());
    for Record { change, group, sources } in records {
        m.extend([*change as u8, 0]);
        m.extend((sources.len() as u16).to_be_bytes());
        m.extend(group.octets());
        m.extend(sources.iter().flat_map(Ipv6Addr::octets));
    }
    m
}

/// Makes the frame of a message.
pub(crate) fn frame(mac: MacAddr, src: Ipv6Addr, message: &Message) -> Vec<u8> {
    let (dst, mut message) = match message {
        Message::Report(records) => (ALL_NEW_ROUTERS, report(records)),
        Message::OldReport(group) => (*group, old(kind::LISTENER_REPORT, *group)),
        Message::OldDone(group) => (ALL_ROUTERS, old(kind::LISTENER_DONE, *group)),
    };
    // Messages are never too long for their checksum.
    let _ = fill_checksum(&src, &dst, &mut message);
    let length = (HOP_BY_HOP.len() + message.len()) as u16;
    let mut out = vec![0; HEADER_LEN + ipv6::HEADER_LEN];
    let dst_mac = MacAddr::from_ipv6_multicast(dst);
    let ether = EthernetRepr { dst: dst_mac, src: mac, ethertype: ethertype::IPV6 };
    let header =
        Ipv6Repr { hop_limit: HOP_LIMIT, ..Ipv6Repr::new(src, dst, protocol::HOP_BY_HOP, length) };
    // The buffer has room for both.
    let _ = ether.emit(&mut out);
    let _ = header.emit(&mut out[HEADER_LEN..]);
    out.extend(HOP_BY_HOP);
    out.extend(message);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Change;
    use thalweg_wire::icmpv6::Icmp6View;
    use thalweg_wire::ipv6::Ipv6View;

    fn at(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    /// Destination MAC address and address, and the message.
    fn read(frame: &[u8]) -> ([u8; 6], Ipv6Addr, Vec<u8>) {
        let ip = Ipv6View::parse(&frame[14..]).unwrap();
        assert_eq!((ip.hop_limit(), ip.router_alert(), ip.src()), (1, Some(0), at("fe80::1")));
        let transport = ip.transport().unwrap();
        assert_eq!(transport.protocol, protocol::ICMPV6);
        let icmp = Icmp6View::parse(transport.payload).unwrap();
        assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
        (*frame.first_chunk().unwrap(), ip.dst(), transport.payload.to_vec())
    }

    #[test]
    fn messages_go_where_their_readers_are() {
        let (mac, src, group) = (MacAddr([2, 0, 0, 0, 0, 1]), at("fe80::1"), at("ff02::1:ff00:7"));
        let records = vec![Record { change: Change::ToExclude, group, sources: Vec::new() }; 2];
        let (to, dst, m) = read(&frame(mac, src, &Message::Report(records)));
        assert_eq!((to, dst), ([0x33, 0x33, 0, 0, 0, 0x16], at("ff02::16")));
        assert_eq!((m.len(), m[0], &m[6..12]), (48, 143, &[0, 2, 4, 0, 0, 0][..]));
        assert_eq!(m[32..48], group.octets());
        let (_, dst, m) = read(&frame(mac, src, &Message::OldReport(group)));
        assert_eq!((dst, m.len(), m[0], &m[8..]), (group, 24, 131, &group.octets()[..]));
        let (_, dst, m) = read(&frame(mac, src, &Message::OldDone(group)));
        assert_eq!((dst, m.len(), m[0]), (at("ff02::2"), 24, 132));
        let one = Record { change: Change::IsInclude, group, sources: vec![src; 2] };
        let (_, _, m) = read(&frame(mac, src, &Message::Report(vec![one])));
        assert_eq!((m.len(), &m[8..12]), (8 + 20 + 32, &[1, 0, 0, 2][..]));
        assert_eq!(m[28..44], src.octets());
    }

    #[test]
    fn reports_fit_the_smallest_mtu() {
        let (mac, group) = (MacAddr([2, 0, 0, 0, 0, 1]), at("ff02::1:ff00:7"));
        for n in [0, 1, 5, MAX_SOURCES] {
            let sources = vec![at("fe80::1"); n];
            let one = Record { change: Change::IsInclude, group, sources };
            let mut sent = Vec::new();
            reports(std::iter::repeat_n(one, 100), &mut sent);
            let records = sent.iter().map(|message| match message {
                Message::Report(records) => records.len(),
                _ => 0,
            });
            assert_eq!(records.sum::<usize>(), 100);
            assert!(sent.iter().all(|m| frame(mac, at("fe80::1"), m).len() <= 14 + 1280));
        }
    }
}
