//! Network namespaces, and the links, programs and traffic in them: for `thalweg demo`, tests and
//! benchmarks.
//!
//! The parts, from the ground up:
//!
//! - [`Privilege`] and [`enter_user_namespace`] settle whether namespaces may be made at all, and
//!   how;
//! - [`Netns`] is a network namespace that dies with the process, [`Cmd`] and [`Running`] are
//!   programs that run inside one; a [`Guard`] ends all that are left in one, a [`Keeper`] keeps
//!   descriptors of one that starts again;
//! - [`veth`] joins two namespaces, [`Lab`] sets up `left — router — right` in one call;
//! - [`iperf3`] and [`ping`] run the usual tools and read what they say;
//! - [`wait_until`] and its kin wait for things to happen, and say what they last saw when they
//!   do not.
//!
//! Nothing here sleeps for a fixed time: what waits goes on as soon as what it waits for is there.

#![forbid(unsafe_code)]

mod ethtool;
mod guard;
mod iperf;
mod keeper;
mod lab;
mod link;
mod netns;
mod ping;
mod privilege;
mod process;
mod wait;
mod waiting;

pub use anyhow::Result;
pub use ethtool::{Offloads, set_offloads};
pub use guard::Guard;
pub use iperf::{IperfOptions, IperfResult, iperf3};
pub use keeper::Keeper;
pub use lab::{Lab, LabOptions, Middle, Side, enable_ipv4_forwarding};
pub use link::{LinkInfo, LinkOptions, bridge, veth};
pub use netns::{Netns, Observer, observe};
pub use ping::{PingOptions, PingResult, ping};
pub use privilege::{Privilege, enter_user_namespace, require_tools, user_namespace_command};
pub use process::{Cmd, Output, Running, Signal, running_programs};
pub use wait::{
    WAIT_LIMIT, accept, connect, join, udp_port_is_bound, wait_for_file, wait_for_link_up,
    wait_for_readable, wait_for_tcp_listener, wait_for_udp_port, wait_for_udp_reader,
    wait_for_unix_socket, wait_until, wait_until_seen,
};
pub use waiting::waits;
