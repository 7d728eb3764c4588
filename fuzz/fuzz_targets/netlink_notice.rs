//! Notices of the kernel about links, with their VLANs, VRFs and labels, addresses and neighbours.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_netlink::fuzz_notices(data));
