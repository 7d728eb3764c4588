//! Ways in which datagrams reach a collector.

use std::io::{self, ErrorKind, IoSlice};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Instant;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};

use super::{Batch, CollectorStats};

/// Takes datagrams and never waits.
pub trait Transport {
    /// Sends datagrams, and keeps the books about what comes of it. None is tried again later.
    fn send(&mut self, batch: &Batch, now: Instant);
}

/// Datagrams in one system call at most.
const CALL: usize = 32;
/// From this number of consecutive datagrams of equal length on, the kernel splits them (UDP GSO).
/// Captures on the way show them uncut, so it is for rates at which single ones do not matter.
const RUN: usize = 32;
/// Requested send buffer in bytes: a batch for a device that is busy.
const SEND_BUFFER: usize = 4 << 20;

/// A connected UDP socket that sends many datagrams at once.
#[derive(Debug)]
pub(super) struct UdpSender {
    socket: UdpSocket,
    /// The way to the collector can cut datagrams out of one send.
    segments: bool,
}

impl UdpSender {
    /// `socket` is connected.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // More than the system's limit needs a right that is not needed otherwise.
        if setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER).is_err() {
            let _ = setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER);
        }
        Ok(UdpSender { socket, segments: true })
    }

    /// Sends a batch and counts what became of it.
    ///
    /// # Errors
    /// If the socket is no longer usable. Unsent datagrams are counted.
    pub(super) fn send(&mut self, batch: &Batch, stats: &mut CollectorStats) -> io::Result<()> {
        let mut at = 0;
        // Errors are answers to an earlier datagram, which is lost, or to this one, which has not
        // left yet: it is tried once more.
        let (mut refused, mut unreachable) = (false, false);
        while at < batch.len() {
            let left = batch.len() - at;
            let run = if self.segments && left >= RUN { batch.run(at) } else { 1 };
            let result = match run {
                RUN.. => self.send_run(batch, at, run).map(|()| run),
                _ => self.send_each(batch, at, left.min(CALL)),
            };
            match result {
                Ok(sent) => {
                    stats.datagrams += sent as u64;
                    stats.bytes += batch.span(at, at + sent).len() as u64;
                    at += sent;
                    (refused, unreachable) = (false, false);
                }
                Err(Errno::CONNREFUSED) => {
                    // Said twice, this one goes the same way.
                    stats.refused += 1;
                    stats.failed(1, &"port unreachable: nothing listens there");
                    at += usize::from(refused);
                    refused = !refused;
                }
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    stats.would_block += left as u64;
                    stats.failed(left, &"the send buffer is full");
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                // An ICMP error, by a router or a firewall on the way: the socket is as good as
                // before. The next call reports a missing route of this host again.
                Err(error) if is_answer(error) && !unreachable => {
                    stats.failed(1, &io::Error::from(error));
                    unreachable = true;
                }
                Err(error) if is_answer(error) => {
                    stats.failed(left - 1, &io::Error::from(error));
                    return Err(error.into());
                }
                Err(_) if run >= RUN => self.segments = false,
                Err(Errno::MSGSIZE) => {
                    stats.failed(1, &"datagram larger than the path MTU");
                    at += 1;
                }
                Err(error) => {
                    stats.failed(left, &io::Error::from(error));
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Sends `count` datagrams in one call. Returns how many have left.
    fn send_each(&self, batch: &Batch, at: usize, count: usize) -> Result<usize, Errno> {
        if count == 1 {
            return match self.socket.send(batch.span(at, at + 1)) {
                Ok(_) => Ok(1),
                Err(error) => Err(errno(&error)),
            };
        }
        let slices: [IoSlice<'_>; CALL] = std::array::from_fn(|i| {
            IoSlice::new(if i < count { batch.span(at + i, at + i + 1) } else { &[] })
        });
        let mut control: [SendAncillaryBuffer<'_, '_, '_>; CALL] = Default::default();
        let mut messages: Vec<MMsgHdr<'_>> = slices
            .iter()
            .zip(&mut control)
            .take(count)
            .map(|(slice, control)| MMsgHdr::new(std::slice::from_ref(slice), control))
            .collect();
        sendmmsg(&self.socket, &mut messages, SendFlags::empty())
    }

    /// Makes the kernel cut a run of datagrams out of one.
    fn send_run(&self, batch: &Batch, at: usize, count: usize) -> Result<(), Errno> {
        let length = batch.span(at, at + 1).len() as u16;
        let slices = [IoSlice::new(batch.span(at, at + count))];
        let segments = [ControlMessage::UdpGsoSegments(&length)];
        let flags = MsgFlags::MSG_DONTWAIT;
        match sendmsg::<()>(self.socket.as_raw_fd(), &slices, &segments, flags, None) {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_raw_os_error(error as i32)),
        }
    }
}

/// True if an ICMP error is reported as this (Linux's `icmp_err_convert` and `icmpv6_err_convert`).
fn is_answer(error: Errno) -> bool {
    matches!(
        error,
        Errno::NETUNREACH
            | Errno::HOSTUNREACH
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::NOPROTOOPT
            | Errno::PROTO
            | Errno::ACCESS
    )
}

fn errno(error: &io::Error) -> Errno {
    let fallback = || match error.kind() {
        ErrorKind::WouldBlock => Errno::AGAIN,
        _ => Errno::IO,
    };
    Errno::from_io_error(error).unwrap_or_else(fallback)
}
