//! The egress of packets from the inside, by routing table.
//!
//! A host whose table is not listed (`nat44 vrf table`) goes where its own table leads or, without
//! a route there, where the tables of outside interfaces lead. A listed table has routes
//! (`nat44 vrf route`) to others: these are tried in order, the own table last, and no others.

use crate::config::{Config, OUTPUT, OUTSIDE};
use thalweg_device::SwIfIndex;
use thalweg_feat_ip4::tables::Tables;
use thalweg_fib::{DpoTable, EntryState, Kind, TableId};

/// The egress of a packet from the inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Egress {
    /// No outside interface: the packet is not translated.
    NotOutside,
    /// A table that the host's table has no `nat44 vrf route` to.
    Denied,
    /// An outside interface.
    Outside {
        /// Table of that interface, in which replies are looked up.
        table: TableId,
        /// True if the packet has to be looked up there instead of in its own table.
        via: bool,
    },
}

/// Returns the egress of a packet to address `to` received on interface `rx_if`. Outside interfaces
/// with translation on output do not count: what leaves there is translated there.
pub(crate) fn find(
    tables: &Tables,
    dpos: &DpoTable,
    config: &Config,
    rx_if: SwIfIndex,
    to: u32,
) -> Egress {
    let is_outside = |route: EntryState| {
        route.kind.is_sent() && config.role(route.tx_if()) & (OUTSIDE | OUTPUT) == OUTSIDE
    };
    let own = tables.fib_id(rx_if);
    // One of several paths that leads outside counts: nothing may leave there as it is.
    let route = tables.resolve_any(dpos, own.get(), to, is_outside);
    if tables.is_single() {
        return match is_outside(route) {
            true => Egress::Outside { table: TableId(0), via: false },
            false => Egress::NotOutside,
        };
    }
    // Replies do not find a session of a table whose route leaves by another table's interface.
    let through = |table: TableId| {
        let is_there =
            |route: EntryState| is_outside(route) && tables.fib_id(route.tx_if()) == table;
        is_there(tables.resolve_any(dpos, table.get(), to, is_there))
            .then_some(Egress::Outside { table, via: table != own })
    };
    let direct = || Egress::Outside { table: tables.fib_id(route.tx_if()), via: false };
    if let Some(routes) = config.vrfs.get(&own) {
        let found = routes.iter().find_map(|table| through(*table));
        return found.unwrap_or_else(|| match is_outside(route) {
            false => Egress::NotOutside,
            true if tables.fib_id(route.tx_if()) == own => direct(),
            true if routes.contains(&tables.fib_id(route.tx_if())) => direct(),
            true => Egress::Denied,
        });
    }
    if is_outside(route) {
        return direct();
    }
    if route.kind != Kind::MISS {
        return Egress::NotOutside;
    }
    let mut last = own;
    let others = config.outsides.iter().map(|sw_if| tables.fib_id(*sw_if));
    let others = config.outside_vrf.into_iter().chain(others).filter(|table| {
        let new = *table != own && *table != last;
        last = *table;
        new
    });
    others.into_iter().find_map(through).unwrap_or(Egress::NotOutside)
}
