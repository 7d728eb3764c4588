//! Rings on real devices, in network namespaces that the tests make.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rings;
mod suite;
mod support;
mod wire;

/// Some tests hold rings to asking for no memory.
#[global_allocator]
static HEAP: thalweg_graph::heap::Counting = thalweg_graph::heap::Counting;
