//! sFlow datagrams that pass an interface, for any receiver.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, socket,
};
use pcap_parser::Linktype;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use thiserror::Error;

use crate::frame::{Extracted, extract};
use crate::listen::{ListenError, Received, STOP_LATENCY, grow_receive_buffer};
use crate::merged::split_first;
use crate::text::Moment;

/// Reason why an interface cannot be listened at.
#[derive(Debug, Error)]
pub enum SniffError {
    /// No interface has the name.
    #[error("no interface {name}; available: {there}")]
    NoInterface {
        /// The name.
        name: String,
        /// Existing names.
        there: String,
    },
    /// The socket cannot be had.
    #[error("cannot capture on {name}: {why} (root or CAP_NET_RAW is required)")]
    Open {
        /// The interface.
        name: String,
        /// Reason.
        why: io::Error,
    },
}

/// Counts of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SniffStats {
    /// Frames.
    pub frames: u64,
    /// sFlow datagrams.
    pub datagrams: u64,
    /// IP fragments, which are passed over.
    pub fragments: u64,
}

/// A packet socket at one interface. The interface is not made promiscuous: what arrives is what
/// the host receives and sends there.
#[derive(Debug)]
pub struct Sniffer {
    socket: std::os::fd::OwnedFd,
    port: u16,
    link: Linktype,
    stats: SniffStats,
}

/// Hardware types (ARPHRD) whose frames begin with an IP header.
const WITHOUT_LINK_HEADER: [u16; 4] = [512, 768, 776, 65_534];
const LOOPBACK: u16 = 772;
/// `sll_pkttype` of what this host sends.
const OUTGOING: u8 = 4;

impl Sniffer {
    /// Opens an interface. Datagrams to UDP `port` are sFlow.
    ///
    /// # Errors
    /// When there is no such interface, or no right to listen at it.
    pub fn open(name: &str, port: u16) -> Result<Self, SniffError> {
        let failed = |error: Errno| SniffError::Open { name: name.to_owned(), why: error.into() };
        let mut there = Vec::new();
        let mut address = None;
        for entry in getifaddrs().map_err(failed)? {
            let Some(link) = entry.address.as_ref().and_then(|a| a.as_link_addr()) else {
                continue;
            };
            if entry.interface_name == name {
                address = Some(*link);
            }
            there.push(entry.interface_name);
        }
        let Some(address) = address else {
            let there = there.join(", ");
            return Err(SniffError::NoInterface { name: name.to_owned(), there });
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
            .map_err(failed)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(STOP_LATENCY))
            .map_err(|error| failed(Errno::from_raw(error.raw_os_error())))?;
        grow_receive_buffer(&socket);
        // The address names no protocol; the socket keeps "all".
        bind(socket.as_raw_fd(), &address).map_err(failed)?;
        let bare = WITHOUT_LINK_HEADER.contains(&address.hatype());
        let link = if bare { Linktype::RAW } else { Linktype::ETHERNET };
        Ok(Sniffer { socket, port, link, stats: SniffStats::default() })
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> SniffStats {
        self.stats
    }

    /// Calls `handle` for each datagram, until `stop` is set or `handle` breaks. `stop` is looked
    /// at five times a second.
    ///
    /// # Errors
    /// When the interface goes away.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        mut handle: impl FnMut(Received<'_>) -> ControlFlow<()>,
    ) -> Result<(), ListenError> {
        let mut buf = vec![0; 65_536 + 64];
        while !stop.load(Ordering::Acquire) {
            let (length, from) = match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut buf) {
                Ok(received) => received,
                Err(error) => {
                    let error = io::Error::from(error);
                    match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                            continue;
                        }
                        _ => return Err(ListenError::Receive(error)),
                    }
                }
            };
            // Loopback shows each packet twice: as it leaves and as it arrives.
            if from.is_some_and(|a| a.hatype() == LOOPBACK && a.pkttype() == OUTGOING) {
                continue;
            }
            self.stats.frames += 1;
            let data = &buf[..length.min(buf.len())];
            let (source, payload) = match extract(self.link, data, self.port) {
                Extracted::Datagram { source, data } => (source, data),
                Extracted::Fragment => {
                    self.stats.fragments += 1;
                    continue;
                }
                Extracted::Cut | Extracted::Other | Extracted::Link(_) => continue,
            };
            let mut rest = payload;
            loop {
                let (payload, behind) = split_first(rest);
                self.stats.datagrams += 1;
                let more = !behind.is_empty();
                let received = Received { source, time: Moment::now(), payload, more };
                if handle(received).is_break() {
                    return Ok(());
                }
                if !more {
                    break;
                }
                rest = behind;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_named_with_those_that_are() {
        let error = Sniffer::open("no-such-if", 6343).unwrap_err().to_string();
        assert!(error.starts_with("no interface no-such-if; available: "), "{error}");
    }

    /// Without the right to capture, the message says what is missing.
    #[test]
    fn datagrams_on_loopback_are_seen_once() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = receiver.local_addr().unwrap().port();
        let mut sniffer = match Sniffer::open("lo", port) {
            Ok(sniffer) => sniffer,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("CAP_NET_RAW") || text.contains("no interface"), "{text}");
                return;
            }
        };
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for payload in [b"one", b"two"] {
            sender.send_to(payload, receiver.local_addr().unwrap()).unwrap();
        }
        let mut seen = Vec::new();
        sniffer
            .run(&AtomicBool::new(false), |received| {
                seen.push(received.payload.to_vec());
                assert_eq!(received.source, sender.local_addr().unwrap());
                if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(seen, [b"one", b"two"]);
        assert_eq!(sniffer.stats().datagrams, 2);
    }
}
