//! Text of a configuration, places in it, and its tokens.

use std::ops::Range;

use super::report::Report;

/// A text with the information to describe places in it.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) text: String,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    /// A file of this name.
    File(String),
    /// Arguments, with the offset at which each starts.
    Args(Vec<usize>),
}

/// The line of a place, with the place's column and length.
pub(super) struct Line<'a> {
    pub(super) number: Option<usize>,
    pub(super) text: &'a str,
    pub(super) at: Range<usize>,
}

impl Source {
    pub(super) fn file(name: &str, text: &str) -> Source {
        Source { text: text.to_owned(), origin: Origin::File(name.to_owned()) }
    }

    pub(super) fn args<A: AsRef<str>>(args: &[A]) -> Source {
        let mut text = String::new();
        let mut starts = Vec::with_capacity(args.len());
        for (number, arg) in args.iter().enumerate() {
            if number > 0 {
                text.push(' ');
            }
            starts.push(text.len());
            text.push_str(arg.as_ref());
        }
        Source { text, origin: Origin::Args(starts) }
    }

    fn has_comments(&self) -> bool {
        matches!(self.origin, Origin::File(_))
    }

    /// Returns `startup.conf:3:5` or `argument 4`, both counted from 1; columns count characters.
    pub(super) fn place(&self, offset: usize) -> String {
        match &self.origin {
            Origin::File(name) => {
                let line = self.line(offset..offset);
                let column = line.text[..line.at.start].chars().count() + 1;
                format!("{name}:{}:{column}", line.number.unwrap_or(1))
            }
            Origin::Args(starts) => {
                format!("argument {}", starts.partition_point(|start| *start <= offset).max(1))
            }
        }
    }

    /// Returns the line that contains the start of `span`.
    pub(super) fn line(&self, span: Range<usize>) -> Line<'_> {
        let start = self.text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[span.start..].find('\n').map_or(self.text.len(), |n| span.start + n);
        let number = match self.origin {
            Origin::File(_) => Some(self.text[..start].matches('\n').count() + 1),
            Origin::Args(_) => None,
        };
        let at = span.start - start..span.end.clamp(span.start, end) - start;
        Line { number, text: &self.text[start..end], at }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    Word,
}

/// A token; `span` includes the quotes of a quoted word, `text` does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

/// Splits the text into braces and words. A word in double quotes may contain spaces, braces and
/// `#`.
pub(super) fn tokens(report: &mut Report) -> Vec<Token> {
    let text = report.source.text.clone();
    let comments = report.source.has_comments();
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        let mut push = |kind, text: &str, span| {
            tokens.push(Token { kind, text: text.to_owned(), span });
        };
        match first {
            '{' => push(Kind::Open, "{", start..start + 1),
            '}' => push(Kind::Close, "}", start..start + 1),
            '#' if comments => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '"' => match chars.by_ref().find(|(_, c)| *c == '"') {
                Some((end, _)) => push(Kind::Word, &text[start + 1..end], start..end + 1),
                None => report.error(start..start + 1, "this quoted word has no closing quote"),
            },
            blank if is_blank(blank) => {}
            _ => {
                while chars.next_if(|(_, c)| !is_blank(*c) && !matches!(c, '{' | '}')).is_some() {}
                let end = chars.peek().map_or(text.len(), |(end, _)| *end);
                push(Kind::Word, &text[start..end], start..end);
            }
        }
    }
    tokens
}

/// Whitespace and other characters not allowed in a word, such as the NUL that a C program may
/// leave.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}
