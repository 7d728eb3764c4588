//! SessionFilter routing tables the hosts of a table reach.

use super::{Nat44, NatError, check_table, ensure, publish};
use thalweg_graph::Control;

/// Most tables of which is said what they reach.
pub const MAX_VRFS: usize = 1024;
/// Most tables that one reaches.
pub const MAX_VRF_ROUTES: usize = 64;

/// Routing tables that hold where none is named.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DefaultVrfs {
    /// Of hosts inside, in mappings.
    pub inside: u32,
    /// Of hosts outside: where hosts inside go that their own table has no route for, before it is
    /// looked where interfaces outside are. 0: only there.
    pub outside: u32,
}

/// The routing table of hosts inside where none is named.
pub(crate) fn inside_vrf(c: &Control) -> u32 {
    c.state::<Nat44>().borrow().default_vrfs.inside
}

/// Has the hosts of a routing table reach only the tables that are named for it, none at first; or all
/// that have an interface outside, again. Sessions that there are stay.
///
/// # Errors
/// [`NatError`].
pub fn set_vrf_table(c: &mut Control, table: u32, add: bool) -> Result<(), NatError> {
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
                let text = format!("no more than {MAX_VRFS} tables can be listed");
                return Err(NatError::Invalid(text));
            }
            (false, true) => drop(vrfs.insert(table, Vec::new())),
            (true, false) => drop(vrfs.remove(&table)),
        }
    }
    publish(c);
    Ok(())
}

/// Has the hosts of a routing table reach another one, if none that was named before leads where they
/// want to go; or no longer. Sessions that there are stay.
///
/// # Errors
/// [`NatError`].
pub fn set_vrf_route(c: &mut Control, table: u32, to: u32, add: bool) -> Result<(), NatError> {
    ensure(c)?;
    check_table(to)?;
    let what = || format!("nat44 vrf route of table {table} to {to}");
    {
        let nat = c.state::<Nat44>();
        let mut nat = nat.borrow_mut();
        let missing = || format!("nat44 vrf table {table}: `nat44 vrf table add {table}` makes it");
        let routes = nat.vrfs.get_mut(&table).ok_or_else(|| NatError::Missing(missing()))?;
        match (routes.iter().position(|r| *r == to), add) {
            (Some(_), true) => return Err(NatError::Exists(what())),
            (None, false) => return Err(NatError::Missing(what())),
            (None, true) if routes.len() >= MAX_VRF_ROUTES => {
                let text = format!("no more than {MAX_VRF_ROUTES} routes of a table can be kept");
                return Err(NatError::Invalid(text));
            }
            (None, true) => routes.push(to),
            (Some(at), false) => drop(routes.remove(at)),
        }
    }
    publish(c);
    Ok(())
}
