//! Routes between routing tables.

use super::{Nat44, NatError, check_table, ensure, publish};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Maximum number of tables with routes.
pub const MAX_VRFS: usize = 1024;
/// Maximum number of routes per table.
pub const MAX_VRF_ROUTES: usize = 64;

/// Default routing tables.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DefaultVrfs {
    /// Table of inside hosts, in mappings.
    pub inside: TableId,
    /// Table tried first for inside hosts whose own table has no route, before those of outside
    /// interfaces; 0 = none.
    pub outside: TableId,
}

/// Default table of inside hosts.
pub(crate) fn inside_vrf(c: &Control) -> TableId {
    TableId((c.state::<Nat44>().borrow().default_vrfs.inside).get())
}

/// Limits the hosts of a routing table to the tables it has routes to, initially none; or removes
/// the limit. Existing sessions stay.
///
/// # Errors
/// [`NatError`].
pub fn set_vrf_table(c: &mut Control, table: TableId, add: bool) -> Result<(), NatError> {
    ensure(c)?;
    check_table(table)?;
    let what = || format!("nat44 vrf table {table}");
    {
        let nat = c.state::<Nat44>();
        let vrfs = &mut nat.borrow_mut().vrfs;
        match (vrfs.contains_key(&table), add) {
            (true, true) => return Err(NatError::Exists(what())),
            (false, false) => return Err(NatError::Missing(what())),
            (false, true) if vrfs.len() >= MAX_VRFS => {
                let text = format!("the limit of {MAX_VRFS} `nat44 vrf table`s is reached");
                return Err(NatError::Invalid(text));
            }
            (false, true) => drop(vrfs.insert(table, Vec::new())),
            (true, false) => drop(vrfs.remove(&table)),
        }
    }
    publish(c);
    Ok(())
}

/// Adds a route to another table, after the existing ones, or deletes it. Existing sessions stay.
///
/// # Errors
/// [`NatError`].
pub fn set_vrf_route(
    c: &mut Control,
    table: TableId,
    to: TableId,
    add: bool,
) -> Result<(), NatError> {
    check_table(to)?;
    ensure(c)?;
    let what = || format!("nat44 vrf route of table {table} to {to}");
    {
        let nat = c.state::<Nat44>();
        let mut nat = nat.borrow_mut();
        let missing = || format!("nat44 vrf table {table}: `nat44 vrf table add {table}` adds it");
        let routes = nat.vrfs.get_mut(&table).ok_or_else(|| NatError::Missing(missing()))?;
        match (routes.iter().position(|r| *r == to), add) {
            (Some(_), true) => return Err(NatError::Exists(what())),
            (None, false) => return Err(NatError::Missing(what())),
            (None, true) if routes.len() >= MAX_VRF_ROUTES => {
                let text = format!("the limit of {MAX_VRF_ROUTES} routes per table is reached");
                return Err(NatError::Invalid(text));
            }
            (None, true) => routes.push(to),
            (Some(at), false) => drop(routes.remove(at)),
        }
    }
    publish(c);
    Ok(())
}
