//! Requests of the binary API with values at and beyond limits, to a router.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_program_router::api::typed::fuzz_requests(data));
