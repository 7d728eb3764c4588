//! Splits text into commands, and commands into words.
//!
//! A text contains commands, one per line. A line may be continued after a backslash, a `{ ... }`
//! group may span lines, and `#` at the start of a word begins a comment. Inside a group everything
//! is raw except for the nesting of braces; quotes (`'` or `"`, at the start of a word) keep spaces
//! and braces in a word.

use crate::error::{CliError, shorten};

/// Maximum length of a single command, in bytes.
pub const MAX_COMMAND_BYTES: usize = 256 * 1024;
/// Maximum length of a text given to the interpreter at once (a script file, an API string), in
/// bytes.
pub const MAX_SCRIPT_BYTES: usize = 64 * 1024 * 1024;

/// The error of a command longer than [`MAX_COMMAND_BYTES`].
pub(crate) fn too_long() -> CliError {
    CliError::failed(format_args!("command is too long: at most {MAX_COMMAND_BYTES} bytes"))
}

/// Effect of a character when a text is split into commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Part of the command.
    Keep,
    /// Part of a comment, or undecided (a backslash that may join lines).
    Drop,
    /// Two lines are joined here.
    Join,
    /// A backslash that did not join lines, then this character.
    Backslash,
    /// The command ends here.
    End,
}

/// Splits a stream of characters into commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scanner {
    depth: usize,
    quote: Option<char>,
    in_word: bool,
    in_comment: bool,
    backslash: bool,
}

impl Scanner {
    pub(crate) fn step(&mut self, c: char) -> Step {
        if self.in_comment {
            if c != '\n' {
                return Step::Drop;
            }
            self.in_comment = false;
        }
        if std::mem::take(&mut self.backslash) {
            match c {
                '\n' => {
                    self.in_word = false;
                    return Step::Join;
                }
                '\r' => {
                    self.backslash = true;
                    return Step::Drop;
                }
                '\\' => {}
                _ => {
                    self.in_word = true;
                    return if self.plain(c) == Step::End { Step::End } else { Step::Backslash };
                }
            }
            self.in_word = true;
            return Step::Backslash;
        }
        self.plain(c)
    }

    fn plain(&mut self, c: char) -> Step {
        if self.depth > 0 {
            match c {
                '{' => self.depth += 1,
                '}' => self.depth -= 1,
                _ => {}
            }
            return Step::Keep;
        }
        if let Some(quote) = self.quote {
            if c == '\n' {
                self.quote = None;
                self.in_word = false;
                return Step::End;
            }
            if c == quote {
                self.quote = None;
                self.in_word = false;
            }
            return Step::Keep;
        }
        match c {
            '\n' => {
                self.in_word = false;
                return Step::End;
            }
            '\\' => {
                self.backslash = true;
                return Step::Drop;
            }
            '#' if !self.in_word => {
                self.in_comment = true;
                return Step::Drop;
            }
            '\'' | '"' if !self.in_word => self.quote = Some(c),
            '{' => {
                self.depth = 1;
                self.in_word = false;
            }
            // A bar on its own is a word: the character after it starts another.
            '|' if !self.in_word => {}
            _ => self.in_word = !c.is_whitespace(),
        }
        Step::Keep
    }

    /// Returns true if a command that ended here would be complete.
    pub(crate) fn balanced(&self) -> bool {
        self.depth == 0
    }

    /// Processes one character; returns true if it ended a command.
    pub(crate) fn ends_at(&mut self, c: char) -> bool {
        self.step(c) == Step::End
    }
}

/// One command of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub text: String,
    /// The line it starts on, counted from 1.
    pub line: usize,
}

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A word, or a quoted text without its quotes.
    Word,
    /// The text between two braces.
    Group,
    /// The bar before an output filter.
    Pipe,
}

/// A word, group or bar of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    /// Start in the command, delimiters included.
    pub start: usize,
    /// End in the command, delimiters included.
    pub end: usize,
}

/// Splits a command into tokens.
pub(crate) fn tokenize(text: &str) -> Result<Vec<Token<'_>>, CliError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let token = match c {
            '\'' | '"' => quoted(text, at, c)?,
            '{' => group(text, at)?,
            '|' => Token { kind: TokenKind::Pipe, text: "|", start: at, end: at + 1 },
            _ => {
                let mut end = text[at..]
                    .find(|c: char| c.is_whitespace() || c == '{')
                    .map_or(text.len(), |n| at + n);
                // `show errors| grep x` is common; `a|b` is one word.
                end -= usize::from(text[at..end].ends_with('|'));
                Token { kind: TokenKind::Word, text: &text[at..end], start: at, end }
            }
        };
        at = token.end;
        tokens.push(token);
    }
    Ok(tokens)
}

fn quoted(text: &str, start: usize, quote: char) -> Result<Token<'_>, CliError> {
    let inside = start + quote.len_utf8();
    let Some(len) = text[inside..].find(quote) else {
        let rest = shorten(&text[start..]);
        return Err(CliError::failed(format_args!("no closing {quote} after {rest}")));
    };
    let end = inside + len;
    let text = &text[inside..end];
    Ok(Token { kind: TokenKind::Word, text, start, end: end + quote.len_utf8() })
}

fn group(text: &str, start: usize) -> Result<Token<'_>, CliError> {
    let mut depth = 0usize;
    for (i, b) in text.bytes().enumerate().skip(start) {
        match b {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            let inside = &text[start + 1..i];
            return Ok(Token { kind: TokenKind::Group, text: inside, start, end: i + 1 });
        }
    }
    let rest = shorten(&text[start..]);
    Err(CliError::failed(format_args!("no closing }} after {rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn statements(text: &str) -> Vec<(usize, String)> {
        let mut script = Script::typed(text).unwrap();
        std::iter::from_fn(|| script.next_statement())
            .map(|s| s.map(|s| (s.line, s.text.trim().to_owned())).unwrap_or((0, "error".into())))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    #[test]
    fn a_text_divides_into_commands() {
        let text =
            "a b\n\n  # note\nc \\\n  d # tail\r\ne {\n x { y\n } # raw\n} f\n'#' \"a { b\" g#h\n";
        let want = [
            (1, "a b"),
            (4, "c    d"),
            (6, "e {\n x { y\n } # raw\n} f"),
            (10, "'#' \"a { b\" g#h"),
        ];
        assert_eq!(statements(text), want.map(|(n, s)| (n, s.to_owned())));
    }

    #[test]
    fn an_open_group_and_an_endless_line_are_errors() {
        assert_eq!(statements("a {\n b"), [(0, "error".to_owned())]);
        assert_eq!(statements(&"x".repeat(MAX_COMMAND_BYTES + 1)), [(0, "error".to_owned())]);
        assert!(Script::typed("x".repeat(MAX_SCRIPT_BYTES + 1)).is_err());
    }

    #[test]
    fn words_groups_quotes_and_bars() {
        let tokens = tokenize(r#"a b{ c { d } }"e f" 'g|h'| grep x|y"#).unwrap();
        let got: Vec<_> = tokens.iter().map(|t| (t.kind, t.text)).collect();
        use TokenKind::*;
        let want = [
            (Word, "a"),
            (Word, "b"),
            (Group, " c { d } "),
            (Word, "e f"),
            (Word, "g|h"),
            (Pipe, "|"),
            (Word, "grep"),
            (Word, "x|y"),
        ];
        assert_eq!(got, want);
        assert!(tokenize("a { b").is_err());
        assert!(tokenize("a 'b").is_err());
    }

    #[test]
    fn a_backslash_that_joins_nothing_stays() {
        assert_eq!(statements("a\\b \\ c\\\\d"), [(1, "a\\b \\ c\\\\d".to_owned())]);
        // A backslash at the very end joins no line: it is dropped.
        assert_eq!(statements("a \\"), [(1, "a".to_owned())]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-c{}'\"#|\\\\ \n\r\u{e9}]{0,60}") {
            let mut script = Script::typed(text.clone()).unwrap();
            while let Some(s) = script.next_statement() {
                if let Ok(s) = s { let _ = tokenize(&s.text); }
            }
            let _ = tokenize(&text);
        }
    }
}
