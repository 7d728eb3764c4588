//! The session log: created and deleted sessions, as lines of JSON in a file or in syslog
//! datagrams, or as IPFIX messages.
//!
//! Workers write records to rings of their own and never wait: records that find the ring full are
//! counted. A thread reads the rings and writes at a limited rate.

mod ipfix;

use crate::session::{self, Session};
use crate::state::protocol_name;
use crate::time;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use thalweg_fib::TableId;
use thalweg_files::Appended;
use thalweg_files::client::{Kind, Reserved};
use thalweg_graph::clock;
use thalweg_tables::flow::Millis;
use thalweg_tables::record_ring::{RecordReader, RecordWriter, WORDS, channel};
use thalweg_wire::nat::tuple::{Key, Tuple};

/// Records per ring: those of a burst of a few milliseconds.
const RING: usize = 1 << 15;
/// Number of records after which a ring is published.
const UNSEEN: u64 = 64;
/// Interval in which the thread polls the rings.
const PERIOD: Duration = Duration::from_millis(10);
/// Capacity of the queue of notices.
const NOTICES: usize = 1024;
/// Default rate in records per second.
pub const RATE: u32 = 100_000;

/// Destination of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A file, appended to.
    File(PathBuf),
    /// A syslog collector (RFC 5424), one datagram per message (RFC 5426).
    Syslog(SocketAddr),
    /// An IPFIX collector (RFC 7011, RFC 8158) over UDP.
    Ipfix(Collector),
}

/// An IPFIX collector, and the identity of the exporter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collector {
    /// Address of the collector.
    pub to: SocketAddr,
    /// Observation domain id.
    pub domain: u32,
    /// Source port; 0 = any.
    pub port: u16,
}

impl Collector {
    /// A collector with defaults for the rest.
    pub fn new(to: SocketAddr) -> Collector {
        Collector { to, domain: ipfix::DOMAIN, port: 0 }
    }
}

impl std::fmt::Display for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to)?;
        if self.domain != ipfix::DOMAIN {
            write!(f, " domain {}", self.domain)?;
        }
        if self.port != 0 {
            write!(f, " src-port {}", self.port)?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::File(file) => write!(f, "file {}", file.display()),
            Target::Syslog(to) => write!(f, "syslog {to}"),
            Target::Ipfix(to) => write!(f, "ipfix {to}"),
        }
    }
}

/// Counters of log records.
#[derive(Debug, Default)]
pub struct Totals {
    /// Records written.
    pub written: AtomicU64,
    /// Records dropped by the rate limit.
    pub limited: AtomicU64,
    /// Records that could not be written or sent.
    pub failed: AtomicU64,
}

/// Kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionEvent {
    /// Session created.
    Create,
    /// Session deleted.
    Delete,
}

/// Other events for IPFIX collectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// No address has a free port.
    NoAddress,
    /// The session limit of a worker or a routing table was reached.
    Sessions(u32),
    /// An inside host reached the limit per host.
    PerHost {
        /// The limit.
        most: u32,
        /// The host.
        host: Ipv4Addr,
        /// Routing table of the host.
        table: TableId,
    },
}

/// A worker's side of its ring.
#[derive(Debug)]
pub(crate) struct LogWriter {
    ring: RecordWriter,
    /// Records lost because the ring was full.
    pub(crate) lost: u64,
}

impl LogWriter {
    #[inline]
    pub(crate) fn write(
        &mut self,
        event: SessionEvent,
        keys: &(Key, Key),
        s: &Session,
        now: Millis,
    ) {
        let (inside, outside) = keys;
        let about = u64::from(event == SessionEvent::Delete) | u64::from(s.marks()) << 16;
        let words: [u64; WORDS] = [
            inside[0],
            inside[1],
            outside[0],
            outside[1],
            s.packets(),
            s.bytes(),
            about | u64::from(now) << 32,
            u64::from(s.created()),
        ];
        if self.ring.push(&words, &[]).is_none() {
            self.lost += 1;
        }
        if self.ring.pending() >= UNSEEN {
            self.ring.publish();
        }
    }

    /// Publishes all records to the thread.
    pub(crate) fn publish(&mut self) {
        self.ring.publish();
    }
}

/// The log and its thread.
#[derive(Debug)]
pub struct Log {
    /// Destination.
    pub target: Target,
    /// Maximum number of records per second.
    pub rate: u32,
    /// Counters.
    pub totals: Arc<Totals>,
    /// The name of its file.
    reserved: Option<Reserved>,
    stop: Arc<AtomicBool>,
    notices: mpsc::SyncSender<Notice>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Starts the thread. Returns a writer for each worker.
    ///
    /// # Errors
    /// Fails if the file or socket cannot be opened, or the thread cannot be started.
    pub(crate) fn start(
        target: Target,
        rate: u32,
        workers: usize,
    ) -> io::Result<(Log, Vec<LogWriter>)> {
        let (sink, reserved) = Sink::open(&target)?;
        let (totals, stop) = (Arc::new(Totals::default()), Arc::new(AtomicBool::new(false)));
        let (notices, received) = mpsc::sync_channel(NOTICES);
        let rings: Result<Vec<_>, _> = (0..workers).map(|_| channel(RING)).collect();
        let rings = rings.map_err(io::Error::other)?.into_iter();
        let (writers, readers): (Vec<_>, Vec<_>) =
            rings.map(|(ring, reader)| (LogWriter { ring, lost: 0 }, reader)).unzip();
        let writer = Writer {
            readers,
            notices: received,
            sink,
            totals: totals.clone(),
            rate: u64::from(rate),
            left: 0,
            second: Instant::now(),
        };
        let ends = stop.clone();
        let thread = std::thread::Builder::new()
            .name("nat44-log".into())
            .spawn(move || writer.run(&ends))?;
        let log = Log { target, rate, totals, reserved, stop, notices, thread: Some(thread) };
        Ok((log, writers))
    }
}

impl Log {
    /// Sends a notice to IPFIX collectors. Each worker sends at most one per second and kind;
    /// notices that find the queue full are dropped.
    pub(crate) fn notify(&self, notice: Notice) {
        if matches!(self.target, Target::Ipfix(_)) {
            let _ = self.notices.try_send(notice);
        }
    }

    /// Gives back the name of its file at once: a log that ends writes the rest to what it has
    /// open.
    pub(crate) fn free_name(&mut self) {
        drop(self.reserved.take());
    }

    /// Stops the thread after it has written what is there, without waiting.
    pub(crate) fn end(mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread = None;
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Its result is in the counters.
            let _ = thread.join();
        }
    }
}

enum Sink {
    File(BufWriter<Appended>),
    Syslog { socket: UdpSocket, text: Vec<u8> },
    Ipfix(ipfix::Exporter),
}

/// A non-blocking socket connected to a collector. A new log binds the port before the old one
/// closes it, so the address is reused.
fn connect(to: &SocketAddr, port: u16) -> io::Result<UdpSocket> {
    let (family, any): (_, IpAddr) = match to {
        SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::new(any, port))?;
    let socket = UdpSocket::from(socket);
    socket.connect(to)?;
    Ok(socket)
}

/// Logs of sessions, whose lines are objects.
const LOGS: &Kind = &Kind { name: "a log of nat44", magic: &[b"{\""], is_foreign: false };

impl Sink {
    /// Opens the destination, and reserves its name if that is a file.
    fn open(target: &Target) -> io::Result<(Sink, Option<Reserved>)> {
        let sink = match target {
            Target::File(name) => {
                let (file, reserved) = Appended::of_client(name, LOGS).map_err(|e| e.source)?;
                return Ok((Sink::File(BufWriter::with_capacity(1 << 16, file)), Some(reserved)));
            }
            Target::Syslog(to) => Sink::Syslog { socket: connect(to, 0)?, text: Vec::new() },
            Target::Ipfix(c) => {
                Sink::Ipfix(ipfix::Exporter::new(connect(&c.to, c.port)?, c.domain))
            }
        };
        Ok((sink, None))
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        match self {
            Sink::File(file) => {
                file.write_all(record.line().as_bytes())?;
                file.write_all(b"\n")
            }
            Sink::Syslog { socket, text } => {
                text.clear();
                // local0.info; no timestamp (it is in the message), no host name, no structured
                // data.
                text.extend_from_slice(b"<134>1 - - thalweg - nat44 - ");
                text.extend_from_slice(record.line().as_bytes());
                socket.send(text).map(drop)
            }
            Sink::Ipfix(exporter) => exporter.add(record),
        }
    }

    /// Writes what is left at the end of a turn.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Syslog { .. } => Ok(()),
            Sink::Ipfix(exporter) => exporter.flush(),
        }
    }
}

struct Writer {
    readers: Vec<RecordReader>,
    notices: mpsc::Receiver<Notice>,
    sink: Sink,
    totals: Arc<Totals>,
    rate: u64,
    /// Records left in this second, and its start.
    left: u64,
    second: Instant,
}

impl Writer {
    fn run(mut self, stop: &AtomicBool) {
        self.left = self.rate;
        loop {
            // Acquire: records written before the stop are still handled.
            let last = stop.load(Ordering::Acquire);
            self.turn();
            if last {
                return;
            }
            std::thread::park_timeout(PERIOD);
        }
    }

    fn turn(&mut self) {
        if self.second.elapsed() >= Duration::from_secs(1) {
            (self.second, self.left) = (Instant::now(), self.rate);
        }
        let (ticks, unix) = (time::millis(clock::ticks()), SystemTime::now());
        let unix = unix.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (mut written, mut limited, mut failed) = (0, 0, 0);
        for (worker, reader) in self.readers.iter_mut().enumerate() {
            while let Some(words) = reader.words() {
                reader.take(&mut []);
                reader.release();
                if self.left == 0 {
                    limited += 1;
                    continue;
                }
                self.left -= 1;
                match self.sink.write(&Record::new(&words, worker, ticks, unix)) {
                    Ok(()) => written += 1,
                    Err(_) => failed += 1,
                }
            }
        }
        if let Sink::Ipfix(exporter) = &mut self.sink {
            for notice in self.notices.try_iter() {
                match exporter.add_notice(notice, unix) {
                    Ok(()) => written += 1,
                    Err(_) => failed += 1,
                }
            }
        }
        if self.sink.flush().is_err() {
            failed += std::mem::take(&mut written);
        }
        for (total, n) in [
            (&self.totals.written, written),
            (&self.totals.limited, limited),
            (&self.totals.failed, failed),
        ] {
            total.fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// A record of the log.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Time since 1970.
    unix: Duration,
    worker: usize,
    marks: u16,
    inside: Tuple,
    outside: Tuple,
    /// Counters of a deleted session.
    end: Option<End>,
}

/// Counters of a deleted session.
#[derive(Clone, Copy, Debug)]
struct End {
    packets: u64,
    bytes: u64,
    seconds: f64,
}

impl Record {
    /// Decodes a worker's record. Session time `now` equals `unix` since 1970.
    fn new(words: &[u64; WORDS], worker: usize, now: Millis, unix: Duration) -> Record {
        let (at, created) = ((words[6] >> 32) as Millis, words[7] as Millis);
        // The record may be slightly older or newer than the clock reading.
        let ago = i64::from(now.wrapping_sub(at) as i32);
        let end = End {
            packets: words[4],
            bytes: words[5],
            seconds: f64::from(at.wrapping_sub(created)) / 1e3,
        };
        Record {
            unix: Duration::from_millis((unix.as_millis() as i64 - ago) as u64),
            worker,
            marks: (words[6] >> 16) as u16,
            inside: Tuple::of(&[words[0], words[1]]),
            outside: Tuple::of(&[words[2], words[3]]),
            end: (words[6] & 1 != 0).then_some(end),
        }
    }

    /// The record as JSON.
    fn line(&self) -> String {
        let (inside, outside) = (&self.inside, &self.outside);
        let end = |address: std::net::Ipv4Addr, port: u16| format!("{address}:{port}");
        let ends = self.end.is_some();
        let mut text = json!({
            "time": self.unix.as_millis() as f64 / 1e3,
            "event": if ends { "nat44-session-delete" } else { "nat44-session-create" },
            "worker": self.worker,
            "protocol": protocol_name(inside.protocol).to_lowercase(),
            "vrf": inside.table,
            "inside": end(inside.src, inside.sport),
            "outside": end(outside.dst, outside.dport),
            "external": end(outside.src, outside.sport),
        });
        if self.marks & session::TWICE != 0 {
            text["external-inside"] = end(inside.dst, inside.dport).into();
        }
        if let Some(end) = self.end {
            text["packets"] = end.packets.into();
            text["bytes"] = end.bytes.into();
            text["seconds"] = end.seconds.into();
        }
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_testkit::{WAIT_LIMIT, wait_for_file, wait_until_seen};

    fn keys() -> (Key, Key) {
        let inside = Tuple {
            src: [10, 0, 0, 2].into(),
            sport: 5000,
            dst: [198, 51, 100, 7].into(),
            dport: 53,
            protocol: 17,
            table: 0,
        };
        let outside = Tuple { dst: [192, 0, 2, 1].into(), dport: 1024, ..inside.reversed() };
        (inside.key(), outside.key())
    }

    fn wait(totals: &Totals, all: u64) {
        let sum = |t: &Totals| {
            [&t.written, &t.limited, &t.failed]
                .map(|n| n.load(Ordering::Relaxed))
                .iter()
                .sum::<u64>()
        };
        let what = format!("{all} records");
        let done = || if sum(totals) < all { Err(format!("{totals:?}")) } else { Ok(()) };
        wait_until_seen(WAIT_LIMIT, &what, done).unwrap();
    }

    #[test]
    fn records_become_lines() {
        clock::init();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let (log, mut writers) = Log::start(Target::File(file.clone()), 10, 2).unwrap();
        let now = time::millis(clock::ticks());
        let mut s = Session::new(&keys().0, &keys().1, now);
        (s.words[1], s.words[2]) = (3, 180);
        writers[1].write(SessionEvent::Create, &keys(), &s, now);
        writers[1].write(SessionEvent::Delete, &keys(), &s, now.wrapping_add(1500));
        writers[1].publish();
        wait(&log.totals, 2);
        // More than the rate limit.
        for _ in 0..100 {
            writers[0].write(SessionEvent::Create, &keys(), &s, now);
        }
        writers[0].publish();
        wait(&log.totals, 102);
        let totals = log.totals.clone();
        drop(log);
        let limited = totals.limited.load(Ordering::Relaxed);
        assert!((82..=92).contains(&limited), "{limited}");
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len() as u64, 102 - limited);
        assert_eq!(lines[0]["event"], "nat44-session-create");
        assert_eq!(
            (&lines[0]["inside"], &lines[0]["worker"]),
            (&"10.0.0.2:5000".into(), &1.into())
        );
        assert_eq!(lines[1]["outside"], "192.0.2.1:1024");
        assert_eq!((&lines[1]["packets"], &lines[1]["seconds"]), (&3.into(), &1.5.into()));
    }

    #[test]
    fn a_moved_file_is_reopened() {
        clock::init();
        let dir = tempfile::tempdir().unwrap();
        let (file, moved) = (dir.path().join("log"), dir.path().join("log.1"));
        let (log, mut writers) = Log::start(Target::File(file.clone()), 1000, 1).unwrap();
        std::fs::rename(&file, &moved).unwrap();
        wait_for_file(&file, WAIT_LIMIT).unwrap();
        let s = Session::new(&keys().0, &keys().1, 0);
        writers[0].write(SessionEvent::Create, &keys(), &s, 0);
        writers[0].publish();
        wait(&log.totals, 1);
        drop(log);
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_full_ring_loses_and_counts() {
        let (ring, _reader) = channel(4).unwrap();
        let mut writer = LogWriter { ring, lost: 0 };
        let s = Session::new(&keys().0, &keys().1, 0);
        (0..10).for_each(|_| writer.write(SessionEvent::Delete, &keys(), &s, 0));
        assert_eq!(writer.lost, 6);
    }

    #[test]
    fn consecutive_logs_can_use_the_same_port() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let first = connect(&collector, 0).unwrap();
        let port = first.local_addr().unwrap().port();
        let second = connect(&collector, port).unwrap();
        assert_eq!(second.local_addr().unwrap().port(), port);
    }

    #[test]
    fn datagrams_are_syslog_messages() {
        clock::init();
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
        let to = Target::Syslog(collector.local_addr().unwrap());
        let (_log, mut writers) = Log::start(to, 1000, 1).unwrap();
        let s = Session::new(&keys().0, &keys().1, 0);
        writers[0].write(SessionEvent::Create, &keys(), &s, 0);
        writers[0].publish();
        let mut buffer = [0; 2000];
        let n = collector.recv(&mut buffer).unwrap();
        let text = std::str::from_utf8(&buffer[..n]).unwrap();
        assert!(text.starts_with("<134>1 - - thalweg - nat44 - {"), "{text}");
    }
}
