//! Captures of transmitted packets as pcap files.
//!
//! The transmit node of each worker formats records into a byte ring; one thread empties the rings
//! into files. A worker never waits for a disk: records that do not fit into its ring are counted
//! as lost.

use crate::pcap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{JoinHandle, Thread};
#[cfg(test)]
use std::time::Duration;
use thalweg_files::client::{self, Kind, Reserved};

/// Captures: what others have sent.
pub(crate) const CAPTURES: Kind = Kind { name: "a capture", magic: &[], is_foreign: true };
/// Bytes of each worker's ring.
const RING: usize = 8 << 20;
/// Maximum time that a test waits for the writer.
#[cfg(test)]
const PATIENCE: Duration = Duration::from_secs(5);

/// Progress of a capture; readable by any thread.
#[derive(Default, Debug)]
pub struct CaptureStats {
    /// Packets in the file.
    pub written: AtomicU64,
    /// Packets lost to a full ring, by worker.
    lost: Vec<AtomicU64>,
    /// The packet limit is reached, or the file cannot be written.
    full: AtomicBool,
    /// The file cannot be written.
    pub failed: AtomicBool,
}

impl CaptureStats {
    /// Packets missing in the file because a ring was full.
    pub fn lost(&self) -> u64 {
        self.lost.iter().map(|n| n.load(Relaxed)).sum()
    }
}

/// A worker's side of a capture.
pub(crate) struct Probe {
    ring: rtrb::Producer<u8>,
    writer: Thread,
    stats: Arc<CaptureStats>,
    worker: usize,
}

impl Probe {
    /// Captures a packet, unless the capture or the ring is full.
    pub(crate) fn packet<'a>(
        &mut self,
        micros: u64,
        len: usize,
        segments: impl Iterator<Item = &'a [u8]>,
    ) {
        if self.stats.full.load(Relaxed) {
            return;
        }
        let header = pcap::record_header(micros, len as u32);
        let Ok(mut chunk) = self.ring.write_chunk(header.len() + len) else {
            let lost = &self.stats.lost[self.worker];
            lost.store(lost.load(Relaxed) + 1, Relaxed);
            return;
        };
        let (mut a, mut b) = chunk.as_mut_slices();
        let mut put = |part: &[u8]| {
            // The packet's length is authoritative, whatever its segments add up to.
            let part = &part[..part.len().min(a.len() + b.len())];
            let (first, second) = part.split_at(part.len().min(a.len()));
            for (to, from) in [(&mut a, first), (&mut b, second)] {
                let (now, later) = std::mem::take(to).split_at_mut(from.len());
                now.copy_from_slice(from);
                *to = later;
            }
        };
        put(&header);
        segments.for_each(put);
        chunk.commit_all();
    }

    /// Wakes the writer; called once per frame.
    pub(crate) fn flush(&self) {
        self.writer.unpark();
    }
}

/// Parameters of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) path: PathBuf,
    pub(crate) link: u32,
    /// Maximum number of packets.
    pub(crate) count: u64,
    /// The name of the file, until the last packets are there.
    pub(crate) _reserved: Option<Arc<Reserved>>,
}

struct Job {
    id: u64,
    plan: Plan,
    rings: Vec<rtrb::Consumer<u8>>,
    stats: Arc<CaptureStats>,
    file: Option<File>,
}

enum Order {
    Open(Job),
    Close(u64),
    /// Runs once everything that was in the rings before is in the files.
    Then(Box<dyn FnOnce() + Send>),
    Quit,
}

/// The thread that writes captures.
pub(crate) struct Writer {
    orders: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
    next: u64,
}

impl Writer {
    pub(crate) fn start() -> std::io::Result<Writer> {
        let (orders, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("thalweg_pcap".into())
            .spawn(move || Writing { inbox, jobs: Vec::new(), buffer: Vec::new() }.run())?;
        Ok(Writer { orders, thread: Some(thread), next: 0 })
    }

    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
        if let Some(t) = &self.thread {
            t.thread().unpark();
        }
    }

    /// Opens a capture; returns its number, its counters and each worker's side.
    pub(crate) fn open(
        &mut self,
        plan: Plan,
        workers: usize,
    ) -> (u64, Arc<CaptureStats>, Vec<Probe>) {
        self.next += 1;
        let stats = Arc::new(CaptureStats {
            lost: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            ..CaptureStats::default()
        });
        let mut job =
            Job { id: self.next, plan, rings: Vec::new(), stats: stats.clone(), file: None };
        let mut probes = Vec::new();
        if let Some(t) = &self.thread {
            for worker in 0..workers {
                let (ring, out) = rtrb::RingBuffer::new(RING);
                job.rings.push(out);
                let writer = t.thread().clone();
                probes.push(Probe { ring, writer, stats: stats.clone(), worker });
            }
        }
        self.order(Order::Open(job));
        (self.next, stats, probes)
    }

    /// Ends a capture: writes what is in its rings, then closes its file.
    pub(crate) fn close(&self, id: u64) {
        self.order(Order::Close(id));
    }

    /// Runs `f` on the writer's thread once everything now in the rings is in the files.
    pub(crate) fn then(&self, f: impl FnOnce() + Send + 'static) {
        self.order(Order::Then(Box::new(f)));
    }

    /// Waits (a few seconds at most) until everything now in the rings is in the files.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        let (tx, rx) = mpsc::sync_channel(1);
        self.then(move || {
            let _ = tx.send(());
        });
        let _ = rx.recv_timeout(PATIENCE);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.order(Order::Quit);
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

struct Writing {
    inbox: mpsc::Receiver<Order>,
    jobs: Vec<Job>,
    buffer: Vec<u8>,
}

impl Writing {
    fn run(mut self) {
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Open(job)) => self.jobs.push(job),
                Ok(Order::Close(id)) => {
                    self.drain();
                    self.jobs.retain(|j| j.id != id);
                }
                Ok(Order::Then(f)) => {
                    self.drain();
                    f();
                }
                Ok(Order::Quit) | Err(mpsc::TryRecvError::Disconnected) => {
                    self.drain();
                    return;
                }
                Err(mpsc::TryRecvError::Empty) => {
                    if !self.drain() {
                        std::thread::park();
                    }
                }
            }
        }
    }

    /// Empties all rings once; returns whether there was anything.
    fn drain(&mut self) -> bool {
        let mut did = false;
        for job in &mut self.jobs {
            self.buffer.clear();
            for ring in &mut job.rings {
                let n = ring.slots();
                if let Ok(chunk) = ring.read_chunk(n) {
                    let (a, b) = chunk.as_slices();
                    self.buffer.extend_from_slice(a);
                    self.buffer.extend_from_slice(b);
                    chunk.commit_all();
                }
            }
            if !self.buffer.is_empty() {
                did = true;
                job.write(&self.buffer);
            }
        }
        if self.buffer.capacity() > RING {
            self.buffer = Vec::new();
        }
        did
    }
}

impl Job {
    /// Writes complete records up to the packet limit.
    fn write(&mut self, records: &[u8]) {
        let written = self.stats.written.load(Relaxed);
        let left = self.plan.count.saturating_sub(written);
        let (n, end) = take_records(records, left);
        if n > 0 && !self.stats.failed.load(Relaxed) {
            match self.append(&records[..end]) {
                Ok(()) => self.stats.written.store(written + n, Relaxed),
                Err(e) => {
                    let path = self.plan.path.display();
                    tracing::error!("packet-generator capture: {path}: {e}; capture ended");
                    self.stats.failed.store(true, Relaxed);
                    self.stats.full.store(true, Relaxed);
                }
            }
        }
        if n >= left {
            self.stats.full.store(true, Relaxed);
        }
    }

    /// The file is created with its first packet.
    fn append(&mut self, records: &[u8]) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(f) => f,
            empty => {
                let header = pcap::file_header(self.plan.link);
                let new = client::write_new(&self.plan.path, &CAPTURES, &header);
                empty.insert(new.map_err(|e| e.source)?)
            }
        };
        file.write_all(records)
    }
}

/// Number of records to take, at most `left`, and where the last of them ends.
fn take_records(records: &[u8], left: u64) -> (u64, usize) {
    let (mut n, mut at) = (0, 0);
    while n < left {
        let length = records.get(at + 8..at + 12).and_then(|b| b.try_into().ok());
        let Some(length) = length.map(u32::from_le_bytes) else { break };
        let end = at + pcap::RECORD_HEADER + length as usize;
        if end > records.len() {
            break;
        }
        (n, at) = (n + 1, end);
    }
    (n, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(path: PathBuf, count: u64) -> Plan {
        Plan { path, link: pcap::LINK_ETHERNET, count, _reserved: None }
    }

    #[test]
    fn packets_reach_the_file_in_order_and_by_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.pcap");
        let mut writer = Writer::start().unwrap();
        let (id, stats, mut probes) = writer.open(plan(path.clone(), 5), 2);
        assert!(!path.exists());
        for i in 0..4u8 {
            probes[0].packet(0, 70, [&[i; 40][..], &[i; 30]].into_iter());
        }
        probes[0].flush();
        writer.wait();
        assert_eq!(pcap::read(&path).unwrap().packets.len(), 4);
        for i in 4..9u8 {
            probes[1].packet(0, 70, std::iter::once(&[i; 70][..]));
        }
        writer.wait();
        writer.close(id);
        writer.wait();
        let want: Vec<_> = (0..5u8).map(|i| vec![i; 70]).collect();
        assert_eq!(pcap::read(&path).unwrap().packets, want);
        assert_eq!((stats.written.load(Relaxed), stats.lost()), (5, 0));
    }

    #[test]
    fn a_full_ring_counts_what_it_loses_and_a_bad_path_ends_the_capture() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::start().unwrap();
        let (hold, held) = mpsc::channel::<()>();
        writer.then(move || {
            let _ = held.recv();
        });
        let (_, stats, mut probes) = writer.open(plan(dir.path().join("a"), u64::MAX), 1);
        let big = vec![0; 60_000];
        for _ in 0..200 {
            probes[0].packet(0, big.len(), std::iter::once(&big[..]));
        }
        drop(hold);
        writer.wait();
        let written = stats.written.load(Relaxed);
        assert_eq!(written + stats.lost(), 200);
        assert!(written > 100 && stats.lost() > 0);

        let (_, stats, mut probes) = writer.open(plan(dir.path().join("a"), u64::MAX), 1);
        probes[0].packet(0, 3, std::iter::once(&[1, 2, 3][..]));
        writer.wait();
        assert!(stats.failed.load(Relaxed));
    }
}
