//! A JSON object per datagram. Every value is a string.

use std::fmt::Arguments;
use std::io::Write;

use super::notation::{self, Escape};
use super::text_buf::{self, FIELD, TextBuf, VALUE};
use super::walk::Sink;
use super::{Beyond, Moment, Zone};
use crate::model::Tag;
use crate::value::{Name, Value, Visitor, name};

/// The latest output, which decides about commas and line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// An object or list was opened: nothing in it yet.
    Open,
    /// Something that the next thing must be separated from.
    Item,
}

/// Objects and lists in each other; each is indented by a space.
const DEEPEST: usize = 15;

/// The beginning of an indented line.
const LINE: [u8; 1 + DEEPEST] = *b"\n               ";

pub(super) struct Json<'o> {
    out: &'o mut TextBuf,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    indented: bool,
    depth: usize,
    last: Last,
    prefix: &'static str,
}

impl<'o> Json<'o> {
    pub(super) fn new(
        out: &'o mut TextBuf,
        zone: &'o Zone,
        beyond: Beyond<'o>,
        indented: bool,
    ) -> Self {
        Json { out, zone, beyond, indented, depth: 0, last: Last::Open, prefix: "" }
    }

    fn new_line(&mut self) {
        if self.indented {
            self.out.push(b'\n');
            self.out.spaces(self.depth);
        }
    }

    /// Separates the next thing from what precedes it.
    fn separate(&mut self) {
        if self.last == Last::Item {
            self.out.push(b',');
        }
        self.new_line();
        self.last = Last::Item;
    }

    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.depth += 1;
        self.last = Last::Open;
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        self.new_line();
        self.out.push(bracket);
        self.last = Last::Item;
    }

    fn value(&mut self, value: Value<'_>) {
        self.out.put(b"\":\"");
        notation::value(self.out, value, Escape::Json);
        self.out.push(b'"');
    }

    /// Begins a field, up to the end of its name.
    fn name(&mut self, name: &[u8]) {
        self.separate();
        self.out.push(b'"');
        self.out.text(self.prefix);
        self.out.put(name);
    }

    /// A field whose value is short.
    #[inline(always)]
    fn short(
        &mut self,
        prefix: &str,
        name: &'static Name,
        value: impl FnOnce(&mut [u8; VALUE]) -> usize,
    ) {
        let comma = usize::from(self.last == Last::Item);
        self.last = Last::Item;
        let (indented, depth) = (self.indented, self.depth.min(DEEPEST));
        let lead = |room: &mut [u8; FIELD]| {
            room[0] = b',';
            let mut at = comma;
            if indented {
                *text_buf::spot(room, at) = LINE;
                at += 1 + depth;
            }
            *text_buf::spot(room, at) = [b'"'];
            at + 1
        };
        self.out.field(lead, [self.prefix, prefix], name, (b"\":\"", b"\""), value);
    }

    /// A field whose value is a decimal number, as most are.
    #[inline(never)]
    fn number(&mut self, prefix: &str, name: &'static Name, n: u64) {
        self.short(prefix, name, |room| notation::number(room, 0, n));
    }

    #[inline(never)]
    fn other(&mut self, prefix: &str, name: &'static Name, value: Value<'_>) {
        if notation::is_short(&value) {
            return self.short(prefix, name, |room| notation::short(room, &value));
        }
        self.name(prefix.as_bytes());
        self.out.put(name.as_bytes());
        self.value(value);
    }
}

impl Visitor for Json<'_> {
    #[inline(always)]
    fn prefixed(&mut self, prefix: &str, name: &'static Name, value: Value<'_>) {
        match value {
            Value::U32(n) => self.number(prefix, name, n.into()),
            Value::U64(n) => self.number(prefix, name, n),
            value => self.other(prefix, name, value),
        }
    }

    fn numbered(&mut self, name: Arguments<'_>, value: Value<'_>) {
        self.name(b"");
        // Writing to memory cannot fail.
        let _ = self.out.write_fmt(name);
        self.value(value);
    }

    fn beyond(&self, header: &[u8], at: usize) -> Option<u8> {
        self.beyond.byte(header, at)
    }

    fn structured(&self) -> bool {
        true
    }

    fn open_list(&mut self, name: &str) {
        self.name(name.as_bytes());
        self.out.put(b"\":");
        self.open(b'[');
    }

    fn item(&mut self, value: Value<'_>) {
        self.separate();
        self.out.push(b'"');
        notation::value(self.out, value, Escape::Json);
        // The space is there in sflowtool's output, too.
        self.out.put(b"\" ");
    }

    fn open_object(&mut self) {
        // The first object of a list stands on the line that opens the list.
        if self.last == Last::Item {
            self.separate();
        }
        self.open(b'{');
    }

    fn close_object(&mut self) {
        self.close(b'}');
    }

    fn close_list(&mut self) {
        self.close(b']');
    }
}

impl Sink for Json<'_> {
    fn start_datagram(&mut self) {
        self.open(b'{');
    }

    fn end_datagram(&mut self) {
        self.close(b'}');
        self.out.text(if self.indented { "\n\n" } else { "\n" });
    }

    fn start_samples(&mut self) {
        self.open_list("samples");
    }

    fn end_samples(&mut self) {
        self.close_list();
    }

    fn start_sample(&mut self, _tag: Tag) {
        self.open_object();
    }

    fn end_sample(&mut self) {
        self.close_object();
    }

    fn start_elements(&mut self) {
        // The prefix is for the fields of elements, not for the list.
        let prefix = std::mem::take(&mut self.prefix);
        self.open_list("elements");
        self.prefix = prefix;
    }

    fn end_elements(&mut self) {
        self.close_list();
    }

    fn start_element(&mut self, _tag: Tag) {
        self.open_object();
    }

    fn end_element(&mut self) {
        self.close_object();
    }

    fn set_prefix(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    fn skipped(&mut self, _what: &str, _tag: Tag, length: usize) {
        self.field(name!("skippedBytes"), Value::U32(length as u32));
    }

    fn time(&mut self, name: &str, moment: Moment) {
        self.name(name.as_bytes());
        self.out.put(b"\":\"");
        self.zone.write(self.out, moment);
        self.out.push(b'"');
    }
}
