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

pub mod qsbr;
pub mod snapshot;
mod sync;

pub use qsbr::{Domain, Guard, QsbrError, Reader, Tag};
pub use snapshot::{Snapshot, Writer};
