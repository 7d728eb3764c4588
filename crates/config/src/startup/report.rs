//! Errors and warnings of a startup configuration, and their format.

use std::fmt;
use std::ops::Range;
use thalweg_files::FileError;

use super::source::Source;

/// Maximum number of errors that are reported.
const MAX_PROBLEMS: usize = 20;
/// Number of characters of a line that are shown around an error.
const EXCERPT: usize = 72;

/// Error of a startup configuration.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// `-c` without a file.
    #[error("-c needs a configuration file")]
    NoFile,
    /// The file cannot be read.
    #[error("cannot read startup configuration {}: {}", .0.path.display(), .0.source)]
    Unreadable(#[from] FileError),
    /// The configuration has errors.
    #[error("{}", Problems(.0))]
    Invalid(Vec<Problem>),
}

struct Problems<'a>(&'a [Problem]);

impl fmt::Display for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// An error, shown with the line it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `startup.conf:3:5` or `argument 4`.
    pub place: String,
    /// The fault, and what would be valid.
    pub message: String,
    /// The line and a second one that marks the place in it.
    pub excerpt: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n{}", self.place, self.message, self.excerpt)
    }
}

/// Something that was accepted but has no effect, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// `startup.conf:3:5` or `argument 4`.
    pub place: String,
    /// The setting that has no effect, and why.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Collects the errors and warnings of one text.
pub(super) struct Report {
    pub(super) source: Source,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

impl Report {
    pub(super) fn new(source: Source) -> Report {
        Report { source, problems: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn error(&mut self, span: Range<usize>, message: &str) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem {
                place: self.source.place(span.start),
                message: message.to_owned(),
                excerpt: excerpt(&self.source, span),
            });
        }
    }

    pub(super) fn warn(&mut self, span: Range<usize>, message: String) {
        self.warnings.push(Warning { place: self.source.place(span.start), message });
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.problems.is_empty()
    }

    pub(super) fn finish(self) -> Result<Vec<Warning>, StartupError> {
        if self.problems.is_empty() {
            Ok(self.warnings)
        } else {
            Err(StartupError::Invalid(self.problems))
        }
    }
}

/// Returns the line with a row of `^` below the place.
fn excerpt(source: &Source, span: Range<usize>) -> String {
    let line = source.line(span);
    let chars: Vec<char> =
        line.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let start = line.text[..line.at.start].chars().count();
    let length = line.text[line.at.clone()].chars().count().max(1);

    // A command line is one long line: show the neighbourhood.
    let from = if chars.len() <= EXCERPT { 0 } else { start.saturating_sub(EXCERPT / 2) };
    let to = chars.len().min(from + EXCERPT);
    let before = if from > 0 { "… " } else { "" };
    let after = if to < chars.len() { " …" } else { "" };
    let shown: String = chars[from..to].iter().collect();
    let number = line.number.map_or_else(|| "     ".to_owned(), |number| format!("{number:5}"));
    let indent = " ".repeat(before.chars().count() + start - from);
    let mark = "^".repeat(length.min(to.saturating_sub(start).max(1)));
    format!("{number} | {before}{}{after}\n      | {indent}{mark}", shown.trim_end())
}
