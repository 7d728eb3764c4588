//! The tree of stanzas.

use std::ops::Range;

use super::report::Report;
use super::source::{Kind, Token};

/// Maximum nesting of braces; VPP's own configurations need three levels.
const MAX_DEPTH: usize = 16;

/// A word and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word, without quotes.
    pub text: String,
    /// Its byte range in the configuration.
    pub span: Range<usize>,
}

/// Part of a stanza's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A word in the body.
    Word(Word),
    /// The contents of a pair of braces, and where it opens.
    Block(Vec<Item>, Range<usize>),
}

impl Item {
    pub(super) fn span(&self) -> Range<usize> {
        match self {
            Item::Word(word) => word.span.clone(),
            Item::Block(_, span) => span.clone(),
        }
    }
}

/// A named part of the configuration: `name { body }`, or `name word`, whose body is that word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stanza {
    /// Its name.
    pub name: Word,
    /// Contents.
    pub body: Vec<Item>,
}

impl Stanza {
    /// Returns the words of the body, without those in inner braces.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.body.iter().filter_map(|item| match item {
            Item::Word(word) => Some(word.text.as_str()),
            Item::Block(..) => None,
        })
    }
}

impl From<&Token> for Word {
    fn from(token: &Token) -> Word {
        Word { text: token.text.clone(), span: token.span.clone() }
    }
}

/// Groups tokens into stanzas, as far as braces match.
pub(super) fn stanzas(tokens: &[Token], report: &mut Report) -> Vec<Stanza> {
    let mut stanzas = Vec::new();
    let mut rest = tokens;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first.kind {
            Kind::Open => {
                report.error(first.span.clone(), "a stanza needs a name before its `{`");
                block(&mut rest, first, 1, report);
            }
            Kind::Close => report.error(first.span.clone(), "unmatched `}`"),
            Kind::Word => {
                let body = match tail {
                    [open, inner @ ..] if open.kind == Kind::Open => {
                        rest = inner;
                        block(&mut rest, open, 1, report)
                    }
                    // A word before a brace is the next stanza's name, not this one's value.
                    [value, next, ..] if value.kind == Kind::Word && next.kind == Kind::Open => {
                        Vec::new()
                    }
                    [value, inner @ ..] if value.kind == Kind::Word => {
                        rest = inner;
                        vec![Item::Word(value.into())]
                    }
                    _ => Vec::new(),
                };
                stanzas.push(Stanza { name: first.into(), body });
            }
        }
    }
    stanzas
}

/// Reads up to the brace that closes `open`.
fn block(rest: &mut &[Token], open: &Token, depth: usize, report: &mut Report) -> Vec<Item> {
    let mut items = Vec::new();
    if depth > MAX_DEPTH {
        let message = format!("braces nest deeper than {MAX_DEPTH} levels");
        report.error(open.span.clone(), &message);
        *rest = &[];
        return items;
    }
    while let [first, tail @ ..] = *rest {
        *rest = tail;
        match first.kind {
            Kind::Word => items.push(Item::Word(first.into())),
            Kind::Open => {
                let inner = block(rest, first, depth + 1, report);
                items.push(Item::Block(inner, first.span.clone()));
            }
            Kind::Close => return items,
        }
    }
    // A block that is nested too deep has ended the text and been reported already.
    if !report.has_errors() {
        report.error(open.span.clone(), "unclosed `{`");
    }
    items
}
