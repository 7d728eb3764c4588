//! The last packets of a lab's interfaces, for a capture file should the test fail.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io, thread};

use thalweg_wire::pcap::{Direction, NgFile};

use crate::failure::{failure_dir, report_line, test_name};

/// Packets that are kept of an interface.
const PACKETS: usize = 4096;
/// Bytes that are kept of an interface's packets.
const BYTES: usize = 4 << 20;
/// Bytes that are kept of a packet in a lab within the process: all.
const WHOLE: u32 = 65_535;

/// The last packets of an interface.
pub(crate) struct Ring {
    name: String,
    snap: u32,
    heads: VecDeque<Head>,
    bytes: VecDeque<u8>,
    inbound: u64,
    outbound: u64,
    missed: u64,
}

#[derive(Clone, Copy)]
struct Head {
    /// Nanoseconds since 1970.
    at: u64,
    direction: Direction,
    length: u32,
    kept: u32,
}

pub(crate) type SharedRing = Arc<Mutex<Ring>>;

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ring {
    /// A ring that keeps up to `snap` bytes of each packet.
    pub(crate) fn shared(name: impl Into<String>, snap: u32) -> SharedRing {
        Arc::new(Mutex::new(Ring {
            name: name.into(),
            snap,
            heads: VecDeque::new(),
            bytes: VecDeque::new(),
            inbound: 0,
            outbound: 0,
            missed: 0,
        }))
    }

    /// Adds a packet of `length` bytes that begins with `parts`.
    pub(crate) fn push<'a>(
        &mut self,
        at: u64,
        direction: Direction,
        length: usize,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) {
        match direction {
            Direction::Inbound => self.inbound += 1,
            Direction::Outbound => self.outbound += 1,
        }
        let mut room = self.snap as usize;
        let before = self.bytes.len();
        for part in parts {
            let part = &part[..part.len().min(room)];
            self.bytes.extend(part);
            room -= part.len();
        }
        let kept = (self.bytes.len() - before) as u32;
        self.heads.push_back(Head {
            at,
            direction,
            length: length.max(kept as usize) as u32,
            kept,
        });
        while (self.heads.len() > PACKETS || self.bytes.len() > BYTES)
            && let Some(old) = self.heads.pop_front()
        {
            self.bytes.drain(..old.kept as usize);
        }
    }

    /// The packets that are kept.
    #[cfg(test)]
    pub(crate) fn packets(&mut self) -> impl Iterator<Item = (Direction, &[u8])> {
        let mut rest: &[u8] = self.bytes.make_contiguous();
        self.heads.iter().map(move |head| {
            let (bytes, more) = rest.split_at(head.kept as usize);
            rest = more;
            (head.direction, bytes)
        })
    }

    /// Returns the numbers of packets that were captured, and that were not.
    #[cfg(test)]
    pub(crate) fn kept_and_missed(&self) -> (u64, u64) {
        (self.inbound + self.outbound, self.missed)
    }

    fn is_used(&self) -> bool {
        self.inbound + self.outbound + self.missed > 0
    }

    /// Adds packets that were not captured.
    pub(crate) fn add_missed(&mut self, packets: u64) {
        self.missed += packets;
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} received, {} sent", self.name, self.inbound, self.outbound)?;
        let last = self.heads.len() as u64;
        if last < self.inbound + self.outbound {
            write!(f, " (the last {last} are kept)")?;
        }
        match self.missed {
            0 => Ok(()),
            missed => write!(f, ", {missed} not captured"),
        }
    }
}

/// Writes the packets of all rings into one pcapng file, in order of time.
///
/// Its comment has the test's name and the rings' counts: capinfos shows no number of its own for
/// packets that were missed.
pub(crate) fn write(path: &Path, test: &str, rings: &[SharedRing]) -> io::Result<()> {
    let mut rings: Vec<_> = rings.iter().map(|ring| lock(ring)).collect();
    let counts = rings.iter().map(|ring| format!("; {ring}"));
    let mut file = NgFile::new(&(test.to_owned() + &counts.collect::<String>()));
    let mut packets = Vec::new();
    for (n, ring) in rings.iter_mut().enumerate() {
        file.interface(&ring.name, ring.snap);
        ring.bytes.make_contiguous();
        let mut start = 0;
        for head in &ring.heads {
            packets.push((*head, n, start));
            start += head.kept as usize;
        }
    }
    packets.sort_by_key(|(head, ..)| head.at);
    for (head, n, start) in packets {
        let kept = &rings[n].bytes.as_slices().0[start..start + head.kept as usize];
        file.packet(n as u32, head.at, head.direction, head.length, kept);
    }
    let at = now();
    for (n, ring) in rings.iter().enumerate() {
        let packets = ring.inbound + ring.outbound + ring.missed;
        file.statistics(n as u32, at, packets, ring.missed);
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, file.bytes())
}

/// The last 4,096 packets, and at most 4 MiB, of each interface of a lab inside this process.
///
/// When it is dropped by a panic, it writes them into a pcapng file in the directory of the failed
/// test ([`failure_dir`]), and prints the path on standard error.
pub struct PacketLog {
    rings: Mutex<Vec<SharedRing>>,
    number: usize,
}

thread_local! {
    /// Numbers of the logs that this thread has now, which their files are named by.
    static NUMBERS: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl PacketLog {
    /// A log without interfaces.
    #[expect(clippy::new_without_default, reason = "it takes a number")]
    pub fn new() -> PacketLog {
        let number = NUMBERS.with_borrow_mut(|all| {
            let free = (1..).find(|n| !all.contains(n)).unwrap_or(1);
            all.push(free);
            free
        });
        PacketLog { rings: Mutex::default(), number }
    }

    /// The tap of an interface, whether new or known by that name.
    pub fn interface(&self, name: &str) -> PacketTap {
        let mut rings = lock(&self.rings);
        let known = rings.iter().find(|ring| lock(ring).name == name).cloned();
        PacketTap(known.unwrap_or_else(|| {
            let ring = Ring::shared(name, WHOLE);
            rings.push(ring.clone());
            ring
        }))
    }

    /// Writes what there is into a pcapng file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write(path, &test_name(), &lock(&self.rings))
    }

    fn path(&self) -> PathBuf {
        failure_dir().join(match self.number {
            1 => "lab.pcapng".to_owned(),
            n => format!("lab-{n}.pcapng"),
        })
    }
}

impl Drop for PacketLog {
    fn drop(&mut self) {
        // A lab may be dropped by another thread, whose numbers are its own.
        let _ = NUMBERS.try_with(|all| all.borrow_mut().retain(|n| *n != self.number));
        if thread::panicking() && !lock(&self.rings).is_empty() {
            let path = self.path();
            let written = self.write(&path);
            report_file(&path, written, &lock(&self.rings));
        }
    }
}

impl fmt::Debug for PacketLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketLog({})", self.path().display())
    }
}

/// Prints where packets are, or why they are not.
pub(crate) fn report_file(path: &Path, written: io::Result<()>, rings: &[SharedRing]) {
    let path = path.display();
    match written {
        Ok(()) => report_line(&format!("packets of the failed test: {path}")),
        Err(error) => report_line(&format!("cannot write {path}: {error}")),
    }
    for ring in rings.iter().map(|ring| lock(ring)).filter(|ring| ring.is_used()) {
        report_line(&format!("  {ring}"));
    }
}

/// Log into which a lab's interface enters its packets.
#[derive(Clone)]
pub struct PacketTap(SharedRing);

impl PacketTap {
    /// Enters a packet that the interface received, in parts.
    pub fn received<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) {
        self.push(Direction::Inbound, parts);
    }

    /// Enters a packet that the interface sent, in parts.
    pub fn sent<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) {
        self.push(Direction::Outbound, parts);
    }

    fn push<'a>(&self, direction: Direction, parts: impl IntoIterator<Item = &'a [u8]>) {
        let mut length = 0;
        let parts = parts.into_iter().inspect(|part| length += part.len());
        let mut ring = lock(&self.0);
        ring.push(now(), direction, 0, parts);
        if let Some(last) = ring.heads.back_mut() {
            last.length = length as u32;
        }
    }
}

impl fmt::Debug for PacketTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketTap({})", lock(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packets_are_kept() {
        let ring = Ring::shared("eth0", 4);
        let mut ring = lock(&ring);
        for n in 0..PACKETS as u64 + 10 {
            let bytes = n.to_be_bytes();
            ring.push(n, Direction::Inbound, 100, [&bytes[5..7], &bytes[7..], &[9; 9]]);
        }
        ring.add_missed(3);
        assert_eq!((ring.heads.len(), ring.heads[0].at), (PACKETS, 10));
        assert_eq!(ring.bytes.len(), 4 * PACKETS);
        assert_eq!(ring.bytes.range(..4).copied().collect::<Vec<_>>(), [0, 0, 10, 9]);
        assert_eq!(
            ring.to_string(),
            "eth0: 4106 received, 0 sent (the last 4096 are kept), 3 not captured"
        );
    }

    #[test]
    fn bytes_are_bounded() {
        let ring = Ring::shared("eth0", WHOLE);
        let mut ring = lock(&ring);
        let bytes = vec![0; WHOLE as usize];
        for n in 0..100 {
            ring.push(n, Direction::Outbound, bytes.len(), [&bytes[..]]);
        }
        assert_eq!(ring.heads.len(), BYTES / bytes.len());
    }

    #[test]
    fn labs_at_the_same_time_have_files_of_their_own() {
        let (one, two) = (PacketLog::new(), PacketLog::new());
        assert!(one.path().ends_with("lab.pcapng") && two.path().ends_with("lab-2.pcapng"));
        drop(one);
        assert!(PacketLog::new().path().ends_with("lab.pcapng"));
    }
}
