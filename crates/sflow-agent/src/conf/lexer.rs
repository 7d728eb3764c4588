//! The words of the text, with their places.

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, or what stood in quotes.
    Word,
    /// `{`.
    Open,
    /// `}`.
    Close,
    /// Quotes that do not end on their line.
    Unclosed,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    /// Text of the token, without quotes.
    pub text: &'a str,
    /// Offset of its first byte.
    pub at: usize,
    /// Offset of what follows it.
    pub end: usize,
}

/// Blanks, `=` and `;` are all the same: they separate words.
fn separates(c: char) -> bool {
    c.is_whitespace() || matches!(c, '=' | ';' | '\0')
}

/// Cuts the text into words and braces; from `#` on, a line is a comment.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let mut until = |stop: &dyn Fn(char) -> bool| loop {
            match rest.peek() {
                Some((end, c)) if stop(*c) => break *end,
                Some(_) => drop(rest.next()),
                None => break text.len(),
            }
        };
        let token = |kind, text, end| Token { kind, text, at, end };
        match c {
            c if separates(c) => {}
            '#' => drop(until(&|c| c == '\n')),
            '{' => tokens.push(token(Kind::Open, "{", at + 1)),
            '}' => tokens.push(token(Kind::Close, "}", at + 1)),
            '"' | '\'' => {
                let end = until(&|next| next == c || next == '\n');
                let closed = text[end..].starts_with(c);
                let kind = if closed { Kind::Word } else { Kind::Unclosed };
                tokens.push(token(kind, &text[at + 1..end], end + usize::from(closed)));
                if closed {
                    rest.next();
                }
            }
            _ => {
                let end = until(&|c| separates(c) || matches!(c, '{' | '}' | '#' | '"' | '\''));
                tokens.push(token(Kind::Word, &text[at..end], end));
            }
        }
    }
    tokens
}
