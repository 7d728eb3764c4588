//! Entry points for fuzzing: everything that takes bytes from outside, with nothing to expect but
//! that it returns.

use std::io::Cursor;

use crate::decode::Datagram;
use crate::estimate::{Order, TopTalkers};
use crate::pcapfile::PcapReader;
use crate::pcapout::{Packets, PcapOut};
use crate::text::{Arrival, Format, Moment, Printer, Zone};

/// Decodes a datagram, prints it in every format and adds it up.
pub fn fuzz_decode(data: &[u8]) {
    let names = vec!["srcIP".to_owned(), "decodedVLAN.1".to_owned(), "agent".to_owned()];
    let formats = [
        Format::Text,
        Format::Grep,
        Format::Line,
        Format::Fields(names),
        Format::Json,
        Format::JsonIndented,
    ];
    let arrival = Arrival::captured(Moment::default());
    for format in formats {
        for exact in [false, true] {
            let mut printer = Printer::new(format.clone()).with_zone(Zone::utc()).with_exact(exact);
            for error in printer.format(&arrival, data) {
                let _ = error.to_string();
            }
        }
    }
    for packets in [Packets::Sampled, Packets::Discarded, Packets::Datagrams] {
        let mut file = PcapOut::new(packets, crate::SFLOW_PORT).with_redaction(true);
        let _ = file.add(Moment::default(), None, data);
    }
    if let Ok(datagram) = Datagram::parse(data) {
        let mut talkers = TopTalkers::new(16);
        talkers.feed(&datagram);
        let _ = talkers.top(4, Order::Bytes);
        let _ = talkers.sources().count();
    }
}

/// Reads a capture file.
pub fn fuzz_capture(data: &[u8]) {
    if let Ok(mut reader) = PcapReader::new(Cursor::new(data.to_vec()), crate::SFLOW_PORT) {
        while let Ok(Some(_)) = reader.next_datagram() {}
    }
}
