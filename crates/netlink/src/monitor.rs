//! Changes of links.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::link::Link;
use crate::notices::{Group, Notice, Notices};

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
pub struct LinkMonitor(Notices);

impl LinkMonitor {
    /// Subscribes to the link changes of the calling thread's namespace.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn open() -> io::Result<Self> {
        Notices::open(&[Group::Links]).map(Self)
    }

    /// Returns true once the socket has failed: no more changes come, and another has to be opened.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.have_failed()
    }

    /// Pending changes; never blocks.
    pub fn changes(&mut self) -> impl Iterator<Item = LinkChange> {
        self.0.take().filter_map(|notice| match notice {
            Notice::Link(link) => Some(LinkChange::Changed(link)),
            Notice::LinkGone(link) => Some(LinkChange::Gone(link)),
            Notice::Lost => Some(LinkChange::Lost),
            _ => None,
        })
    }
}

impl AsFd for LinkMonitor {
    /// Descriptor to poll: readable when changes are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
