//! Network-namespace labs, waiting helpers and other tools for tests, benchmarks and the demo.
//!
//! The parts, from the ground up:
//!
//! - [`Privilege`], [`enter_user_namespace`] and [`lab_test!`] settle whether namespaces may be
//!   made at all, and how;
//! - [`Netns`] is a network namespace that dies with the process, [`Cmd`] and [`Running`] are
//!   programs that run inside one;
//! - [`veth`] joins two namespaces, [`Lab`] sets up `left — router — right` in one call;
//! - [`Flood`] sends small packets as fast as it can;
//! - [`iperf3`], [`ping`], [`Capture`] and [`tshark_fields`] run the usual tools and read what
//!   they say;
//! - [`wait_until`] and its kin wait for things to happen, and say what they last saw when they
//!   do not;
//! - a failed test leaves the last packets of its labs in [`failure_dir`]: those of hosts in
//!   namespaces, and those that a lab within the process enters into a [`PacketLog`];
//! - [`GeneratedList`] keeps the committed list of a one-item-per-file folder current, and
//!   [`golden!`] compares text with a file.
//!
//! Nothing here sleeps for a fixed time: a test that waits ends as soon as what it waits for is
//! there.

#![forbid(unsafe_code)]

mod capture;
mod ethtool;
mod failure;
mod flood;
mod golden;
mod iperf;
mod lab;
mod link;
mod netlink;
mod netns;
mod packets;
mod pause;
mod ping;
mod privilege;
mod process;
mod registry;
mod stacks;
mod wait;
mod watch;
mod watchdog;

pub use anyhow::Result;
pub use capture::{Capture, CaptureCounts, tshark_fields, tshark_json};
pub use ethtool::{Offloads, set_offloads};
pub use failure::failure_dir;
pub use flood::Flood;
pub use golden::check_golden;
pub use iperf::{IperfOptions, IperfResult, iperf3};
pub use lab::{Lab, LabOptions, Middle, Side, enable_ipv4_forwarding};
pub use link::{LinkInfo, LinkOptions, bridge, veth};
pub use netns::Netns;
pub use packets::{PacketLog, PacketTap};
pub use pause::keep_while_paused;
pub use ping::{PingOptions, PingResult, ping};
pub use privilege::{
    Privilege, enter_user_namespace, require_tools, run_lab_test, user_namespace_command,
};
pub use process::{Cmd, Output, Running, Signal};
pub use registry::{GeneratedList, check_feature_lists};
pub use stacks::{descendants, stacks};
pub use wait::{
    WAIT_LIMIT, accept, connect, join, udp_port_is_bound, wait_for_file, wait_for_link_up,
    wait_for_readable, wait_for_tcp_listener, wait_for_udp_port, wait_for_udp_reader,
    wait_for_unix_socket, wait_until, wait_until_seen,
};
