//! Netlink sockets that never wait, and the kernel's register of generic families.

use super::wire::{Attributes, Generic, Header, Messages, Writer};
use crate::value::Text;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE, NETLINK_USERSOCK};
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, netlink::SocketAddrNetlink, recv, sendto, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The family that knows the others (`GENL_ID_CTRL`).
const CONTROLLER: u16 = 16;
const CTRL_VERSION: u8 = 1;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;

/// The kernel answers before send(2) returns; this only bounds a lost answer.
const ANSWER_WITHIN: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// Answers of the controller to one question are shorter.
const ANSWER_BYTES: usize = 32 * 1024;

/// Groups above this cannot be sent to: the system's address has a bit for each of 32.
pub const HIGHEST_SENDABLE_GROUP: u32 = 32;

/// Which netlink protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// For the kernel's generic families.
    Generic,
    /// Between programs.
    Usersock,
    /// For the kernel's interfaces.
    Route,
}

impl Protocol {
    /// The system's number.
    fn number(self) -> isize {
        match self {
            Protocol::Generic => NETLINK_GENERIC,
            Protocol::Usersock => NETLINK_USERSOCK,
            Protocol::Route => NETLINK_ROUTE,
        }
    }
}

/// A line of the system's table of netlink sockets: `sk Eth Pid Groups Rmem Wmem Dump Locks Drops
/// …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketRow {
    /// Number of its protocol.
    pub protocol: u32,
    /// Its port number.
    pub port: u32,
    /// A bit for each of the first 32 groups that it listens to.
    pub groups: u32,
    /// Datagrams that it had no room for.
    pub lost: u64,
}

impl SocketRow {
    fn parse(line: &str) -> Option<SocketRow> {
        let mut words = line.split_whitespace().skip(1);
        Some(SocketRow {
            protocol: words.next()?.parse().ok()?,
            port: words.next()?.parse().ok()?,
            groups: u32::from_str_radix(words.next()?, 16).ok()?,
            lost: words.nth(4)?.parse().ok()?,
        })
    }
}

/// All lines of a table that are understood.
pub(super) fn rows(table: &str) -> impl Iterator<Item = SocketRow> {
    table.lines().skip(1).filter_map(SocketRow::parse)
}

/// The table of this thread's network namespace, if the system shows it.
pub(super) fn socket_table() -> Option<String> {
    std::fs::read_to_string("/proc/thread-self/net/netlink").ok()
}

/// A message to the kernel and what it is answered with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    kind: u16,
    flags: u16,
    answers: u16,
}

impl Question {
    /// Something is asked for, or to be done.
    pub(crate) fn one(kind: u16, answers: u16) -> Question {
        Question { kind, flags: NLM_F_REQUEST | NLM_F_ACK, answers }
    }

    /// All that there is of a kind is asked for.
    pub(crate) fn all(kind: u16, answers: u16) -> Question {
        Question { kind, flags: NLM_F_REQUEST | NLM_F_DUMP, answers }
    }
}

/// A socket with a port number of its own.
pub(crate) struct Port {
    socket: Socket,
    protocol: Protocol,
    number: u32,
}

impl Port {
    pub(crate) fn open(protocol: Protocol) -> io::Result<Port> {
        let mut socket = Socket::new(protocol.number())?;
        socket.bind(&SocketAddr::new(0, 0))?;
        let mut own = SocketAddr::new(0, 0);
        socket.get_address(&mut own)?;
        socket.set_non_blocking(true)?;
        Ok(Port { socket, protocol, number: own.port_number() })
    }

    /// The number by which others address it.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Hears what is sent to a group from now on.
    pub(crate) fn join(&self, group: u32) -> io::Result<()> {
        self.socket.add_membership(group)
    }

    /// Number of datagrams dropped for lack of room, if the system reports it.
    pub(crate) fn lost(&self) -> Option<u64> {
        let own = |row: &SocketRow| {
            i64::from(row.protocol) == self.protocol.number() as i64 && row.port == self.number
        };
        rows(&socket_table()?).find(own).map(|row| row.lost)
    }

    /// Sets the receive buffer size in bytes; more than the system's limit is
    /// granted to the privileged only.
    pub(crate) fn set_receive_buffer(&self, bytes: usize) {
        if sockopt::set_socket_recv_buffer_size_force(&self.socket, bytes).is_err() {
            // Less is granted silently.
            let _ = sockopt::set_socket_recv_buffer_size(&self.socket, bytes);
        }
    }

    pub(crate) fn set_send_buffer(&self, bytes: usize) {
        let _ = sockopt::set_socket_send_buffer_size(&self.socket, bytes);
    }

    /// Sends a datagram to the kernel and, unless `groups` is 0, to everybody in these.
    pub(crate) fn send(&self, datagram: &[u8], groups: u32) -> Result<(), Errno> {
        let to = SocketAddrNetlink::new(0, groups);
        loop {
            match sendto(&self.socket, datagram, SendFlags::DONTWAIT, &to) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the next datagram; longer ones than the buffer say so by their length.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, length)) => return Ok(length),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks the kernel something and hands `each` what it answers, until it says that this was all.
    ///
    /// # Errors
    /// If it refuses, with its reason.
    pub(crate) fn ask(
        &self,
        question: Question,
        encode: impl FnOnce(&mut Vec<u8>, Header),
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let Question { kind, flags, answers } = question;
        let mut asked = Vec::new();
        encode(&mut asked, Header { kind, flags, sequence: 1, port: self.number });
        self.send(&asked, 0)?;
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            let length = match self.receive(&mut buffer) {
                Ok(length) => length.min(buffer.len()),
                Err(Errno::AGAIN) => {
                    let mut fd = [PollFd::new(&self.socket, PollFlags::IN)];
                    match poll(&mut fd, Some(&ANSWER_WITHIN)) {
                        Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                        Ok(_) | Err(Errno::INTR) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            };
            for raw in Messages::new(&buffer[..length]) {
                let raw = raw.map_err(io::Error::other)?;
                match (raw.header.kind, raw.payload.first_chunk()) {
                    (NLMSG_ERROR | NLMSG_DONE, Some(code)) => {
                        return match i32::from_ne_bytes(*code) {
                            0 => Ok(()),
                            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                        };
                    }
                    // What was sent to a group in the meantime is not the answer.
                    (kind, _) if kind == answers => each(raw.payload),
                    _ => {}
                }
            }
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("number", &self.number).finish()
    }
}

/// A family of generic netlink.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Its number: messages' kind.
    pub id: u16,
    /// Its multicast groups with their numbers.
    pub groups: Vec<(String, u32)>,
}

impl Family {
    /// Looks a family up in this thread's network namespace; `None` if it is not there.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn resolve(name: &str) -> io::Result<Option<Family>> {
        let port = Port::open(Protocol::Generic)?;
        let mut family = Family::default();
        let encode = |out: &mut Vec<u8>, header| {
            let generic = Generic { command: CTRL_CMD_GETFAMILY, version: CTRL_VERSION };
            let mut w = Writer::generic(out, header, generic);
            w.text(CTRL_ATTR_FAMILY_NAME, Text::from(name));
            w.finish();
        };
        match port
            .ask(Question::one(CONTROLLER, CONTROLLER), encode, |payload| family.learn(payload))
        {
            Ok(()) => Ok((family.id != 0).then_some(family)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of one of its groups.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// Takes what the controller says; what is not as expected stays unknown.
    pub(crate) fn learn(&mut self, payload: &[u8]) {
        let Ok((_, attributes)) = Generic::split(payload) else { return };
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                CTRL_ATTR_FAMILY_ID => self.id = a.u16().unwrap_or(0),
                CTRL_ATTR_MCAST_GROUPS => {
                    let groups = a.attributes().flatten().filter_map(|group| {
                        let mut found = (None, None);
                        for part in group.attributes().flatten() {
                            match part.kind {
                                CTRL_ATTR_MCAST_GRP_NAME => found.0 = Some(part.text()),
                                CTRL_ATTR_MCAST_GRP_ID => found.1 = part.u32().ok(),
                                _ => {}
                            }
                        }
                        Some((found.0?.to_str().into_owned(), found.1?))
                    });
                    self.groups = groups.collect();
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_looked_up() {
        // The one that every kernel has.
        let controller = Family::resolve("nlctrl").unwrap().unwrap();
        assert_eq!(controller.id, CONTROLLER);
        assert_eq!(controller.group("notify"), Some(16));
        assert_eq!(controller.group("nonsense"), None);
        assert_eq!(Family::resolve("thalweg-none").unwrap(), None);
    }

    /// An address has bits for 32 groups; what listens names a group by its number.
    #[test]
    fn groups_above_32_are_joined() {
        // The kernel reports interfaces in groups above 32.
        let port = Port::open(Protocol::Route).unwrap();
        for group in [1, 32, 33] {
            port.join(group).unwrap();
        }
        // The number is looked at, not some of its bits.
        let error = port.join(33 + 4096).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::INVAL.raw_os_error()), "{error}");
    }

    #[test]
    fn a_kernel_that_refuses_is_heard() {
        let port = Port::open(Protocol::Generic).unwrap();
        let unknown = |out: &mut Vec<u8>, header| {
            let generic = Generic { command: 250, version: 1 };
            Writer::generic(out, header, generic).finish();
        };
        let error = port.ask(Question::one(CONTROLLER, CONTROLLER), unknown, |_| {}).unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}
