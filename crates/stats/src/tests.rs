//! Reads as a client does: from the file, by addresses alone.

use super::*;
use crate::layout::{BASE, entry, header};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

struct Reader(File);

#[derive(Debug, PartialEq, Eq, Clone)]
enum Value {
    Number(u64),
    Counters(Vec<Vec<u64>>),
    Names(Vec<Option<String>>),
}

impl Reader {
    fn of(segment: &Segment) -> Reader {
        Reader(segment.reader().unwrap().into())
    }
    fn bytes(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }
    fn word(&self, at: u64) -> u64 {
        u64::from_ne_bytes(self.bytes(at, 8).try_into().unwrap())
    }
    /// Returns where a vector is, and its number of elements.
    fn vector(&self, address: u64) -> (u64, usize) {
        let at = address - BASE;
        (at, self.word(at - 8) as u32 as usize)
    }
    fn pointers(&self, address: u64) -> Vec<u64> {
        let (at, count) = self.vector(address);
        (0..count as u64).map(|i| self.word(at + 8 * i)).collect()
    }
    fn rows(&self, address: u64, width: u64) -> Vec<Vec<u64>> {
        let row = |address| {
            let (at, count) = self.vector(address);
            (0..count as u64 * width).map(|i| self.word(at + 8 * i)).collect()
        };
        self.pointers(address).into_iter().map(row).collect()
    }
    fn entry(&self, index: usize) -> (u64, u64, String) {
        let (at, _) = self.vector(self.word(8 * header::DIRECTORY as u64));
        let at = at + (index * entry::WORDS * 8) as u64;
        let name = self.bytes(at + 16, entry::NAME_BYTES);
        let end = name.iter().position(|b| *b == 0).unwrap();
        let kind = u64::from(self.word(at) as u32);
        (kind, self.word(at + 8), String::from_utf8(name[..end].to_vec()).unwrap())
    }
    fn value(&self, kind: u64, value: u64) -> Option<Value> {
        Some(match kind {
            1 | 9 => Value::Number(value),
            2 => Value::Counters(self.rows(value, 1)),
            3 => Value::Counters(self.rows(value, 2)),
            4 => Value::Names(self.pointers(value).into_iter().map(|p| self.text(p)).collect()),
            5 => return None,
            6 => {
                let (to, column) = (value as u32 as usize, (value >> 32) as usize);
                let (kind, value, _) = self.entry(to);
                let width = if kind == 3 { 2 } else { 1 };
                let Some(Value::Counters(rows)) = self.value(kind, value) else {
                    panic!("a link to {kind}")
                };
                let cell = |row: Vec<u64>| row[column * width..(column + 1) * width].to_vec();
                Value::Counters(rows.into_iter().map(cell).collect())
            }
            kind => panic!("type {kind}"),
        })
    }
    fn text(&self, address: u64) -> Option<String> {
        if address == 0 {
            return None;
        }
        let (at, count) = self.vector(address);
        let mut bytes = self.bytes(at, count);
        assert_eq!(bytes.pop(), Some(0));
        Some(String::from_utf8(bytes).unwrap())
    }
    fn all(&self) -> BTreeMap<String, Value> {
        assert_eq!((self.word(0), self.word(8), self.word(24)), (2, BASE, 0));
        let (_, count) = self.vector(self.word(8 * header::DIRECTORY as u64));
        let entries = (0..count).map(|i| self.entry(i));
        entries.filter_map(|(kind, v, name)| Some((name, self.value(kind, v)?))).collect()
    }
    fn epoch(&self) -> u64 {
        self.word(8 * header::EPOCH as u64)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add { kind: u8, name: u8, rows: usize },
    Remove { name: u8 },
    Widen { name: u8, to: usize },
    Count { name: u8, row: usize, column: usize, value: u64 },
    Name { name: u8, index: usize, to: Option<String> },
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0u8..12;
    prop_oneof![
        (0u8..5, name.clone(), 0usize..4).prop_map(|(kind, name, rows)| Step::Add {
            kind,
            name,
            rows
        }),
        name.clone().prop_map(|name| Step::Remove { name }),
        (name.clone(), 0usize..300).prop_map(|(name, to)| Step::Widen { name, to }),
        (name.clone(), 0usize..5, 0usize..300, any::<u64>())
            .prop_map(|(name, row, column, value)| Step::Count { name, row, column, value }),
        (name, 0usize..40, prop::option::of("[a-z/0-9]{0,40}"))
            .prop_map(|(name, index, to)| Step::Name { name, index, to }),
    ]
}

fn name_of(n: u8) -> String {
    format!("/test/{n}{}", "x".repeat(usize::from(n) * 7))
}

fn added(kind: u8, rows: usize) -> Value {
    let rows = rows.max(1);
    match kind {
        0 | 1 => Value::Number(0),
        2 => Value::Counters(vec![vec![0]; rows]),
        3 => Value::Counters(vec![vec![0; 2]; rows]),
        _ => Value::Names(vec![None]),
    }
}

fn add(change: &mut Change<'_>, kind: u8, name: &str, rows: usize) -> Result<Slot, SegmentError> {
    match kind {
        0 => change.scalar(name),
        1 => change.gauge(name),
        2 => change.simple(name, rows),
        3 => change.combined(name, rows),
        _ => change.names(name),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_client_reads_the_written_values(steps in prop::collection::vec(step(), 1..200)) {
        let mut segment = Segment::new(1 << 20).unwrap();
        let reader = Reader::of(&segment);
        let mut model: BTreeMap<String, (u8, Value)> = BTreeMap::new();
        for step in steps {
            let epoch = reader.epoch();
            match step {
                Step::Add { kind, name, rows } => {
                    let name = name_of(name);
                    let done = segment.change(|c| add(c, kind, &name, rows));
                    prop_assert_eq!(done.is_ok(), !model.contains_key(&name));
                    model.entry(name).or_insert_with(|| (kind, added(kind, rows)));
                    prop_assert_eq!(reader.epoch(), epoch + 1);
                }
                Step::Remove { name } => if let Some(slot) = segment.find(&name_of(name)) {
                    segment.change(|c| c.remove(slot));
                    model.remove(&name_of(name)).unwrap();
                },
                Step::Widen { name, to } => if let Some(slot) = segment.find(&name_of(name)) {
                    segment.change(|c| c.widen(slot, to)).unwrap();
                    if let (kind @ (2 | 3), Value::Counters(rows)) = model.get_mut(&name_of(name)).unwrap() {
                        let words = to * usize::from(*kind - 1);
                        rows.iter_mut().for_each(|row| row.resize(words.max(row.len()), 0));
                    }
                },
                Step::Count { name, row, column, value } => if let Some(slot) = segment.find(&name_of(name)) {
                    segment.set(slot, value);
                    segment.count(slot, row, column, [value]);
                    segment.count(slot, row, column, [value, !value]);
                    match model.get_mut(&name_of(name)).unwrap() {
                        (_, Value::Number(n)) => *n = value,
                        (2, Value::Counters(rows)) => {
                            if let Some(cell) = rows.get_mut(row).and_then(|row| row.get_mut(column)) {
                                *cell = value;
                            }
                        }
                        (_, Value::Counters(rows)) => {
                            let cells = rows.get_mut(row).and_then(|row| row.get_mut(column * 2..column * 2 + 2));
                            if let Some(cells) = cells {
                                cells.copy_from_slice(&[value, !value]);
                            }
                        }
                        _ => {}
                    }
                },
                Step::Name { name, index, to } => if let Some(slot) = segment.find(&name_of(name)) {
                    segment.change(|c| c.name(slot, index, to.as_deref())).unwrap();
                    if let (_, Value::Names(names)) = model.get_mut(&name_of(name)).unwrap() {
                        names.resize(names.len().max(index + 1), None);
                        names[index] = to;
                    }
                },
            }
        }
        let expected: BTreeMap<String, Value> = model.into_iter().map(|(n, (_, v))| (n, v)).collect();
        prop_assert_eq!(reader.all(), expected);
    }
}

#[test]
fn links_lead_to_columns() {
    let mut segment = Segment::new(1 << 20).unwrap();
    let slot = segment.change(|c| {
        let slot = c.combined("/if/rx", 2).unwrap();
        c.widen(slot, 8).unwrap();
        c.link("/interfaces/pg1/rx", slot, 7).unwrap();
        slot
    });
    segment.count(slot, 1, 7, [5, 320]);
    let all = Reader::of(&segment).all();
    assert_eq!(all["/interfaces/pg1/rx"], Value::Counters(vec![vec![0, 0], vec![5, 320]]));
}

#[test]
fn entries_that_do_not_fit_are_refused_without_a_change() {
    let mut segment = Segment::new(64 << 10).unwrap();
    let slot = segment.change(|c| c.simple("/a", 1)).unwrap();
    let error = segment.change(|c| c.widen(slot, 1 << 20)).unwrap_err().to_string();
    assert!(error.contains("65536 bytes is full; enlarge it"), "{error}");
    segment.count(slot, 0, 0, [9]);
    let mut n = 0;
    while segment.change(|c| c.scalar(&format!("/n/{n}"))).is_ok() {
        n += 1;
    }
    assert!(n > 100, "{n}");
    let all = Reader::of(&segment).all();
    assert_eq!((all.len(), &all["/a"]), (n + 1, &Value::Counters(vec![vec![9]])));
    for name in ["", "a\0b", &"x".repeat(128)] {
        assert!(segment.change(|c| c.scalar(name)).is_err());
    }
    assert!(Segment::new(1024).is_err());
}

#[test]
fn clients_get_the_segment_by_socket() {
    use rustix::net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
        SocketType,
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stats.sock");
    let mut segment = Segment::new(1 << 20).unwrap();
    let slot = segment.change(|c| c.scalar("/sys/heartbeat")).unwrap();
    segment.set(slot, 3);
    let (asked, was_asked) = std::sync::mpsc::channel();
    let before = move || asked.send(()).unwrap();
    let server = Server::start(&path, 0o600, None, segment.reader().unwrap(), before).unwrap();
    for _ in 0..3 {
        let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::connect(&fd, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        rustix::net::recvmsg(&fd, &mut [], &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
        let mut files = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let file = files.next().unwrap().next().unwrap();
        assert_eq!(Reader(file.into()).all()["/sys/heartbeat"], Value::Number(3));
        was_asked.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    }
    drop(server);
    assert!(!path.exists());
}
