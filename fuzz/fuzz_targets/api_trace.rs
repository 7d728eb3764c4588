//! A file of API requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_api::trace::fuzz_trace(data));
