//! Sub-interfaces by VLAN tags: see `fuzz_subs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_device::interface::fuzz_subs(data));
