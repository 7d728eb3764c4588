//! Labelled packets.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_feat_mpls::fuzz::fuzz_packet(data));
