//! Addresses of links (rtnetlink(7), `RTM_NEWADDR`).

use std::io;
use std::net::IpAddr;

use crate::socket::{Port, Question};
use crate::wire::{Attributes, Header, Writer, address};

pub(crate) const RTM_NEWADDR: u16 = 20;
pub(crate) const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;

/// `struct ifaddrmsg`: family, prefix length, flags, scope, index.
const HEAD: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;

const IFA_F_DADFAILED: u32 = 0x08;
const IFA_F_TENTATIVE: u32 = 0x40;

/// An address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkAddress {
    /// Index of the link.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// Length of the prefix that is on the link, in bits.
    pub prefix_length: u8,
    /// Address of the other end of a link between two, which the prefix belongs to then.
    pub peer: Option<IpAddr>,
    /// `RT_SCOPE_*`: 0 is global, 253 of the link, 254 of the host.
    pub scope: u8,
    /// `IFA_F_*`.
    pub flags: u32,
}

impl LinkAddress {
    /// Reads the payload of an `RTM_NEWADDR` or `RTM_DELADDR` message; `None` if it is too short,
    /// has no address, or a prefix longer than the address.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<LinkAddress> {
        let (head, attributes) = payload.split_first_chunk::<HEAD>()?;
        let index = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
        let (mut local, mut other, mut flags) = (None, None, u32::from(head[2]));
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                IFA_LOCAL => local = address(a.value),
                IFA_ADDRESS => other = address(a.value),
                IFA_FLAGS => flags = a.u32().unwrap_or(flags),
                _ => {}
            }
        }
        // Without an address of its own, the link has the one that is named.
        let ip = local.or(other)?;
        let prefix_length = head[1];
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        (prefix_length <= bits).then_some(LinkAddress {
            index,
            ip,
            prefix_length,
            peer: other.filter(|other| *other != ip),
            scope: head[3],
            flags,
        })
    }

    /// Returns true if the kernel may use it: duplicate address detection has ended well (RFC 4862,
    /// section 5.4).
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) == 0
    }

    /// All addresses of a port's namespace, or those of one link, by index and address. A port that
    /// is not strict ([`Port::set_strict`]) is sent all, and those of the link are chosen here.
    ///
    /// # Errors
    /// If a system call fails, the kernel refuses, or some changed meanwhile
    /// ([`io::ErrorKind::Interrupted`]).
    pub fn all(port: &Port, link: Option<u32>) -> io::Result<Vec<LinkAddress>> {
        let mut head = [0; HEAD];
        head[4..].copy_from_slice(&link.unwrap_or(0).to_ne_bytes());
        let encode = |out: &mut Vec<u8>, header: Header| {
            Writer::with_payload(out, header, &head).finish();
        };
        let mut found = Vec::new();
        port.ask_all(Question::all(RTM_NEWADDR), RTM_GETADDR, encode, |payload| {
            let is_wanted = |a: &LinkAddress| link.is_none_or(|link| link == a.index);
            found.extend(LinkAddress::parse(payload).filter(is_wanted));
        })?;
        found.sort_unstable();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Protocol;
    use proptest::prelude::*;

    fn message(head: [u8; HEAD], fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut message = Vec::new();
        let mut w = Writer::with_payload(&mut message, Header::default(), &head);
        fill(&mut w);
        w.finish();
        message.split_off(16)
    }

    #[test]
    fn a_message_is_read() {
        let payload = message([2, 24, 0x80, 0, 7, 0, 0, 0], |w| {
            w.bytes(IFA_ADDRESS, &[192, 0, 2, 1]).bytes(IFA_LOCAL, &[192, 0, 2, 1]);
            w.u32(IFA_FLAGS, 0x280);
        });
        let a = LinkAddress::parse(&payload).unwrap();
        assert_eq!((a.index, a.ip, a.prefix_length), (7, IpAddr::from([192, 0, 2, 1]), 24));
        assert_eq!((a.peer, a.flags), (None, 0x280));
        assert!(a.is_usable());
    }

    #[test]
    fn a_link_between_two_has_another_end() {
        let payload = message([2, 32, 0, 0, 7, 0, 0, 0], |w| {
            w.bytes(IFA_ADDRESS, &[192, 0, 2, 9]).bytes(IFA_LOCAL, &[192, 0, 2, 1]);
        });
        let a = LinkAddress::parse(&payload).unwrap();
        assert_eq!((a.ip, a.peer), (IpAddr::from([192, 0, 2, 1]), Some([192, 0, 2, 9].into())));
    }

    #[test]
    fn a_prefix_is_no_longer_than_its_address() {
        let payload =
            message([2, 33, 0, 0, 7, 0, 0, 0], |w| _ = w.bytes(IFA_LOCAL, &[192, 0, 2, 1]));
        assert_eq!(LinkAddress::parse(&payload), None);
        assert_eq!(LinkAddress::parse(&message([2, 24, 0, 0, 7, 0, 0, 0], |_| ())), None);
    }

    #[test]
    fn addresses_under_detection_are_not_usable() {
        for flags in [IFA_F_TENTATIVE, IFA_F_DADFAILED] {
            let payload = message([10, 64, 0, 0, 7, 0, 0, 0], |w| {
                w.bytes(IFA_ADDRESS, &[0x20; 16]).u32(IFA_FLAGS, flags);
            });
            assert!(!LinkAddress::parse(&payload).unwrap().is_usable(), "{flags:#x}");
        }
    }

    #[test]
    fn the_loopbacks_addresses_are_listed_alone() {
        for strict in [false, true] {
            let port = Port::open(Protocol::Route).unwrap();
            port.set_strict(strict);
            let all = LinkAddress::all(&port, None).unwrap();
            let own = LinkAddress::all(&port, Some(1)).unwrap();
            assert_eq!(own, all.into_iter().filter(|a| a.index == 1).collect::<Vec<_>>());
            let none = LinkAddress::all(&port, Some(i32::MAX as u32));
            assert!(none.map_or(strict, |none| none.is_empty()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = LinkAddress::parse(&bytes);
        }
    }
}
