//! `show ip6 neighbors`: the neighbour table's IPv6 neighbours.

use super::show_ip_neighbors::ShowIpNeighbors;
use crate::Version;

/// The command.
pub static COMMAND: ShowIpNeighbors = ShowIpNeighbors(Some(Version::V6));
