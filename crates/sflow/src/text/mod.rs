//! Datagrams as text, CSV and JSON, in the formats of sflowtool.

mod fields;
mod json;
mod line;
mod notation;
mod tagged;
mod text_buf;
mod time;
mod walk;

use std::io::{self, Write};
use std::net::IpAddr;

pub use time::{Moment, Zone};

use self::text_buf::TextBuf;
use crate::decode::Datagram;
use crate::xdr::DecodeError;

/// Output for each datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A field per line.
    Text,
    /// A field per line with its full context in front, for `grep`.
    Grep,
    /// A comma-separated line per flow or counter sample.
    Line,
    /// The named fields of each sample, comma-separated.
    Fields(Vec<String>),
    /// A JSON object per line.
    Json,
    /// A JSON object, indented.
    JsonIndented,
}

/// Arrival of a datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The sender; shown as `-` when unknown.
    pub source: Option<IpAddr>,
    /// Time when it was received.
    pub received: Moment,
    /// Time when it was captured, if it comes from a file.
    pub captured: Option<Moment>,
}

impl Arrival {
    /// A datagram that has just been received.
    #[must_use]
    pub fn live(source: IpAddr, received: Moment) -> Self {
        Arrival { source: Some(source), received, captured: None }
    }

    /// A datagram from a capture file. The source and the time of reception are left out, like in
    /// sflowtool; only the time of capture is shown.
    #[must_use]
    pub fn captured(at: Moment) -> Self {
        Arrival { captured: Some(at), ..Arrival::default() }
    }
}

/// Writes datagrams in one of the formats.
#[derive(Debug)]
pub struct Printer {
    format: Format,
    zone: Zone,
    exact: bool,
    out: TextBuf,
    slots: fields::Slots,
    context: tagged::Context,
    /// Contents of sflowtool's receive buffer: this datagram over the earlier ones.
    memory: Vec<u8>,
}

impl Printer {
    /// A printer with times in the local zone.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let names = if let Format::Fields(names) = &format { names.as_slice() } else { &[] };
        let slots = fields::Slots::new(names);
        Printer {
            format,
            zone: Zone::local(),
            exact: true,
            out: TextBuf::default(),
            slots,
            context: tagged::Context::new(),
            memory: Vec::new(),
        }
    }

    /// Shows times in another zone.
    #[must_use]
    pub fn with_zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// Chooses whether to print what sflowtool prints even where it reads past the end of a sampled
    /// header: the flags of a TCP header that is cut after its eighth byte. On (the default) gives
    /// output that can be compared byte for byte; off leaves such flags out, as they are not known.
    #[must_use]
    pub fn with_exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Writes one datagram in a single `write_all`. Malformed samples and records are left out and
    /// returned as errors; a datagram whose header is malformed is not written at all.
    ///
    /// # Errors
    /// When writing fails.
    pub fn print(
        &mut self,
        arrival: &Arrival,
        payload: &[u8],
        out: &mut dyn Write,
    ) -> io::Result<Vec<DecodeError>> {
        let errors = self.format(arrival, payload);
        out.write_all(self.out.written())?;
        Ok(errors)
    }

    /// Formats one datagram; [`Printer::text`] is the result.
    pub fn format(&mut self, arrival: &Arrival, payload: &[u8]) -> Vec<DecodeError> {
        self.out.clear();
        self.append(arrival, payload)
    }

    /// The fields that were asked for and that no datagram has had.
    pub fn never_found(&self) -> impl Iterator<Item = &str> {
        let names = if let Format::Fields(names) = &self.format { names.as_slice() } else { &[] };
        self.slots.never_found().filter_map(|i| names.get(i)).map(String::as_str)
    }

    /// Forgets what was formatted.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Formats one datagram behind what [`Printer::text`] holds already.
    pub fn append(&mut self, arrival: &Arrival, payload: &[u8]) -> Vec<DecodeError> {
        self.remember(payload);
        let datagram = match Datagram::parse(payload) {
            Ok(datagram) => datagram,
            Err(error) => return vec![error],
        };
        let memory: &[u8] = if self.exact { &self.memory } else { &[] };
        let beyond = Beyond { payload, memory };
        let job = walk::Job { arrival, payload, datagram: &datagram };
        match &self.format {
            Format::Text => {
                walk::walk(&job, tagged::Tagged::new(&mut self.out, &self.zone, beyond, None))
            }
            Format::Grep => {
                let context = &mut self.context;
                context.begin(arrival, &self.zone);
                let sink = tagged::Tagged::new(&mut self.out, &self.zone, beyond, Some(context));
                walk::walk(&job, sink)
            }
            Format::Json => {
                walk::walk(&job, json::Json::new(&mut self.out, &self.zone, beyond, false))
            }
            Format::JsonIndented => {
                walk::walk(&job, json::Json::new(&mut self.out, &self.zone, beyond, true))
            }
            Format::Fields(names) => {
                let (out, slots) = (&mut self.out, &mut self.slots);
                walk::walk(&job, fields::Fields::new(out, &self.zone, beyond, names, slots))
            }
            Format::Line => line::print(&mut self.out, &datagram, beyond),
        }
    }

    /// Returns the formatted text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.out.written()
    }

    fn remember(&mut self, payload: &[u8]) {
        if self.exact {
            if self.memory.len() < payload.len() {
                self.memory.resize(payload.len(), 0);
            }
            self.memory[..payload.len()].copy_from_slice(payload);
        }
    }
}

/// Finds bytes behind a sampled header in what sflowtool would have in memory.
#[derive(Clone, Copy)]
struct Beyond<'p> {
    payload: &'p [u8],
    memory: &'p [u8],
}

impl Beyond<'_> {
    fn byte(&self, header: &[u8], at: usize) -> Option<u8> {
        let offset = header.as_ptr().addr().checked_sub(self.payload.as_ptr().addr())?;
        if self.memory.is_empty() || offset > self.payload.len() {
            return None;
        }
        // Nothing was ever received there: a fresh buffer is all zeros.
        Some(self.memory.get(offset + at).copied().unwrap_or(0))
    }
}
