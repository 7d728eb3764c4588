//! Link change events.

use std::os::fd::{AsFd, BorrowedFd};

use thalweg_netlink::{LinkChange, LinkMonitor as Monitor};

use crate::info::{IfInfo, LinkError};

/// A link event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A device appeared or changed; also sent for irrelevant changes.
    Changed(IfInfo),
    /// A device left the namespace, and was like this.
    Gone(IfInfo),
    /// Events were lost: query the relevant devices again.
    Lost,
}

/// A subscription to link changes of the namespace in which it was opened.
#[derive(Debug)]
pub struct LinkMonitor(Monitor);

impl LinkMonitor {
    /// Subscribes to the link changes of the calling thread's namespace.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn open() -> Result<Self, LinkError> {
        let monitor = Monitor::open();
        monitor.map(Self).map_err(|source| LinkError::Netlink { what: "watch devices", source })
    }

    /// Returns true once the socket has failed: no more events come, and another has to be opened.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    /// Pending events; never blocks.
    pub fn events(&mut self) -> impl Iterator<Item = LinkEvent> {
        self.0.changes().map(|change| match change {
            LinkChange::Changed(link) => LinkEvent::Changed(link.into()),
            LinkChange::Gone(link) => LinkEvent::Gone(link.into()),
            LinkChange::Lost => LinkEvent::Lost,
        })
    }
}

impl AsFd for LinkMonitor {
    /// Descriptor to poll: readable when events are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
