//! Command lines: parsing, help, completion.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_cli::fuzz_line(data));
