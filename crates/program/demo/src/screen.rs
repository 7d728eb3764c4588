//! Screen on which moments are shown: the whole terminal, or lines of text.

use super::grid::Grid;
use super::terminal::Terminal;
use anyhow::Result;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const TEXT_PERIOD: Duration = Duration::from_secs(2);
const SCREEN_PERIOD: Duration = Duration::from_millis(250);

/// A moment that can be shown.
pub trait Show {
    /// Formats a block of text.
    fn text(&self) -> String;
    /// Draws a screen of a given size. Rows and columns that do not fit are left out.
    fn draw(&self, width: usize, height: usize) -> Grid;
}

/// Shows moments.
pub enum Screen {
    /// The whole terminal, restored when dropped.
    Full { terminal: Terminal, next: Instant },
    /// A block of text every two seconds.
    Plain { next: Instant },
}

impl Screen {
    /// The whole terminal if there is one, and `plain` was not asked for.
    pub fn open(plain: bool) -> Result<Screen> {
        let now = Instant::now();
        let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        if plain || !terminal {
            return Ok(Screen::Plain { next: now + TEXT_PERIOD });
        }
        Ok(Screen::Full { terminal: Terminal::open()?, next: now })
    }

    /// True if it is time to show something.
    pub fn is_due(&self) -> bool {
        let (Screen::Full { next, .. } | Screen::Plain { next }) = self;
        Instant::now() >= *next
    }

    /// Shows a moment.
    pub fn show(&mut self, moment: &impl Show) -> Result<()> {
        let now = Instant::now();
        match self {
            Screen::Full { terminal, next } => {
                *next = now + SCREEN_PERIOD;
                let (width, height) = terminal.size();
                terminal.show(moment.draw(width, height))?;
            }
            Screen::Plain { next } => {
                *next = now + TEXT_PERIOD;
                writeln!(io::stdout(), "{}", moment.text())?;
            }
        }
        Ok(())
    }

    /// Waits a little; true if the user wants to end it.
    pub fn wait(&mut self, time: Duration) -> Result<bool> {
        match self {
            Screen::Full { terminal, .. } => Ok(terminal.wait(time)?),
            Screen::Plain { .. } => {
                std::thread::sleep(time);
                Ok(false)
            }
        }
    }
}
