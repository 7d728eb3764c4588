//! Finds the conversation of a packet that was dropped.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_wire::tcp::flag::{ACK, FIN, RST, SYN};

use super::{Incoming, Plan, Protocol};

/// A packet of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Protocol.
    pub protocol: Protocol,
    /// Source address and port.
    pub source: (IpAddr, u16),
    /// Destination address and port.
    pub destination: (IpAddr, u16),
    /// Flags of TCP.
    pub flags: u8,
    /// Sequence number of TCP.
    pub seq: u32,
}

impl Incoming<'_> {
    /// Returns its conversation; `None` if it is no packet of any.
    pub fn flow(&self) -> Option<Flow> {
        let heard = self.heard.as_ref().ok()?;
        let address = |number: u128| match heard.is_v4 {
            true => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
            false => IpAddr::V6(Ipv6Addr::from_bits(number)),
        };
        Some(Flow {
            protocol: heard.protocol,
            source: (address(heard.source), heard.ports.0),
            destination: (address(heard.destination), heard.ports.1),
            flags: heard.flags,
            seq: heard.seq,
        })
    }
}

impl Plan {
    /// True if a packet belongs to one of these conversations: one of its ends is one of their
    /// servers. The client's address says nothing, since a device may translate it.
    pub fn has(&self, flow: &Flow) -> bool {
        let is_server = |(address, port): (IpAddr, u16)| {
            let number = match address {
                IpAddr::V4(v4) => v4.to_bits().into(),
                IpAddr::V6(v6) => v6.to_bits(),
            };
            let kind = |talk: &super::Talk| (talk.protocol, talk.port) == (flow.protocol, port);
            address.is_ipv4() == self.servers.first.is_ipv4()
                && self.servers.range().number(number).is_some()
                && self.talks.iter().any(kind)
        };
        is_server(flow.source) || is_server(flow.destination)
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        };
        let end = |f: &mut fmt::Formatter<'_>, (address, port): (IpAddr, u16)| match address {
            IpAddr::V4(v4) => write!(f, "{v4}:{port}"),
            IpAddr::V6(v6) => write!(f, "[{v6}]:{port}"),
        };
        write!(f, "{protocol} ")?;
        end(f, self.source)?;
        write!(f, " > ")?;
        end(f, self.destination)?;
        if self.protocol == Protocol::Tcp {
            for (flag, name) in [(SYN, " SYN"), (FIN, " FIN"), (RST, " RST"), (ACK, " ACK")] {
                if self.flags & flag != 0 {
                    write!(f, "{name}")?;
                }
            }
        }
        Ok(())
    }
}
