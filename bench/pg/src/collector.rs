//! A collector that reads datagrams and sees which have not come.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt;
use thalweg_sflow::Datagram;

/// Receive buffer for a window of datagrams, in bytes: some milliseconds of samples at full rate.
const RECEIVE_BUFFER: usize = 32 << 20;

/// Datagrams that came or were missing.
#[derive(Debug, Default)]
struct Counts {
    datagrams: AtomicU64,
    samples: AtomicU64,
    missing: AtomicU64,
    stop: AtomicBool,
}

/// A thread that reads.
#[derive(Debug)]
pub struct Collector {
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// A socket of this host's.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("a socket: {e}"))
}

impl Collector {
    /// Reads from `socket` from now on.
    ///
    /// # Panics
    /// If there can be no thread.
    #[must_use]
    pub fn start(socket: UdpSocket) -> Collector {
        // Without the right to more, it gets what the system grants.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER);
        let _ = socket.set_read_timeout(Some(Duration::from_millis(50)));
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let thread = std::thread::spawn(move || read(&socket, &shared));
        Collector { counts, thread: Some(thread) }
    }

    /// Samples that came, those of counters included; and datagrams that came, and that did not.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let Counts { datagrams, samples, missing, .. } = &*self.counts;
        (samples.load(Relaxed), datagrams.load(Relaxed), missing.load(Relaxed))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.counts.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(socket: &UdpSocket, counts: &Counts) {
    let mut buf = [0; 65_536];
    let mut last: Option<u32> = None;
    while !counts.stop.load(Relaxed) {
        let Ok(length) = socket.recv(&mut buf) else { continue };
        let Ok(datagram) = Datagram::parse(&buf[..length]) else { continue };
        let step = last.map_or(1, |last| datagram.sequence.wrapping_sub(last));
        last = Some(datagram.sequence);
        counts.datagrams.fetch_add(1, Relaxed);
        counts.samples.fetch_add(u64::from(datagram.sample_count), Relaxed);
        counts.missing.fetch_add(u64::from(step.wrapping_sub(1)), Relaxed);
    }
}
