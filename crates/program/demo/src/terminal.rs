//! The whole terminal: raw mode, the alternate screen, and keys.

use super::grid::{Grid, Look};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fmt::Write as _;
use std::io::{self, Write as _, stdin, stdout};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Alternate screen and hidden cursor, and the way back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// Control and C, in raw mode.
const CONTROL_C: u8 = 3;

/// Settings to restore, while the terminal is taken.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal on standard input and output; restored when dropped, and before a panic prints.
pub struct Terminal {
    shown: Grid,
}

impl Terminal {
    /// Takes the terminal.
    pub fn open() -> io::Result<Terminal> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let terminal = Terminal { shown: Grid::default() };
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            hook(info);
        }));
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        print(ENTER)?;
        Ok(terminal)
    }

    /// Columns and rows; 80 and 24 if the terminal does not know.
    pub fn size(&self) -> (usize, usize) {
        let known = tcgetwinsize(stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Shows a screen of this size.
    pub fn show(&mut self, grid: Grid) -> io::Result<()> {
        print(&changes(&self.shown, &grid))?;
        self.shown = grid;
        Ok(())
    }

    /// Waits for keys; true for q and Ctrl-C, and if the terminal is gone.
    pub fn wait(&self, time: Duration) -> io::Result<bool> {
        let stdin = stdin();
        let timeout = Timespec::try_from(time).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            ready => ready?,
        };
        // Bypass the buffer of `Stdin`: `poll` does not see its rest.
        let mut keys = [0; 64];
        let count = rustix::io::read(&stdin, &mut keys)?;
        Ok(count == 0 || keys[..count].iter().any(|key| matches!(*key, b'q' | CONTROL_C)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once.
fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        let _ = print(LEAVE);
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Text that turns one screen into another. Changed rows are written; all after a change of size.
fn changes(shown: &Grid, next: &Grid) -> String {
    let resized = shown.width != next.width || shown.rows.len() != next.rows.len();
    let mut text = String::from(if resized { "\x1b[0m\x1b[2J" } else { "" });
    for (y, row) in next.rows.iter().enumerate() {
        if !resized && shown.rows[y] == *row {
            continue;
        }
        let _ = write!(text, "\x1b[{};1H", y + 1);
        for run in row.chunk_by(|a, b| a.1 == b.1) {
            text += match run[0].1 {
                Look::Plain => "\x1b[0m",
                Look::Bold => "\x1b[0;1m",
                Look::Dim => "\x1b[0;2m",
                Look::Blue => "\x1b[0;34m",
                Look::OnBlue => "\x1b[0;44m",
            };
            text.extend(run.iter().map(|cell| cell.0));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::cells;

    fn grid(rows: &[&str]) -> Grid {
        let mut grid = Grid::new(3);
        rows.iter().for_each(|row| grid.push(cells(row, Look::Bold)));
        grid
    }

    #[test]
    fn changed_rows_are_written() {
        let shown = grid(&["abc", "d"]);
        assert_eq!(changes(&shown, &shown), "");
        assert_eq!(changes(&shown, &grid(&["abc", "e"])), "\x1b[2;1H\x1b[0;1me\x1b[0m  ");
        let all = "\x1b[0m\x1b[2J\x1b[1;1H\x1b[0;1mabc";
        assert_eq!(changes(&shown, &grid(&["abc"])), all);
    }
}
