//! Benchmarks of the load tester: see `benches`.

#![forbid(unsafe_code)]
