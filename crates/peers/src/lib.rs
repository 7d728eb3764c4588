//! Programs of others, as devices under test and to compare with: [`Peer`] finds what is installed
//! or unpacked, [`Ovs`] runs an Open vSwitch in a namespace.

#![forbid(unsafe_code)]

mod ovs;
mod peer;

pub use ovs::{Ovs, OvsOptions};
pub use peer::Peer;
