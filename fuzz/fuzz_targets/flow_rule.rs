//! Flow rules: any text is read or refused, and what is read is written so that it reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_feat_flow::rule::fuzz_rule(data));
