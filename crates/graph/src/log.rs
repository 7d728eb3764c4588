//! The last lines of the log, kept in memory for `show logging` and the binary API.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Number of lines kept.
const LINES: usize = 1024;

/// Severity of a line, by syslog's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An error.
    Error = 3,
    /// A warning.
    Warning = 4,
    /// Informational.
    Info = 6,
    /// Debugging detail.
    Debug = 7,
}

impl Level {
    /// Returns the name of the level.
    pub fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time at which it was written.
    pub at: SystemTime,
    /// Severity.
    pub level: Level,
    /// The part of the program that wrote it.
    pub class: String,
    /// The text.
    pub message: String,
}

static LAST: Mutex<VecDeque<Line>> = Mutex::new(VecDeque::new());

fn lock() -> MutexGuard<'static, VecDeque<Line>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores a line, replacing the oldest if full.
pub fn keep(line: Line) {
    let mut last = lock();
    if last.len() == LINES {
        last.pop_front();
    }
    last.push_back(line);
}

/// Returns the stored lines, newest last.
pub fn last() -> Vec<Line> {
    lock().iter().cloned().collect()
}

/// Clears them.
pub fn clear() {
    lock().clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way() {
        clear();
        for n in 0..LINES + 2 {
            let (at, class) = (SystemTime::UNIX_EPOCH, "test".to_owned());
            keep(Line { at, level: Level::Info, class, message: n.to_string() });
        }
        let last = last();
        assert_eq!((last.len(), last[0].message.as_str()), (LINES, "2"));
        assert!(Level::Error < Level::Debug && Level::Warning.word() == "warn");
        clear();
        assert!(super::last().is_empty());
    }
}
