//! Tag rewrites of layer 2: see `fuzz_rewrites`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_feat_l2::fuzzing::fuzz_rewrites(data));
