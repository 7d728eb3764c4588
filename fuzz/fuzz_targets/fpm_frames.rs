//! Frames in which FRRouting's `zebra` sends its routes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_netlink::fpm::fuzz(data));
