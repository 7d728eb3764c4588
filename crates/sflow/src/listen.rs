//! A UDP socket that sFlow datagrams come in by.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, sockopt};
use thiserror::Error;

use crate::text::Moment;

/// Address to listen at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenOn {
    /// IPv4 and IPv6 with one socket, or IPv4 alone where there is no IPv6.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
    /// One address.
    Address(IpAddr),
}

/// Reason why listening failed.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The port cannot be had.
    #[error("cannot listen on UDP port {port}{}: {why}", at(.address))]
    Bind {
        /// The address, if it is one of several.
        address: Option<IpAddr>,
        /// The port.
        port: u16,
        /// Reason.
        why: io::Error,
    },
    /// The socket broke.
    #[error("receiving failed: {0}")]
    Receive(io::Error),
}

fn at(address: &Option<IpAddr>) -> String {
    address.map(|address| format!(" of {address}")).unwrap_or_default()
}

/// A datagram that came in.
#[derive(Debug, Clone, Copy)]
pub struct Received<'b> {
    /// The sender.
    pub source: SocketAddr,
    /// Time of arrival.
    pub time: Moment,
    /// The datagram.
    pub payload: &'b [u8],
    /// True if another one is known to be there already.
    pub more: bool,
}

/// Receives datagrams until it is asked to stop.
#[derive(Debug)]
pub struct Listener {
    socket: UdpSocket,
}

/// A stop that nothing wakes the socket for is seen this late.
pub(crate) const STOP_LATENCY: Duration = Duration::from_millis(200);

/// No datagram is larger.
const LARGEST: usize = 65_536;

/// Bursts of samples of many agents should fit; the kernel may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

impl Listener {
    /// Opens the socket. Port 0 picks a free one.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn bind(on: ListenOn, port: u16) -> Result<Self, ListenError> {
        let socket = match on {
            ListenOn::Any => open(Ipv6Addr::UNSPECIFIED.into(), port, false).or_else(|error| {
                // No IPv6 in this kernel. A port that is taken stays an error.
                match error.kind() {
                    ErrorKind::AddrInUse | ErrorKind::PermissionDenied => Err(error),
                    _ => open(Ipv4Addr::UNSPECIFIED.into(), port, false),
                }
            }),
            ListenOn::V4 => open(Ipv4Addr::UNSPECIFIED.into(), port, false),
            ListenOn::V6 => open(Ipv6Addr::UNSPECIFIED.into(), port, true),
            ListenOn::Address(address) => open(address, port, true),
        };
        match socket {
            Ok(socket) => Ok(Listener { socket }),
            Err(why) => {
                let address =
                    if let ListenOn::Address(address) = on { Some(address) } else { None };
                Err(ListenError::Bind { address, port, why })
            }
        }
    }

    /// The address that the socket has.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Calls `handle` for each datagram, until `stop` is set or `handle` breaks. `stop` is looked
    /// at five times a second, and at once after a signal or an empty datagram.
    ///
    /// # Errors
    /// When the socket breaks.
    pub fn run(
        &self,
        stop: &AtomicBool,
        mut handle: impl FnMut(Received<'_>) -> ControlFlow<()>,
    ) -> Result<(), ListenError> {
        let (mut buf, mut ahead) = (vec![0; LARGEST], vec![0; LARGEST]);
        while !stop.load(Ordering::Acquire) {
            let Some(mut next) = self.receive(&mut buf, RecvFlags::empty())? else { continue };
            // Look ahead, so that a printer can wait for the last one of a burst.
            loop {
                let (length, from, time) = next;
                let following = self.receive(&mut ahead, RecvFlags::DONTWAIT)?;
                // IPv4 senders come in as ::ffff:a.b.c.d by a socket for both.
                let source = SocketAddr::new(from.ip().to_canonical(), from.port());
                let (payload, more) = (&buf[..length], following.is_some());
                if handle(Received { source, time, payload, more }).is_break() {
                    return Ok(());
                }
                let Some(following) = following else { break };
                next = following;
                std::mem::swap(&mut buf, &mut ahead);
            }
        }
        Ok(())
    }

    /// A datagram with its sender and time; `None` when none came, or one without a byte.
    fn receive(
        &self,
        buf: &mut [u8],
        flags: RecvFlags,
    ) -> Result<Option<(usize, SocketAddr, Moment)>, ListenError> {
        match rustix::net::recvfrom(&self.socket, buf, flags) {
            Ok((_, 0, _)) => Ok(None),
            Ok((_, length, from)) => {
                let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                Ok(from.map(|from| (length.min(LARGEST), from, Moment::now())))
            }
            Err(error) => {
                let error = io::Error::from(error);
                match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                        Ok(None)
                    }
                    _ => Err(ListenError::Receive(error)),
                }
            }
        }
    }
}

/// Asks for room for bursts: beyond the system's limit if we may, else up to it. Less is no reason
/// to give up.
pub(crate) fn grow_receive_buffer(socket: impl AsFd) {
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER);
    }
}

fn open(address: IpAddr, port: u16, v6_only: bool) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(
        family,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(ipproto::UDP),
    )?;
    if address.is_ipv6() {
        // The system's default depends on net.ipv6.bindv6only.
        sockopt::set_ipv6_v6only(&socket, v6_only)?;
    }
    grow_receive_buffer(&socket);
    rustix::net::bind(&socket, &SocketAddr::new(address, port))?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(STOP_LATENCY))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_come_in_by_one_socket() {
        let listener = Listener::bind(ListenOn::Any, 0).unwrap();
        let local = listener.local_addr().unwrap();
        let mut expected = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        if local.is_ipv6() {
            expected.push(Ipv6Addr::LOCALHOST.into());
        }
        for address in &expected {
            let sender = UdpSocket::bind((*address, 0)).unwrap();
            sender.send_to(b"", (*address, local.port())).unwrap();
            sender.send_to(b"datagram", (*address, local.port())).unwrap();
        }
        let mut sources = Vec::new();
        let count = expected.len();
        listener
            .run(&AtomicBool::new(false), |received| {
                assert_eq!(received.payload, b"datagram");
                assert!(received.time.seconds > 1_500_000_000);
                sources.push(received.source.ip());
                if sources.len() == count {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
        assert_eq!(sources, expected);
    }

    #[test]
    fn it_stops_when_told() {
        let listener = Listener::bind(ListenOn::V4, 0).unwrap();
        let stop = AtomicBool::new(true);
        listener.run(&stop, |_| ControlFlow::Continue(())).unwrap();
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let first = Listener::bind(ListenOn::Address(Ipv4Addr::LOCALHOST.into()), 0).unwrap();
        let port = first.local_addr().unwrap().port();
        let error = Listener::bind(ListenOn::Any, port).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on UDP port {port}:")), "{error}");
    }
}
