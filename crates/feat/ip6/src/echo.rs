//! The router's own echo requests, and reports of their replies (RFC 4443 section 4).

use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_feat_ip::ping::{self, Echo, Reply};
use thalweg_graph::{Control, Event};
use thalweg_wire::icmpv6::{self, Icmp6Repr};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{self, Ipv6Repr};

/// Maximum data of a request.
pub(crate) const MAX_DATA: u16 = u16::MAX - icmpv6::HEADER_LEN as u16;

/// Bytes of a report: source, identifier, sequence number, hop limit and message length.
pub(crate) const REPORT: usize = 25;

/// Decodes an event of `ip6-icmp-input`.
fn decode(event: &Event) -> Option<Reply> {
    let b: &[u8; REPORT] = event.bytes().first_chunk()?;
    let (from, rest) = b.split_first_chunk::<16>()?;
    Some(Reply {
        from: Ipv6Addr::from(*from).into(),
        id: u16::from_be_bytes([rest[0], rest[1]]),
        seq: u16::from_be_bytes([rest[2], rest[3]]),
        ttl: rest[4],
        len: u32::from_be_bytes([rest[5], rest[6], rest[7], rest[8]]),
        at: event.at,
    })
}

pub(crate) fn init(c: &mut Control) {
    let echo_reply = c.topic("icmp6-echo-reply", |c, event| {
        if let Some(reply) = decode(event) {
            ping::received(c, reply);
        }
    });
    c.share(Arc::new(crate::Topics { echo_reply }));
}

/// Builds an echo request from its IP header on.
pub(crate) fn request(from: Ipv6Addr, to: Ipv6Addr, echo: Echo<'_>) -> Option<Vec<u8>> {
    let len = icmpv6::HEADER_LEN + echo.data.len();
    let mut bytes = vec![0; ipv6::HEADER_LEN + len];
    let header = Ipv6Repr {
        hop_limit: u8::MAX,
        ..Ipv6Repr::new(from, to, protocol::ICMPV6, u16::try_from(len).ok()?)
    };
    header.emit(&mut bytes).ok()?;
    let message = &mut bytes[ipv6::HEADER_LEN..];
    message[icmpv6::HEADER_LEN..].copy_from_slice(echo.data);
    Icmp6Repr::echo_request(echo.id, echo.seq).emit(&from, &to, message).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole() {
        let [from, to] = ["2001:db8::1", "2001:db8::2"].map(|a| a.parse().unwrap());
        for size in [8, 9, 108, 1480, MAX_DATA] {
            let data: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let bytes = request(from, to, Echo { id: 7, seq: 9, data: &data }).expect("fits");
            let ip = ipv6::Ipv6View::parse(&bytes).expect("sound header");
            assert_eq!((ip.src(), ip.dst(), ip.hop_limit()), (from, to, 255));
            let icmp = icmpv6::Icmp6View::parse(ip.payload()).expect("icmp");
            assert!(icmp.checksum_ok(&from, &to));
            assert_eq!(icmp.echo().map(|e| (e.id, e.seq)), Some((7, 9)));
            assert_eq!(icmp.payload(), data);
        }
        let data = vec![0; usize::from(MAX_DATA) + 1];
        assert!(request(from, to, Echo { id: 7, seq: 9, data: &data }).is_none());
    }
}
