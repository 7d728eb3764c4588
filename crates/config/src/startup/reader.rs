//! Reading a stanza's words one by one.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use super::model::PageSize;
use super::report::Report;
use super::tree::{Item, Stanza, Word};
use super::values::{parse_number, parse_size};
use crate::suggest::closest;

/// Smallest page of any machine.
const MIN_PAGE: u64 = 4096;

/// Goes through a stanza. Whoever reads asks for a keyword, and then for its value; mistakes go to
/// the report, and the reading goes on.
pub(super) struct Reader<'a> {
    stanza: &'a str,
    items: &'a [Item],
    /// The end of a word of which the beginning has been taken.
    rest_of_word: Option<Word>,
    pub(super) report: &'a mut Report,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stanza: &'a Stanza, report: &'a mut Report) -> Self {
        Reader::over(&stanza.name.text, &stanza.body, report)
    }

    pub(super) fn over(stanza: &'a str, items: &'a [Item], report: &'a mut Report) -> Self {
        Reader { stanza, items, rest_of_word: None, report }
    }

    /// The next word, where a keyword is due. Blocks that belong to no keyword are mistakes.
    pub(super) fn keyword(&mut self) -> Option<Word> {
        if let Some(word) = self.rest_of_word.take() {
            return Some(word);
        }
        while let [first, rest @ ..] = self.items {
            self.items = rest;
            match first {
                Item::Word(word) => return Some(word.clone()),
                Item::Block(_, span) => self.error(span.clone(), "no `{` is expected here"),
            }
        }
        None
    }

    /// The block after a keyword, if there is one.
    pub(super) fn block(&mut self) -> Option<&'a [Item]> {
        let [Item::Block(items, _), rest @ ..] = self.items else { return None };
        self.items = rest;
        Some(items)
    }

    /// The word after `key`; `what` says what it should be.
    pub(super) fn value(&mut self, key: &Word, what: &str) -> Option<Word> {
        match self.items {
            [Item::Word(word), rest @ ..] => {
                self.items = rest;
                Some(word.clone())
            }
            _ => {
                self.error(key.span.clone(), format!("`{}` needs {what} after it", key.text));
                None
            }
        }
    }

    /// Puts a text value where it belongs.
    pub(super) fn text<T: From<String>>(&mut self, key: &Word, what: &str, to: &mut Option<T>) {
        if let Some(word) = self.value(key, what) {
            *to = Some(word.text.into());
        }
    }

    /// A whole number within limits.
    pub(super) fn number<T>(&mut self, key: &Word, limits: RangeInclusive<T>, to: &mut Option<T>)
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let Some(word) = self.value(key, "a number") else { return };
        let parsed = parse_number(&word.text).and_then(|number| T::try_from(number).ok());
        match parsed.filter(|number| limits.contains(number)) {
            Some(number) => *to = Some(number),
            None => {
                let (low, high) = limits.into_inner();
                let message = format!(
                    "`{}` takes a number from {low} to {high}, not {}",
                    key.text, word.text
                );
                self.error(word.span, message);
            }
        }
    }

    /// A number of bytes within limits.
    pub(super) fn size(&mut self, key: &Word, limits: RangeInclusive<u64>, to: &mut Option<u64>) {
        let Some(word) = self.value(key, "a size such as 64k, 2m or 1g") else { return };
        match parse_size(&word.text) {
            Some(size) if limits.contains(&size) => *to = Some(size),
            Some(_) => {
                let (low, high) = limits.into_inner();
                let message = format!(
                    "`{}` is {} bytes at least and {} at most, not {}",
                    key.text,
                    show_size(low),
                    show_size(high),
                    word.text
                );
                self.error(word.span, message);
            }
            None => {
                let message = format!(
                    "`{}` takes a size such as 4096, 64k, 2m or 1g, not {}",
                    key.text, word.text
                );
                self.error(word.span, message);
            }
        }
    }

    /// `default`, `default-hugepage` or a size that is a power of two.
    pub(super) fn page_size(&mut self, key: &Word, to: &mut PageSize) {
        let Some(word) = self.value(key, "default, default-hugepage or a size") else { return };
        *to = match (word.text.as_str(), parse_size(&word.text)) {
            ("default", _) => PageSize::Default,
            ("default-hugepage", _) => PageSize::DefaultHugepage,
            (_, Some(size)) if size.is_power_of_two() && size >= MIN_PAGE => PageSize::Bytes(size),
            _ => {
                let message = format!(
                    "`{}` is default, default-hugepage, or a power of two from 4k, such as 2m; \
                     not {}",
                    key.text, word.text
                );
                return self.error(word.span, message);
            }
        };
    }

    /// Seconds, with a fraction.
    pub(super) fn seconds(&mut self, key: &Word, to: &mut Option<f64>) {
        let Some(word) = self.value(key, "a number of seconds") else { return };
        match word.text.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds > 0.0 => *to = Some(seconds),
            _ => {
                let message = format!("`{}` takes seconds above 0, not {}", key.text, word.text);
                self.error(word.span, message);
            }
        }
    }

    /// `on` or `off`. VPP takes a word that goes on after these for a second one, and its own
    /// clients write `per-node-counters onupdate-interval 0.05`: so do we.
    pub(super) fn switch(&mut self, key: &Word, to: &mut Option<bool>) {
        let Some(word) = self.value(key, "on or off") else { return };
        let states = [("on", true), ("enable", true), ("off", false), ("disable", false)];
        for (name, state) in states {
            if let Some(rest) = word.text.strip_prefix(name) {
                *to = Some(state);
                if !rest.is_empty() {
                    let span = word.span.end - rest.len()..word.span.end;
                    self.rest_of_word = Some(Word { text: rest.to_owned(), span });
                }
                return;
            }
        }
        let message = format!("`{}` is on or off, not {}", key.text, word.text);
        self.error(word.span, message);
    }

    /// Reports a slip of the finger in a completely known stanza; a word that resembles none of its
    /// words is one of VPP's that means nothing here, and only a warning.
    pub(super) fn unknown_error(&mut self, word: &Word, known: &[&str]) {
        let Some(meant) = closest(&word.text, known) else {
            self.unknown_warning(word, known);
            return;
        };
        let message = format!("unknown word `{}`; did you mean `{meant}`?", word.text);
        self.error(word.span.clone(), message);
        self.skip_to(known);
    }

    /// Warns of a word that means nothing here, and passes over what belongs to it.
    pub(super) fn unknown_warning(&mut self, word: &Word, known: &[&str]) {
        let hint = closest(&word.text, known)
            .map(|meant| format!("; did you mean `{meant}`?"))
            .unwrap_or_default();
        let message =
            format!("{}: `{}` is not known here and has no effect{hint}", self.stanza, word.text);
        self.report.warn(word.span.clone(), message);
        self.skip_to(known);
    }

    fn skip_to(&mut self, known: &[&str]) {
        let stop =
            |item: &Item| matches!(item, Item::Word(word) if known.contains(&word.text.as_str()));
        let count = self.items.iter().position(stop).unwrap_or(self.items.len());
        self.items = &self.items[count..];
    }

    pub(super) fn error(&mut self, span: Range<usize>, message: impl AsRef<str>) {
        self.report.error(span, &format!("{}: {}", self.stanza, message.as_ref()));
    }
}

/// Writes a size with the largest unit that leaves it whole.
fn show_size(size: u64) -> String {
    for (shift, unit) in [(40, "t"), (30, "g"), (20, "m"), (10, "k")] {
        if size > 0 && size.is_multiple_of(1 << shift) {
            return format!("{}{unit}", size >> shift);
        }
    }
    size.to_string()
}
