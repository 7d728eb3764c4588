//! The one reading of a packet, from its IP header on: bounded by the packet's end, whatever
//! follows.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_wire::packet::fuzz_packet(data));
