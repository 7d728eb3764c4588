//! A request over HTTP.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    thalweg_stats::http::fuzz_http(data);
});
