//! `hsflowd.conf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_sflow_agent::fuzz::fuzz_conf(data));
