//! A field per line, alone or with its context in front.

use std::fmt::Arguments;
use std::io::Write;
use std::net::IpAddr;

use super::notation::{self, Escape};
use super::walk::Sink;
use super::{Arrival, Beyond, Moment, Zone};
use crate::decode::Datagram;
use crate::model::{DataSource, Tag};
use crate::value::{Value, Visitor};

/// Where in the datagram a line belongs; zeros until known.
pub(super) struct Context {
    time: Moment,
    agent: Option<IpAddr>,
    sub_agent: u32,
    sequence: u32,
    source: DataSource,
    sample: Tag,
    element: Tag,
    /// All of this as it is written, made anew when something has changed.
    written: Vec<u8>,
}

impl Context {
    pub(super) fn new(arrival: &Arrival) -> Self {
        Context {
            time: arrival.captured.unwrap_or(arrival.received),
            agent: None,
            sub_agent: 0,
            sequence: 0,
            source: DataSource::NONE,
            sample: Tag(0),
            element: Tag(0),
            written: Vec::new(),
        }
    }

    fn write(&mut self, out: &mut Vec<u8>, zone: &Zone) {
        if self.written.is_empty() {
            zone.write(&mut self.written, self.time);
            self.written.push(b' ');
            notation::address(&mut self.written, self.agent);
            let Context { sub_agent, sequence, source, sample, element, .. } = self;
            // Writing to a vector cannot fail.
            let _ = write!(self.written, " {sub_agent} {sequence} {source} {sample} {element} ");
        }
        out.extend_from_slice(&self.written);
    }
}

pub(super) struct Tagged<'o> {
    out: &'o mut Vec<u8>,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    prefix: &'static str,
    context: Option<Context>,
}

impl<'o> Tagged<'o> {
    pub(super) fn new(
        out: &'o mut Vec<u8>,
        zone: &'o Zone,
        beyond: Beyond<'o>,
        context: Option<Context>,
    ) -> Self {
        Tagged { out, zone, beyond, prefix: "", context }
    }

    fn start_line(&mut self) {
        if let Some(context) = &mut self.context {
            context.write(self.out, self.zone);
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Context)) {
        if let Some(context) = &mut self.context {
            change(context);
            context.written.clear();
        }
    }

    fn line(&mut self, text: &str) {
        self.start_line();
        self.out.extend(text.as_bytes());
        self.out.push(b'\n');
    }

    fn value(&mut self, value: Value<'_>) {
        self.out.push(b' ');
        notation::value(self.out, value, Escape::Line);
        self.out.push(b'\n');
    }
}

impl Visitor for Tagged<'_> {
    fn prefixed(&mut self, prefix: &str, name: &str, value: Value<'_>) {
        self.start_line();
        self.out.extend_from_slice(self.prefix.as_bytes());
        self.out.extend_from_slice(prefix.as_bytes());
        self.out.extend_from_slice(name.as_bytes());
        self.value(value);
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
        self.out.extend(name.as_bytes());
        self.out.push(b' ');
        self.zone.write(self.out, moment);
        self.out.push(b'\n');
    }

    fn datagram_context(&mut self, datagram: &Datagram<'_>, sequence: bool) {
        self.change(|context| {
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
