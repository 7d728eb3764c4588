//! TAPs in network namespaces that the tests make.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod life;
mod suite;
mod support;

/// The suite holds workers to asking for no memory.
#[global_allocator]
static HEAP: thalweg_graph::heap::Counting = thalweg_graph::heap::Counting;
