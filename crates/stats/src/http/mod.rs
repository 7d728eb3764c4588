//! A small HTTP/1.1 server for one page and few clients: GET and HEAD, no body, one thread, bounded
//! in connections, bytes and time.
//!
//! All connections are served by one `poll` loop, so that a client that is slow, silent or gone
//! costs only its slot; if all slots are taken, the idle client that has waited longest is evicted.

mod connection;
#[cfg(test)]
mod tests;

pub use connection::fuzz_http;
use connection::{Connection, Turn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of connections.
pub const MAX_CONNECTIONS: usize = 32;

/// Timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time from the first byte of a request to its last.
    pub request: Duration,
    /// Time until the client has read a response.
    pub answer: Duration,
    /// Time between two requests.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            request: Duration::from_secs(5),
            answer: Duration::from_secs(20),
            // Collectors scrape every minute or more often.
            idle: Duration::from_secs(130),
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `/metrics`, without the query.
    pub path: &'a str,
    /// Value of `Accept`, or empty.
    pub accept: &'a str,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status: 200, 404, …
    pub status: u16,
    /// Media type of the body.
    pub media_type: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Creates a response with a line of text.
    pub fn text(status: u16, text: &str) -> Answer {
        let body = format!("{text}\n");
        Answer { status, media_type: "text/plain; charset=utf-8", body }
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
pub struct Counts {
    /// Number of requests with a response.
    pub requests: AtomicU64,
    /// Bytes of the responses.
    pub bytes: AtomicU64,
    /// Number of connections that were closed because they took too long, or were evicted.
    pub dropped: AtomicU64,
}

/// Error of starting a server.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is invalid, or in use.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address as configured.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The thread cannot be started.
    #[error("cannot start the HTTP server: {0}")]
    Start(#[from] io::Error),
}

/// An HTTP server that runs until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    counts: Arc<Counts>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens at `address` (`host:port`) and serves `page`, on a thread of that name.
    ///
    /// # Errors
    /// [`HttpError`].
    pub fn start(
        address: &str,
        name: &str,
        patience: Patience,
        page: impl FnMut(Request<'_>) -> Answer + Send + 'static,
    ) -> Result<HttpServer, HttpError> {
        let fail = |source| HttpError::Listen { address: address.into(), source };
        let all: Vec<SocketAddr> = address.to_socket_addrs().map_err(fail)?.collect();
        let listener = TcpListener::bind(&all[..]).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let bound = listener.local_addr().map_err(fail)?;
        let (stopped, stop) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let counts = Arc::new(Counts::default());
        let server = Loop {
            listener,
            stopped,
            patience,
            counts: counts.clone(),
            connections: Vec::new(),
            page,
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(|| server.run())?;
        Ok(HttpServer { address: bound, counts, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Loop<P> {
    listener: TcpListener,
    stopped: OwnedFd,
    patience: Patience,
    counts: Arc<Counts>,
    connections: Vec<Connection>,
    page: P,
}

impl<P: FnMut(Request<'_>) -> Answer> Loop<P> {
    fn run(mut self) {
        loop {
            let now = Instant::now();
            let next = self.connections.iter().map(Connection::deadline).min();
            let wait = next.map(|at| at.saturating_duration_since(now));
            let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
            let mut fds = vec![
                PollFd::new(&self.stopped, PollFlags::empty()),
                PollFd::new(&self.listener, PollFlags::IN),
            ];
            fds.extend(self.connections.iter().map(|c| PollFd::new(c.socket(), c.interest())));
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return tracing::error!("HTTP server: {error}"),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return;
            }
            self.serve(&ready[2..]);
            if ready[1] {
                self.accept();
            }
        }
    }

    fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let mut ready = ready.iter().copied();
        let (counts, patience, page) = (&self.counts, &self.patience, &mut self.page);
        self.connections.retain_mut(|connection| {
            let turn = match ready.next() {
                Some(true) => connection.turn(now, patience, counts, page),
                _ => Turn::Stays,
            };
            if turn == Turn::Stays && connection.deadline() > now {
                return true;
            }
            if turn == Turn::Stays {
                counts.dropped.fetch_add(1, Relaxed);
            }
            false
        });
    }

    fn accept(&mut self) {
        match self.listener.accept() {
            Ok((socket, from)) => {
                if self.connections.len() == MAX_CONNECTIONS {
                    let longest =
                        (0..self.connections.len()).min_by_key(|i| self.connections[*i].rank());
                    longest.map(|i| self.connections.swap_remove(i));
                    self.counts.dropped.fetch_add(1, Relaxed);
                    tracing::debug!("HTTP: closing the oldest client for {from}");
                }
                if let Ok(connection) = Connection::new(socket, &self.patience) {
                    self.connections.push(connection);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!("HTTP server: {error}");
                // Descriptors have probably run out: avoid a busy loop.
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}
