//! Programs of others, as devices under test and to compare with: [`Peer`] finds what is installed
//! or unpacked; [`Ovs`], [`Frr`], [`Bird`] and [`Keepalived`] run an Open vSwitch, FRRouting, BIRD
//! and keepalived in a namespace.

#![forbid(unsafe_code)]

mod bird;
mod frr;
mod keepalived;
mod ovs;
mod peer;

pub use bird::Bird;
pub use frr::Frr;
pub use keepalived::Keepalived;
pub use ovs::{Ovs, OvsOptions};
pub use peer::Peer;
