//! The little netlink that the labs need: link events, and requests to a generic family.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};

use crate::wait::{WAIT_LIMIT, readable};

/// Multicast group of interface changes (`RTMGRP_LINK`).
const GROUP_LINK: u32 = 1;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_HEADER: usize = 16;
const GENL_HEADER: usize = 4;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NESTED: u16 = 0x8000;
/// The kernel answers these requests before send(2) returns; this only bounds a lost answer.
const ANSWER_LIMIT: Duration = WAIT_LIMIT;

fn open(protocol: SockProtocol, groups: u32) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)
        .context("open a netlink socket")?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups)).context("bind a netlink socket")?;
    Ok(fd)
}

/// Becomes readable whenever an interface of the namespace it was opened in changes.
pub(crate) struct LinkEvents(OwnedFd);

impl LinkEvents {
    pub(crate) fn open() -> Result<Self> {
        open(SockProtocol::NetlinkRoute, GROUP_LINK).map(LinkEvents)
    }

    /// Discards what has come in so far.
    pub(crate) fn drain(&self) -> Result<()> {
        let mut scratch = [0; 8192];
        loop {
            match recv(self.0.as_raw_fd(), &mut scratch, MsgFlags::MSG_DONTWAIT) {
                Ok(_) | Err(Errno::EINTR | Errno::ENOBUFS) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error).context("read link events"),
            }
        }
    }
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Attributes of a message under construction.
#[derive(Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// Appends one attribute, padded to four bytes.
    #[expect(clippy::expect_used, reason = "attributes are short")]
    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(4 + value.len()).expect("attributes are written by us, short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a NUL-terminated string.
    pub(crate) fn put_str(&mut self, kind: u16, value: &str) -> &mut Self {
        self.put(kind, &[value.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute that holds others.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Attributes::default();
        fill(&mut inner);
        self.put(kind | NESTED, &inner.0)
    }
}

/// A generic netlink family of the calling thread's namespace.
pub(crate) struct Family {
    fd: OwnedFd,
    id: u16,
}

impl Family {
    pub(crate) fn open(name: &str) -> Result<Self> {
        let mut family = Family { fd: open(SockProtocol::NetlinkGeneric, 0)?, id: GENL_ID_CTRL };
        let mut query = Attributes::default();
        query.put_str(CTRL_ATTR_FAMILY_NAME, name);
        let reply = family
            .request(CTRL_CMD_GETFAMILY, &query)
            .with_context(|| format!("look up the kernel's netlink family {name}"))?;
        family.id = find_attribute(&reply, CTRL_ATTR_FAMILY_ID)
            .and_then(|value| Some(u16::from_ne_bytes(value.try_into().ok()?)))
            .with_context(|| format!("the kernel gave no number for netlink family {name}"))?;
        Ok(family)
    }

    /// Sends one command and returns the attributes of the last message before its
    /// acknowledgement (none if there was only the acknowledgement).
    pub(crate) fn request(&self, command: u8, attributes: &Attributes) -> Result<Vec<u8>> {
        let length = NLMSG_HEADER + GENL_HEADER + attributes.0.len();
        let mut message = Vec::with_capacity(length);
        message.extend(u32::try_from(length)?.to_ne_bytes());
        message.extend(self.id.to_ne_bytes());
        message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        message.extend([0; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend(&attributes.0);
        send(self.fd.as_raw_fd(), &message, MsgFlags::empty()).context("send to netlink")?;

        let deadline = Instant::now() + ANSWER_LIMIT;
        let mut answer = Vec::new();
        let mut buffer = vec![0; 32 * 1024];
        loop {
            if !readable(&self.fd, deadline)? {
                bail!("netlink gave no answer within {ANSWER_LIMIT:?}");
            }
            let n = match recv(self.fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(n) => n,
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(error) => return Err(error).context("read from netlink"),
            };
            if take_answer(&buffer[..n], &mut answer)? {
                return Ok(answer);
            }
        }
    }
}

/// Reads the messages of one datagram; true after the acknowledgement.
fn take_answer(mut bytes: &[u8], answer: &mut Vec<u8>) -> Result<bool> {
    while bytes.len() >= NLMSG_HEADER {
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if length < NLMSG_HEADER || length > bytes.len() {
            bail!("netlink sent a message of {length} bytes in {}", bytes.len());
        }
        let body = &bytes[NLMSG_HEADER..length];
        if kind == NLMSG_ERROR {
            let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
            return match code {
                0 => Ok(true),
                _ => Err(Errno::from_raw(code.wrapping_neg()).into()),
            };
        }
        *answer = body.get(GENL_HEADER..).unwrap_or_default().to_vec();
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

fn find_attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some([l0, l1, k0, k1]) = bytes.first_chunk() {
        let length = usize::from(u16::from_ne_bytes([*l0, *l1]));
        let value = bytes.get(4..length)?;
        if u16::from_ne_bytes([*k0, *k1]) & !NESTED == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_found_again() {
        let mut attributes = Attributes::default();
        attributes.put_str(2, "abcd").nest(3, |inner| {
            inner.put(1, &7u16.to_ne_bytes());
        });
        assert_eq!(attributes.0.len() % 4, 0);
        assert_eq!(find_attribute(&attributes.0, 2), Some(&b"abcd\0"[..]));
        let inner = find_attribute(&attributes.0, 3).unwrap();
        assert_eq!(find_attribute(inner, 1), Some(&7u16.to_ne_bytes()[..]));
        assert_eq!(find_attribute(&attributes.0, 9), None);
    }

    #[test]
    fn cut_attributes_are_not_read_past_their_end() {
        assert_eq!(find_attribute(&[200, 0, 1, 0, 5], 1), None);
        assert_eq!(find_attribute(&[0, 0, 1, 0], 1), None);
        assert_eq!(find_attribute(&[4, 0], 1), None);
    }

    #[test]
    fn errors_carry_the_kernels_code() {
        let mut message = vec![20, 0, 0, 0, 2, 0, 0, 0];
        message.extend([0; 8]);
        message.extend((-1i32).to_ne_bytes());
        let error = take_answer(&message, &mut Vec::new()).unwrap_err();
        assert_eq!(error.downcast_ref::<Errno>(), Some(&Errno::EPERM));
        assert!(take_answer(&message[..18], &mut Vec::new()).is_err());
    }
}
