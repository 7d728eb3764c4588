//! Notices of the kernel about links, with their VLANs and VRFs and whether they take labels, addresses
//! and neighbours.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_netlink::fuzz_notices(data));
