//! Replacing or flushing all configured routes of a table.

use crate::{Added, Ip, RouteError, del_route};
use std::rc::Rc;
use std::time::{Duration, Instant};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::{Address, Sweep};

/// Maximum time on the main thread per slice; two of them may fall into one loop.
const SLICE: Duration = Duration::from_millis(1);

/// Completion callback.
pub type Done = Box<dyn FnOnce()>;

/// Marks all routes of a table; [`finish`] deletes those that were not added again.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn begin<A: Address>(c: &mut Control, table: TableId) -> Result<(), RouteError> {
    serial::<A>(c, table)?;
    c.state::<Ip<A>>().borrow_mut().replacing.insert(table, Added::default());
    Ok(())
}

/// Deletes the configured routes that were not added since [`begin`]; none if that was not called.
/// Calls `done` at the end, after several slices if there are many routes.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn finish<A: Address>(c: &mut Control, table: TableId, done: Done) -> Result<(), RouteError> {
    let serial = serial::<A>(c, table)?;
    let keep = c.state::<Ip<A>>().borrow_mut().replacing.remove(&table);
    match keep {
        Some(keep) => sweep::<A>(c, table, serial, keep, done),
        None => done(),
    }
    Ok(())
}

/// Deletes all configured routes of a table, in slices as [`finish`]. Routes added meanwhile stay.
///
/// # Errors
/// [`RouteError::NoTable`].
pub fn flush<A: Address>(c: &mut Control, table: TableId, done: Done) -> Result<(), RouteError> {
    let serial = serial::<A>(c, table)?;
    sweep::<A>(c, table, serial, Added::default(), done);
    Ok(())
}

/// Deletes the configured routes but those to keep, which may still become more.
fn sweep<A: Address>(c: &mut Control, table: TableId, serial: u32, keep: Added<A>, done: Done) {
    c.state::<Ip<A>>().borrow_mut().sweeping.push((table, keep.clone()));
    remove_slice(c, Removal { table, serial, keep, at: Sweep::default() }, done);
}

/// Serial of the table with this id.
fn serial<A: Address>(c: &Control, table: TableId) -> Result<u32, RouteError> {
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    ip.serial(table).ok_or_else(|| ip.no_table(table))
}

/// A deletion of routes in progress.
struct Removal<A> {
    table: TableId,
    serial: u32,
    keep: Added<A>,
    at: Sweep,
}

impl<A: Address> Removal<A> {
    /// Deletes a batch; returns false if it was the last, or the table is deleted.
    fn step(&mut self, c: &mut Control) -> bool {
        if serial::<A>(c, self.table).ok() != Some(self.serial) {
            return false;
        }
        let (ip, mut some) = (c.state::<Ip<A>>(), Vec::new());
        let more = ip.borrow().sweep_configured(self.table, &mut self.at, &mut some);
        some.retain(|(prefix, _)| !self.keep.borrow().contains(prefix));
        for (prefix, _) in &some {
            // The walk may return a route twice; the second time it is already deleted.
            let _ = del_route(c, self.table, *prefix, &[]);
        }
        more
    }
}

fn remove_slice<A: Address>(c: &mut Control, mut removal: Removal<A>, done: Done) {
    let began = Instant::now();
    while removal.step(c) {
        if began.elapsed() >= SLICE {
            c.after(Duration::ZERO, |c| remove_slice(c, removal, done));
            return;
        }
    }
    let ip = c.state::<Ip<A>>();
    ip.borrow_mut().sweeping.retain(|(_, keep)| !Rc::ptr_eq(keep, &removal.keep));
    done();
}
