//! Packets: every header view by way of the decoder, flow hashing, segmenting GSO packets, and
//! answering with ICMP. The first two bytes are the size to cut to.
#![no_main]

use thalweg_wire::{flow, fmt, gso, icmpv4, icmpv6, ipv4, ipv6, mld, nd, owner};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((size, frame)) = data.split_first_chunk() else { return };
    let _ = fmt::Frame(frame).to_string();
    let _ = fmt::Ip(frame).to_string();

    if let Some(network) = owner::network(frame) {
        assert!(network.at < frame.len() && network.labels <= owner::MAX_DEPTH);
    }
    assert!(owner::owner_of(frame, 3).is_none_or(|owner| owner < 3));

    let mut payload = 0;
    let size = usize::from(u16::from_be_bytes(*size));
    if let Ok(segments) = gso::segment(frame, size, |_, part| payload += part.len()) {
        assert!(segments == 0 || payload <= frame.len(), "{segments} segments of {payload} bytes");
    }

    let Some(packet) = frame.get(14..) else { return };
    if let Some(tuple) = flow::five_tuple(packet) {
        let _ = (tuple.hash32(), tuple.symmetric_hash32());
    }
    if let Ok(packet) = ipv4::Ipv4View::parse(packet) {
        let _ = icmpv4::may_answer_with_error(&packet);
    }
    if let Ok(packet) = ipv6::Ipv6View::parse(packet) {
        let _ = packet.router_alert();
        let transport = packet.transport().ok();
        if let Some(Ok(icmp)) = transport.map(|t| icmpv6::Icmp6View::parse(t.payload)) {
            let _ = mld::Query::parse(&icmp);
            if let Some(Ok(message)) = nd::Message::parse(&icmp) {
                let _ = message.options().count();
            }
        }
    }
    let _ = icmpv4::make_echo_reply(&mut packet.to_vec());
});
