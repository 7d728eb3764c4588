//! Adjacencies and midchains: what makes one of them, and what it puts before packets.

use crate::rib::{Labels, Mark};
use crate::{Dpo, LinkType};
use std::net::IpAddr;
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_graph::NodeId;
use thalweg_wire::mpls::{Entry as Stacked, Label};

/// The receiver of an adjacency's packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Peer {
    /// One host of the link. Its address may be of another family than the packets (RFC 8950).
    Neighbor(IpAddr),
    /// The host at the other end of the link.
    PointToPoint,
    /// The members of a multicast group.
    Multicast,
    /// The packet's destination, which has to be resolved.
    Glean,
    /// The receiver that the packet's own link header names.
    AsWritten,
}

impl Peer {
    /// Returns the address of a neighbour.
    #[must_use]
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Peer::Neighbor(address) => Some(address),
            Peer::PointToPoint | Peer::Multicast | Peer::Glean | Peer::AsWritten => None,
        }
    }
}

/// Parts that make an adjacency different from all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct AdjacencyKey {
    /// Interface.
    pub sw_if: SwIfIndex,
    /// Protocol that it carries.
    pub link: LinkType,
    /// The receiver.
    pub peer: Peer,
    /// Labels that it puts before the packets.
    pub imposed: Imposed,
}

/// Labels that an MPLS adjacency puts before packets, after the link header (RFC 3032 section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct Imposed {
    /// The labels, the outermost first, with TTL and traffic class of their own: the pipe model of
    /// RFC 3443.
    pub labels: Labels,
    /// The last of them is the bottom of the stack: what follows is no label.
    pub bottom: bool,
    /// A label that takes the place of the packet's own, for the node that swaps it.
    pub swap: Option<Label>,
}

impl Imposed {
    /// Nothing.
    pub const NONE: Imposed = Imposed { labels: Labels::NONE, bottom: false, swap: None };

    /// Returns the labels as stack entries.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let n = self.labels.as_slice().len();
        let entry = |(i, (label, mark)): (usize, (Label, Mark))| {
            let bottom = self.bottom && i + 1 == n;
            Stacked::new(label, mark.class, bottom, mark.sent_ttl()).0.to_be_bytes()
        };
        self.labels.iter().enumerate().flat_map(entry).collect()
    }
}

/// An adjacency as `show` commands see it.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// Its index.
    pub dpo: Dpo,
    /// Number of routes and neighbours that use it.
    pub refs: u32,
    /// The neighbour's MAC address, if known.
    pub mac: Option<MacAddr>,
}

/// A header that leads to another object, to be created with
/// [`Forwarding::midchain`](crate::Forwarding::midchain).
#[derive(Clone, Debug)]
pub struct Midchain<'a> {
    /// The tunnel's interface.
    pub sw_if: SwIfIndex,
    /// Protocol that it carries.
    pub link: LinkType,
    /// The header.
    pub header: &'a [u8],
    /// Node that completes the header of each packet, and sends it to what the object is stacked
    /// on ([`Entry::stacked`](crate::Entry::stacked)).
    pub node: NodeId,
    /// The object of the tunnel's destination, such as a group that follows its route.
    pub stacked: Dpo,
}
