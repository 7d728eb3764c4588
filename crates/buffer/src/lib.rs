//! Packet buffers.
//!
//! A [`Pool`] is one memory mapping cut into equal buffers. A worker takes buffers from and returns
//! them to its own [`Cache`]; caches trade batches of [`BATCH`] with the pool's depot, one atomic
//! operation a batch. A packet in flight is either an owned [`Packet`] or a row of a [`Frame`]:
//! neither can be copied, so a packet is in exactly one place.
//!
//! **Invariant.** A free buffer's [`Meta`] is all default. A frame whose [`FrameFlags`] are empty
//! holds only packets whose meta is default, so that the fast path neither reads nor writes it.
//!
//! This crate knows no protocol. All `unsafe` that the packet path needs is here.

mod cache;
mod frame;
mod meta;
mod packet;
mod pool;
mod region;
mod rows;
pub mod simd;

pub use cache::Cache;
pub use frame::{
    Companion, Deal, FRAME_SIZE, Frame, FrameFlags, IfColumn, Iface, PacketKey, PktMut,
};
pub use meta::{Flags, GsoKind, IcmpCause, LabelsChanged, Meta, Offload, Search};
pub use packet::{Lineage, Packet, Segments};
pub use pool::{
    BATCH, DEFAULT_DATA_SIZE, HEADROOM, PageKind, Pool, PoolAudit, PoolConfig, PoolError,
};
pub use region::Region;
pub use rows::Rows;

thalweg_wire::number! {
    /// Index of an interface: `local0` is 0.
    pub struct SwIfIndex(u32);
}

/// The interface of packets that the router itself originated: `local0`, index 0.
pub const LOCAL_IF: SwIfIndex = SwIfIndex(0);
