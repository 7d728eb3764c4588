//! Events that the process waits for at this moment.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Something that this process waits for now.
struct Waiting {
    id: u64,
    what: String,
    since: Instant,
}

static WAITING: Mutex<(u64, Vec<Waiting>)> = Mutex::new((0, Vec::new()));

fn waiting() -> MutexGuard<'static, (u64, Vec<Waiting>)> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes what is waited for, until it is dropped.
pub(crate) struct Note(u64);

impl Note {
    pub(crate) fn new(what: &str) -> Note {
        let mut waiting = waiting();
        waiting.0 += 1;
        let id = waiting.0;
        waiting.1.push(Waiting { id, what: what.to_owned(), since: Instant::now() });
        Note(id)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        waiting().1.retain(|one| one.id != self.0);
    }
}

/// Present waits, a line each: for the report of a program that hangs.
pub fn waits() -> String {
    let mut text = String::new();
    for one in &waiting().1 {
        let _ = writeln!(text, "waiting for {}, since {:.1?}", one.what, one.since.elapsed());
    }
    if text.is_empty() {
        text.push_str("nothing that is known is waited for\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_known_while_it_is() {
        let note = Note::new("a train that never comes");
        assert!(waits().contains("waiting for a train that never comes, since "));
        drop(note);
        assert!(!waits().contains("train"));
    }
}
