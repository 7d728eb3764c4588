//! The startup configuration, as a file and as arguments.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_config::fuzz_startup(data));
