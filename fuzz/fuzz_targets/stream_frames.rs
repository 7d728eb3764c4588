//! Received frames of streams: any bytes, and packets of streams that the bytes lose, repeat, delay
//! and change. The books must balance.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_load::stream::fuzz_frames(data));
