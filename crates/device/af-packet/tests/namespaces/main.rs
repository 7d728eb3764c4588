//! Rings on real devices, in network namespaces that the tests make.

mod rings;
mod support;
mod wire;

/// Some tests hold rings to asking for no memory.
#[global_allocator]
static HEAP: thalweg_graph::heap::Counting = thalweg_graph::heap::Counting;
