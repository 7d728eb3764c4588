//! Profiles of the load tester: what is a profile has a canonical form, which is one, too, and
//! sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_load_profile::fuzz_profile(data));
