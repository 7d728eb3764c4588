//! Errors of commands, in words for the user who typed them.

use std::fmt;

/// Number of names that an error message lists before it only counts the rest.
const LISTED: usize = 12;

/// Error of a command.
///
/// The text is what the user sees: the first line describes the error and its place, further lines
/// (indented) what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// A word that no command has here.
    #[error("{}unknown input `{input}'{}", prefix(path), Expected { names: expected, suggestion })]
    UnknownInput {
        /// The words understood before it, in full.
        path: String,
        /// The unknown word; empty if the input ended too early.
        input: String,
        /// The words that are possible here.
        expected: Vec<String>,
        /// The word that was probably meant.
        suggestion: Option<String>,
    },
    /// An abbreviation of more than one word.
    #[error("{}ambiguous input `{input}'\n  could be: {}", prefix(path), List(candidates))]
    Ambiguous {
        /// The words understood before it, in full.
        path: String,
        /// The abbreviation.
        input: String,
        /// Every word it abbreviates.
        candidates: Vec<String>,
    },
    /// An argument that is missing or invalid.
    #[error("{}", BadArgument { what, expected, found: found.as_deref(), position: *position })]
    BadArgument {
        /// Name of the argument, e.g. `sampling rate`.
        what: String,
        /// Valid values, e.g. `a number from 1 to 65535`.
        expected: String,
        /// The invalid value; `None` if the line ended.
        found: Option<String>,
        /// Number of the argument, counted from 1.
        position: usize,
    },
    /// More arguments than the command takes.
    #[error("unexpected `{found}' after `{after}'")]
    Unexpected {
        /// The first unexpected word.
        found: String,
        /// The last word that was understood.
        after: String,
    },
    /// The command was understood but failed.
    #[error("{message}")]
    Failed {
        /// Description of the failure.
        message: String,
        /// Return value in the binary API; -1 if nothing better is known.
        code: i32,
    },
    /// An error of a command, with the command's path and, if that helps, its usage.
    #[error("{path}: {source}{}", Usage { path, usage: usage.as_deref() })]
    In {
        /// The command, in full.
        path: String,
        /// The command's argument grammar, shown for errors of syntax.
        usage: Option<String>,
        /// The error.
        source: Box<CliError>,
    },
    /// A line of a script failed; the lines before it stay applied.
    #[error("exec: CLI line error: {file}:{line}: `{statement}'\n{source}")]
    Script {
        /// The script.
        file: String,
        /// The line of the script, counted from 1.
        line: usize,
        /// The command that failed, shortened if it is long.
        statement: String,
        /// Its error.
        source: Box<CliError>,
    },
    /// The same of a script that not everyone may read; the user of the CLI perhaps may not.
    #[error(
        "exec: CLI line error: {file}:{line}: this command failed; it is not shown, since not everyone \
         may read the file"
    )]
    PrivateScript {
        /// The script.
        file: String,
        /// The line of the script, counted from 1.
        line: usize,
    },
}

impl CliError {
    /// Returns a failure described by `message`, with return value -1.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::Failed { message: message.to_string(), code: -1 }
    }

    /// Returns a failure with a specific return value for the binary API (negative, as VPP numbers
    /// them).
    pub fn with_code(message: impl fmt::Display, code: i32) -> Self {
        Self::Failed { message: message.to_string(), code }
    }

    /// Returns the return value of this error: -1 unless the command chose another one.
    pub fn code(&self) -> i32 {
        match self {
            Self::Failed { code, .. } => *code,
            Self::In { source, .. } | Self::Script { source, .. } => source.code(),
            _ => -1,
        }
    }

    /// Returns true if the input was invalid, rather than the request refused.
    pub fn is_syntax(&self) -> bool {
        match self {
            Self::Failed { .. } => false,
            Self::In { source, .. } | Self::Script { source, .. } => source.is_syntax(),
            _ => true,
        }
    }

    /// Returns the error for an unknown word, with the nearest expected word as a suggestion.
    pub(crate) fn unknown(path: &str, input: &str, expected: Vec<String>) -> Self {
        let suggestion = nearest(input, expected.iter().map(String::as_str)).map(str::to_owned);
        Self::UnknownInput { path: path.to_owned(), input: shorten(input), expected, suggestion }
    }
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// Formats at most [`LISTED`] names, comma-separated.
struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().take(LISTED).enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            f.write_str(name)?;
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more (`?' lists them)"),
        }
    }
}

struct Expected<'a> {
    names: &'a [String],
    suggestion: &'a Option<String>,
}

impl fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.suggestion, self.names) {
            (_, []) => Ok(()),
            (None, names) => write!(f, "\n  could be: {}", List(names)),
            (Some(s), names) => {
                write!(f, "\n  did you mean `{s}'? could be: {}", List(names))
            }
        }
    }
}

struct BadArgument<'a> {
    what: &'a str,
    expected: &'a str,
    found: Option<&'a str>,
    position: usize,
}

impl fmt::Display for BadArgument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, expected, found, position } = self;
        match found {
            Some(found) => {
                write!(f, "bad {what} `{found}' (argument {position}): expected {expected}")
            }
            None => write!(f, "missing {what} (argument {position}): expected {expected}"),
        }
    }
}

struct Usage<'a> {
    path: &'a str,
    usage: Option<&'a str>,
}

impl fmt::Display for Usage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.usage {
            Some("") => write!(f, "\n  usage: {}", self.path),
            Some(usage) => write!(f, "\n  usage: {} {usage}", self.path),
            None => Ok(()),
        }
    }
}

/// Two paths of a command tree are the same, or one is empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("CLI command path `{path}' is {}", if path.is_empty() { "empty" } else { "registered twice" })]
pub struct DuplicatePath {
    /// The path, in words separated by single spaces.
    pub path: String,
}

/// Cuts user input to a length that fits a message.
pub(crate) fn shorten(text: &str) -> String {
    const MAX: usize = 60;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MAX).collect();
    short.push_str("...");
    short
}

/// Returns the candidate nearest to `word`, if it is near enough to be a typo.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(40).collect();
    let allowed = match word.len() {
        0 | 1 => return None,
        2..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    candidates
        .map(|c| (distance(&word, &c.chars().take(40).collect::<Vec<_>>()), c))
        .filter(|(d, _)| *d <= allowed)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Returns the edit distance; a swap of two neighbours counts as one edit.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best =
                (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let words = ["interface", "errors", "runtime"];
        assert_eq!(nearest("interfcae", words.into_iter()), Some("interface"));
        assert_eq!(nearest("eror", words.into_iter()), None);
        assert_eq!(nearest("erors", words.into_iter()), Some("errors"));
        assert_eq!(nearest("foo", words.into_iter()), None);
        assert_eq!(nearest("", words.into_iter()), None);
    }

    #[test]
    fn messages_name_the_place_and_valid_input() {
        let e = CliError::unknown("show", "foo", vec!["bar".into(), "food".into()]);
        assert_eq!(
            e.to_string(),
            "show: unknown input `foo'\n  did you mean `food'? could be: bar, food"
        );
        let many = (0..20).map(|i| format!("w{i:02}")).collect();
        let text = CliError::unknown("", "zzz", many).to_string();
        assert!(text.starts_with("unknown input `zzz'\n  could be: w00, w01"), "{text}");
        assert!(text.ends_with("w11 and 8 more (`?' lists them)"), "{text}");
        let e = CliError::In {
            path: "wait".into(),
            usage: Some("<seconds>".into()),
            source: Box::new(CliError::BadArgument {
                what: "time".into(),
                expected: "seconds".into(),
                found: None,
                position: 1,
            }),
        };
        assert_eq!(
            e.to_string(),
            "wait: missing time (argument 1): expected seconds\n  usage: wait <seconds>"
        );
        assert_eq!(CliError::with_code("no", -81).code(), -81);
        assert!(e.is_syntax() && !CliError::failed("no").is_syntax());
    }
}
