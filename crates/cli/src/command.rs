//! What a command is.

use std::time::Instant;

use crate::args::Args;
use crate::error::CliError;
use crate::output::Output;
use crate::script::Script;

/// One command of the command line, over the state `C` of the main thread.
///
/// Implemented by a unit struct per command; the tree keeps `&'static dyn Command<C>`.
pub trait Command<C>: Sync {
    /// The words that call it, e.g. `show interface`. Users may abbreviate each of them.
    fn path(&self) -> &'static str;

    /// Other full paths that call it; they are understood but not listed.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// The grammar of the arguments on one line, e.g. `<interface> [<rate>] [disable]`.
    ///
    /// Bare words of it are offered as completions.
    fn usage(&self) -> &'static str {
        ""
    }

    /// What it does: one short line, then (after a newline) as much as needed.
    fn help(&self) -> &'static str;

    /// Does it. Takes all arguments (ending with [`Args::end`]) before it changes anything.
    ///
    /// # Errors
    /// What was wrong with the arguments or the request; what was written to `out` is still shown.
    fn run(
        &self,
        cx: &mut C,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<C>, CliError>;

    /// What could stand in place of `partial`, after the arguments `before`. The caller sorts and
    /// keeps what begins with `partial`. The default offers the bare words of [`usage`].
    ///
    /// [`usage`]: Self::usage
    fn complete(&self, cx: &C, before: &[&str], partial: &str) -> Vec<String> {
        let _ = (cx, before, partial);
        usage_words(self.usage())
    }
}

/// The keywords in a grammar such as `<interface> [rate <n>] enable|disable`.
pub fn usage_words(usage: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut placeholder = 0usize;
    for word in usage.split_inclusive(['<', '>', ' ', '[', ']', '|', '{', '}', '(', ')']) {
        let (text, delimiter) = match word.char_indices().next_back() {
            Some((i, c)) if "<> []|{}()".contains(c) => (&word[..i], c),
            _ => (word, ' '),
        };
        let keyword = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if placeholder == 0 && keyword && !words.iter().any(|w| w == text) {
            words.push(text.to_owned());
        }
        match delimiter {
            '<' => placeholder += 1,
            '>' => placeholder = placeholder.saturating_sub(1),
            _ => {}
        }
    }
    words
}

/// How a command that did not fail went on.
#[non_exhaustive]
pub enum Outcome<C> {
    /// It is finished.
    Done,
    /// It goes on over time: the main loop polls the task.
    Pending(Box<dyn Task<C>>),
    /// These commands are to be run in its place.
    Script(Script),
    /// The session shall end.
    Quit,
    /// It asks for something only the tree of commands knows.
    Ask(Question),
}

/// What the built-in commands ask of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Explain this command or word; all words of the first level if it is empty.
    Help(String),
    /// List all commands that contain this text.
    Commands(String),
}

impl<C> Outcome<C> {
    /// A task that goes on over time.
    pub fn pending(task: impl Task<C> + 'static) -> Self {
        Self::Pending(Box::new(task))
    }
}

/// A command that goes on over time: `ping`, `wait`.
///
/// Between polls the main loop does other work; nothing may block.
pub trait Task<C>: Send {
    /// Goes as far as it can at `now`. What it writes to `out` reaches the user at once.
    fn poll(&mut self, cx: &mut C, now: Instant, out: &mut Output) -> TaskPoll;

    /// The user pressed Ctrl-C or went away. No poll follows. What it writes to `out` (a summary,
    /// say) reaches a user who is still there.
    fn cancel(&mut self, cx: &mut C, out: &mut Output) {
        let _ = (cx, out);
    }
}

/// What a task is at after a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskPoll {
    /// It is finished.
    Done,
    /// Poll it again at this time (or earlier: it must bear that).
    At(Instant),
    /// It failed.
    Failed(CliError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_of_a_grammar() {
        assert_eq!(
            usage_words("<interface> [rate <n of many>] enable|disable [hw-addr <mac>] {pg0}"),
            ["rate", "enable", "disable", "hw-addr", "pg0"]
        );
        assert!(usage_words("").is_empty() && usage_words("<a> N ...").is_empty());
    }
}
