//! Labels that the kernel has routes of, next to those that users have written: these win, and the
//! kernel's wait behind them.

use super::{Mpls, Owner, Under, reserved};
use crate::error::MplsError;
use crate::label_table::Key;
use crate::via::Via;
use std::collections::BTreeSet;
use thalweg_device::SwIfIndex;
use thalweg_engine::Came;
use thalweg_fib::TableId;
use thalweg_fib::rib::Source;
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// Labels below have a meaning of their own (RFC 7274), and no routes.
const FIRST_FREE: Label = Label(16);

/// Adds a label table for labels of the kernel, unless it exists. Documents have it once a user
/// adds it, too.
///
/// # Errors
/// If there are too many.
pub fn need_table(c: &mut Control, id: TableId) -> Result<(), MplsError> {
    let mpls = c.state::<Mpls>();
    if mpls.borrow().has_table(id) {
        return Ok(());
    }
    mpls.borrow_mut().new_table(c, id, "", false)?;
    c.publish(Came);
    Ok(())
}

/// Deletes a label table that labels of the kernel [needed](need_table), unless it has labels, a
/// user has added it, or interfaces take MPLS.
pub fn drop_needed_table(c: &mut Control, id: TableId) {
    let is_unused = {
        let mpls = c.state::<Mpls>();
        let mpls = mpls.borrow();
        let table = mpls.tables.get(&id);
        table.is_some_and(|table| !table.is_written && table.routes.len() <= reserved().len())
    };
    if is_unused {
        // One that interfaces use stays.
        let _ = super::del_table(c, id);
    }
}

/// Binds a label to the paths that it has in the kernel, or unbinds it from these, if there are
/// none. One that a user has bound follows them once the user unbinds it.
///
/// # Errors
/// If the label is reserved, there is no such table, or a path is refused; nothing has changed
/// then.
pub fn set_found_label(
    c: &Control,
    id: TableId,
    key: Key,
    source: Source,
    mut vias: Vec<Via>,
) -> Result<(), MplsError> {
    if key.label < FIRST_FREE {
        return Err(MplsError::Unsuitable("labels up to 15 are reserved"));
    }
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    vias.sort_unstable();
    match mpls.table_mut(id)?.routes.get(&key) {
        Some(route) if route.is_written() => {
            let under = (!vias.is_empty()).then_some(Under { source, vias });
            mpls.put_under(id, key, under);
        }
        Some(_) if vias.is_empty() => mpls.remove(c, id, key),
        Some(route) if (route.source, &route.vias) == (source, &vias) => {}
        None if vias.is_empty() => {}
        _ => return mpls.put(c, id, key, vias, Owner { bound: None, source }),
    }
    Ok(())
}

impl Mpls {
    /// Sets the kernel's paths of a label that a user has bound.
    fn put_under(&mut self, id: TableId, key: Key, under: Option<Under>) {
        let table = self.tables.get_mut(&id);
        let Some(route) = table.and_then(|table| table.routes.get_mut(&key)) else { return };
        let before: BTreeSet<SwIfIndex> = route.sw_ifs().collect();
        route.under = under;
        let now: BTreeSet<SwIfIndex> = route.sw_ifs().collect();
        for gone in before.difference(&now) {
            self.by_interface.remove(&(*gone, id, key));
        }
        self.by_interface.extend(now.into_iter().map(|sw_if| (sw_if, id, key)));
    }
}
