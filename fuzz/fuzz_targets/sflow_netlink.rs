//! Netlink datagrams: PSAMPLE, USERSOCK, NET_DM and the kernel's register of families.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_sflow_agent::fuzz::fuzz_netlink(data));
