//! The socket server: one thread accepts clients, reads their requests and writes what their
//! sockets did not take at once. The main thread handles the requests, in
//! [`Hub::serve`](crate::Hub::serve), and never waits for a client.
//!
//! Everything that a client can make the server keep is bounded. Requests beyond [`Limits`] are
//! left in its socket; replies beyond them make its requests wait; a client that still does not
//! read, or stops in the middle of a message, is disconnected with a reason in the log.

mod poll;

use crate::client::{Links, Waker};
use crate::clients::Clients;
use crate::hub::Job;
use rustix::net::SocketType;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use thalweg_socket::{LocalConfig, LocalError, LocalSocket};

/// Configuration of the server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Path of the socket.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// Its group, by id. `None` keeps the process's.
    pub group: Option<u32>,
    /// Limits per client.
    pub limits: Limits,
}

impl ServerConfig {
    /// Returns the configuration for `path`: mode 0660, default limits.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: 0o660, group: None, limits: Limits::default() }
    }
}

/// Limits of what clients can make the server keep.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Number of clients.
    pub clients: usize,
    /// Number of further clients that run as root.
    pub root_clients: usize,
    /// Bytes of a request.
    pub message: usize,
    /// Pending requests, per client.
    pub requests: usize,
    /// Bytes of pending requests, per client.
    pub request_bytes: usize,
    /// Bytes of pending replies, per client, beyond which its requests wait.
    pub answers: usize,
    /// Bytes of pending replies and events, per client, beyond which it is disconnected.
    pub events: usize,
    /// Maximum time for a client to complete a message, to send `sockclnt_create`, and to read some
    /// of its pending output.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 256,
            root_clients: 8,
            message: 4 << 20,
            requests: 4096,
            request_bytes: 4 << 20,
            answers: 1 << 20,
            events: 8 << 20,
            patience: Duration::from_secs(60),
        }
    }
}

/// Error of starting the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The socket cannot be created.
    #[error("binary API: {0}")]
    Local(#[from] LocalError),
    /// The thread cannot be started.
    #[error("cannot start the API server: {0}")]
    Start(#[source] io::Error),
}

/// A running server. Dropping it disconnects all clients and removes the socket.
pub struct Server {
    links: Arc<Links>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Server {
    /// Listens, and serves clients on a thread of its own. `dispatch` submits jobs to the main
    /// thread, which passes them to [`Hub::serve`](crate::Hub::serve); it returns false if that
    /// takes no more.
    ///
    /// # Errors
    /// If the socket cannot be listened on.
    pub fn start(
        config: ServerConfig,
        clients: Clients,
        dispatch: impl Fn(Job) -> bool + Send + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let ServerConfig { mode, group, .. } = config;
        let local = LocalConfig { kind: SocketType::STREAM, mode, group };
        let listener = LocalSocket::listen(&config.path, local)?;
        let waker = Waker::new().map_err(ServerError::Start)?;
        let links = Arc::new(Links { limits: config.limits, waker, dispatch: Box::new(dispatch) });
        let stop = Arc::new(AtomicBool::new(false));
        let thread = poll::Thread::new(listener, links.clone(), clients, stop.clone());
        let thread = std::thread::Builder::new()
            .name("api".to_owned())
            .spawn(move || thread.run())
            .map_err(ServerError::Start)?;
        Ok(Self { links, stop, thread: Some(thread), path: config.path })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.links.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
