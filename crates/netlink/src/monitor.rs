//! Changes of links.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::link::{Link, RTM_DELLINK, RTM_NEWLINK};
use crate::socket::{Port, Protocol};
use crate::wire::Messages;

/// Multicast group of link changes (`RTNLGRP_LINK`).
const GROUP_LINK: u32 = 1;
/// More than the kernel puts into one datagram.
const DATAGRAM_BYTES: usize = 64 * 1024;

/// A link change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkChange {
    /// A device appeared or changed; also sent for irrelevant changes.
    Changed(Link),
    /// A device left the namespace.
    Gone(Link),
    /// Changes were lost: query the relevant devices again.
    Lost,
}

/// A subscription to link changes of the namespace in which it was opened.
#[derive(Debug)]
pub struct LinkMonitor {
    port: Port,
    buffer: Box<[u8]>,
    waiting: VecDeque<LinkChange>,
}

impl LinkMonitor {
    /// Subscribes to the link changes of the calling thread's namespace.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn open() -> io::Result<Self> {
        let port = Port::open(Protocol::Route)?;
        port.join(GROUP_LINK)?;
        let buffer = vec![0; DATAGRAM_BYTES].into_boxed_slice();
        Ok(Self { port, buffer, waiting: VecDeque::new() })
    }

    /// Pending changes; never blocks.
    pub fn changes(&mut self) -> impl Iterator<Item = LinkChange> {
        std::iter::from_fn(|| {
            loop {
                if let Some(change) = self.waiting.pop_front() {
                    return Some(change);
                }
                match self.port.receive(&mut self.buffer) {
                    Ok(length) if length <= self.buffer.len() => self.read(length),
                    Err(Errno::AGAIN) => return None,
                    // The kernel had more changes than the socket or the buffer holds.
                    Ok(_) | Err(Errno::NOBUFS) => return Some(LinkChange::Lost),
                    Err(error) => {
                        tracing::error!("link changes are no longer detected: {error}");
                        return None;
                    }
                }
            }
        })
    }

    fn read(&mut self, length: usize) {
        for raw in Messages::new(&self.buffer[..length]).map_while(Result::ok) {
            let change = match raw.header.kind {
                RTM_NEWLINK => LinkChange::Changed,
                RTM_DELLINK => LinkChange::Gone,
                _ => continue,
            };
            self.waiting.extend(Link::parse(raw.payload).map(change));
        }
    }
}

impl AsFd for LinkMonitor {
    /// Descriptor to poll: readable when changes are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}
