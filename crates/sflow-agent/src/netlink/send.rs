//! Sending to multicast groups, several messages to a datagram.

use super::{Channel, missing};
use rustix::io::Errno;
use std::io;
use thalweg_netlink::wire::Header;
use thalweg_netlink::{Family, HIGHEST_SENDABLE_GROUP, Port, Protocol, rows, socket_table};
use thiserror::Error;

/// Requested send buffer in bytes.
const SEND_BUFFER: usize = 1 << 20;
/// Most bytes of a datagram of several messages: half of what hsflowd reads at a time. The system
/// allocates it in one piece, with some hundred bytes of its own.
pub const DATAGRAM_BYTES: usize = 7 * 1024;

/// Reason why nothing can be sent.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The kernel has no such family, or not here.
    #[error("{}", missing(*.0))]
    Missing(Channel),
    /// The family has another shape than expected.
    #[error("netlink family {family} has no group `{group}'")]
    NoGroup {
        /// The family.
        family: &'static str,
        /// The group.
        group: &'static str,
    },
    /// The number of the group is too high.
    #[error(
        "netlink group {0} cannot be sent to: {HIGHEST_SENDABLE_GROUP} is the highest. Families \
         get their groups' numbers as they are loaded: load the module earlier"
    )]
    Group(u32),
    /// The system refuses.
    #[error("no netlink socket: {0}")]
    Socket(#[from] io::Error),
}

/// Counts of sent messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendStats {
    /// Messages handed to the system.
    pub sent: u64,
    /// Messages that it refused.
    pub failed: u64,
    /// Datagrams that carried those that were sent.
    pub datagrams: u64,
    /// The latest reason.
    pub last_error: Option<String>,
}

/// Sends to one group. Messages wait for others until [`flush`](Self::flush) or a full datagram.
#[derive(Debug)]
pub struct Multicast {
    port: Port,
    /// Number of the family in generic netlink, else 0.
    family: u16,
    groups: u32,
    /// Counts messages.
    sequence: u32,
    limit: usize,
    datagram: Vec<u8>,
    messages: u64,
    stats: SendStats,
}

impl Multicast {
    /// Opens one of the three, in this thread's network namespace.
    ///
    /// # Errors
    /// If the kernel lacks the family, or the system refuses.
    pub fn open(channel: Channel) -> Result<Multicast, OpenError> {
        match channel.family() {
            Some((family, group, _)) => {
                let found = Family::resolve(family)?.ok_or(OpenError::Missing(channel))?;
                Self::generic(&found, family, group)
            }
            None => {
                let port = Port::open(Protocol::Usersock)?;
                Self::new(port, 0, super::usersock::GROUP, DATAGRAM_BYTES)
            }
        }
    }

    /// Opens a group of any generic family.
    ///
    /// # Errors
    /// If there is no such group, or the system refuses.
    pub fn generic(
        found: &Family,
        family: &'static str,
        group: &'static str,
    ) -> Result<Multicast, OpenError> {
        let id = found.group(group).ok_or(OpenError::NoGroup { family, group })?;
        Self::new(Port::open(Protocol::Generic)?, found.id, id, DATAGRAM_BYTES)
    }

    fn new(port: Port, family: u16, group: u32, limit: usize) -> Result<Multicast, OpenError> {
        if !(1..=HIGHEST_SENDABLE_GROUP).contains(&group) {
            return Err(OpenError::Group(group));
        }
        port.set_send_buffer(SEND_BUFFER);
        Ok(Multicast {
            port,
            family,
            groups: 1 << (group - 1),
            sequence: 0,
            limit,
            datagram: Vec::with_capacity(DATAGRAM_BYTES),
            messages: 0,
            stats: SendStats::default(),
        })
    }

    /// True if the kernel still knows the family by the number that messages have: a module that
    /// was loaded again has another. True also if it cannot be asked.
    #[must_use]
    pub fn is_current(&self, channel: Channel) -> bool {
        channel.family().is_none_or(|(family, _, _)| match Family::resolve(family) {
            Ok(found) => found.is_some_and(|found| found.id == self.family),
            Err(_) => true,
        })
    }

    /// Limits the length of datagrams in bytes; 0 sends each message in its own datagram.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Returns the counts of sent messages.
    #[must_use]
    pub fn stats(&self) -> &SendStats {
        &self.stats
    }

    /// The number of the next message, for those that say it in their body.
    #[must_use]
    pub fn next_sequence(&self) -> u32 {
        self.sequence.wrapping_add(1)
    }

    /// Returns the bytes that wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> &[u8] {
        &self.datagram
    }

    /// Adds a message that `encode` writes with the header it is given.
    #[inline]
    pub fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>, Header)) {
        self.sequence = self.sequence.wrapping_add(1);
        let header = Header {
            kind: self.family,
            flags: 0,
            sequence: self.sequence,
            port: self.port.number(),
        };
        let before = self.datagram.len();
        encode(&mut self.datagram, header);
        self.messages += 1;
        if self.datagram.len() > self.limit {
            self.overfull(before);
        }
    }

    /// Sends what was there before the latest message, and keeps that.
    #[cold]
    fn overfull(&mut self, before: usize) {
        if before > 0 {
            self.messages -= 1;
            self.send(before);
            self.datagram.drain(..before);
            self.messages = 1;
        }
        if self.datagram.len() >= self.limit {
            self.flush();
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        if !self.datagram.is_empty() {
            self.send(self.datagram.len());
            self.datagram.clear();
        }
    }

    fn send(&mut self, length: usize) {
        let messages = std::mem::take(&mut self.messages);
        match self.port.send(&self.datagram[..length], self.groups) {
            // The kernel does not listen to other programs' groups, and reports that although all
            // listeners got it.
            Ok(()) | Err(Errno::CONNREFUSED) => {
                self.stats.sent += messages;
                self.stats.datagrams += 1;
            }
            Err(error) => {
                self.stats.failed += messages;
                self.stats.last_error = Some(match error {
                    Errno::PERM => "not permitted: CAP_NET_ADMIN is needed".into(),
                    other => io::Error::from(other).to_string(),
                });
            }
        }
    }
}

/// Listeners of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Sockets of this thread's network namespace that do.
    pub sockets: usize,
    /// Datagrams that these had no room for, since they were not read fast enough: senders are not
    /// notified.
    pub lost: u64,
}

/// Counts sockets of this thread's network namespace that listen to the group of a channel; `None`
/// if the system does not say. Only groups up to 32 are seen.
#[must_use]
pub fn listeners(channel: Channel) -> Option<Listeners> {
    let (protocol, group) = match channel.family() {
        Some((family, group, _)) => (16, Family::resolve(family).ok()??.group(group)?),
        None => (2, super::usersock::GROUP),
    };
    Some(listeners_in(&socket_table()?, protocol, group))
}

/// The same from the system's table.
fn listeners_in(table: &str, protocol: u32, group: u32) -> Listeners {
    let mut all = Listeners::default();
    let Some(bit) = group.checked_sub(1).filter(|bit| *bit < HIGHEST_SENDABLE_GROUP) else {
        return all;
    };
    for row in rows(table).filter(|r| r.protocol == protocol && r.groups >> bit & 1 == 1) {
        all.sockets += 1;
        all.lost += row.lost;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_counted_in_the_systems_table() {
        let table = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n\
             0000000000000000 0   1234       00000551 0        0        0     2        0        1\n\
             0000000000000000 2   0          00000000 0        0        0     2        0        2\n\
             0000000000000000 2   99         10000000 0        0        0     2        0        3\n\
             0000000000000000 2   4294967295 10000000 0        0        0     2        7        5\n\
             0000000000000000 16  7          00000200 0        0        0     2        0        4\n\
             nonsense\n";
        let of = |sockets, lost| Listeners { sockets, lost };
        assert_eq!(listeners_in(table, 2, 29), of(2, 7));
        assert_eq!(listeners_in(table, 16, 10), of(1, 0));
        assert_eq!(listeners_in(table, 16, 9), of(0, 0));
        assert_eq!([33, 0].map(|group| listeners_in(table, 16, group)), [of(0, 0); 2]);
    }

    /// The system would drop what is sent to a group that its addresses have no bit for: that is an
    /// error here, with what to do.
    #[test]
    fn groups_above_32_are_not_sent_to_silently() {
        let open = |group| {
            let found = Family { id: 99, groups: vec![("packets".into(), group)] };
            Multicast::generic(&found, "psample", "packets").map(drop)
        };
        for group in [1, 32] {
            open(group).unwrap();
        }
        for group in [0, 33, 200] {
            let error = open(group).unwrap_err();
            assert!(matches!(error, OpenError::Group(n) if n == group), "{error}");
            assert!(error.to_string().contains("load the module earlier"), "{error}");
        }
    }
}
