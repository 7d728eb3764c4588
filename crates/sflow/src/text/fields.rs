//! Chosen fields as CSV.

use std::fmt::Arguments;
use std::io::Write;

use super::notation::{self, Escape};
use super::text_buf::TextBuf;
use super::walk::Sink;
use super::{Beyond, Moment, Zone};
use crate::model::Tag;
use crate::value::{Name, Value, Visitor};

/// The names asked for, and what was found of them; kept from datagram to datagram.
#[derive(Debug, Default)]
pub(super) struct Slots {
    datagram: Vec<Slot>,
    sample: Vec<Slot>,
    /// Names by length; most fields have a length that no name has.
    by_length: Vec<Vec<usize>>,
}

#[derive(Debug, Default)]
struct Slot {
    found: bool,
    /// True if it was ever found.
    seen: bool,
    text: TextBuf,
}

impl Slots {
    pub(super) fn new(names: &[String]) -> Self {
        let slots = || std::iter::repeat_with(Slot::default).take(names.len()).collect();
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        let mut by_length = vec![Vec::new(); longest + 1];
        for (i, name) in names.iter().enumerate() {
            by_length[name.len()].push(i);
        }
        Slots { datagram: slots(), sample: slots(), by_length }
    }

    /// Numbers of the names that were never found.
    pub(super) fn never_found(&self) -> impl Iterator<Item = usize> {
        let slots = self.datagram.iter().zip(&self.sample).enumerate();
        slots.filter(|(_, (datagram, sample))| !datagram.seen && !sample.seen).map(|(i, _)| i)
    }
}

/// One line per sample that has any of the fields; fields of the datagram are repeated on each.
/// Prints one line per datagram if only fields of the datagram are asked for.
pub(super) struct Fields<'o> {
    out: &'o mut TextBuf,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    names: &'o [String],
    slots: &'o mut Slots,
    in_sample: bool,
    printed: bool,
    prefix: &'static str,
}

impl<'o> Fields<'o> {
    pub(super) fn new(
        out: &'o mut TextBuf,
        zone: &'o Zone,
        beyond: Beyond<'o>,
        names: &'o [String],
        slots: &'o mut Slots,
    ) -> Self {
        slots.datagram.iter_mut().for_each(|slot| slot.found = false);
        Fields { out, zone, beyond, names, slots, in_sample: false, printed: false, prefix: "" }
    }

    fn store(&mut self, parts: [&[u8]; 3], write: impl Fn(&mut TextBuf)) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let Slots { datagram, sample, by_length } = &mut *self.slots;
        let slots = if self.in_sample { sample } else { datagram };
        for &i in by_length.get(length).into_iter().flatten() {
            let mut rest = Some(self.names[i].as_bytes());
            for part in parts.into_iter().filter(|part| !part.is_empty()) {
                rest = rest.and_then(|rest| rest.strip_prefix(part));
            }
            if rest.is_some() {
                (slots[i].found, slots[i].seen) = (true, true);
                slots[i].text.clear();
                write(&mut slots[i].text);
            }
        }
    }

    fn line(&mut self) {
        for (i, (sample, datagram)) in
            self.slots.sample.iter().zip(&self.slots.datagram).enumerate()
        {
            if i > 0 {
                self.out.push(b',');
            }
            let text = match (sample.found, datagram.found) {
                (true, _) => sample.text.written(),
                (false, true) => datagram.text.written(),
                (false, false) => continue,
            };
            match text.contains(&b',') {
                false => self.out.put(text),
                // A comma would shift the columns.
                true => text.iter().for_each(|b| self.out.push(if *b == b',' { b'?' } else { *b })),
            }
        }
        self.out.push(b'\n');
        self.printed = true;
    }
}

impl Visitor for Fields<'_> {
    fn prefixed(&mut self, prefix: &str, name: &'static Name, value: Value<'_>) {
        let parts = [self.prefix.as_bytes(), prefix.as_bytes(), name.as_bytes()];
        self.store(parts, |out| notation::value(out, value, Escape::Line));
    }

    fn numbered(&mut self, name: Arguments<'_>, value: Value<'_>) {
        let mut full = Vec::new();
        // Writing to memory cannot fail.
        let _ = full.write_fmt(name);
        self.store([self.prefix.as_bytes(), b"", &full], |out| {
            notation::value(out, value, Escape::Line)
        });
    }

    fn beyond(&self, header: &[u8], at: usize) -> Option<u8> {
        self.beyond.byte(header, at)
    }
}

impl Sink for Fields<'_> {
    fn start_datagram(&mut self) {}

    fn end_datagram(&mut self) {
        let any = self.slots.datagram.iter().all(|slot| slot.found) && !self.names.is_empty();
        if any && !self.printed {
            self.line();
        }
    }

    fn start_sample(&mut self, _tag: Tag) {
        self.in_sample = true;
        self.slots.sample.iter_mut().for_each(|slot| slot.found = false);
    }

    fn end_sample(&mut self) {
        if self.slots.sample.iter().any(|slot| slot.found) {
            self.line();
        }
        self.in_sample = false;
    }

    fn set_prefix(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    fn skipped(&mut self, _what: &str, _tag: Tag, _length: usize) {}

    fn time(&mut self, name: &str, moment: Moment) {
        let zone = self.zone;
        self.store([name.as_bytes(), b"", b""], |out| zone.write(out, moment));
    }
}
