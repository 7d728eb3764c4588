//! The configuration as a document.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_config::declare::fuzz_document(data));
