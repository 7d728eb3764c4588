//! Fragments of IPv6 as an enemy would send them: with lengths, offsets and headers that lie, in
//! any order. Only parts of requested datagrams get in.

use std::collections::BTreeSet;

use crate::ipv6::{CLIENT, HOP, SERVER, back, error, extended, guarded, there};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use thalweg_wire::icmpv6::{Icmp6Repr, fill_checksum};
use thalweg_wire::ip::protocol::{FRAGMENT, ICMPV6, UDP};
use thalweg_wire::ipv6::Ipv6View;

/// The port that asks, and the one that is asked.
const ASKS: u16 = 5000;
const ASKED: u16 = 53;

/// Offset of the packet that an error quotes.
const QUOTE: usize = 62;

/// A packet from outside.
#[derive(Clone, Debug)]
struct Piece {
    /// Id of one of a few datagrams.
    id: u8,
    /// Its destination port is the one that asks.
    asked_for: bool,
    /// Offset in units of eight bytes.
    offset: u16,
    more: bool,
    /// Extension headers before the fragment header, and after it.
    before: Vec<u8>,
    after: Vec<u8>,
    /// Another fragment header behind the first: its offset.
    second: Option<u16>,
    /// The next header that the fragment header names.
    next: u8,
    /// Bytes behind the headers; the packet's length says the same, or something else.
    length: usize,
    lie: i16,
    /// The packet is quoted in an error about one that went the other way.
    quoted: bool,
}

fn piece() -> impl Strategy<Value = Piece> {
    let header = prop::sample::select(&[0u8, 43, 51, 60][..]);
    let headers = || prop::collection::vec(header.clone(), 0..3);
    let second = prop::option::weighted(0.1, 0u16..3);
    let next = prop_oneof![8 => Just(UDP), 1 => Just(6u8), 1 => Just(ICMPV6), 1 => Just(59)];
    let lie = prop_oneof![9 => Just(0i16), 1 => -40i16..40];
    let quoted = prop::bool::weighted(0.1);
    let part = (0u8..4, any::<bool>(), 0u16..4, any::<bool>());
    let shape = (headers(), headers(), second, next, 0usize..48, lie, quoted);
    (part, shape).prop_map(|((id, asked_for, offset, more), shape)| {
        let (before, after, second, next, length, lie, quoted) = shape;
        Piece { id, asked_for, offset, more, before, after, second, next, length, lie, quoted }
    })
}

/// An extension header of eight bytes.
fn header(kind: u8) -> [u8; 8] {
    // Authentication counts words of four bytes, less two.
    if kind == 51 { [0, 0, 0, 0, 0, 0, 0, 1] } else { [0, 0, 1, 4, 0, 0, 0, 0] }
}

impl Piece {
    fn ports(&self) -> [u16; 2] {
        [ASKED, if self.asked_for { ASKS } else { ASKS + 1 }]
    }

    fn frame(&self, case: u8) -> Vec<u8> {
        let [from, to] = self.ports();
        let whole = match self.quoted {
            false => back().ipv6(SERVER, CLIENT).udp(from, to),
            true => there().ipv6(CLIENT, SERVER).udp(to, from),
        };
        let mut frame = whole.payload_len(self.length).build();
        if self.offset != 0 {
            // Later fragments have no transport header.
            frame[54..62].fill(0x5a);
        }
        frame[20] = self.next;
        for kind in self.after.iter().rev() {
            frame = extended(&frame, *kind, &header(*kind));
        }
        let mut part = |offset: u16, more: bool| {
            let word = (offset << 3 | u16::from(more)).to_be_bytes();
            let id = [0, 0, case, self.id];
            let header = [&[0, 0][..], &word, &id].concat();
            frame = extended(&frame, FRAGMENT, &header);
        };
        if let Some(offset) = self.second {
            part(offset, false);
        }
        part(self.offset, self.more);
        for kind in self.before.iter().rev() {
            frame = extended(&frame, *kind, &header(*kind));
        }
        let length = u16::from_be_bytes([frame[18], frame[19]]).saturating_add_signed(self.lie);
        if !self.quoted {
            frame[18..20].copy_from_slice(&length.to_be_bytes());
            return frame;
        }
        let mut error = error(HOP, &frame, Icmp6Repr::packet_too_big(1280));
        error[QUOTE + 4..QUOTE + 6].copy_from_slice(&length.to_be_bytes());
        fill_checksum(&HOP, &CLIENT, &mut error[54..]).expect("a message");
        error
    }
}

/// Returns the identity of a packet that passed: ports of a whole datagram or a first fragment, or
/// the id of a later fragment's datagram. `None` for an error.
fn seen_as(frame: &[u8]) -> Option<Result<[u16; 2], u32>> {
    let ip = Ipv6View::parse(&frame[14..]).expect("a packet as long as it says");
    let transport = ip.transport().expect("headers that can be read");
    let part = transport.fragment.filter(|part| !part.is_atomic());
    if let Some(part) = part.filter(|part| part.offset != 0) {
        return Some(Err(part.id));
    }
    if transport.protocol == ICMPV6 {
        return None;
    }
    assert_eq!(transport.protocol, UDP, "{frame:02x?}");
    let port = |at| u16::from_be_bytes([transport.payload[at], transport.payload[at + 1]]);
    Some(Ok([port(0), port(2)]))
}

/// The id of a fragmented datagram whose first fragment has the right ports.
fn opens(frame: &[u8]) -> Option<u32> {
    let ip = Ipv6View::parse_prefix(&frame[14..]).ok()?;
    let transport = ip.transport().ok()?;
    let part = transport.fragment.filter(|part| part.offset == 0 && part.more)?;
    let ports = transport.payload.get(..4)?;
    let wanted = [ASKED.to_be_bytes(), ASKS.to_be_bytes()].concat();
    (transport.protocol == UDP && ports == wanted).then_some(part.id)
}

#[test]
fn only_parts_of_answers_get_in() {
    for workers in [1, 2] {
        let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
        let batches = prop::collection::vec(prop::collection::vec(piece(), 1..24), 1..4);
        let run = TestRunner::new(config).run(&(batches, any::<bool>(), any::<u8>()), |case| {
            let (batches, is_open, number) = case;
            let mut lab = guarded(workers);
            if is_open {
                let ask = there().ipv6(CLIENT, SERVER).udp(ASKS, ASKED).payload(b"abc").build();
                let answer = back().ipv6(SERVER, CLIENT).udp(ASKED, ASKS).payload(b"x").build();
                assert_eq!(lab.pass(0, &[ask]).len(), 1);
                assert_eq!(lab.pass(1, &[answer]).len(), 1);
            }
            let mut opened = BTreeSet::new();
            for batch in batches {
                let frames: Vec<Vec<u8>> = batch.iter().map(|piece| piece.frame(number)).collect();
                opened.extend(frames.iter().filter_map(|frame| opens(frame)));
                for (_, frame) in lab.pass_until(1, &frames, 0) {
                    prop_assert!(is_open, "unasked: {:02x?}", frame);
                    match seen_as(&frame) {
                        Some(Ok(ports)) => prop_assert_eq!(ports, [ASKED, ASKS]),
                        Some(Err(id)) => prop_assert!(opened.contains(&id), "{:02x?}", frame),
                        // Errors about the connection that exists.
                        None => {
                            let ports = [ASKS.to_be_bytes(), ASKED.to_be_bytes()].concat();
                            let is_there = frame.windows(4).any(|some| some == ports);
                            prop_assert!(is_there, "{:02x?}", frame);
                        }
                    }
                }
            }
            // A datagram in parts still gets through, whatever was sent before.
            if is_open {
                let whole = back().ipv6(SERVER, CLIENT).udp(ASKED, ASKS).payload_len(3000).build();
                let parts = crate::ipv6::cut(&whole, 1400, 0xffff_0000);
                prop_assert_eq!(lab.pass(1, &parts).len(), parts.len());
            }
            lab.close();
            Ok(())
        });
        run.unwrap_or_else(|e| panic!("{workers} workers: {e}"));
    }
}
