//! Where packets from the inside leave, by routing table.
//!
//! Hosts of a table of which nothing is said go where their own table leads, and, where it has no
//! route, where the tables of interfaces outside lead. If tables are named that they reach, those are
//! tried in their order, the own one last, and no others.

use crate::config::{Config, OUTSIDE};
use thalweg_feat_ip4::tables::Tables;
use thalweg_fib::{DpoTable, EntryState, Kind};

/// Where a packet from the inside leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// By no interface outside: it needs no other name.
    Stays,
    /// Into a table that its own does not reach.
    Closed,
    /// By an interface outside.
    Through {
        /// The table of that interface, in which what answers is looked up.
        table: u32,
        /// The packet has to be looked up there, and not in its own table.
        via: bool,
    },
}

/// Where a packet to an address leaves that came by an interface.
pub(crate) fn out(tables: &Tables, dpos: &DpoTable, config: &Config, rx_if: u32, to: u32) -> Out {
    let leads = |way: EntryState| {
        let sent = matches!(way.kind, Kind::Rewrite | Kind::Incomplete | Kind::Glean);
        sent && config.role(way.tx_if) & OUTSIDE != 0
    };
    let way = tables.resolve(dpos, rx_if, to);
    if tables.is_single() {
        return if leads(way) { Out::Through { table: 0, via: false } } else { Out::Stays };
    }
    let own = tables.fib_id(rx_if);
    // A table whose way leaves by an interface of another one has no answers.
    let through = |table: u32| {
        let way = tables.resolve_in(dpos, table, to);
        (leads(way) && tables.fib_id(way.tx_if) == table)
            .then_some(Out::Through { table, via: table != own })
    };
    let straight = || Out::Through { table: tables.fib_id(way.tx_if), via: false };
    if let Some(routes) = config.vrfs.get(&own) {
        let found = routes.iter().find_map(|table| through(*table));
        return found.unwrap_or_else(|| match leads(way) {
            false => Out::Stays,
            true if tables.fib_id(way.tx_if) == own => straight(),
            true if routes.contains(&tables.fib_id(way.tx_if)) => straight(),
            true => Out::Closed,
        });
    }
    if leads(way) {
        return straight();
    }
    if way.kind != Kind::Miss {
        return Out::Stays;
    }
    let mut last = own;
    let others = config.outsides.iter().map(|sw_if| tables.fib_id(*sw_if));
    let others = config.outside_vrf.into_iter().chain(others).filter(|table| {
        let new = *table != own && *table != last;
        last = *table;
        new
    });
    others.into_iter().find_map(through).unwrap_or(Out::Stays)
}
