//! Routes that stay in the kernel alone, with the reasons.

use super::{KernelRoutes, Origin, SLICE, labels, path};
use std::net::IpAddr;
use std::time::Instant;
use thalweg_device_linux::routes::{Hops, RouteWalk, Used, Visited};
use thalweg_feat_ip::Path;
use thalweg_graph::Control;
use thalweg_netlink::fib::RouteKind;

/// Routes that a [`Look`] keeps.
pub const MOST_SHOWN: usize = 1000;

/// A route that stays in the kernel alone.
#[derive(Clone, Debug)]
pub struct Unresolved {
    /// The namespace's name.
    pub namespace: String,
    /// True if `zebra` has sent it itself.
    pub is_fpm: bool,
    /// Destinations.
    pub of: Destinations,
    /// The reason.
    pub why: String,
}

/// Packets that a route of the kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Packets to addresses, by a routing table of the kernel.
    Prefix {
        /// The table.
        table: u32,
        /// An address.
        ip: IpAddr,
        /// Its bits that count.
        bits: u8,
    },
    /// Packets with a label.
    Label(u32),
}

/// A look at all routes, in slices.
#[derive(Debug)]
pub struct Look {
    /// Origins that are left, the present one last.
    left: Vec<Origin>,
    walk: Option<RouteWalk>,
    /// Routes that were found, [`MOST_SHOWN`] at most.
    pub found: Vec<Unresolved>,
    /// Number of all.
    pub count: usize,
}

impl Look {
    /// Begins one.
    pub fn new(c: &Control) -> Look {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        let all = state.followed.iter().flat_map(|(id, of)| of.all(*id));
        let mut left: Vec<Origin> = all.map(|(origin, _)| origin).collect();
        left.reverse();
        Look { left, walk: None, found: Vec::new(), count: 0 }
    }

    /// Looks at some routes, for about a millisecond; returns false once all have been looked at.
    pub fn go_on(&mut self, c: &Control) -> bool {
        let begin = Instant::now();
        let mut some = Visited::default();
        while let Some(origin) = self.left.last().copied() {
            if begin.elapsed() >= SLICE {
                return true;
            }
            let state = c.state::<KernelRoutes>();
            let state = state.borrow();
            let more = state.of(origin).is_some_and(|routes| {
                routes.some(self.walk.get_or_insert_with(|| routes.walk()), &mut some)
            });
            self.add(c, &state, origin, &mut some);
            if !more {
                self.left.pop();
                self.walk = None;
            }
        }
        false
    }

    /// Adds those of some routes that stay in the kernel.
    fn add(&mut self, c: &Control, state: &KernelRoutes, origin: Origin, some: &mut Visited) {
        let Some(of) = state.followed.get(&origin.id) else { return };
        let mut add = |of_these, why: Option<String>| {
            let Some(why) = why else { return };
            self.count += 1;
            if self.found.len() < MOST_SHOWN {
                let (namespace, is_fpm) = (of.name.clone(), origin.fpm.is_some());
                self.found.push(Unresolved { namespace, is_fpm, of: of_these, why });
            }
        };
        for change in some.routes.drain(..) {
            let (table, (ip, bits)) = (change.table, change.destination);
            let why = change.now.and_then(|used| why_not(c, state, origin, &used));
            add(Destinations::Prefix { table, ip, bits }, why);
        }
        for change in some.labels.drain(..) {
            let role = |link| of.routes.role(link);
            let why = change.now.and_then(|now| labels::why_not(c, origin.id, &now, role));
            add(Destinations::Label(change.label), why);
        }
    }
}

fn why_not(c: &Control, state: &KernelRoutes, origin: Origin, used: &Used) -> Option<String> {
    if used.kind != RouteKind::Unicast {
        return None;
    }
    let hops = match &used.hops {
        Hops::These(hops) => &hops[..],
        Hops::Object(object) => match state.objects.hops(origin, *object) {
            Some(hops) => hops,
            None => return Some(format!("next-hop object {object} is not known")),
        },
    };
    let way = |hop| path(c, origin.id, state, hop);
    let ways: Vec<Result<Path, String>> = hops.iter().map(way).collect();
    if ways.is_empty() || ways.iter().any(Result::is_ok) {
        return None;
    }
    let mut why: Vec<String> = ways.into_iter().filter_map(Result::err).collect();
    why.sort();
    why.dedup();
    Some(why.join(", "))
}
