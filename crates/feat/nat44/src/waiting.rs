//! Saved sessions whose address, port or mapping is not there yet: the address of an interface may
//! come seconds after the start. They are placed when it comes, and saved again meanwhile.

use crate::saved::Saved;
use crate::state::Nat44;
use crate::store::{self, Done, Work, later, unix_millis};
use std::time::Duration;
use thalweg_cli::counted;
use thalweg_graph::Control;

/// Sessions that wait.
#[derive(Default, Debug)]
pub(crate) struct Waiting {
    all: Vec<Saved>,
    /// When their times were true, in milliseconds since 1970.
    at: u64,
    /// They are tried soon, or are being tried.
    is_due: bool,
}

/// Most sessions that wait; the session table has no more by default.
const MOST: usize = 1 << 20;

/// Time for more of what has come to come, before sessions are tried again.
const SOON: Duration = Duration::from_millis(100);

/// Interval between two looks at what another thread does.
const LOOK: Duration = Duration::from_micros(500);

/// Sessions that wait, as they are now.
pub(crate) fn all(c: &Control) -> Vec<Saved> {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    let elapsed = unix_millis().saturating_sub(nat.waiting.at);
    later(nat.waiting.all.clone(), elapsed).collect()
}

/// Replaces the sessions that wait.
pub(crate) fn replace(c: &Control, all: Vec<Saved>) {
    let nat = c.state::<Nat44>();
    let mut nat = nat.borrow_mut();
    (nat.waiting.all, nat.waiting.at) = (all, unix_millis());
    nat.waiting.all.truncate(MOST);
}

/// Adds sessions that wait.
pub(crate) fn add(c: &mut Control, more: Vec<Saved>) {
    if !more.is_empty() {
        let mut all = all(c);
        all.extend(more);
        replace(c, all);
        // What they need may have come while the file was read.
        try_soon(c);
    }
}

/// Tries the sessions that wait soon, as addresses or mappings have come.
pub(crate) fn try_soon(c: &mut Control) {
    let nat = c.state::<Nat44>();
    let mut state = nat.borrow_mut();
    if state.waiting.all.is_empty() || std::mem::replace(&mut state.waiting.is_due, true) {
        return;
    }
    drop(state);
    c.after(SOON, |c| match store::place(c, all(c)) {
        Some(work) => go_on(c, work),
        None => c.state::<Nat44>().borrow_mut().waiting.is_due = false,
    });
}

fn go_on(c: &mut Control, mut work: Work) {
    match work.poll(c) {
        None => drop(c.after(LOOK, move |c| go_on(c, work))),
        Some(done) => {
            let left = {
                let nat = c.state::<Nat44>();
                nat.borrow_mut().waiting.is_due = false;
                nat.borrow().waiting.all.len()
            };
            match done {
                Ok(Done::Restored(sum)) if sum.done > 0 => {
                    let done = counted(sum.done, "saved session");
                    tracing::info!("nat44: {done} placed, {left} still wait");
                }
                Ok(_) => {}
                Err(e) => tracing::warn!("nat44: cannot place saved sessions: {e}"),
            }
        }
    }
}
