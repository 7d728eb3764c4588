//! How datagrams reach a collector.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use thiserror::Error;

/// Why a datagram was not sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// The send buffer is full.
    #[error("the send buffer is full")]
    WouldBlock,
    /// Nobody listens there.
    #[error("the collector refuses datagrams: nothing listens on its port")]
    Refused,
    /// The socket is broken and will be opened again, but not yet.
    #[error("there is no way to the collector; the next attempt follows within a second")]
    Waiting,
    /// Something else.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock => SendError::WouldBlock,
            ErrorKind::ConnectionRefused => SendError::Refused,
            _ => SendError::Io(error),
        }
    }
}

/// Sends datagrams to one collector and never waits.
pub trait Transport {
    /// Sends one datagram.
    ///
    /// # Errors
    /// When it was not sent. It is not tried again.
    fn send(&mut self, datagram: &[u8], now: Instant) -> Result<(), SendError>;
}

/// A connected, non-blocking UDP socket, opened again when it breaks.
#[derive(Debug)]
pub struct UdpTransport {
    collector: SocketAddr,
    bind: Option<IpAddr>,
    socket: Option<UdpSocket>,
    retry_at: Option<Instant>,
}

/// An interface or a route may come later; there is no point in trying for each datagram.
const RETRY: Duration = Duration::from_secs(1);

impl UdpTransport {
    /// Sends to `collector`, from `bind` if given. The socket is opened with the first datagram.
    #[must_use]
    pub fn new(collector: SocketAddr, bind: Option<IpAddr>) -> Self {
        UdpTransport { collector, bind, socket: None, retry_at: None }
    }

    fn open(&self) -> io::Result<UdpSocket> {
        let any = match self.collector {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((self.bind.unwrap_or(any), 0))?;
        socket.set_nonblocking(true)?;
        socket.connect(self.collector)?;
        Ok(socket)
    }
}

impl Transport for UdpTransport {
    fn send(&mut self, datagram: &[u8], now: Instant) -> Result<(), SendError> {
        let socket = match &self.socket {
            Some(socket) => socket,
            None => {
                if self.retry_at.is_some_and(|at| now < at) {
                    return Err(SendError::Waiting);
                }
                self.retry_at = Some(now + RETRY);
                self.socket.insert(self.open()?)
            }
        };
        match socket.send(datagram).map_err(SendError::from) {
            Ok(_) => Ok(()),
            Err(SendError::Io(error)) => {
                // The route or the local address may be gone: start afresh.
                self.socket = None;
                self.retry_at = Some(now + RETRY);
                Err(SendError::Io(error))
            }
            Err(error) => Err(error),
        }
    }
}
