//! The command trait and its outcome.

use std::time::Instant;

use crate::args::Args;
use crate::error::CliError;
use crate::output::Output;
use crate::script::Script;

/// One command of the command line, over the state `C` of the main thread.
///
/// Implemented by a unit struct per command; the tree keeps `&'static dyn Command<C>`.
pub trait Command<C>: Sync {
    /// Returns its path, e.g. `show interface`. Users may abbreviate each word.
    fn path(&self) -> &'static str;

    /// Returns alternative paths; they are understood but not listed.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether help, completion and errors name it, and whether it counts when a word is
    /// abbreviated.
    fn listed(&self) -> bool {
        true
    }

    /// Returns the grammar of the arguments on one line, e.g. `<interface> [<rate>] [disable]`.
    ///
    /// Its keywords are offered as completions.
    fn usage(&self) -> &'static str {
        ""
    }

    /// Returns its help: one short line, then (after a newline) as much as needed.
    fn help(&self) -> &'static str;

    /// Runs it. Takes all arguments (ending with [`Args::end`]) before it changes anything.
    ///
    /// # Errors
    /// An error in the arguments or the request; output written to `out` is still shown.
    fn run(
        &self,
        cx: &mut C,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<C>, CliError>;

    /// Returns completions of `partial`, after the arguments `before`. The caller sorts them and
    /// keeps those that begin with `partial`. The default offers the keywords of [`usage`].
    ///
    /// [`usage`]: Self::usage
    fn complete(&self, cx: &C, before: &[&str], partial: &str) -> Vec<String> {
        let _ = (cx, before, partial);
        usage_words(self.usage())
    }
}

/// Returns the keywords in a grammar such as `<interface> [rate <n>] enable|disable`.
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

/// Outcome of a command that did not fail.
#[non_exhaustive]
pub enum Outcome<C> {
    /// The command has finished.
    Done,
    /// The command continues over time: the main loop polls the task.
    Pending(Box<dyn Task<C>>),
    /// Commands that run in its place.
    Script(Script),
    /// The session ends.
    Quit,
    /// The command needs an answer that only the command tree has.
    Ask(Question),
}

/// Requests of built-in commands to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Explain this command or word; list all words of the first level if it is empty.
    Help(String),
    /// List all commands that contain this text.
    Commands(String),
}

impl<C> Outcome<C> {
    /// Returns the outcome of a task that continues over time.
    pub fn pending(task: impl Task<C> + 'static) -> Self {
        Self::Pending(Box::new(task))
    }
}

/// A command that continues over time: `ping`, `wait`.
///
/// Between polls the main loop does other work; a task must not block.
pub trait Task<C>: Send {
    /// Continues as far as possible at `now`. Output written to `out` reaches the user at once.
    fn poll(&mut self, cx: &mut C, now: Instant, out: &mut Output) -> TaskPoll;

    /// Handles Ctrl-C or the end of the session. No poll follows. Output written to `out` (e.g. a
    /// summary) reaches a user who is still connected.
    fn cancel(&mut self, cx: &mut C, out: &mut Output) {
        let _ = (cx, out);
    }
}

/// State of a task after a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskPoll {
    /// The task has finished.
    Done,
    /// The task must be polled again at this time (it may be polled earlier).
    At(Instant),
    /// The task failed.
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
