//! Netlink sockets that wait only for the kernel's answers.

use crate::wire::{Header, Messages};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE, NETLINK_USERSOCK};
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, netlink::SocketAddrNetlink, recv, sendto, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The list changed while it was read.
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// The kernel answers before send(2) returns; this only bounds a lost answer.
const ANSWER_WITHIN: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// The kernel fills no larger datagrams with its answers.
const ANSWER_BYTES: usize = 32 * 1024;

/// Number of a question: a port asks one at a time.
const SEQUENCE: u32 = 1;

/// Groups above this cannot be sent to: the system's address has a bit for each of 32.
pub const HIGHEST_SENDABLE_GROUP: u32 = 32;

/// Netlink protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Protocol of the kernel's generic families.
    Generic,
    /// Protocol between programs.
    Usersock,
    /// Protocol of the kernel's interfaces.
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
pub struct SocketRow {
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
pub fn rows(table: &str) -> impl Iterator<Item = SocketRow> {
    table.lines().skip(1).filter_map(SocketRow::parse)
}

/// The table of this thread's network namespace, if the system shows it.
pub fn socket_table() -> Option<String> {
    std::fs::read_to_string("/proc/thread-self/net/netlink").ok()
}

/// Way to ask the kernel, and the kind of its answers.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    flags: u16,
    answers: u16,
}

impl Question {
    /// Something is asked for, or to be done.
    #[must_use]
    pub fn one(answers: u16) -> Question {
        Question { flags: NLM_F_REQUEST | NLM_F_ACK, answers }
    }

    /// Makes something, unless that is there, which is an error.
    #[must_use]
    pub(crate) fn new() -> Question {
        Question { flags: NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, answers: 0 }
    }

    /// Makes something, or changes what is there.
    #[must_use]
    pub(crate) fn put() -> Question {
        Question { flags: NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, answers: 0 }
    }

    /// Ask for all objects of a kind.
    #[must_use]
    pub fn all(answers: u16) -> Question {
        Question { flags: NLM_F_REQUEST | NLM_F_DUMP, answers }
    }
}

/// If an answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    Interrupted,
}

/// A socket with a port number of its own.
pub struct Port {
    socket: Socket,
    protocol: Protocol,
    number: u32,
}

impl Port {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn open(protocol: Protocol) -> io::Result<Port> {
        let mut socket = Socket::new(protocol.number())?;
        socket.bind(&SocketAddr::new(0, 0))?;
        let mut own = SocketAddr::new(0, 0);
        socket.get_address(&mut own)?;
        socket.set_non_blocking(true)?;
        Ok(Port { socket, protocol, number: own.port_number() })
    }

    /// The number by which others address it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Joins a group.
    ///
    /// # Errors
    /// If there is no such group, or the system refuses.
    pub fn join(&self, group: u32) -> io::Result<()> {
        self.socket.add_membership(group)
    }

    /// Number of datagrams dropped for lack of room, if the system reports it.
    pub fn lost(&self) -> Option<u64> {
        let own = |row: &SocketRow| {
            i64::from(row.protocol) == self.protocol.number() as i64 && row.port == self.number
        };
        rows(&socket_table()?).find(own).map(|row| row.lost)
    }

    /// Sets the receive buffer size in bytes; more than the system's limit is
    /// granted to the privileged only.
    pub fn set_receive_buffer(&self, bytes: usize) {
        if sockopt::set_socket_recv_buffer_size_force(&self.socket, bytes).is_err() {
            // Less is granted silently.
            let _ = sockopt::set_socket_recv_buffer_size(&self.socket, bytes);
        }
    }

    /// Returns the receive buffer size in bytes, as granted.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        sockopt::socket_recv_buffer_size(&self.socket).unwrap_or(0)
    }

    /// Sets the send buffer size in bytes, up to the system's limit.
    pub fn set_send_buffer(&self, bytes: usize) {
        let _ = sockopt::set_socket_send_buffer_size(&self.socket, bytes);
    }

    /// Lets the kernel check requests for lists, and choose by what they name, such as a link. An
    /// old kernel does not: it answers with the whole list.
    pub fn set_strict(&self, strict: bool) {
        let _ = self.socket.set_netlink_get_strict_chk(strict);
    }

    /// Sends a datagram to the kernel and, unless `groups` is 0, to all members of these.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&self, datagram: &[u8], groups: u32) -> Result<(), Errno> {
        let to = SocketAddrNetlink::new(0, groups);
        loop {
            match sendto(&self.socket, datagram, SendFlags::DONTWAIT, &to) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the next datagram; the length shows if it was longer than the buffer.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if there is none, or the system's.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, length)) => return Ok(length),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks the kernel something that is made of attributes, and hands `each` the payloads of its
    /// answers, until it says that this was all. `encode` writes one message with the given header,
    /// whose kind is `kind`.
    ///
    /// # Errors
    /// If it refuses, with its reason.
    pub fn ask(
        &self,
        question: Question,
        kind: u16,
        encode: impl FnOnce(&mut Vec<u8>, Header),
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut asked = Vec::new();
        let header = Header { kind, flags: question.flags, sequence: SEQUENCE, port: self.number };
        encode(&mut asked, header);
        self.exchange(&asked, question.answers, |part| part.map_or((), &mut each)).map(drop)
    }

    /// Asks like [`ask`](Self::ask), for a list that must be whole.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] if what is listed changed meanwhile, so that some may be
    /// missing; else as `ask`.
    pub fn ask_all(
        &self,
        question: Question,
        kind: u16,
        encode: impl FnOnce(&mut Vec<u8>, Header),
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.ask_parts(question, kind, encode, |part| part.map_or((), &mut each))
    }

    /// Asks like [`ask_all`](Self::ask_all), and hands `each` also `None` before the system is
    /// asked for more.
    pub(crate) fn ask_parts(
        &self,
        question: Question,
        kind: u16,
        encode: impl FnOnce(&mut Vec<u8>, Header),
        each: impl FnMut(Option<&[u8]>),
    ) -> io::Result<()> {
        let mut asked = Vec::new();
        let header = Header { kind, flags: question.flags, sequence: SEQUENCE, port: self.number };
        encode(&mut asked, header);
        match self.exchange(&asked, question.answers, each)? {
            Whole::Yes => Ok(()),
            Whole::Interrupted => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    /// The same with a message of one of the `netlink-packet-*` crates.
    ///
    /// # Errors
    /// If the kernel refuses, with its reason.
    pub fn ask_with<M: NetlinkSerializable>(
        &self,
        question: Question,
        message: M,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        (header.flags, header.sequence_number) = (question.flags, SEQUENCE);
        header.port_number = self.number;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut asked = vec![0; message.buffer_len()];
        message.serialize(&mut asked);
        self.exchange(&asked, question.answers, |part| part.map_or((), &mut each)).map(drop)
    }

    fn exchange(
        &self,
        asked: &[u8],
        answers: u16,
        mut each: impl FnMut(Option<&[u8]>),
    ) -> io::Result<Whole> {
        self.send(asked, 0)?;
        let mut whole = Whole::Yes;
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            each(None);
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
                if raw.header.flags & NLM_F_DUMP_INTR != 0 {
                    whole = Whole::Interrupted;
                }
                match (raw.header.kind, raw.payload.first_chunk()) {
                    (NLMSG_ERROR | NLMSG_DONE, Some(code)) => {
                        return match i32::from_ne_bytes(*code) {
                            0 => Ok(whole),
                            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                        };
                    }
                    // Messages to a group in the meantime are not the answer.
                    (kind, _) if kind == answers => each(Some(raw.payload)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Generic, Writer};

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
        const CONTROLLER: u16 = 16;
        let port = Port::open(Protocol::Generic).unwrap();
        let unknown = |out: &mut Vec<u8>, header| {
            let generic = Generic { command: 250, version: 1 };
            Writer::generic(out, header, generic).finish();
        };
        let error = port.ask(Question::one(CONTROLLER), CONTROLLER, unknown, |_| {}).unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}
