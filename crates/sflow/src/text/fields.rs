//! Chosen fields as CSV.

use std::fmt::Arguments;
use std::io::Write;

use super::notation::{self, Escape};
use super::walk::Sink;
use super::{Beyond, Moment, Zone};
use crate::model::Tag;
use crate::value::{Value, Visitor};

/// One line per sample that has any of the fields; fields of the datagram are repeated on each.
/// When only fields of the datagram are asked for, one line per datagram.
pub(super) struct Fields<'o> {
    out: &'o mut Vec<u8>,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    names: &'o [String],
    datagram: Vec<Option<Vec<u8>>>,
    sample: Vec<Option<Vec<u8>>>,
    in_sample: bool,
    printed: bool,
    prefix: &'static str,
}

impl<'o> Fields<'o> {
    pub(super) fn new(
        out: &'o mut Vec<u8>,
        zone: &'o Zone,
        beyond: Beyond<'o>,
        names: &'o [String],
    ) -> Self {
        let none = vec![None; names.len()];
        Fields {
            out,
            zone,
            beyond,
            names,
            datagram: none.clone(),
            sample: none,
            in_sample: false,
            printed: false,
            prefix: "",
        }
    }

    fn store(&mut self, parts: [&str; 3], write: impl Fn(&mut Vec<u8>)) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let slots = if self.in_sample { &mut self.sample } else { &mut self.datagram };
        for (wanted, slot) in self.names.iter().zip(slots) {
            let mut rest = Some(wanted.as_str()).filter(|w| w.len() == length);
            for part in parts {
                rest = rest.and_then(|r| r.strip_prefix(part));
            }
            if rest.is_some() {
                let mut bytes = Vec::new();
                write(&mut bytes);
                // A comma would shift the columns.
                bytes.iter_mut().filter(|b| **b == b',').for_each(|b| *b = b'?');
                *slot = Some(bytes);
            }
        }
    }

    fn line(&mut self) {
        for i in 0..self.names.len() {
            if i > 0 {
                self.out.push(b',');
            }
            if let Some(bytes) = self.sample[i].as_ref().or(self.datagram[i].as_ref()) {
                self.out.extend(bytes);
            }
        }
        self.out.push(b'\n');
        self.printed = true;
    }
}

impl Visitor for Fields<'_> {
    fn prefixed(&mut self, prefix: &str, name: &str, value: Value<'_>) {
        self.store([self.prefix, prefix, name], |out| notation::value(out, value, Escape::Line));
    }

    fn numbered(&mut self, name: Arguments<'_>, value: Value<'_>) {
        let mut full = Vec::new();
        // Writing to a vector cannot fail, and names are ASCII.
        let _ = full.write_fmt(name);
        let full = String::from_utf8_lossy(&full);
        self.store([self.prefix, "", &full], |out| notation::value(out, value, Escape::Line));
    }

    fn beyond(&self, header: &[u8], at: usize) -> Option<u8> {
        self.beyond.byte(header, at)
    }
}

impl Sink for Fields<'_> {
    fn start_datagram(&mut self) {}

    fn end_datagram(&mut self) {
        let any = self.datagram.iter().all(Option::is_some) && !self.names.is_empty();
        if any && !self.printed {
            self.line();
        }
    }

    fn start_sample(&mut self, _tag: Tag) {
        self.in_sample = true;
        self.sample.fill(None);
    }

    fn end_sample(&mut self) {
        if self.sample.iter().any(Option::is_some) {
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
        self.store([name, "", ""], |out| zone.write(out, moment));
    }
}
