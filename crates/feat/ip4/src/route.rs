//! IPv4's route tables, and why a request for one fails.

use crate::Ip4;
use std::time::Duration;
use thalweg_fib::rib;
use thalweg_graph::Control;
use thalweg_tables::{Ipv4Prefix, Lpm4, LpmError};

pub use thalweg_fib::rib::{Path, PathKind, RibError, Source};

/// One IPv4 table.
pub(crate) type Table = rib::Table<u32, Lpm4>;

/// An IPv4 route, for display.
pub type RouteView = rib::RouteView<u32>;

/// Why a route or table request failed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The table does not exist.
    #[error("no IPv4 table {0}; `ip table add {0}` makes one")]
    NoTable(u32),
    /// Table 0 cannot be deleted.
    #[error("table 0 is the default table of all interfaces and cannot be deleted")]
    MainTable,
    /// The table is used by an interface.
    #[error(
        "table {table} is used by `{interface}`; `set interface ip table {interface} 0` frees it"
    )]
    TableInUse {
        /// Table id.
        table: u32,
        /// One of the interfaces that use it.
        interface: String,
    },
    /// Next hops of other tables' routes, or tunnels, are resolved in the table.
    #[error("routes of other tables have next hops in table {0}; delete them first")]
    TableTracked(u32),
    /// The limit of tables is reached.
    #[error("no room for another IPv4 table: the limit is {}", crate::MAX_TABLES)]
    TooManyTables,
    /// The route does not exist.
    #[error("no route {prefix} in table {table}{hint}")]
    NoRoute {
        /// Prefix.
        prefix: Ipv4Prefix,
        /// Table id.
        table: u32,
        /// What exists instead.
        hint: String,
    },
    /// The route is refused.
    #[error(transparent)]
    Rib(#[from] RibError),
    /// The table could not be created.
    #[error(transparent)]
    Lpm(#[from] LpmError),
}

/// Removes some of the routes that are still to be removed; returns true once nothing is pending.
pub(crate) fn settle_slice(c: &Control) -> bool {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let pending = ip4.tables.values_mut().find(|t| !t.is_settled());
    pending.is_none_or(|t| t.settle(c)) && ip4.tables.values().all(Table::is_settled)
}

/// As [`settle_slice`], rearming itself while routes are pending.
pub(crate) fn settle_later(c: &mut Control) {
    if !settle_slice(c) {
        c.after(Duration::ZERO, settle_later);
    }
}
