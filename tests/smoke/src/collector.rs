//! The receiving end of sFlow.

use std::collections::VecDeque;
use std::fmt::Display;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use thalweg_sflow::SFLOW_PORT;
use thalweg_testkit::Netns;

/// Bytes that the kernel may keep while the reading thread has no processor; it may grant less.
const KERNEL_ROOM: usize = 4 << 20;

/// A UDP socket on the sFlow port of a namespace, and a thread that reads it all the time: what a
/// scenario does between two looks costs no datagrams.
pub struct Collector {
    shared: Arc<Shared>,
    stop: OwnedFd,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    come: Mutex<Come>,
    changed: Condvar,
}

#[derive(Default)]
struct Come {
    datagrams: VecDeque<Vec<u8>>,
    /// Error of the socket, which ends the thread.
    error: Option<String>,
    /// True if the collector has been dropped.
    unwanted: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Come> {
        self.come.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector {
    /// Listens on 127.0.0.1 in `ns`.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn listen(ns: &Netns) -> Result<Collector> {
        let socket = ns
            .run(|| UdpSocket::bind(("127.0.0.1", SFLOW_PORT)))?
            .context("listen on the sFlow port")?;
        set_socket_recv_buffer_size(&socket, KERNEL_ROOM)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let (shared, stopped) = (Arc::<Shared>::default(), stop.try_clone()?);
        let filled = shared.clone();
        let reader = thread::Builder::new().name("collector".into()).spawn(move || {
            if let Err(error) = read(&socket, &stopped, &filled) {
                filled.lock().error = Some(format!("{error:#}"));
                filled.changed.notify_all();
            }
        })?;
        Ok(Collector { shared, stop, reader: Some(reader) })
    }

    /// Hands datagrams to `probe` until it gives a value.
    ///
    /// # Errors
    /// If it has given none within `budget`, or fails.
    pub fn receive<T>(
        &self,
        budget: Duration,
        what: impl Display,
        mut probe: impl FnMut(&[u8]) -> Result<Option<T>>,
    ) -> Result<T> {
        let deadline = Instant::now() + budget;
        let mut seen = 0;
        loop {
            let Some(datagram) = self.next(deadline)? else {
                bail!("waited {budget:?} for {what}; {seen} datagrams came");
            };
            seen += 1;
            if let Some(value) = probe(&datagram)? {
                return Ok(value);
            }
        }
    }

    /// Hands over the datagrams that have come so far, and no others.
    ///
    /// # Errors
    /// If `take` fails.
    pub fn take_all(&self, take: impl FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        mem::take(&mut self.shared.lock().datagrams).into_iter().try_for_each(take)
    }

    /// The next datagram, unless it is not there by the deadline.
    fn next(&self, deadline: Instant) -> Result<Option<Vec<u8>>> {
        let mut come = self.shared.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // Datagrams may come without end.
            if left.is_zero() {
                return Ok(None);
            }
            if let Some(datagram) = come.datagrams.pop_front() {
                return Ok(Some(datagram));
            }
            if let Some(error) = &come.error {
                bail!("the collector has ended: {error}");
            }
            let waited = self.shared.changed.wait_timeout(come, left);
            come = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.lock().unwanted = true;
        // Fails only if the count were to overflow.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Reads datagrams until `stop` is written to.
fn read(socket: &UdpSocket, stop: &OwnedFd, shared: &Shared) -> Result<()> {
    socket.set_nonblocking(true)?;
    let mut datagram = vec![0; 65_536];
    loop {
        match socket.recv(&mut datagram) {
            Ok(length) => {
                let mut come = shared.lock();
                if come.unwanted {
                    return Ok(());
                }
                come.datagrams.push_back(datagram[..length].to_vec());
                shared.changed.notify_all();
                continue;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("read the collector's socket"),
        }
        let mut both = [PollFd::new(socket, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("poll the collector's socket"),
            Ok(_) if !both[1].revents().is_empty() => return Ok(()),
            Ok(_) => {}
        }
    }
}
