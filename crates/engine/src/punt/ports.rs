//! UDP ports whose datagrams are punted whether a node takes them or not (`set punt`): they go the
//! way of punted packets, by a redirect or to a receiver, and are dropped without an ICMP error if
//! there is none. Without that, a port that nothing listens on is punted only if a node takes it.

use super::{PuntError, Registry, publish};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thalweg_graph::Control;

/// Most ports that can be set, `all` included.
pub const MAX_PORTS: usize = 1024;

/// A port that is punted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Port {
    /// True for IPv6, false for IPv4.
    pub v6: bool,
    /// Its number; `None` for all that nothing here listens on.
    pub number: Option<u16>,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.v6 { "ipv6" } else { "ipv4" };
        match self.number {
            Some(port) => write!(f, "{version} udp {port}"),
            None => write!(f, "{version} udp all"),
        }
    }
}

impl FromStr for Port {
    type Err = ();

    fn from_str(text: &str) -> Result<Port, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let [version, "udp", port] = words[..] else { return Err(()) };
        let v6 = match version {
            "ipv4" => false,
            "ipv6" => true,
            _ => return Err(()),
        };
        let number = match port {
            "all" => None,
            // One way to write a number.
            port => Some(port.parse().ok().filter(|n: &u16| n.to_string() == port).ok_or(())?),
        };
        Ok(Port { v6, number })
    }
}

/// Starts or stops punting a port. Repeating a setting is no error.
///
/// # Errors
/// [`PuntError::Ports`].
pub fn set_port(c: &mut Control, port: Port, on: bool) -> Result<(), PuntError> {
    {
        let registry = c.state::<Registry>();
        let mut registry = registry.borrow_mut();
        let mut ports = (*registry.ports).clone();
        match on {
            true if ports.len() >= MAX_PORTS && !ports.contains(&port) => {
                return Err(PuntError::Ports);
            }
            true => drop(ports.insert(port)),
            false => drop(ports.remove(&port)),
        }
        registry.ports = Arc::new(ports);
    }
    publish(c);
    Ok(())
}

/// Returns the ports that are punted, in order.
pub fn ports(c: &Control) -> Vec<Port> {
    c.state::<Registry>().borrow().ports.iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_they_are_shown() {
        for text in ["ipv4 udp 0", "ipv6 udp all", "ipv4 udp 65535"] {
            assert_eq!(text.parse().map(|p: Port| p.to_string()), Ok(text.to_owned()));
        }
        for bad in ["", "udp 9", "ipv4 tcp 9", "ipv4 udp 65536", "ipv4 udp 09", "ip4 udp 1"] {
            assert_eq!(bad.parse::<Port>(), Err(()), "{bad}");
        }
    }
}
