//! Kinds of forwarding objects, and the links that they send over: both open to features.
//!
//! A kind says what becomes of packets that meet the object. The crate has those that every
//! protocol needs; a feature adds its own with [`Forwarding::register`], and says for each protocol
//! which node handles it with [`Forwarding::set_exit`].

use crate::rib::Mark;
use crate::{Dpo, Forwarding, Imposed};
use thalweg_device::{InterfaceView, MacAddr, MtuOf};
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// Kind of a forwarding object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Kind(u8);

impl Kind {
    /// Packets leave by the entry's interface.
    const SENT: u8 = 0x80;
    /// The entry has all that a packet needs to be sent.
    const COMPLETE: u8 = 0x40;

    /// No route matches.
    pub const MISS: Kind = Kind(0);
    /// A complete adjacency: write the header and send.
    pub const REWRITE: Kind = Kind(1 | Kind::SENT | Kind::COMPLETE);
    /// An adjacency whose neighbour's MAC address is not known yet.
    pub const INCOMPLETE: Kind = Kind(2 | Kind::SENT);
    /// A connected subnet: the destination itself must be resolved.
    pub const GLEAN: Kind = Kind(3 | Kind::SENT);
    /// The router's own address.
    pub const LOCAL: Kind = Kind(4);
    /// One of several members, by flow.
    pub const LOAD_BALANCE: Kind = Kind(5);
    /// Send "host unreachable" and drop.
    pub const UNREACHABLE: Kind = Kind(6);
    /// Send "host administratively prohibited" and drop.
    pub const PROHIBIT: Kind = Kind(7);
    /// Drop silently.
    pub const DROP: Kind = Kind(8);
    /// The interface is down.
    pub const DOWN: Kind = Kind(9);
    /// A header that leads to another object: a tunnel's.
    pub const MIDCHAIN: Kind = Kind(10 | Kind::SENT | Kind::COMPLETE);
    /// All members of a group on an interface: the MAC address depends on the destination.
    pub const MULTICAST: Kind = Kind(11 | Kind::SENT);
    /// The only usable member of the group.
    pub const REDIRECT: Kind = Kind(12);
    /// Kind of [`REDIRECT`](Self::REDIRECT), to a complete object.
    pub const REDIRECT_COMPLETE: Kind = Kind(12 | Kind::COMPLETE);
    /// Kind of [`LOAD_BALANCE`](Self::LOAD_BALANCE) whose members are all complete.
    pub const LOAD_BALANCE_COMPLETE: Kind = Kind(5 | Kind::COMPLETE);
    /// Look up again, in another table.
    pub const LOOKUP: Kind = Kind(13);
    /// The route's next hops lead nowhere now.
    pub const UNRESOLVED: Kind = Kind(14);
    /// Look up again, as if the packet had come by another interface.
    pub const INTERFACE_RX: Kind = Kind(15);
    /// The link header that the packet came with, which was written for this interface.
    pub const AS_WRITTEN: Kind = Kind(16 | Kind::SENT);

    /// Number of kinds there may be.
    pub const LIMIT: usize = 64;

    /// Returns whether packets leave by the entry's interface, now or after a resolution.
    #[inline]
    #[must_use]
    pub const fn is_sent(self) -> bool {
        self.0 & Kind::SENT != 0
    }

    /// Returns whether the entry has all that a packet needs to be sent.
    #[inline(always)]
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.0 & Kind::COMPLETE != 0
    }

    /// Returns whether packets meet one of its members.
    #[inline]
    #[must_use]
    pub const fn is_group(self) -> bool {
        // The number ignores completeness.
        let number = self.0 & 0x3f;
        number == Kind::LOAD_BALANCE.0 || number == Kind::REDIRECT.0
    }

    /// Position in tables of all kinds.
    #[inline]
    pub(crate) const fn number(self) -> usize {
        (self.0 & 0x3f) as usize
    }

    #[inline(always)]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    #[inline(always)]
    pub(crate) const fn from_bits(bits: u8) -> Kind {
        Kind(bits)
    }
}

/// Presentation of a kind's objects in `show` commands.
#[derive(Clone, Copy, Debug)]
pub struct KindDecl {
    /// Word for JSON, such as `adjacency`.
    pub name: &'static str,
    /// VPP's number for the type of the object.
    pub type_number: u8,
    /// True if packets leave by the entry's interface.
    pub sent: bool,
    /// Describes an object, as `show ip fib` prints it.
    pub describe: fn(&Forwarding, &Control, Dpo) -> String,
}

const fn decl(
    name: &'static str,
    type_number: u8,
    describe: fn(&Forwarding, &Control, Dpo) -> String,
) -> KindDecl {
    KindDecl { name, type_number, sent: false, describe }
}

/// The kinds of this crate, by number.
pub(crate) const OWN: [KindDecl; 17] = [
    decl("miss", 0, drop),
    decl("adjacency", 5, adjacency),
    decl("incomplete", 3, adjacency),
    decl("glean", 4, glean),
    decl("receive", 2, |_, _, _| "dpo-receive".into()),
    decl("load-balance", 0, drop),
    decl("unreachable", 1, |_, _, _| "dpo-unreachable".into()),
    decl("prohibit", 1, |_, _, _| "dpo-prohibit".into()),
    decl("drop", 0, drop),
    decl("interface-down", 0, down),
    decl("midchain", 6, adjacency),
    decl("multicast", 7, adjacency),
    decl("load-balance", 0, drop),
    decl("lookup", 8, |f, _, dpo| {
        format!("dpo-lookup: table:{}", f.table().get(dpo).state().value)
    }),
    decl("unresolved", 0, |_, _, _| "dpo-drop: unresolved".into()),
    decl("interface-rx", 9, |f, c, dpo| {
        format!("interface-rx-dpo: {}", c.interface_name(f.table().get(dpo).state().tx_if()))
    }),
    decl("as-written", 5, adjacency),
];

fn drop(_: &Forwarding, _: &Control, _: Dpo) -> String {
    "dpo-drop".into()
}

fn adjacency(f: &Forwarding, c: &Control, dpo: Dpo) -> String {
    let (state, bytes) = f.table().rewrite(dpo);
    let name = c.interface_name(state.tx_if());
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let link = f.link(dpo).unwrap_or(LinkType::Ip4).name();
    let start = match (state.kind, f.owner(dpo)) {
        (Kind::INCOMPLETE, Some((_, Some(nh)))) => format!("arp-{link}: via {nh}"),
        (Kind::MIDCHAIN, _) => format!("{link}-midchain: via"),
        (Kind::MULTICAST, _) => format!("{link}-mcast:"),
        (Kind::AS_WRITTEN, _) => format!("{link}-as-written:"),
        (_, Some((_, Some(nh)))) => format!("{link} via {nh}"),
        _ => format!("{link} via point-to-point"),
    };
    let imposed = labels(f.imposed(dpo));
    format!("{imposed}{start} {name}: mtu:{} {hex}", state.mtu)
}

/// Labels that an adjacency puts before packets.
fn labels(imposed: Imposed) -> String {
    let all = imposed.labels.as_slice();
    let bottom = |i| if imposed.bottom && i + 1 == all.len() { "eos" } else { "neos" };
    let text = |(i, (l, mark)): (usize, (Label, Mark))| {
        format!("[{l}:{}:{}:{}]", mark.sent_ttl(), mark.class, bottom(i))
    };
    let words: String = imposed.labels.iter().enumerate().map(text).collect();
    if words.is_empty() { words } else { format!("mpls-label:{words} ") }
}

fn glean(f: &Forwarding, c: &Control, dpo: Dpo) -> String {
    let state = f.table().get(dpo).state();
    let link = f.link(dpo).unwrap_or(LinkType::Ip4).name();
    format!("{link}-glean: {}: mtu:{}", c.interface_name(state.tx_if()), state.mtu)
}

fn down(f: &Forwarding, c: &Control, dpo: Dpo) -> String {
    match f.owner(dpo) {
        Some((i, Some(nh))) => {
            format!("dpo-drop: via {nh} {}: interface down", c.interface_name(i))
        }
        Some((i, None)) => format!("dpo-drop: {}: interface down", c.interface_name(i)),
        None => "dpo-drop".into(),
    }
}

/// Protocol that an adjacency carries: gives its ethertype and MTU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum LinkType {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
    /// MPLS, unicast.
    Mpls,
}

impl LinkType {
    /// All of them.
    pub const ALL: [LinkType; 3] = [LinkType::Ip4, LinkType::Ip6, LinkType::Mpls];

    /// Returns the ethertype (RFC 894, RFC 2464, RFC 5332).
    #[must_use]
    pub const fn ethertype(self) -> [u8; 2] {
        match self {
            LinkType::Ip4 => [0x08, 0x00],
            LinkType::Ip6 => [0x86, 0xdd],
            LinkType::Mpls => [0x88, 0x47],
        }
    }

    /// Returns the word that `show ip fib` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LinkType::Ip4 => "ipv4",
            LinkType::Ip6 => "ipv6",
            LinkType::Mpls => "mpls",
        }
    }

    /// Returns an interface's MTU for such packets.
    #[must_use]
    pub fn mtu(self, view: &InterfaceView) -> u16 {
        let of = match self {
            LinkType::Ip4 => MtuOf::Ip4,
            LinkType::Ip6 => MtuOf::Ip6,
            LinkType::Mpls => MtuOf::Mpls,
        };
        view.mtu.of(of).min(u32::from(u16::MAX)) as u16
    }

    /// Completes the MAC address of a multicast adjacency for a group: the lower 23 bits of an IPv4
    /// address (RFC 1112 section 6.4), the lower 32 of an IPv6 address (RFC 2464 section 7), or the
    /// 20 of a label, in the first four bytes of its entry (RFC 5332 section 3). `header` starts
    /// with the MAC address, and `group` is the address or entry; shorter ones change nothing.
    pub fn complete_multicast_mac(self, header: &mut [u8], group: &[u8]) {
        let Some(mac) = header.first_chunk_mut::<6>() else { return };
        match (self, group) {
            (LinkType::Ip4, [_, a, b, c, ..]) => mac[3..].copy_from_slice(&[a & 0x7f, *b, *c]),
            (LinkType::Ip6, [.., a, b, c, d]) if group.len() == 16 => {
                mac[2..].copy_from_slice(&[*a, *b, *c, *d]);
            }
            (LinkType::Mpls, [a, b, c, ..]) => {
                let label = u32::from_be_bytes([0, *a, *b, *c]) >> 4;
                mac[3..].copy_from_slice(&(0x80_0000 | label).to_be_bytes()[1..]);
            }
            _ => {}
        }
    }

    /// Returns the first bytes of multicast MAC addresses; the multicast address gives the others
    /// (RFC 1112 section 6.4, RFC 2464 section 7, RFC 5332 section 3).
    pub(crate) const fn multicast_mac(self) -> MacAddr {
        match self {
            LinkType::Ip4 => MacAddr::new(0x01, 0x00, 0x5e, 0, 0, 0),
            LinkType::Ip6 => MacAddr::new(0x33, 0x33, 0, 0, 0, 0),
            LinkType::Mpls => MacAddr::new(0x01, 0x00, 0x5e, 0x80, 0, 0),
        }
    }
}

/// The open part: kinds of features.
#[derive(Default)]
pub(crate) struct Kinds {
    more: Vec<(Kind, KindDecl)>,
}

impl Kinds {
    /// Adds a kind; `None` if all numbers are taken.
    pub(crate) fn add(&mut self, decl: KindDecl) -> Option<Kind> {
        let number = OWN.len() + self.more.len();
        if number >= Kind::LIMIT {
            return None;
        }
        let kind = Kind(number as u8 | if decl.sent { Kind::SENT } else { 0 });
        self.more.push((kind, decl));
        Some(kind)
    }

    pub(crate) fn get(&self, kind: Kind) -> &KindDecl {
        let more = self.more.iter().find(|(k, _)| k.number() == kind.number());
        OWN.get(kind.number()).or(more.map(|m| &m.1)).unwrap_or(&OWN[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::mpls::Entry as Stacked;

    #[test]
    fn kinds_say_what_they_do() {
        assert!(Kind::REWRITE.is_complete() && Kind::REWRITE.is_sent());
        assert!(Kind::INCOMPLETE.is_sent() && !Kind::INCOMPLETE.is_complete());
        assert!(Kind::REDIRECT_COMPLETE.is_complete() && !Kind::LOCAL.is_sent());
        assert_eq!(Kind::REDIRECT.number(), Kind::REDIRECT_COMPLETE.number());
        assert_eq!(Kind::LOAD_BALANCE.number(), Kind::LOAD_BALANCE_COMPLETE.number());
        let groups = (0..=u8::MAX).map(Kind).filter(|k| k.is_group() && !k.is_sent()).count();
        assert_eq!(groups, 4);
        assert_eq!(Kind::AS_WRITTEN.number(), OWN.len() - 1);
    }

    #[test]
    fn groups_have_mac_addresses_of_their_own() {
        let mac = |link: LinkType, group: &[u8]| {
            let mut header = link.multicast_mac().0.to_vec();
            link.complete_multicast_mac(&mut header, group);
            MacAddr(header.try_into().unwrap())
        };
        let to4 = |group| mac(LinkType::Ip4, group);
        assert_eq!(to4(&[224, 0, 0, 5]), MacAddr::new(1, 0, 0x5e, 0, 0, 5));
        assert_eq!(to4(&[239, 255, 2, 3]), MacAddr::new(1, 0, 0x5e, 0x7f, 2, 3));
        assert_eq!(to4(&[239, 255]), LinkType::Ip4.multicast_mac());
        let group = std::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0x1234).octets();
        let want = MacAddr::new(0x33, 0x33, 0xff, 0, 0x12, 0x34);
        assert_eq!(mac(LinkType::Ip6, &group), want);
        assert_eq!(mac(LinkType::Ip6, &group[..15]), LinkType::Ip6.multicast_mac());
        let entry = Stacked::new(Label(0xf_1234), 7, true, 64).0.to_be_bytes();
        assert_eq!(mac(LinkType::Mpls, &entry), MacAddr::new(1, 0, 0x5e, 0x8f, 0x12, 0x34));
        LinkType::Ip4.complete_multicast_mac(&mut [0; 5], &[224, 0, 0, 5]);
    }

    #[test]
    fn features_add_kinds_up_to_the_limit() {
        let mut kinds = Kinds::default();
        let more = KindDecl { sent: true, ..decl("mine", 9, drop) };
        let all: Vec<Kind> = std::iter::from_fn(|| kinds.add(more)).collect();
        assert_eq!(all.len(), Kind::LIMIT - OWN.len());
        assert!(all.iter().all(|k| k.is_sent() && kinds.get(*k).name == "mine"));
        assert_eq!(kinds.get(Kind::LOCAL).name, "receive");
    }
}
