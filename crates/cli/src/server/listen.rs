//! Sockets of either kind, to listen on and to connect.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::net::SocketType;

use super::{ServerConfig, ServerError};
use thalweg_socket::{LocalConfig, LocalSocket, Peer};

/// Address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP address, as `host:port`.
    Tcp(String),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => f.write_str(address),
        }
    }
}

impl FromStr for Listen {
    type Err = std::convert::Infallible;

    /// Parses a path if it contains `/` or no `:`, else `host:port`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.contains('/') || !text.contains(':') {
            true => Self::Unix(text.into()),
            false => Self::Tcp(text.to_owned()),
        })
    }
}

/// Returns the id of a group, by its name or number in `/etc/group`.
pub fn group_id(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let by_name = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next() == Some(name);
        fields.nth(1).filter(|_| found)?.parse().ok()
    });
    by_name.or_else(|| name.parse().ok())
}

#[derive(Debug)]
pub(super) enum Listener {
    Unix(LocalSocket),
    Tcp(TcpListener),
}

impl Listener {
    pub(super) fn open(listen: &Listen, config: &ServerConfig) -> Result<Self, ServerError> {
        match listen {
            Listen::Unix(path) => {
                let ServerConfig { mode, group, .. } = *config;
                let config = LocalConfig { kind: SocketType::STREAM, mode, group };
                Ok(Self::Unix(LocalSocket::listen(path, config)?))
            }
            Listen::Tcp(address) => tcp(address, config.allow_remote),
        }
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Unix(socket) => Stream::Unix(socket.accept()?.into()),
            Self::Tcp(socket) => {
                let stream = socket.accept()?.0;
                // An echoed character must not wait for the next.
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        })
    }

    pub(super) fn address(&self) -> Listen {
        match self {
            Self::Unix(socket) => Listen::Unix(socket.path().to_owned()),
            Self::Tcp(socket) => {
                Listen::Tcp(socket.local_addr().map(|a| a.to_string()).unwrap_or_default())
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
        }
    }
}

fn tcp(address: &str, allow_remote: bool) -> Result<Listener, ServerError> {
    let fail = |source| ServerError::Tcp { address: address.to_owned(), source };
    let resolved: Vec<_> = address.to_socket_addrs().map_err(fail)?.collect();
    if !allow_remote && resolved.iter().any(|a| !a.ip().is_loopback()) {
        return Err(ServerError::Remote { address: address.to_owned() });
    }
    let socket = TcpListener::bind(&resolved[..]).map_err(fail)?;
    socket.set_nonblocking(true).map_err(fail)?;
    Ok(Listener::Tcp(socket))
}

/// A connection to a client.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Connects to a server.
    pub(crate) fn connect(to: &Listen) -> io::Result<Self> {
        match to {
            Listen::Unix(path) => thalweg_socket::connect(path).map(Self::Unix),
            Listen::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// The local user at the other end; `None` for TCP.
    pub(super) fn peer(&self) -> Option<Peer> {
        let Self::Unix(stream) = self else { return None };
        thalweg_socket::peer_of(stream).ok()
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_read_timeout(timeout),
            Self::Tcp(s) => s.set_read_timeout(timeout),
        }
    }

    /// Shuts down the sending direction.
    pub(crate) fn end_writing(&self) {
        let _ = match self {
            Self::Unix(s) => s.shutdown(Shutdown::Write),
            Self::Tcp(s) => s.shutdown(Shutdown::Write),
        };
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_nonblocking(true),
            Self::Tcp(s) => s.set_nonblocking(true),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(s) => Self::Unix(s.try_clone()?),
            Self::Tcp(s) => Self::Tcp(s.try_clone()?),
        })
    }

    pub(super) fn shutdown(&self) {
        let _ = match self {
            Self::Unix(s) => s.shutdown(Shutdown::Both),
            Self::Tcp(s) => s.shutdown(Shutdown::Both),
        };
    }

    /// Writes as much as fits the socket's buffer, before the stream is dropped.
    pub(super) fn last_words(mut self, text: &[u8]) {
        if self.set_nonblocking().is_ok() {
            let _ = self.write(text);
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.read(buffer),
            Self::Tcp(s) => s.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.write(bytes),
            Self::Tcp(s) => s.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
        }
    }
}
