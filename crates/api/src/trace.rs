//! A trace of requests, to be saved, shown and replayed.
//!
//! The file is a line of [`MAGIC`], then the requests. Each has its time (microseconds since 1970,
//! 8 bytes), the client (4), the length of the message's name with its CRC (2) and of its own
//! fields (4), numbers in network order, then name and fields. A name with a CRC means the same in
//! every router that knows it, whatever its message id there.

use crate::ClientId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// First line of a file.
pub const MAGIC: &[u8] = b"thalweg api trace 1\n";
/// Default number of requests kept.
pub const DEFAULT_ITEMS: usize = 16_384;
/// Maximum number of bytes kept.
pub const MAX_BYTES: usize = 32 << 20;
/// Maximum size of a file to read, in bytes.
pub const MAX_FILE: u64 = 256 << 20;
/// Approximate bytes of a request in addition to its fields.
const OVERHEAD: usize = 128;
const HEAD: usize = 18;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of arrival, in microseconds since 1970.
    pub at: u64,
    /// Id of the client.
    pub client: u32,
    /// Its name with its CRC.
    pub name: String,
    /// Its fields after id, client and context.
    pub body: Vec<u8>,
}

/// Error of reading a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The file does not begin with [`MAGIC`].
    #[error("not a trace of API requests: it does not begin with `thalweg api trace 1'")]
    Magic,
    /// The file ends in the middle of a request.
    #[error("request {0} is truncated")]
    Cut(usize),
    /// A name is not text, or too long.
    #[error("request {0} has an invalid name")]
    Name(usize),
}

#[derive(Debug)]
struct Inner {
    on: bool,
    items: usize,
    bytes: usize,
    records: VecDeque<Record>,
    /// Number of evicted requests.
    overwritten: u64,
}

/// The trace; clones share it.
#[derive(Clone, Debug)]
pub struct Trace(Rc<RefCell<Inner>>);

/// Status of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceStatus {
    /// True if requests are being recorded.
    pub on: bool,
    /// Maximum number of requests kept.
    pub items: usize,
    /// Number of requests kept.
    pub records: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// Number of evicted requests.
    pub overwritten: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(Inner {
            on: false,
            items: DEFAULT_ITEMS,
            bytes: 0,
            records: VecDeque::new(),
            overwritten: 0,
        })))
    }
}

impl Trace {
    /// Switches recording on or off; keeps at most `items` requests.
    pub fn switch(&self, on: bool, items: Option<usize>) {
        let mut inner = self.0.borrow_mut();
        inner.on = on;
        inner.items = items.unwrap_or(inner.items).max(1);
        inner.make_room();
    }

    /// Removes all requests.
    pub fn clear(&self) {
        let mut inner = self.0.borrow_mut();
        (inner.records, inner.bytes, inner.overwritten) = (VecDeque::new(), 0, 0);
    }

    /// Returns the status.
    pub fn status(&self) -> TraceStatus {
        let inner = self.0.borrow();
        TraceStatus {
            on: inner.on,
            items: inner.items,
            records: inner.records.len(),
            bytes: inner.bytes,
            overwritten: inner.overwritten,
        }
    }

    /// Returns a copy of the requests.
    pub fn records(&self) -> Vec<Record> {
        self.0.borrow().records.iter().cloned().collect()
    }

    /// Records a request, if the trace is on.
    pub(crate) fn note(&self, client: ClientId, name: impl FnOnce() -> String, body: &[u8]) {
        let mut inner = self.0.borrow_mut();
        if !inner.on {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (at, name) = (since.as_micros() as u64, name());
        inner.bytes += OVERHEAD + body.len();
        inner.records.push_back(Record { at, client: client.0, name, body: body.to_vec() });
        inner.make_room();
    }
}

impl Inner {
    fn make_room(&mut self) {
        while self.records.len() > self.items || self.bytes > MAX_BYTES {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= OVERHEAD + oldest.body.len();
            self.overwritten += 1;
        }
    }
}

/// Encodes a file.
pub fn write(records: &[Record]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for record in records {
        out.extend(record.at.to_be_bytes());
        out.extend(record.client.to_be_bytes());
        out.extend((record.name.len() as u16).to_be_bytes());
        out.extend((record.body.len() as u32).to_be_bytes());
        out.extend(record.name.as_bytes());
        out.extend(&record.body);
    }
    out
}

/// Decodes a file.
///
/// # Errors
/// [`TraceError`].
pub fn read(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or(TraceError::Magic)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let number = records.len() + 1;
        let cut = || TraceError::Cut(number);
        let (head, tail) = rest.split_first_chunk::<HEAD>().ok_or_else(cut)?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = *head;
        let name_len = usize::from(u16::from_be_bytes([m, n]));
        let body_len = u32::from_be_bytes([o, p, q, r]) as usize;
        let (name, tail) = tail.split_at_checked(name_len).ok_or_else(cut)?;
        let (body, tail) = tail.split_at_checked(body_len).ok_or_else(cut)?;
        let name = std::str::from_utf8(name).ok().filter(|name| name.len() < 64);
        let name = name.ok_or(TraceError::Name(number))?.to_owned();
        records.push(Record {
            at: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            client: u32::from_be_bytes([i, j, k, l]),
            name,
            body: body.to_vec(),
        });
        rest = tail;
    }
    Ok(records)
}

/// Reads arbitrary bytes, for fuzzing: what can be read is written back the same.
pub fn fuzz_trace(bytes: &[u8]) {
    if let Ok(records) = read(bytes) {
        assert_eq!(write(&records), bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = Record> {
        (any::<u64>(), any::<u32>(), "[a-z_0-9]{0,63}", any::<Vec<u8>>())
            .prop_map(|(at, client, name, body)| Record { at, client, name, body })
    }

    proptest! {
        #[test]
        fn files_read_back(records in prop::collection::vec(record(), 0..20)) {
            prop_assert_eq!(read(&write(&records)), Ok(records));
        }

        #[test]
        fn no_bytes_panic(
            records in prop::collection::vec(record(), 0..4), cut: usize, at: usize, to: u8,
            rubbish: Vec<u8>,
        ) {
            fuzz_trace(&rubbish);
            let mut bytes = write(&records);
            let length = bytes.len();
            bytes[at % length] = to;
            bytes.truncate(cut % (length + 1));
            fuzz_trace(&bytes);
        }
    }

    #[test]
    fn errors_describe_the_problem() {
        let record = Record { at: 1, client: 2, name: "a_01234567".into(), body: vec![3; 9] };
        let bytes = write(&[record.clone(), record]);
        assert_eq!(read(b"pcap"), Err(TraceError::Magic));
        assert_eq!(read(&bytes[..bytes.len() - 1]), Err(TraceError::Cut(2)));
        assert_eq!(read(&bytes[..MAGIC.len() + 5]), Err(TraceError::Cut(1)));
    }

    #[test]
    fn the_oldest_make_room() {
        let trace = Trace::default();
        let note = |n: usize| trace.note(ClientId(1), || format!("m{n}"), &vec![0; n]);
        note(1);
        assert_eq!(trace.status().records, 0);
        trace.switch(true, Some(3));
        (1..=5).for_each(note);
        let names: Vec<_> = trace.records().into_iter().map(|r| r.name).collect();
        assert_eq!(names, ["m3", "m4", "m5"]);
        assert_eq!(trace.status().overwritten, 2);
        trace.switch(true, Some(1_000_000));
        (0..20).for_each(|_| note(4 << 20));
        assert!(trace.status().bytes <= MAX_BYTES && trace.status().records == 7);
        trace.clear();
        assert_eq!(trace.status().bytes, 0);
        trace.switch(false, None);
        note(1);
        assert_eq!(trace.status().records, 0);
    }
}
