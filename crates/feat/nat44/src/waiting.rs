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
    /// Sessions that are being tried.
    tried: Vec<Saved>,
    /// The moment at which their times were true, in milliseconds since 1970.
    at: u64,
    trial: Trial,
}

/// State of a trial.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Trial {
    /// Nothing that they need has come.
    #[default]
    None,
    /// Sessions are tried soon.
    Soon,
    /// Sessions are being tried.
    Now,
    /// Sessions are being tried, and more has come meanwhile.
    NowAndAgain,
}

/// Most sessions that wait; the session table has no more by default.
const MOST: usize = 1 << 20;

/// Time for more of what has come to come, before sessions are tried again.
const SOON: Duration = Duration::from_millis(100);

/// Interval between two looks at what another thread does.
const LOOK: Duration = Duration::from_micros(500);

impl Waiting {
    /// Brings their times to the present, and drops those that have expired.
    fn refresh(&mut self) {
        let now = unix_millis();
        let elapsed = now.saturating_sub(std::mem::replace(&mut self.at, now));
        self.all = later(std::mem::take(&mut self.all), elapsed).collect();
        self.tried = later(std::mem::take(&mut self.tried), elapsed).collect();
    }
}

/// Sessions that wait, as they are now.
pub(crate) fn all(c: &Control) -> Vec<Saved> {
    let nat = c.state::<Nat44>();
    let waiting = &mut nat.borrow_mut().waiting;
    waiting.refresh();
    [&waiting.all[..], &waiting.tried].concat()
}

/// Ends a trial: these still wait, and those that came meanwhile.
pub(crate) fn tried(c: &Control, left: Vec<Saved>) {
    let nat = c.state::<Nat44>();
    let waiting = &mut nat.borrow_mut().waiting;
    // Unless NAT44 was disabled, or its sessions were cleared.
    if matches!(waiting.trial, Trial::Now | Trial::NowAndAgain) {
        waiting.refresh();
        waiting.tried.clear();
        waiting.all.extend(left);
    }
}

/// Adds sessions that wait.
pub(crate) fn add(c: &mut Control, more: Vec<Saved>) {
    {
        let nat = c.state::<Nat44>();
        let waiting = &mut nat.borrow_mut().waiting;
        waiting.refresh();
        let room = MOST.saturating_sub(waiting.all.len() + waiting.tried.len());
        if let Some(lost) = more.len().checked_sub(room).filter(|lost| *lost > 0) {
            tracing::warn!("nat44: {lost} saved sessions are lost: {MOST} wait for an address");
        }
        waiting.all.extend(more.into_iter().take(room));
    }
    // The address may have come while the file was read.
    try_soon(c);
}

/// Tries the sessions that wait soon, as addresses or mappings have come.
pub(crate) fn try_soon(c: &mut Control) {
    let nat = c.state::<Nat44>();
    {
        let waiting = &mut nat.borrow_mut().waiting;
        match waiting.trial {
            Trial::None if !waiting.all.is_empty() => waiting.trial = Trial::Soon,
            Trial::Now => return waiting.trial = Trial::NowAndAgain,
            _ => return,
        }
    }
    c.after(SOON, |c| {
        let nat = c.state::<Nat44>();
        let all = {
            let waiting = &mut nat.borrow_mut().waiting;
            waiting.refresh();
            waiting.tried = std::mem::take(&mut waiting.all);
            waiting.trial = Trial::Now;
            waiting.tried.clone()
        };
        match store::place(c, all.clone()) {
            Some(work) => go_on(c, work),
            None => {
                tried(c, all);
                set(c, Trial::None);
            }
        }
    });
}

fn set(c: &Control, trial: Trial) -> Trial {
    let nat = c.state::<Nat44>();
    std::mem::replace(&mut nat.borrow_mut().waiting.trial, trial)
}

fn go_on(c: &mut Control, mut work: Work) {
    match work.poll(c) {
        None => drop(c.after(LOOK, move |c| go_on(c, work))),
        Some(done) => {
            let left = all(c).len();
            if set(c, Trial::None) == Trial::NowAndAgain {
                try_soon(c);
            }
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
