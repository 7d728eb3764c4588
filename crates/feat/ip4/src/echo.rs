//! The router's own echo requests, and reports of their replies (RFC 792).

use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_feat_ip::ping::{self, Echo, Reply};
use thalweg_graph::{Control, Event};
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4Repr;

/// Length in bytes of the IP header and of the ICMP header.
const IP: usize = 20;
const ICMP: usize = 8;
/// Maximum data of a request.
pub(crate) const MAX_DATA: u16 = u16::MAX - (IP + ICMP) as u16;

/// Decodes an event of `ip4-icmp-input`.
fn decode(event: &Event) -> Option<Reply> {
    let b: &[u8; 13] = event.bytes().first_chunk()?;
    Some(Reply {
        from: Ipv4Addr::new(b[0], b[1], b[2], b[3]).into(),
        id: u16::from_be_bytes([b[4], b[5]]),
        seq: u16::from_be_bytes([b[6], b[7]]),
        ttl: b[8],
        len: u32::from_be_bytes([b[9], b[10], b[11], b[12]]),
        at: event.at,
    })
}

pub(crate) fn init(c: &mut Control) {
    let echo_reply = c.topic("icmp-echo-reply", |c, event| {
        if let Some(reply) = decode(event) {
            ping::received(c, reply);
        }
    });
    c.share(Arc::new(crate::Topics { echo_reply }));
}

/// Builds an echo request from its IP header on.
pub(crate) fn request(from: Ipv4Addr, to: Ipv4Addr, echo: Echo<'_>) -> Option<Vec<u8>> {
    let len = ICMP + echo.data.len();
    let mut bytes = vec![0; IP + len];
    let header = Ipv4Repr {
        id: echo.seq,
        ttl: u8::MAX,
        ..Ipv4Repr::new(from, to, protocol::ICMP, u16::try_from(len).ok()?)
    };
    header.emit(&mut bytes).ok()?;
    let message = &mut bytes[IP..];
    message[ICMP..].copy_from_slice(echo.data);
    IcmpRepr::echo_request(echo.id, echo.seq).emit(message).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole() {
        let (from, to) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        for size in [8, 9, 108, 1480, MAX_DATA] {
            let data: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let bytes = request(from, to, Echo { id: 7, seq: 9, data: &data }).expect("fits");
            let ip = thalweg_wire::ipv4::check(&bytes).expect("sound header");
            assert_eq!((ip.src(), ip.dst(), ip.ttl()), (from, to, 255));
            let icmp = thalweg_wire::icmpv4::IcmpView::parse(ip.payload()).expect("icmp");
            assert!(icmp.checksum_ok());
            assert_eq!(icmp.echo().map(|e| (e.id, e.seq)), Some((7, 9)));
            assert_eq!(icmp.payload(), data);
        }
        let data = vec![0; usize::from(MAX_DATA) + 1];
        assert!(request(from, to, Echo { id: 7, seq: 9, data: &data }).is_none());
    }
}
