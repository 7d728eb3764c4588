//! Data structures that the control thread writes while packet workers read.
//!
//! Nothing here knows a packet or a graph node. The principle is *publish, don't stop*: there is
//! one writer, readers never take a lock and never write a shared line except their own quiescence
//! slot, and memory or an index is reused only after a grace period ([`qsbr`]).
//!
//! | module | purpose |
//! | --- | --- |
//! | [`qsbr`] | grace periods: when memory that workers could still see may be reused |
//! | [`snapshot`] | immutable values replaced whole, read through one pointer load |
//! | [`cow`] | rows in pages that snapshots share |
//! | [`cow_map`] | maps that snapshots share |
//! | [`paged`] | large arrays of atomics, updated in place, committed page by page |
//! | [`index`] | bounded pools of indices that are reused after a grace period |
//! | [`prefix`], [`prefix_map`] | prefixes of any family, and maps from them |
//! | [`lpm`] | what route tables need of a longest-prefix match |
//! | [`lpm4`] | IPv4 longest-prefix match for a million routes |
//! | [`lpm6`] | IPv6 longest-prefix match |
//! | [`mac`] | MAC address tables of bridges |
//! | [`swap_ring`] | SPSC rings that return an empty item for each one taken |
//! | [`record_ring`] | SPSC rings of variable-length records made of cache lines |
//! | [`flow`] | connections, owned by one worker each |
//! | [`fragments`] | results of datagrams' first fragments, and fragments that wait for theirs |
//! | [`hash`] | hashing of small integer keys |
//! | [`limit`] | rate limits |
//! | [`random`] | random numbers |
//! | [`shared`] | memory that other processes read |
//! | [`sorted`] | incremental sorting |
//! | [`prefetch`] | prefetch hints for safe code |

pub mod cow;
pub mod cow_map;
pub mod flow;
pub mod fragments;
pub mod hash;
pub mod index;
pub mod limit;
pub mod lpm;
pub mod lpm4;
pub mod lpm6;
pub mod mac;
pub mod paged;
pub mod prefetch;
pub mod prefix;
pub mod prefix_map;
pub mod qsbr;
pub mod random;
pub mod record_ring;
pub mod shared;
pub mod snapshot;
pub mod sorted;
pub mod swap_ring;
mod sync;

pub use cow::CowTable;
pub use cow_map::CowMap;
pub use flow::{FlowId, FlowTable};
pub use index::{IndexError, IndexPool};
pub use lpm::Lpm;
pub use lpm4::{Leaf, Lpm4, Lpm4Reader, LpmError};
pub use lpm6::{Lpm6, Lpm6Config, Lpm6Reader};
pub use paged::{AllZeroValid, MapError, PagedTable, Pages, SparseArray, SparseMemory};
pub use prefix::{Address, Ipv4Prefix, Ipv6Prefix, Prefix, PrefixLenError};
pub use prefix_map::{PrefixMap, Sweep};
pub use qsbr::{Domain, Guard, QsbrError, Reader, Tag};
pub use snapshot::{Snapshot, Writer};
pub use sorted::{Sorted, Sorter};
