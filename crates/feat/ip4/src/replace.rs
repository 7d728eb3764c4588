//! Replacing or flushing all configured routes of a table.

use crate::route::Table;
use crate::{Ip4, RouteError, del_route};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use thalweg_graph::Control;
use thalweg_tables::{Ipv4Prefix, Sweep};

/// Maximum time on the main thread per slice; two of them may fall into one loop.
const SLICE: Duration = Duration::from_millis(1);

/// Marks all routes of a table; [`finish`] deletes those that were not added again.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn begin(c: &mut Control, table: u32) -> Result<(), RouteError> {
    serial(c, table)?;
    c.state::<Ip4>().borrow_mut().replacing.insert(table, HashSet::new());
    Ok(())
}

/// Deletes the configured routes that were not added since [`begin`]; none if that was not called.
/// Then calls `done`, after several slices if there are many routes.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn finish(
    c: &mut Control,
    table: u32,
    done: impl FnOnce() + 'static,
) -> Result<(), RouteError> {
    let serial = serial(c, table)?;
    let keep = c.state::<Ip4>().borrow_mut().replacing.remove(&table);
    match keep {
        Some(keep) => remove_slice(c, Removal { table, serial, keep, at: Sweep::default() }, done),
        None => done(),
    }
    Ok(())
}

/// Deletes all configured routes of a table, in slices as [`finish`].
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn flush(c: &mut Control, table: u32, done: impl FnOnce() + 'static) -> Result<(), RouteError> {
    let (serial, keep) = (serial(c, table)?, HashSet::new());
    remove_slice(c, Removal { table, serial, keep, at: Sweep::default() }, done);
    Ok(())
}

/// Serial of the table with this id.
fn serial(c: &Control, table: u32) -> Result<u32, RouteError> {
    let ip4 = c.state::<Ip4>();
    let found = ip4.borrow().tables.get(&table).map(Table::serial);
    found.ok_or(RouteError::NoTable(table))
}

/// A deletion of routes in progress.
struct Removal {
    table: u32,
    serial: u32,
    keep: HashSet<Ipv4Prefix>,
    at: Sweep,
}

impl Removal {
    /// Deletes a batch; returns false if it was the last, or the table is deleted.
    fn step(&mut self, c: &mut Control) -> bool {
        if serial(c, self.table).ok() != Some(self.serial) {
            return false;
        }
        let mut some = Vec::new();
        let more = c.state::<Ip4>().borrow().sweep_configured(self.table, &mut self.at, &mut some);
        for (prefix, _) in some.iter().filter(|(prefix, _)| !self.keep.contains(prefix)) {
            // The walk may return a route twice; the second time it is already deleted.
            let _ = del_route(c, self.table, *prefix, &[]);
        }
        more
    }
}

fn remove_slice(c: &mut Control, mut removal: Removal, done: impl FnOnce() + 'static) {
    let began = Instant::now();
    while removal.step(c) {
        if began.elapsed() >= SLICE {
            c.after(Duration::ZERO, |c| remove_slice(c, removal, done));
            return;
        }
    }
    done();
}
