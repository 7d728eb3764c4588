//! Notices of changes in a namespace: links, their addresses and their neighbours.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::address::{LinkAddress, RTM_DELADDR, RTM_NEWADDR};
use crate::label::{LabelInput, RTM_NEWNETCONF};
use crate::link::{Link, RTM_DELLINK, RTM_NEWLINK};
use crate::neighbour::{Neighbour, RTM_DELNEIGH, RTM_NEWNEIGH};
use crate::socket::{Port, Protocol};
use crate::wire::Messages;

/// More than the kernel puts into one datagram.
const DATAGRAM_BYTES: usize = 64 * 1024;

/// A multicast group of notices (`RTNLGRP_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Links.
    Links,
    /// Neighbours of both families.
    Neighbours,
    /// IPv4 addresses.
    Ip4Addresses,
    /// IPv6 addresses.
    Ip6Addresses,
    /// Settings of links for labelled packets.
    LabelInputs,
}

impl Group {
    fn number(self) -> u32 {
        match self {
            Group::Links => 1,
            Group::Neighbours => 3,
            Group::Ip4Addresses => 5,
            Group::Ip6Addresses => 9,
            Group::LabelInputs => 29,
        }
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A link appeared or changed; also sent for irrelevant changes.
    Link(Link),
    /// A link left the namespace.
    LinkGone(Link),
    /// A link has an address, which may be new or changed.
    Address(LinkAddress),
    /// A link lost an address.
    AddressGone(LinkAddress),
    /// A neighbour appeared or changed.
    Neighbour(Neighbour),
    /// A neighbour went away.
    NeighbourGone(Neighbour),
    /// A link takes labelled packets, or does no more.
    LabelInput(LabelInput),
    /// Notices were lost: ask for all there is.
    Lost,
}

impl Notice {
    pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Notice> {
        match kind {
            RTM_NEWLINK => Link::parse(payload).map(Notice::Link),
            RTM_DELLINK => Link::parse(payload).map(Notice::LinkGone),
            RTM_NEWADDR => LinkAddress::parse(payload).map(Notice::Address),
            RTM_DELADDR => LinkAddress::parse(payload).map(Notice::AddressGone),
            RTM_NEWNEIGH => Neighbour::parse(payload).map(Notice::Neighbour),
            RTM_DELNEIGH => Neighbour::parse(payload).map(Notice::NeighbourGone),
            RTM_NEWNETCONF => LabelInput::parse(payload).map(Notice::LabelInput),
            _ => None,
        }
    }
}

/// A subscription to notices of the namespace in which it was opened.
#[derive(Debug)]
pub struct Notices {
    port: Port,
    buffer: Box<[u8]>,
    waiting: VecDeque<Notice>,
    failed: bool,
}

impl Notices {
    /// Subscribes to groups of the calling thread's namespace.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn open(groups: &[Group]) -> io::Result<Self> {
        let port = Port::open(Protocol::Route)?;
        for group in groups {
            port.join(group.number())?;
        }
        let buffer = vec![0; DATAGRAM_BYTES].into_boxed_slice();
        Ok(Self { port, buffer, waiting: VecDeque::new(), failed: false })
    }

    /// Sets the size in bytes of the buffer in which the kernel keeps notices that are not yet
    /// taken; more than the system's limit is granted to the privileged only.
    pub fn set_receive_buffer(&self, bytes: usize) {
        self.port.set_receive_buffer(bytes);
    }

    /// Returns true once the socket has failed: no more notices come, and others have to be opened.
    #[must_use]
    pub fn have_failed(&self) -> bool {
        self.failed
    }

    /// Pending notices, in the order of changes; never blocks.
    pub fn take(&mut self) -> impl Iterator<Item = Notice> {
        std::iter::from_fn(|| {
            loop {
                if let Some(notice) = self.waiting.pop_front() {
                    return Some(notice);
                }
                match self.port.receive(&mut self.buffer) {
                    Ok(length) if length <= self.buffer.len() => self.read(length),
                    Err(Errno::AGAIN) => return None,
                    // The kernel had more notices than the socket or the buffer holds.
                    Ok(_) | Err(Errno::NOBUFS) => return Some(Notice::Lost),
                    Err(error) => {
                        if !std::mem::replace(&mut self.failed, true) {
                            tracing::error!("the kernel's changes are not seen for now: {error}");
                        }
                        return None;
                    }
                }
            }
        })
    }

    fn read(&mut self, length: usize) {
        for raw in Messages::new(&self.buffer[..length]).map_while(Result::ok) {
            self.waiting.extend(Notice::parse(raw.header.kind, raw.payload));
        }
    }
}

impl AsFd for Notices {
    /// Descriptor to poll: readable when notices are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_pending_where_nothing_changes() {
        let groups = [
            Group::Links,
            Group::Neighbours,
            Group::Ip4Addresses,
            Group::Ip6Addresses,
            Group::LabelInputs,
        ];
        let mut notices = Notices::open(&groups).unwrap();
        notices.set_receive_buffer(1 << 20);
        // Others may change something at any time: the list ends nevertheless.
        assert!(notices.take().all(|notice| notice != Notice::Lost));
    }

    #[test]
    fn a_message_of_another_kind_is_no_notice() {
        assert_eq!(Notice::parse(24, &[0; 12]), None);
        assert_eq!(Notice::parse(RTM_NEWLINK, &[0; 4]), None);
    }
}
