//! Link change events.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::codec::{self, RTM_DELLINK, RTM_NEWLINK};
use super::info::{IfInfo, receive};
use crate::{Error, sys};

/// A link event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A device appeared or changed; also sent for irrelevant changes.
    Changed(IfInfo),
    /// A device left the namespace.
    Gone {
        /// Its index.
        ifindex: u32,
        /// Its last name.
        name: String,
    },
    /// Events were lost: query the relevant devices again.
    Lost,
}

/// A subscription to link changes of the namespace in which it was opened.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: OwnedFd,
    buffer: Box<[u8]>,
    waiting: VecDeque<LinkEvent>,
}

impl LinkMonitor {
    /// Subscribes to the link changes of the calling thread's namespace.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn open() -> Result<Self, Error> {
        let error = |source| Error::Netlink { what: "watch devices", source };
        let socket =
            sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE).map_err(error)?;
        sys::bind_netlink(socket.as_fd(), libc::RTMGRP_LINK as u32).map_err(error)?;
        let buffer = vec![0; 64 * 1024].into_boxed_slice();
        Ok(Self { socket, buffer, waiting: VecDeque::new() })
    }

    /// Pending events; never blocks.
    pub fn events(&mut self) -> impl Iterator<Item = LinkEvent> {
        std::iter::from_fn(|| {
            loop {
                if let Some(event) = self.waiting.pop_front() {
                    return Some(event);
                }
                match receive(self.socket.as_fd(), &mut self.buffer) {
                    Ok(len) => self.read(len),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The kernel had more events than the socket or the buffer holds.
                    Err(error)
                        if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EMSGSIZE)) =>
                    {
                        return Some(LinkEvent::Lost);
                    }
                    Err(error) => {
                        tracing::error!("link changes are no longer detected: {error}");
                        return None;
                    }
                }
            }
        })
    }

    fn read(&mut self, len: usize) {
        for message in codec::messages(&self.buffer[..len]) {
            let Some(info) = codec::link(message.body) else { continue };
            match message.kind {
                RTM_NEWLINK => self.waiting.push_back(LinkEvent::Changed(info)),
                RTM_DELLINK => {
                    let IfInfo { ifindex, name, .. } = info;
                    self.waiting.push_back(LinkEvent::Gone { ifindex, name });
                }
                _ => {}
            }
        }
    }
}

impl AsFd for LinkMonitor {
    /// Descriptor to poll: readable when events are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
