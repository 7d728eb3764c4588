//! All routes of a table at once: taking away what was configured, or what nobody has added again.

use crate::{Ip4, RouteError, del_route};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use thalweg_graph::Control;
use thalweg_tables::{Ipv4Prefix, Sweep};

/// How long it keeps the main thread at a stretch; two of them may fall into one turn.
const SLICE: Duration = Duration::from_millis(1);

/// From now on, routes that are added to a table are kept when [`finish`] takes the others away.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn begin(c: &mut Control, table: u32) -> Result<(), RouteError> {
    serial(c, table)?;
    c.state::<Ip4>().borrow_mut().replacing.insert(table, HashSet::new());
    Ok(())
}

/// Takes away the configured routes that have not been added since [`begin`]; none, if that was not
/// called. Calls `done` then: with many routes, this takes its time.
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

/// Takes away all configured routes of a table, as [`finish`] does.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn flush(c: &mut Control, table: u32, done: impl FnOnce() + 'static) -> Result<(), RouteError> {
    let (serial, keep) = (serial(c, table)?, HashSet::new());
    remove_slice(c, Removal { table, serial, keep, at: Sweep::default() }, done);
    Ok(())
}

/// The table that has this number now.
fn serial(c: &Control, table: u32) -> Result<u32, RouteError> {
    let ip4 = c.state::<Ip4>();
    let found = ip4.borrow().tables.get(&table).map(|t| t.serial);
    found.ok_or(RouteError::NoTable(table))
}

/// Routes being taken away.
struct Removal {
    table: u32,
    serial: u32,
    keep: HashSet<Ipv4Prefix>,
    at: Sweep,
}

impl Removal {
    /// Takes some away; false if those were the last, or their table is gone.
    fn step(&mut self, c: &mut Control) -> bool {
        if serial(c, self.table).ok() != Some(self.serial) {
            return false;
        }
        let mut some = Vec::new();
        let more = c.state::<Ip4>().borrow().sweep_configured(self.table, &mut self.at, &mut some);
        for (prefix, _) in some.iter().filter(|(prefix, _)| !self.keep.contains(prefix)) {
            // A walk may come to a route twice; it is gone the second time.
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
