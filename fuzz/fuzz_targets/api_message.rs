//! The bytes of a connection to the binary API.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_api::fuzz_message(data));
