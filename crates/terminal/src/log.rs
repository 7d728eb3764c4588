//! A log whose writers never wait.
//!
//! The reader of standard error may stop (a pager, a stopped journal), and a disk may hang. Threads
//! that log go on: lines wait in a bounded queue for the thread that writes them, and lines that
//! find it full are counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lines that wait at most.
const LINES: usize = 4096;
/// Longest line in bytes; the rest is cut off.
const LONGEST: usize = 16 << 10;

enum Entry {
    Line(Vec<u8>),
    /// Everything before it is written.
    Mark(SyncSender<()>),
}

/// The queue of a log.
#[derive(Clone)]
pub struct Log {
    queue: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
    /// Entries that wait for the thread, until it takes them over.
    entries: Arc<Mutex<Option<Receiver<Entry>>>>,
}

impl Log {
    /// A log whose lines wait until it [begins](Self::begin).
    #[expect(clippy::new_without_default, reason = "a log that never begins is a mistake")]
    pub fn new() -> Log {
        let (queue, entries) = sync_channel(LINES);
        Log { queue, lost: Arc::default(), entries: Arc::new(Mutex::new(Some(entries))) }
    }

    /// Starts the thread that writes to `to`, with the privileges that the calling thread has now.
    /// Does nothing if it has been started.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub fn begin(&self, to: impl Write + Send + 'static) -> io::Result<()> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(entries) = entries else { return Ok(()) };
        let lost = self.lost.clone();
        let write = move || write(entries, to, &lost);
        std::thread::Builder::new().name("log".into()).spawn(write).map(drop)
    }

    /// A line to be written to; it joins the queue when it is dropped.
    pub fn line(&self) -> Line {
        Line { log: self.clone(), text: Vec::with_capacity(128) }
    }

    /// Waits until all lines are written, up to `limit`. Returns whether they are.
    pub fn flush(&self, limit: Duration) -> bool {
        let (mark, written) = sync_channel(1);
        self.queue.try_send(Entry::Mark(mark)).is_ok() && written.recv_timeout(limit).is_ok()
    }

    /// Number of lines that found the queue full, and of which the log does not tell yet.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A line of a log.
pub struct Line {
    log: Log,
    text: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LONGEST - self.text.len().min(LONGEST);
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.text.len() >= LONGEST {
            self.text.truncate(LONGEST - 1);
            self.text.push(b'\n');
        }
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() && self.log.queue.try_send(Entry::Line(text)).is_err() {
            self.log.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(entries: Receiver<Entry>, mut to: impl Write, lost: &AtomicU64) {
    for entry in entries {
        // A log that cannot be written has nobody to tell.
        let _ = match entry {
            Entry::Line(text) => to.write_all(&text),
            Entry::Mark(mark) => mark.try_send(()).map_err(io::Error::other),
        };
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(to, "thalweg: {missing} lines of the log are lost: nobody read it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::time::Instant;

    #[test]
    fn writers_do_not_wait_for_readers() {
        let (mut read, write) = io::pipe().unwrap();
        let log = Log::new();
        log.begin(write).unwrap();
        let (begun, mut many) = (Instant::now(), 0);
        let mut write = |lines: usize| {
            for _ in 0..lines {
                let _ = writeln!(log.line(), "{}", "x".repeat(99));
            }
            many += lines as u64;
        };
        // The pipe takes no more: from now on, the thread waits for a reader.
        while log.flush(Duration::from_secs(1)) {
            write(100);
        }
        let before = Instant::now();
        write(LINES + 1000);
        assert!(before.elapsed() < Duration::from_secs(10));
        let lost = log.lost();
        assert!((1000..1200).contains(&lost), "{lost}");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            read.read_to_string(&mut text).map(|_| text)
        });
        while !log.flush(Duration::from_millis(100)) {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        drop(log);
        let text = reader.join().unwrap().unwrap();
        let lines = text.lines().filter(|line| line.starts_with('x')).count() as u64;
        assert_eq!(lines + lost, many);
        assert!(text.contains(&format!("{lost} lines of the log are lost")), "{lost}");
    }

    #[test]
    fn long_lines_are_cut() {
        let (mut read, write) = io::pipe().unwrap();
        let log = Log::new();
        log.begin(write).unwrap();
        let _ = writeln!(log.line(), "{}", "y".repeat(2 * LONGEST));
        let mut line = vec![0; LONGEST];
        read.read_exact(&mut line).unwrap();
        assert!(line.ends_with(b"y\n"));
    }
}
