//! sFlow datagrams: decoding, every output format, the estimates.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_sflow::fuzz_decode(data));
