//! A field per line, alone or with its context in front.

use std::fmt::Arguments;
use std::io::Write;
use std::net::IpAddr;

use super::notation::{self, Escape};
use super::pen::{self, BLOCK, Pen};
use super::walk::Sink;
use super::{Arrival, Beyond, Moment, Zone};
use crate::decode::Datagram;
use crate::model::{DataSource, Tag};
use crate::value::{Value, Visitor};

/// Where in the datagram a line belongs; zeros until known.
#[derive(Debug)]
pub(super) struct Context {
    time: Moment,
    agent: Option<IpAddr>,
    sub_agent: u32,
    sequence: u32,
    source: DataSource,
    sample: Tag,
    element: Tag,
    /// What is the same in the whole datagram, as it is written; made anew when it has changed.
    datagram: Pen,
    /// That and the rest, likewise.
    whole: Pen,
    /// The same once more, to be copied as a block, if it is not too long for that.
    block: Box<[u8; BLOCK]>,
}

impl Context {
    pub(super) fn new() -> Self {
        Context {
            time: Moment::default(),
            agent: None,
            sub_agent: 0,
            sequence: 0,
            source: DataSource::NONE,
            sample: Tag(0),
            element: Tag(0),
            datagram: Pen::default(),
            whole: Pen::default(),
            block: Box::new([0; BLOCK]),
        }
    }

    /// Begins another datagram.
    pub(super) fn begin(&mut self, arrival: &Arrival) {
        self.time = arrival.captured.unwrap_or(arrival.received);
        (self.agent, self.sub_agent, self.sequence) = (None, 0, 0);
        (self.source, self.sample, self.element) = (DataSource::NONE, Tag(0), Tag(0));
        self.datagram.clear();
        self.whole.clear();
    }

    /// Sees to it that it is written; returns its length.
    #[inline]
    fn ready(&mut self, zone: &Zone) -> usize {
        if self.whole.written().is_empty() {
            self.compose(zone);
        }
        self.whole.written().len()
    }

    #[inline]
    fn write(&mut self, out: &mut Pen, zone: &Zone) {
        match self.ready(zone) {
            n if n <= BLOCK => out.block(&self.block, n),
            _ => out.put(self.whole.written()),
        }
    }

    #[cold]
    fn compose(&mut self, zone: &Zone) {
        if self.datagram.written().is_empty() {
            let pen = &mut self.datagram;
            zone.write(pen, self.time);
            pen.push(b' ');
            notation::address(pen, self.agent);
            for number in [self.sub_agent, self.sequence] {
                pen.push(b' ');
                pen.decimal(number.into());
            }
        }
        let pen = &mut self.whole;
        pen.put(self.datagram.written());
        let (sample, element) = (self.sample, self.element);
        for (a, b) in [
            (self.source.class, self.source.index),
            (sample.enterprise(), sample.format()),
            (element.enterprise(), element.format()),
        ] {
            let value = |room: &mut [u8]| notation::short(room, &Value::Pair(a, b));
            pen.field(|_| 0, [""; 3], (b" ", b""), value);
        }
        pen.push(b' ');
        let written = pen.written();
        if let Some(block) = self.block.get_mut(..written.len()) {
            block.copy_from_slice(written);
        }
    }
}

pub(super) struct Tagged<'o> {
    out: &'o mut Pen,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    prefix: &'static str,
    context: Option<&'o mut Context>,
}

/// In front of lines without context.
const NOTHING: [u8; BLOCK] = [0; BLOCK];

impl<'o> Tagged<'o> {
    pub(super) fn new(
        out: &'o mut Pen,
        zone: &'o Zone,
        beyond: Beyond<'o>,
        context: Option<&'o mut Context>,
    ) -> Self {
        Tagged { out, zone, beyond, prefix: "", context }
    }

    fn start_line(&mut self) {
        if let Some(context) = &mut self.context {
            context.write(self.out, self.zone);
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Context)) {
        if let Some(context) = self.context.as_deref_mut() {
            change(context);
            context.whole.clear();
        }
    }

    fn line(&mut self, text: &str) {
        self.start_line();
        self.out.text(text);
        self.out.push(b'\n');
    }

    /// A field whose value, or what is in front of it, may be long.
    fn other(&mut self, prefix: &str, name: &str, value: Value<'_>) {
        self.start_line();
        self.out.text(self.prefix);
        self.out.text(prefix);
        self.out.text(name);
        self.value(value);
    }

    fn value(&mut self, value: Value<'_>) {
        self.out.push(b' ');
        notation::value(self.out, value, Escape::Line);
        self.out.push(b'\n');
    }
}

impl Visitor for Tagged<'_> {
    #[inline]
    fn prefixed(&mut self, prefix: &str, name: &str, value: Value<'_>) {
        let (block, lead) = match &mut self.context {
            None => (&NOTHING, 0),
            Some(context) => {
                let lead = context.ready(self.zone);
                (&*context.block, lead)
            }
        };
        if lead <= BLOCK && notation::is_short(&value) {
            self.out.field(
                |room| pen::block(room, block, lead),
                [self.prefix, prefix, name],
                (b" ", b"\n"),
                |room| notation::short(room, &value),
            );
        } else {
            self.other(prefix, name, value);
        }
    }

    fn numbered(&mut self, name: Arguments<'_>, value: Value<'_>) {
        self.start_line();
        let _ = write!(self.out, "{}{name}", self.prefix);
        self.value(value);
    }

    fn beyond(&self, header: &[u8], at: usize) -> Option<u8> {
        self.beyond.byte(header, at)
    }
}

impl Sink for Tagged<'_> {
    fn start_datagram(&mut self) {
        self.line("startDatagram =================================");
    }

    fn end_datagram(&mut self) {
        self.line("endDatagram   =================================");
    }

    fn start_sample(&mut self, tag: Tag) {
        self.change(|context| {
            context.sample = tag;
            context.source = DataSource::NONE;
            context.element = Tag(0);
        });
        self.line("startSample ----------------------");
    }

    fn end_sample(&mut self) {
        self.line("endSample   ----------------------");
    }

    fn start_element(&mut self, tag: Tag) {
        self.change(|context| context.element = tag);
    }

    fn set_prefix(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    fn skipped(&mut self, what: &str, tag: Tag, length: usize) {
        self.start_line();
        let _ = writeln!(self.out, "skipping unknown {what}: {tag} len={length}");
    }

    fn time(&mut self, name: &str, moment: Moment) {
        self.start_line();
        self.out.text(name);
        self.out.push(b' ');
        self.zone.write(self.out, moment);
        self.out.push(b'\n');
    }

    fn datagram_context(&mut self, datagram: &Datagram<'_>, sequence: bool) {
        self.change(|context| {
            context.datagram.clear();
            context.agent = datagram.agent;
            context.sub_agent = datagram.sub_agent;
            if sequence {
                context.sequence = datagram.sequence;
            }
        });
    }

    fn source_context(&mut self, source: DataSource) {
        self.change(|context| context.source = source);
    }
}
