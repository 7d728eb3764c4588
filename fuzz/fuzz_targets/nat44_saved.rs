//! NAT44: see `fuzz_saved`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_feat_nat44::fuzzing::fuzz_saved(data));
