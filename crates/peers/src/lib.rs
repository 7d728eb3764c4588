//! Programs of others, as devices under test and to compare with: [`Peer`] finds what is installed
//! or unpacked; [`Ovs`], [`Frr`] and [`Bird`] run an Open vSwitch, FRRouting and BIRD in a
//! namespace.

#![forbid(unsafe_code)]

mod bird;
mod frr;
mod ovs;
mod peer;

pub use bird::Bird;
pub use frr::Frr;
pub use ovs::{Ovs, OvsOptions};
pub use peer::Peer;
