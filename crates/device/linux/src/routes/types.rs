//! Routes and changes of them, as their owner has them.

use super::labels::LabelChange;
use std::net::IpAddr;
use std::sync::Arc;
use thalweg_netlink::fib::{Hop, RouteKind};

/// A next hop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextHop {
    /// Index of the link, or 0.
    pub link: u32,
    /// Address of the next router, of any version; `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Share among the hops, from 1.
    pub weight: u16,
    /// MPLS labels to impose, as entries of four bytes, the outermost first; in a
    /// label's route they take its place.
    pub labels: Box<[u8]>,
    /// TTL of the labels, 0 for that of the packet; `None` if the namespace's settings say.
    pub ttl: Option<u8>,
    /// Packets go there in a way that is not among these.
    pub is_odd: bool,
}

impl NextHop {
    /// One by no link: no link is 0.
    pub(super) fn nowhere() -> NextHop {
        let (labels, ttl) = (Box::default(), None);
        NextHop { link: 0, gateway: None, weight: 1, labels, ttl, is_odd: false }
    }

    pub(super) fn of(hop: &Hop<'_>) -> NextHop {
        let Hop { link, gateway, weight, ttl, is_odd, .. } = *hop;
        NextHop { link, gateway, weight, labels: hop.labels.into(), ttl, is_odd }
    }
}

/// Next hops of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hops {
    /// Next hops.
    These(Arc<[NextHop]>),
    /// Next hops of an object.
    Object(u32),
}

/// A route that the kernel uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The lower, the better.
    pub metric: u32,
    /// Its kind.
    pub kind: RouteKind,
    /// Its protocol (`RTPROT_*`).
    pub protocol: u8,
    /// Next hops.
    pub hops: Hops,
}

/// A change of what the kernel uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Routing table.
    pub table: u32,
    /// Destinations: an address and the number of its bits that count.
    pub destination: (IpAddr, u8),
    /// The route; `None` once it is gone.
    pub now: Option<Used>,
}

/// Hops of an object: a blackhole has none.
pub type ObjectHops = Vec<NextHop>;

/// Changes since the last time, in the order in which they must be applied.
#[derive(Debug, Default)]
pub struct Taken {
    /// Objects that are new or changed.
    pub objects: Vec<(u32, ObjectHops)>,
    /// Routes.
    pub routes: Vec<Change>,
    /// Routes of labels.
    pub labels: Vec<LabelChange>,
    /// Objects that are gone. No route that was taken leads to one.
    pub gone: Vec<u32>,
    /// True if at most one of the kernel's tables `local`, `main` and `default` has routes of each
    /// version: a destination has no route in the others.
    pub is_single: bool,
    /// True if links have other [roles](super::Routes::role).
    pub roles: bool,
    /// True if there is more to take.
    pub more: bool,
}

/// Destinations that a walk has visited.
#[derive(Debug, Default)]
pub struct Visited {
    /// Destinations, with the routes that the kernel uses.
    pub routes: Vec<Change>,
    /// Labels, with their routes.
    pub labels: Vec<LabelChange>,
}

/// Limits of a namespace.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Routes of both versions.
    pub routes: usize,
    /// Routes of labels.
    pub labels: usize,
    /// Routing tables of a version.
    pub tables: usize,
    /// Next-hop objects.
    pub objects: usize,
    /// Next hops of a route; others are left out.
    pub hops: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (routes, labels, objects) = (4_000_000, 1 << 20, 1_000_000);
        Limits { routes, labels, tables: 1024, objects, hops: 64 }
    }
}

/// Routes that the router cannot follow, and others that it has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Routes for a type of service or a source, or of a kind that the router does not have, and
    /// those with next hops of such a kind.
    pub unsupported: u64,
    /// Routes, labels, tables, objects and next hops beyond the limits.
    pub beyond: u64,
}
