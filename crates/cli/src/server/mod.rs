//! The CLI server, for `vppctl`, `thalctl`, telnet and socat.
//!
//! A thread per session communicates with its client and passes lines to the main thread by a
//! [`Dispatch`]; the main thread never waits for a client.
//!
//! # Protocol
//!
//! The server begins with telnet negotiation (36 bytes) and asks for the terminal type. The session
//! depends on the answer:
//!
//! | terminal type | session |
//! | --- | --- |
//! | `vppctl` | lines in; for each, the output with CR LF line ends and one NUL byte |
//! | `thalctl` | requests ended by NUL (which may contain line feeds) in; for each, the output with CR LF line ends, a NUL and one status byte: `0` success, `1` failure, `2` cancelled |
//! | another, or none within a second, or data without any | interactive: banner, prompt, echo, line editing |
//!
//! A line of a `vppctl` session also ends at a NUL, or where nothing follows for a second: a client
//! that pipes text without a last line feed would otherwise wait endlessly.

mod editor;
mod keys;
mod listen;
mod pager;
mod queue;
mod session;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::job::Dispatch;
use listen::Listener;
pub(crate) use listen::Stream;
pub use listen::{Listen, group_id};
pub use session::is_deceptive;
use session::{Activity, Session};
use thalweg_socket::{LocalError, Peer};

/// Configuration of the server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Addresses to listen on.
    pub listen: Vec<Listen>,
    /// Permissions of Unix sockets.
    pub mode: u32,
    /// Group of Unix sockets, by number; see [`group_id`]. `None` keeps the process's group.
    pub group: Option<u32>,
    /// True to allow TCP addresses other than those of the local host. The CLI has no passwords.
    pub allow_remote: bool,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// Number of further sessions for local clients that run as root.
    pub root_sessions: usize,
    /// Configuration of interactive sessions.
    pub session: SessionConfig,
}

impl Default for ServerConfig {
    /// Returns the default: the default socket, mode 0660, 32 sessions.
    fn default() -> Self {
        Self {
            listen: vec![Listen::Unix(PathBuf::from(crate::DEFAULT_SOCKET))],
            mode: 0o660,
            group: None,
            allow_remote: false,
            max_sessions: 32,
            root_sessions: 4,
            session: SessionConfig::default(),
        }
    }
}

/// Configuration of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Greeting for interactive users; lines ended by `\n`. Empty for none.
    pub banner: String,
    /// The prompt.
    pub prompt: String,
    /// True to use colours on terminals that have them.
    pub colour: bool,
    /// True to stop at the end of each page.
    pub pager: bool,
    /// Number of lines of history in an interactive session.
    pub history: usize,
    /// Time after which a client that does not read its output is dropped.
    pub write_timeout: Duration,
    /// Time to wait for the terminal type, and for the end of an unfinished line of a `vppctl`
    /// session.
    pub patience: Duration,
    /// A session that has been idle for so long ends when all sessions are in use and another
    /// client comes.
    pub idle: Duration,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            banner: String::new(),
            prompt: "thalweg# ".to_owned(),
            colour: true,
            pager: true,
            history: 100,
            write_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(1),
            idle: Duration::from_secs(60),
        }
    }
}

/// Error of starting the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The Unix socket cannot be created.
    #[error("command line: {0}")]
    Local(#[from] LocalError),
    /// A system call failed for a TCP address.
    #[error("cannot listen for CLI sessions on {address}: {source}")]
    Tcp {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// A TCP address that other hosts can reach.
    #[error(
        "refusing to listen for CLI sessions on {address}: other hosts could reach it, and the \
         CLI has no passwords; use localhost, or allow it explicitly"
    )]
    Remote {
        /// The address.
        address: String,
    },
    /// A thread or wake-up socket could not be created.
    #[error("cannot start the CLI server: {0}")]
    Start(#[source] io::Error),
}

/// A running server. Dropping it ends all sessions and removes its sockets.
#[derive(Debug)]
pub struct Server {
    /// Ends the accepting thread.
    stop: UnixStream,
    accepting: Option<JoinHandle<()>>,
    sessions: Arc<Sessions>,
    addresses: Vec<Listen>,
}

impl Server {
    /// Listens, and serves sessions on threads of their own.
    ///
    /// # Errors
    /// If an address cannot be listened on; then none is.
    pub fn start<D: Dispatch>(config: ServerConfig, dispatch: D) -> Result<Self, ServerError> {
        let listeners = config
            .listen
            .iter()
            .map(|listen| Listener::open(listen, &config))
            .collect::<Result<Vec<_>, _>>()?;
        let addresses = listeners.iter().map(Listener::address).collect();
        let (stop, stopped) = UnixStream::pair().map_err(ServerError::Start)?;
        let sessions = Arc::new(Sessions::default());
        let acceptor = Acceptor {
            listeners,
            stopped,
            sessions: Arc::clone(&sessions),
            max_sessions: config.max_sessions,
            root_sessions: config.root_sessions,
            config: Arc::new(config.session),
            dispatch,
        };
        let accepting = std::thread::Builder::new()
            .name("cli-accept".to_owned())
            .spawn(move || acceptor.run())
            .map_err(ServerError::Start)?;
        Ok(Self { stop, accepting: Some(accepting), sessions, addresses })
    }

    /// Returns the addresses; a TCP port 0 is replaced by the port that was chosen.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().open.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.shutdown(Shutdown::Both);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
        let threads: Vec<_> = {
            let mut sessions = self.sessions.lock();
            sessions.open.values().for_each(|seat| seat.stream.shutdown());
            sessions.threads.drain().map(|(_, thread)| thread).collect()
        };
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// The running sessions.
#[derive(Debug, Default)]
struct Sessions(Mutex<Open>);

/// A session, as the acceptor sees it.
#[derive(Debug)]
struct Seat {
    stream: Stream,
    activity: Arc<Activity>,
    user: Option<Peer>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    open: HashMap<u64, Seat>,
    threads: HashMap<u64, JoinHandle<()>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Open> {
        // The maps are consistent wherever a panic could happen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a session from the list, however its thread ends.
struct Leave {
    sessions: Arc<Sessions>,
    id: u64,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut sessions = self.sessions.lock();
        sessions.open.remove(&self.id);
        // Detaches the thread, which is about to end.
        sessions.threads.remove(&self.id);
    }
}

struct Acceptor<D> {
    listeners: Vec<Listener>,
    stopped: UnixStream,
    sessions: Arc<Sessions>,
    max_sessions: usize,
    root_sessions: usize,
    config: Arc<SessionConfig>,
    dispatch: D,
}

impl<D: Dispatch> Acceptor<D> {
    fn run(self) {
        loop {
            let mut fds: Vec<PollFd<'_>> = self
                .listeners
                .iter()
                .map(|l| PollFd::from_borrowed_fd(l.as_fd(), PollFlags::IN))
                .collect();
            fds.push(PollFd::new(&self.stopped, PollFlags::IN));
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!(%error, "the CLI stops accepting sessions");
                    return;
                }
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready.last() == Some(&true) {
                return;
            }
            for (listener, _) in self.listeners.iter().zip(ready).filter(|(_, ready)| *ready) {
                match listener.accept() {
                    Ok(stream) => self.admit(stream),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a CLI session");
                        // Descriptors have probably run out: it will not pass at once.
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        }
    }

    /// The session that ends for one of a user: one that nobody uses, or of another user who has
    /// more.
    fn makes_room(&self, sessions: &Open, user: Option<Peer>) -> Option<u64> {
        let idle = sessions.open.iter().map(|(id, seat)| (seat.activity.idle(), *id)).max();
        let unused = idle.filter(|(idle, _)| *idle >= self.config.idle).map(|(_, id)| id);
        unused.or_else(|| {
            let seats = sessions.open.iter();
            let seats = seats.map(|(id, seat)| ((seat.activity.idle(), *id), seat.user));
            thalweg_socket::crowding(user, seats).map(|(_, id)| id)
        })
    }

    fn admit(&self, stream: Stream) {
        let mut sessions = self.sessions.lock();
        let user = stream.peer();
        let reserve = if user.is_some_and(Peer::is_root) { self.root_sessions } else { 0 };
        if sessions.open.len() >= self.max_sessions + reserve {
            let Some(id) = self.makes_room(&sessions, user) else {
                tracing::warn!(limit = self.max_sessions, "CLI session refused: too many");
                let text = format!("too many CLI sessions: at most {}\r\n", self.max_sessions);
                stream.last_words(text.as_bytes());
                return;
            };
            if let Some(old) = sessions.open.remove(&id) {
                let idle = old.activity.idle().as_secs();
                tracing::info!(idle_seconds = idle, "CLI session ended for a new one");
                old.stream.shutdown();
            }
        }
        let Ok(copy) = stream.try_clone() else { return };
        let activity = Arc::new(Activity::new());
        let id = sessions.next;
        sessions.next += 1;
        let seat = Seat { stream: copy, activity: Arc::clone(&activity), user };
        sessions.open.insert(id, seat);
        // If the thread cannot be created, dropping `leave` takes the lock.
        drop(sessions);
        let leave = Leave { sessions: Arc::clone(&self.sessions), id };
        let (config, dispatch) = (Arc::clone(&self.config), self.dispatch.clone());
        let thread = std::thread::Builder::new().name(format!("cli-{id}")).spawn(move || {
            let _leave = leave;
            match Session::new(stream, config, activity, dispatch) {
                Ok(session) => session.run(),
                Err(error) => tracing::warn!(%error, "cannot start a CLI session"),
            }
        });
        match thread {
            Ok(thread) => {
                let mut sessions = self.sessions.lock();
                // A session may have ended already.
                if sessions.open.contains_key(&id) {
                    sessions.threads.insert(id, thread);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot start a CLI session"),
        }
    }
}
