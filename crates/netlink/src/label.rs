//! Routes of labels (`AF_MPLS`), and which links take labelled packets, as the kernel's
//! `mpls_router` has them. Without that module there are none.

use std::io;

use crate::fib::{
    Hop, ROUTE_HEAD, RTA_DST, RTA_MULTIPATH, RTM_GETROUTE, RTM_NEWROUTE, RouteKind, hops,
};
use crate::socket::{Port, Question};
use crate::wire::{Attributes, Header, Writer};

const AF_MPLS: u8 = 28;
/// Bits of a label.
const LABEL_BITS: u8 = 20;
const RTA_TTL_PROPAGATE: u16 = 26;

pub(crate) const RTM_NEWNETCONF: u16 = 80;
const RTM_GETNETCONF: u16 = 82;
/// `struct netconfmsg`, a family, with its padding.
const NETCONF_HEAD: usize = 4;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_INPUT: u16 = 7;

/// A route of a label: of packets with it on top, at the bottom of the stack or not.
#[derive(Debug, Clone)]
pub struct LabelMessage<'a> {
    /// The label.
    pub label: u32,
    /// Its protocol (`RTPROT_*`).
    pub protocol: u8,
    /// Its kind.
    pub kind: RouteKind,
    /// True if the packet behind a label that is popped takes over its TTL; `None` if the
    /// namespace's settings say.
    pub propagates_ttl: Option<bool>,
    single: Hop<'a>,
    several: &'a [u8],
}

impl<'a> LabelMessage<'a> {
    /// Reads the payload of an `RTM_NEWROUTE` or `RTM_DELROUTE` message; `None` if it is too short,
    /// of another address family, or without a label.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<LabelMessage<'a>> {
        let (head, attributes) = payload.split_first_chunk::<ROUTE_HEAD>()?;
        if head[0] != AF_MPLS || head[1] != LABEL_BITS {
            return None;
        }
        let (mut label, mut propagates_ttl, mut several): (_, _, &[u8]) = (None, None, &[]);
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                RTA_DST => {
                    let entry = u32::from_be_bytes(a.value.try_into().ok()?);
                    label = Some(entry >> 12);
                }
                RTA_TTL_PROPAGATE => propagates_ttl = a.u32().ok().map(|on| on != 0),
                RTA_MULTIPATH => several = a.value,
                _ => {}
            }
        }
        let flags = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
        let mut single = Hop::NONE;
        single.learn_flags(flags);
        single.learn(Attributes::new(attributes));
        let (protocol, kind) = (head[5], RouteKind::of(head[7]));
        Some(LabelMessage { label: label?, protocol, kind, propagates_ttl, single, several })
    }

    /// Its next hops. One that has no labels pops the label; one that has no address either has
    /// the packet behind it received by its link.
    pub fn hops(&self) -> impl Iterator<Item = Hop<'a>> + use<'a> {
        hops(self.single, self.several)
    }
}

/// Hands `each` all routes of labels of a port's namespace. A kernel that knows none has none.
///
/// # Errors
/// If a system call fails or the kernel refuses; [`io::ErrorKind::Interrupted`] if routes changed
/// meanwhile, so that some may be missing.
pub fn all_labels(port: &Port, mut each: impl FnMut(LabelMessage<'_>)) -> io::Result<()> {
    // Without the module, the kernel would list the routes of all families instead.
    let mut is_there = false;
    all_inputs(port, |_| is_there = true)?;
    if !is_there {
        return Ok(());
    }
    let mut head = [0; ROUTE_HEAD];
    head[0] = AF_MPLS;
    let encode = |out: &mut Vec<u8>, header: Header| {
        Writer::with_payload(out, header, &head).finish();
    };
    port.ask_all(Question::all(RTM_NEWROUTE), RTM_GETROUTE, encode, |payload| {
        if let Some(route) = LabelMessage::parse(payload) {
            each(route);
        }
    })
}

/// Setting of a link for labelled packets (`net.mpls.conf.<link>.input`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelInput {
    /// Index of the link.
    pub index: u32,
    /// True if it takes them; `None` if the message does not say.
    pub on: Option<bool>,
}

impl LabelInput {
    /// Reads the payload of an `RTM_NEWNETCONF` message; `None` if it is of another family, or
    /// about no link.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<LabelInput> {
        let (head, attributes) = payload.split_first_chunk::<NETCONF_HEAD>()?;
        let (mut index, mut on) = (None, None);
        for a in Attributes::new(attributes).flatten().filter(|_| head[0] == AF_MPLS) {
            match a.kind {
                // Negative numbers are for all links.
                NETCONFA_IFINDEX => index = a.u32().ok().filter(|n| (1..1 << 31).contains(n)),
                NETCONFA_INPUT => on = a.u32().ok().map(|on| on != 0),
                _ => {}
            }
        }
        Some(LabelInput { index: index?, on })
    }

    /// Returns that of a link of a port's namespace; `None` if the link has none, or the kernel
    /// knows no labels.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn find_by(port: &Port, index: u32) -> io::Result<Option<LabelInput>> {
        let mut found = None;
        let encode = |out: &mut Vec<u8>, header: Header| {
            let mut w = Writer::with_payload(out, header, &[AF_MPLS, 0, 0, 0]);
            w.u32(NETCONFA_IFINDEX, index);
            w.finish();
        };
        let done = port.ask(Question::one(RTM_NEWNETCONF), RTM_GETNETCONF, encode, |payload| {
            found = LabelInput::parse(payload).filter(|input| input.index == index);
        });
        match done {
            Ok(()) => Ok(found),
            // Refused: there is nothing to be said.
            Err(e) if e.raw_os_error().is_some() => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Hands `each` the settings of all links of a port's namespace.
fn all_inputs(port: &Port, mut each: impl FnMut(LabelInput)) -> io::Result<()> {
    const EOPNOTSUPP: i32 = 95;
    let encode = |out: &mut Vec<u8>, header: Header| {
        Writer::with_payload(out, header, &[AF_MPLS, 0, 0, 0]).finish();
    };
    let done = port.ask(Question::all(RTM_NEWNETCONF), RTM_GETNETCONF, encode, |payload| {
        if let Some(input) = LabelInput::parse(payload) {
            each(input);
        }
    });
    match done {
        Err(e) if e.raw_os_error() == Some(EOPNOTSUPP) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Protocol;
    use crate::wire::payload as message;
    use proptest::prelude::*;
    use std::net::IpAddr;

    const RTA_OIF: u16 = 4;
    const RTA_VIA: u16 = 18;
    const RTA_NEWDST: u16 = 19;

    fn entry(label: u32, bottom: bool) -> [u8; 4] {
        (label << 12 | u32::from(bottom) << 8).to_be_bytes()
    }

    fn route(label: u32, flags: u32, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut head = [AF_MPLS, LABEL_BITS, 0, 0, 254, 196, 0, 1, 0, 0, 0, 0];
        head[8..].copy_from_slice(&flags.to_ne_bytes());
        message(&head, |w| {
            w.bytes(RTA_DST, &entry(label, true));
            fill(w);
        })
    }

    fn via(address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(ip) => [&2_u16.to_ne_bytes()[..], &ip.octets()].concat(),
            IpAddr::V6(ip) => [&10_u16.to_ne_bytes()[..], &ip.octets()].concat(),
        }
    }

    #[test]
    fn a_label_is_swapped() {
        let to: IpAddr = [10, 0, 0, 2].into();
        let stack = [entry(200, false), entry(201, true)].concat();
        let payload = route(100, 0, |w| {
            w.bytes(RTA_NEWDST, &stack).bytes(RTA_VIA, &via(to)).u32(RTA_OIF, 7);
            w.u8(RTA_TTL_PROPAGATE, 0);
        });
        let route = LabelMessage::parse(&payload).unwrap();
        let said = (route.label, route.protocol, route.kind, route.propagates_ttl);
        assert_eq!(said, (100, 196, RouteKind::Unicast, Some(false)));
        let wanted = Hop { link: 7, gateway: Some(to), labels: &stack, ..Hop::NONE };
        assert_eq!(route.hops().collect::<Vec<_>>(), [wanted]);
        // A route of IP is none of a label, and the other way round.
        assert!(crate::fib::RouteMessage::parse(&payload).is_none());
    }

    #[test]
    fn a_label_is_popped() {
        let to: IpAddr = "fe80::2".parse().unwrap();
        let payload = route(0xf_ffff, 1, |w| _ = w.bytes(RTA_VIA, &via(to)).u32(RTA_OIF, 7));
        let route = LabelMessage::parse(&payload).unwrap();
        assert_eq!((route.label, route.propagates_ttl), (0xf_ffff, None));
        let wanted = Hop { link: 7, gateway: Some(to), is_dead: true, ..Hop::NONE };
        assert_eq!(route.hops().collect::<Vec<_>>(), [wanted]);
        // Received by a link.
        let payload = route_by(16, |w| _ = w.u32(RTA_OIF, 1));
        let hops: Vec<Hop<'_>> = LabelMessage::parse(&payload).unwrap().hops().collect();
        assert_eq!(hops, [Hop { link: 1, ..Hop::NONE }]);
        // By a MAC address.
        let mac = [&17_u16.to_ne_bytes()[..], &[2, 0, 0, 0, 0, 1]].concat();
        let payload = route_by(16, |w| _ = w.u32(RTA_OIF, 7).bytes(RTA_VIA, &mac));
        assert!(LabelMessage::parse(&payload).unwrap().hops().all(|hop| hop.is_odd));
    }

    fn route_by(label: u32, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        route(label, 0, fill)
    }

    #[test]
    fn a_label_has_several_hops() {
        let hop = |link: u32, label: u32| {
            let attributes = message(&[], |w| {
                w.bytes(RTA_NEWDST, &entry(label, true));
                w.bytes(RTA_VIA, &via([10, 0, link as u8, 2].into()));
            });
            let length = 8 + attributes.len() as u16;
            [&length.to_ne_bytes()[..], &[0, 0], &link.to_ne_bytes(), &attributes].concat()
        };
        let hops = [hop(7, 200), hop(8, 300)].concat();
        let payload = route(100, 0, |w| _ = w.bytes(RTA_MULTIPATH, &hops));
        let route = LabelMessage::parse(&payload).unwrap();
        let seen: Vec<_> = route.hops().map(|h| (h.weight, h.link, h.labels.to_vec())).collect();
        let wanted = [(1, 7, entry(200, true).to_vec()), (1, 8, entry(300, true).to_vec())];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_label_has_four_bytes() {
        for bytes in [&[0, 1, 1][..], &[0; 5], &[]] {
            let head = [AF_MPLS, LABEL_BITS, 0, 0, 254, 196, 0, 1, 0, 0, 0, 0];
            let payload = message(&head, |w| _ = w.bytes(RTA_DST, bytes).u32(RTA_OIF, 1));
            assert!(LabelMessage::parse(&payload).is_none());
        }
        assert!(LabelMessage::parse(&[AF_MPLS, LABEL_BITS, 0, 0]).is_none());
        assert!(LabelMessage::parse(&[AF_MPLS, 20, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn settings_of_links() {
        let payload = message(&[AF_MPLS, 0, 0, 0], |w| {
            w.u32(NETCONFA_IFINDEX, 7).u32(NETCONFA_INPUT, 1);
        });
        assert_eq!(LabelInput::parse(&payload), Some(LabelInput { index: 7, on: Some(true) }));
        let of_all = message(&[AF_MPLS, 0, 0, 0], |w| _ = w.u32(NETCONFA_IFINDEX, u32::MAX));
        let of_ip = message(&[2, 0, 0, 0], |w| _ = w.u32(NETCONFA_IFINDEX, 7));
        assert_eq!((LabelInput::parse(&of_all), LabelInput::parse(&of_ip)), (None, None));
    }

    /// With the module or without.
    #[test]
    fn this_namespace_is_listed() {
        let port = Port::open(Protocol::Route).unwrap();
        for strict in [false, true] {
            port.set_strict(strict);
            match all_labels(&port, |route| assert!(route.label >= 16)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                done => done.unwrap(),
            }
            let found = LabelInput::find_by(&port, 1).unwrap();
            assert!(found.is_none_or(|input| input.index == 1));
            assert_eq!(LabelInput::find_by(&port, 1 << 30).unwrap(), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
            let mut bytes = bytes;
            for family in [AF_MPLS, 2] {
                if let [first, bits, ..] = &mut bytes[..] {
                    (*first, *bits) = (family, LABEL_BITS);
                }
                if let Some(route) = LabelMessage::parse(&bytes) {
                    prop_assert!(route.label < 1 << 20 && family == AF_MPLS);
                    prop_assert!(route.hops().count() <= bytes.len() / 8);
                }
                let input = LabelInput::parse(&bytes);
                prop_assert!(input.is_none_or(|input| input.index > 0));
            }
        }
    }
}
