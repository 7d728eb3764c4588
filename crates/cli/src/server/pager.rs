//! The pager: long output, one window at a time.

use std::collections::VecDeque;

use super::keys::Key;

/// Prompt between two pages.
const QUESTION: &str = "-- more --";

/// Output that the window has not shown yet.
#[derive(Debug)]
pub(crate) struct Pager {
    lines: VecDeque<String>,
    columns: usize,
    rows: usize,
    ansi: bool,
}

impl Pager {
    /// Writes `text` (lines ended by `\n`) as far as it fits a window; returns a pager for the rest
    /// if it does not. A window of 0 rows takes all.
    pub(crate) fn show(
        text: &str,
        (columns, rows): (u16, u16),
        ansi: bool,
        out: &mut String,
    ) -> Option<Self> {
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        let height = |line: &str| rows_of(line, columns);
        // The last row is for the prompt.
        if rows < 2 || text.lines().map(height).try_fold(0, |n, h| sum(n, h, rows - 1)).is_some() {
            out.push_str(text);
            return None;
        }
        let lines = text.lines().map(str::to_owned).collect();
        let mut pager = Self { lines, columns, rows, ansi };
        pager.page(rows - 1, out);
        Some(pager)
    }

    /// Processes a key; returns true once there is nothing more to show.
    pub(crate) fn key(&mut self, key: Key, out: &mut String) -> bool {
        let rows = match key {
            Key::Char(' ' | 'f') | Key::PageDown => self.rows - 1,
            Key::Enter | Key::Down | Key::Char('j') => 1,
            Key::End | Key::Char('G') => usize::MAX,
            Key::Interrupt | Key::Eof | Key::Char('q' | 'Q') => 0,
            _ => return false,
        };
        if self.ansi {
            out.push_str("\r\x1b[K");
        } else {
            let blank = " ".repeat(QUESTION.len());
            out.push_str(&format!("\r{blank}\r"));
        }
        if rows == 0 {
            self.lines.clear();
        } else {
            self.page(rows, out);
        }
        self.lines.is_empty()
    }

    /// Writes lines that fill `rows` rows, at least one line, and the prompt if more follow.
    fn page(&mut self, rows: usize, out: &mut String) {
        let mut used = 0;
        while let Some(line) = self.lines.front() {
            let height = rows_of(line, self.columns);
            if used > 0 && height > rows - used {
                break;
            }
            used = (used + height).min(rows);
            out.push_str(line);
            out.push('\n');
            self.lines.pop_front();
            if used == rows {
                break;
            }
        }
        if !self.lines.is_empty() {
            out.push_str(QUESTION);
        }
    }
}

fn rows_of(line: &str, columns: usize) -> usize {
    if columns == 0 { 1 } else { line.chars().count().div_ceil(columns).max(1) }
}

fn sum(so_far: usize, height: usize, limit: usize) -> Option<usize> {
    Some(so_far + height).filter(|n| *n <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_the_window() {
        let text: String = (1..=9).map(|n| format!("{n}\n")).collect();
        let mut out = String::new();
        let mut pager = Pager::show(&text, (80, 5), false, &mut out).unwrap();
        assert_eq!(std::mem::take(&mut out), "1\n2\n3\n4\n-- more --");
        assert!(!pager.key(Key::Char('x'), &mut out) && out.is_empty());
        assert!(!pager.key(Key::Enter, &mut out));
        assert_eq!(std::mem::take(&mut out), "\r          \r5\n-- more --");
        assert!(pager.key(Key::Char(' '), &mut out));
        assert_eq!(std::mem::take(&mut out), "\r          \r6\n7\n8\n9\n");

        let mut pager = Pager::show(&text, (80, 5), true, &mut out).unwrap();
        out.clear();
        assert!(pager.key(Key::Char('q'), &mut out));
        assert_eq!(out, "\r\x1b[K");
    }

    #[test]
    fn short_answers_and_unknown_windows_are_not_paged() {
        let mut out = String::new();
        assert!(Pager::show("1\n2\n3\n4\n", (80, 5), false, &mut out).is_none());
        assert!(Pager::show(&"x\n".repeat(100), (0, 0), false, &mut out).is_none());
        assert_eq!(out.len(), 208);
        // A line that wraps takes several rows; one taller than the window is shown whole.
        out.clear();
        let text = format!("{}\nb\n", "a".repeat(60));
        assert!(Pager::show(&text, (10, 5), false, &mut out).is_some());
        assert_eq!(out, format!("{}\n-- more --", "a".repeat(60)));
    }
}
