//! Neighbours of links (rtnetlink(7), `RTM_NEWNEIGH`): IP addresses with their MAC addresses.

use std::io;
use std::net::IpAddr;

use crate::socket::{Port, Question};
use crate::wire::{Attributes, Header, Writer, address, put_address};

pub(crate) const RTM_NEWNEIGH: u16 = 28;
pub(crate) const RTM_DELNEIGH: u16 = 29;
const RTM_GETNEIGH: u16 = 30;

/// `struct ndmsg`: family, padding, index, state, flags, type.
const HEAD: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_IFINDEX: u16 = 8;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

const NUD_REACHABLE: u16 = 0x02;
const NUD_STALE: u16 = 0x04;
const NUD_DELAY: u16 = 0x08;
const NUD_PROBE: u16 = 0x10;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;

/// A neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Index of the link.
    pub index: u32,
    /// Its address.
    pub ip: IpAddr,
    /// Its MAC address, if there is one.
    pub mac: Option<[u8; 6]>,
    /// `NUD_*`.
    pub state: u16,
}

impl Neighbour {
    /// Reads the payload of an `RTM_NEWNEIGH` or `RTM_DELNEIGH` message; `None` if it is too short,
    /// or not about an IP address: a bridge's MAC table has the same form.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Neighbour> {
        let (head, attributes) = payload.split_first_chunk::<HEAD>()?;
        if ![AF_INET, AF_INET6].contains(&head[0]) {
            return None;
        }
        let index = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
        let state = u16::from_ne_bytes([head[8], head[9]]);
        let (mut ip, mut mac) = (None, None);
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                NDA_DST => ip = address(a.value).filter(|ip| ip.is_ipv4() == (head[0] == AF_INET)),
                NDA_LLADDR => mac = a.value.try_into().ok(),
                _ => {}
            }
        }
        Some(Neighbour { index, ip: ip?, mac, state })
    }

    /// Returns true if the kernel sends to its MAC address.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        const VALID: u16 =
            NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_NOARP | NUD_PERMANENT;
        self.state & VALID != 0 && self.mac.is_some()
    }

    /// Returns true if it was written, not learned.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.state & (NUD_NOARP | NUD_PERMANENT) != 0
    }

    /// All neighbours of a port's namespace, or those of one link.
    ///
    /// # Errors
    /// If a system call fails, the kernel refuses, or some changed meanwhile
    /// ([`io::ErrorKind::Interrupted`]).
    pub fn all(port: &Port, link: Option<u32>) -> io::Result<Vec<Neighbour>> {
        let encode = |out: &mut Vec<u8>, header: Header| {
            let mut w = Writer::with_payload(out, header, &[0; HEAD]);
            if let Some(link) = link {
                w.u32(NDA_IFINDEX, link);
            }
            w.finish();
        };
        let mut found = Vec::new();
        port.ask_all(Question::all(RTM_NEWNEIGH), RTM_GETNEIGH, encode, |payload| {
            let is_wanted = |n: &Neighbour| link.is_none_or(|link| link == n.index);
            found.extend(Neighbour::parse(payload).filter(is_wanted));
        })?;
        Ok(found)
    }
}

/// Writes a neighbour, permanent or as one that was just reached; one that is there is replaced.
///
/// # Errors
/// If there is no such link, or the kernel refuses.
pub fn set_neighbour(
    port: &Port,
    index: u32,
    ip: IpAddr,
    mac: [u8; 6],
    permanent: bool,
) -> io::Result<()> {
    let state = if permanent { NUD_PERMANENT } else { NUD_REACHABLE };
    let encode = |out: &mut Vec<u8>, header: Header| {
        let mut w = Writer::with_payload(out, header, &head(index, ip, state));
        put_address(&mut w, NDA_DST, ip);
        w.bytes(NDA_LLADDR, &mac);
        w.finish();
    };
    port.ask(Question::put(), RTM_NEWNEIGH, encode, |_| {})
}

/// Removes a neighbour.
///
/// # Errors
/// If there is no such neighbour, or the kernel refuses.
pub fn delete_neighbour(port: &Port, index: u32, ip: IpAddr) -> io::Result<()> {
    let encode = |out: &mut Vec<u8>, header: Header| {
        let mut w = Writer::with_payload(out, header, &head(index, ip, 0));
        put_address(&mut w, NDA_DST, ip);
        w.finish();
    };
    port.ask(Question::one(0), RTM_DELNEIGH, encode, |_| {})
}

fn head(index: u32, ip: IpAddr, state: u16) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = if ip.is_ipv4() { AF_INET } else { AF_INET6 };
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    head[8..10].copy_from_slice(&state.to_ne_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Protocol;
    use proptest::prelude::*;

    fn message(family: u8, index: u32, state: u16, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let any: IpAddr = if family == AF_INET6 { [0; 16].into() } else { [0; 4].into() };
        let mut head = head(index, any, state);
        head[0] = family;
        let mut message = Vec::new();
        let mut w = Writer::with_payload(&mut message, Header::default(), &head);
        fill(&mut w);
        w.finish();
        message.split_off(16)
    }

    #[test]
    fn a_message_is_read() {
        let payload = message(AF_INET, 7, NUD_STALE, |w| {
            w.bytes(NDA_DST, &[192, 0, 2, 9]).bytes(NDA_LLADDR, &[2, 0, 0, 0, 0, 9]);
        });
        let n = Neighbour::parse(&payload).unwrap();
        assert_eq!((n.index, n.ip, n.mac), (7, [192, 0, 2, 9].into(), Some([2, 0, 0, 0, 0, 9])));
        assert!(n.is_valid() && !n.is_static());
    }

    #[test]
    fn states_say_who_can_be_sent_to() {
        let of = |state, mac: bool| {
            let payload = message(AF_INET6, 7, state, |w| {
                w.bytes(NDA_DST, &[0x20; 16]);
                if mac {
                    w.bytes(NDA_LLADDR, &[2, 0, 0, 0, 0, 9]);
                }
            });
            let n = Neighbour::parse(&payload).unwrap();
            (n.is_valid(), n.is_static())
        };
        assert_eq!(of(NUD_REACHABLE, true), (true, false));
        assert_eq!(of(NUD_PERMANENT, true), (true, true));
        assert_eq!(of(NUD_NOARP, false), (false, true));
        for failed in [0, 1, 0x20] {
            assert_eq!(of(failed, true), (false, false), "{failed:#x}");
        }
    }

    #[test]
    fn a_bridges_table_is_left_alone() {
        let payload = message(7, 7, NUD_PERMANENT, |w| {
            w.bytes(NDA_LLADDR, &[2, 0, 0, 0, 0, 9]);
        });
        assert_eq!(Neighbour::parse(&payload), None);
        let other = message(AF_INET, 7, NUD_STALE, |w| _ = w.bytes(NDA_DST, &[0x20; 16]));
        assert_eq!(Neighbour::parse(&other), None);
    }

    #[test]
    fn a_link_that_is_not_there_has_none() {
        let port = Port::open(Protocol::Route).unwrap();
        let none = i32::MAX as u32;
        let ip = [192, 0, 2, 9].into();
        assert!(Neighbour::all(&port, Some(none)).map_or(true, |found| found.is_empty()));
        assert!(set_neighbour(&port, none, ip, [2, 0, 0, 0, 0, 9], true).is_err());
        assert!(delete_neighbour(&port, none, ip).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Neighbour::parse(&bytes);
        }
    }
}
