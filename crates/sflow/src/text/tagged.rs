//! A field per line, alone or with its context in front.

use std::fmt::Arguments;
use std::io::Write;
use std::net::IpAddr;

use super::notation::{self, Escape};
use super::text_buf::{self, BLOCK, TextBuf, VALUE};
use super::walk::Sink;
use super::{Arrival, Beyond, Moment, Zone};
use crate::decode::Datagram;
use crate::model::{DataSource, Tag};
use crate::value::{Name, Value, Visitor};

/// Place of a line in the datagram; zeros until known.
#[derive(Debug)]
pub(super) struct Context {
    time: Moment,
    agent: Option<IpAddr>,
    sub_agent: u32,
    sequence: u32,
    source: DataSource,
    sample: Tag,
    element: Tag,
    /// All of that as it is written.
    written: TextBuf,
    /// Ends in it of what the whole datagram shares, and of what a sample shares.
    ends: [usize; 2],
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
            written: TextBuf::default(),
            ends: [0; 2],
        }
    }

    /// Begins another datagram.
    pub(super) fn begin(&mut self, arrival: &Arrival, zone: &Zone) {
        self.time = arrival.captured.unwrap_or(arrival.received);
        (self.agent, self.sub_agent, self.sequence) = (None, 0, 0);
        (self.source, self.sample, self.element) = (DataSource::NONE, Tag(0), Tag(0));
        self.write_datagram(zone);
    }

    /// Rewrites everything.
    fn write_datagram(&mut self, zone: &Zone) {
        let text = &mut self.written;
        text.clear();
        zone.write(text, self.time);
        text.push(b' ');
        notation::address(text, self.agent);
        for number in [self.sub_agent, self.sequence] {
            text.push(b' ');
            text.decimal(number.into());
        }
        self.ends[0] = text.written().len();
        self.write_sample();
    }

    /// Rewrites what follows the datagram's part.
    fn write_sample(&mut self) {
        self.written.truncate(self.ends[0]);
        self.pair(self.source.class, self.source.index);
        self.pair(self.sample.enterprise(), self.sample.format());
        self.ends[1] = self.written.written().len();
        self.write_element();
    }

    /// Rewrites what follows the sample's part.
    fn write_element(&mut self) {
        self.written.truncate(self.ends[1]);
        self.pair(self.element.enterprise(), self.element.format());
        self.written.push(b' ');
    }

    fn pair(&mut self, a: u32, b: u32) {
        self.written.push(b' ');
        self.written.short(|room| notation::short(room, &Value::Pair(a, b)));
    }
}

pub(super) struct Tagged<'o> {
    out: &'o mut TextBuf,
    zone: &'o Zone,
    beyond: Beyond<'o>,
    prefix: &'static str,
    context: Option<&'o mut Context>,
}

/// Bytes in front of lines without context.
const NOTHING: [u8; BLOCK] = [0; BLOCK];

impl<'o> Tagged<'o> {
    pub(super) fn new(
        out: &'o mut TextBuf,
        zone: &'o Zone,
        beyond: Beyond<'o>,
        context: Option<&'o mut Context>,
    ) -> Self {
        Tagged { out, zone, beyond, prefix: "", context }
    }

    fn start_line(&mut self) {
        if let Some(context) = &self.context {
            let (block, n) = context.written.first();
            self.out.block(block, n);
        }
    }

    /// A field whose value is short.
    #[inline(always)]
    fn short(
        &mut self,
        prefix: &str,
        name: &'static Name,
        value: impl FnOnce(&mut [u8; VALUE]) -> usize,
    ) {
        let (block, lead) = match &self.context {
            None => (&NOTHING, 0),
            Some(context) => context.written.first(),
        };
        self.out.field(
            |room| text_buf::block(room, block, lead),
            [self.prefix, prefix],
            name,
            (b" ", b"\n"),
            value,
        );
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
        self.start_line();
        for part in [self.prefix.as_bytes(), prefix.as_bytes(), name.as_bytes()] {
            self.out.put(part);
        }
        self.value(value);
    }

    #[inline(always)]
    fn line(&mut self, text: &str) {
        self.start_line();
        self.out.text(text);
        self.out.push(b'\n');
    }

    fn value(&mut self, value: Value<'_>) {
        self.out.push(b' ');
        notation::value(self.out, value, Escape::Line);
        self.out.push(b'\n');
    }
}

impl Visitor for Tagged<'_> {
    #[inline(always)]
    fn prefixed(&mut self, prefix: &str, name: &'static Name, value: Value<'_>) {
        match value {
            Value::U32(n) => self.number(prefix, name, n.into()),
            Value::U64(n) => self.number(prefix, name, n),
            value => self.other(prefix, name, value),
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
        if let Some(context) = self.context.as_deref_mut() {
            (context.sample, context.source, context.element) = (tag, DataSource::NONE, Tag(0));
            context.write_sample();
        }
        self.line("startSample ----------------------");
    }

    fn end_sample(&mut self) {
        self.line("endSample   ----------------------");
    }

    fn start_element(&mut self, tag: Tag) {
        if let Some(context) = self.context.as_deref_mut() {
            context.element = tag;
            context.write_element();
        }
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
        if let Some(context) = self.context.as_deref_mut() {
            (context.agent, context.sub_agent) = (datagram.agent, datagram.sub_agent);
            if sequence {
                context.sequence = datagram.sequence;
            }
            context.write_datagram(self.zone);
        }
    }

    fn source_context(&mut self, source: DataSource) {
        if let Some(context) = self.context.as_deref_mut() {
            context.source = source;
            context.write_sample();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_context_fits_into_a_block() {
        let most = u32::MAX;
        let mut context = Context::new();
        context.begin(&Arrival::default(), &Zone::utc());
        context.agent = Some(IpAddr::from([0xffff; 8]));
        (context.sub_agent, context.sequence) = (most, most);
        context.source = DataSource { class: most, index: most };
        (context.sample, context.element) = (Tag(most), Tag(most));
        context.write_datagram(&Zone::utc());
        let (block, n) = context.written.first::<BLOCK>();
        assert!(n < BLOCK && block[n - 1] == b' ', "{n} bytes");
    }
}
