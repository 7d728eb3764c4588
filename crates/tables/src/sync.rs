//! The atomics of this crate: the standard ones, or loom's when a model is being explored.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
};

/// Keeps what one core writes off the cache lines that its neighbours write. 128 bytes, because
/// adjacent-line prefetchers fetch 64-byte lines in pairs.
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
