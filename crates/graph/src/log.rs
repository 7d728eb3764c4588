//! The last lines of the log, for those who cannot read where it goes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Lines that are kept.
const LINES: usize = 1024;

/// How grave a line is, by syslog's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error = 3,
    /// Something may be wrong.
    Warning = 4,
    /// Worth knowing.
    Info = 6,
    /// For those who look closely.
    Debug = 7,
}

impl Level {
    /// The word for it.
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
    /// When.
    pub at: SystemTime,
    /// How grave.
    pub level: Level,
    /// The part of the program that wrote it.
    pub class: String,
    /// What it says.
    pub message: String,
}

static LAST: Mutex<VecDeque<Line>> = Mutex::new(VecDeque::new());

fn lock() -> MutexGuard<'static, VecDeque<Line>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a line; the oldest gives way.
pub fn keep(line: Line) {
    let mut last = lock();
    if last.len() == LINES {
        last.pop_front();
    }
    last.push_back(line);
}

/// The last lines, the youngest last.
pub fn last() -> Vec<Line> {
    lock().iter().cloned().collect()
}

/// Forgets them.
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
