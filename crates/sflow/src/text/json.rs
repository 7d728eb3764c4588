//! A JSON object per datagram. Every value is a string.

use std::fmt::Arguments;
use std::io::Write;

use super::notation::{self, Escape};
use super::pen::Pen;
use super::walk::Sink;
use super::{Beyond, Moment, Zone};
use crate::model::Tag;
use crate::value::{Value, Visitor};

/// What was written last, which decides about commas and line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// An object or list was opened: nothing in it yet.
    Open,
    /// Something that the next thing must be separated from.
    Item,
}

pub(super) struct Json<'o> {
    out: &'o mut Pen,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    indented: bool,
    depth: usize,
    last: Last,
    prefix: &'static str,
}

impl<'o> Json<'o> {
    pub(super) fn new(
        out: &'o mut Pen,
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

    fn name(&mut self, prefix: &str, name: &str) {
        self.separate();
        self.out.push(b'"');
        self.out.text(self.prefix);
        self.out.text(prefix);
        self.out.text(name);
    }
}

impl Visitor for Json<'_> {
    #[inline]
    fn prefixed(&mut self, prefix: &str, name: &str, value: Value<'_>) {
        if self.indented || !notation::is_short(&value) {
            self.name(prefix, name);
            self.value(value);
            return;
        }
        let comma = usize::from(self.last == Last::Item);
        self.last = Last::Item;
        self.out.field(
            |room| {
                room[0] = b',';
                room[comma] = b'"';
                comma + 1
            },
            [self.prefix, prefix, name],
            (b"\":\"", b"\""),
            |room| notation::short(room, &value),
        );
    }

    fn numbered(&mut self, name: Arguments<'_>, value: Value<'_>) {
        self.name("", "");
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
        self.name("", name);
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
        self.field("skippedBytes", Value::U32(length as u32));
    }

    fn time(&mut self, name: &str, moment: Moment) {
        self.name("", name);
        self.out.put(b"\":\"");
        self.zone.write(self.out, moment);
        self.out.push(b'"');
    }
}
