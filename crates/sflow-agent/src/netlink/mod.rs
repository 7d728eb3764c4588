//! The three netlink channels between a dataplane that samples and an agent that exports.
//!
//! | channel | carries | protocol, group |
//! | --- | --- | --- |
//! | [`psample`] | sampled packets | generic family `psample`, `packets` |
//! | [`usersock`] | that the router lives, interface counters | `NETLINK_USERSOCK`, 29 |
//! | [`dropmon`] | dropped packets with their reasons | generic family `NET_DM`, `events` |
//!
//! Both ends must be in one network namespace. The formats are those of linux/psample.h,
//! linux/net_dropmon.h and of VPP's sFlow plugin, which hsflowd reads. [`Receiver`] listens to all,
//! [`Multicast`] sends to one; [`thalweg_netlink::wire`] has what messages are made of.

pub mod dropmon;
pub mod psample;
pub mod receive;
pub mod send;
pub mod usersock;

pub use dropmon::PacketDrop;
pub use psample::{Gaps, PacketSample};
pub use receive::{Event, Message, Notice, Receiver, ReceiverConfig, StartDrops};
pub use send::{Listeners, Multicast, OpenError, SendStats, listeners};
pub use usersock::{PortCounters, Status};

use std::fmt;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Sampled packets.
    Psample,
    /// Status and interface counters.
    Usersock,
    /// Dropped packets.
    Dropmon,
}

impl Channel {
    /// All of them.
    pub const ALL: [Channel; 3] = [Channel::Psample, Channel::Usersock, Channel::Dropmon];

    /// Its generic family, the group in it, and the kernel module that brings both.
    #[must_use]
    pub fn family(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Channel::Psample => Some((psample::FAMILY, psample::GROUP, psample::MODULE)),
            Channel::Usersock => None,
            Channel::Dropmon => Some((dropmon::FAMILY, dropmon::GROUP, dropmon::MODULE)),
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Channel::Psample => "psample",
            Channel::Usersock => "counters",
            Channel::Dropmon => "drops",
        })
    }
}

/// Returns the remedy for a family that is missing.
fn missing(channel: Channel) -> String {
    let Some((family, _, module)) = channel.family() else { return String::new() };
    let place = match channel {
        // Its family is not made for other namespaces.
        Channel::Dropmon => " (it exists in the host's first network namespace only)",
        _ => "",
    };
    format!("this kernel has no {family} family: modprobe {module}{place}")
}

#[cfg(test)]
mod tests;
