//! Data structures that the control thread writes while packet workers read.
//!
//! Nothing here knows a packet or a graph node. The rule of the house is *publish, don't stop*:
//! there is one writer, readers never take a lock and never write a shared line except their own
//! quiescence slot, and memory or an index is reused only after a grace period ([`qsbr`]).
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`qsbr`] | grace periods: when may something that workers could still see be reused |
//! | [`snapshot`] | immutable values replaced whole, read through one pointer load |
//! | [`paged`] | big arrays of atomics, updated in place, committed page by page |
//! | [`index`] | bounded pools of indices that are reused after a grace period |
//! | [`lpm4`] | IPv4 longest-prefix match for a million routes |
//! | [`mac`] | bridges' addresses |
//! | [`swap_ring`] | SPSC rings that return an empty item for each one taken |
//! | [`record_ring`] | SPSC rings of variable-length records made of cache lines |
//! | [`flow`] | connections, owned by one worker each |
//! | [`fragments`] | what became of datagrams' first fragments, and others that wait |
//! | [`hash`] | hashing of small integer keys |
//! | [`shared`] | memory that other processes read |
//! | [`sorted`] | sorting bit by bit |
//! | [`prefetch`] | hints that safe code may give |

pub mod flow;
pub mod fragments;
pub mod hash;
pub mod index;
pub mod lpm4;
pub mod mac;
pub mod paged;
pub mod prefetch;
pub mod qsbr;
pub mod record_ring;
pub mod shared;
pub mod snapshot;
pub mod sorted;
pub mod swap_ring;
mod sync;

pub use flow::{FlowId, FlowTable};
pub use index::{IndexError, IndexPool};
pub use lpm4::{Ipv4Prefix, Leaf, Lpm4, Lpm4Reader, LpmError, PrefixMap, Sweep};
pub use paged::{AllZeroValid, MapError, PagedTable, Pages};
pub use qsbr::{Domain, Guard, QsbrError, Reader, Tag};
pub use snapshot::{Snapshot, Writer};
pub use sorted::{Sorted, Sorter};
