//! Paths of routes, and who has configured them.

use crate::{LinkType, Version};
use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_tables::Address;
use thalweg_wire::mpls::{Label, MAX_LABEL, label};

thalweg_wire::number! {
    /// Number of a route table (VRF); 0 is the default one. Each family has its own tables.
    pub struct TableId(u32);
}

/// Source of a route; the lowest wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Source {
    /// Interface address.
    Interface,
    /// Written by hand into the kernel, in whose place the router forwards.
    KernelStatic,
    /// Put into the kernel by a routing daemon.
    KernelDynamic,
    /// Configured by CLI or API.
    Static,
    /// Host of another link that the router answers for.
    ProxyNd,
    /// Learned from a router's advertisement.
    Nd,
    /// Resolved neighbour.
    Adjacency,
    /// Present in every table.
    Default,
}

impl Source {
    /// All of them, best first.
    pub const ALL: [Source; 8] = [
        Source::Interface,
        Source::KernelStatic,
        Source::KernelDynamic,
        Source::Static,
        Source::ProxyNd,
        Source::Nd,
        Source::Adjacency,
        Source::Default,
    ];

    /// Returns whether a user or a routing daemon has written it, and not the router found it.
    #[must_use]
    pub fn is_written(self) -> bool {
        matches!(self, Source::Static | Source::KernelStatic | Source::KernelDynamic)
    }

    /// Word printed by `show ip fib`.
    pub fn word(self) -> &'static str {
        match self {
            Source::Interface => "interface",
            Source::KernelStatic => "lcp-rt",
            Source::KernelDynamic => "lcp-rt-dynamic",
            Source::Static => "CLI",
            Source::ProxyNd => "IPv6-proxy-nd",
            Source::Nd => "IPv6-nd",
            Source::Adjacency => "adjacency",
            Source::Default => "default-route",
        }
    }
}

/// Kind of path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum PathKind {
    /// A next hop or a connected interface.
    Normal,
    /// Delivered to the router itself. With an interface: its own address.
    Local,
    /// Dropped silently.
    Drop,
    /// Dropped with ICMP "host unreachable".
    Unreachable,
    /// Dropped with ICMP "administratively prohibited".
    Prohibit,
    /// Looked up again in the table with this id.
    Lookup(TableId),
    /// Looked up again as if received on the path's interface: in its table.
    InterfaceRx,
    /// The next-hop group with this number.
    Group(u32),
}

impl PathKind {
    /// Returns its word in JSON, and in commands if the path is nothing else.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            PathKind::Normal => "normal",
            PathKind::Local => "local",
            PathKind::Drop => "drop",
            PathKind::Unreachable => "unreachable",
            PathKind::Prohibit => "prohibit",
            PathKind::Lookup(_) => "lookup",
            PathKind::InterfaceRx => "interface-rx",
            PathKind::Group(_) => "group",
        }
    }
}

/// One path of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Path {
    /// Kind of path.
    pub kind: PathKind,
    /// Next hop, which may be of another family than the route if the interface is given (RFC
    /// 8950); `None` for a connected path.
    pub next_hop: Option<IpAddr>,
    /// Egress interface; `None` if the next hop is resolved recursively.
    pub sw_if: Option<SwIfIndex>,
    /// Weight among the route's paths, at least 1.
    pub weight: u8,
    /// Only the usable paths of the lowest preference take part.
    pub preference: u8,
    /// Labels to impose.
    pub labels: Labels,
    /// A label of MPLS table 0 whose paths it follows, in the place of a next hop.
    pub via_label: Option<Label>,
    /// Table in which a next hop without an interface is resolved; `None` for the route's own. The
    /// table must [track](super::Table::track) it [so](Path::tracked_as). Its family is the next
    /// hop's; if that is not the route's, the table is always named.
    pub table: Option<TableId>,
}

impl Path {
    /// A path to a next hop.
    pub fn via(next_hop: impl Into<IpAddr>, sw_if: Option<SwIfIndex>) -> Path {
        Path { next_hop: Some(next_hop.into()), sw_if, ..Path::special(PathKind::Normal) }
    }
    /// A special path, without next hop.
    pub fn special(kind: PathKind) -> Path {
        let (next_hop, sw_if, labels) = (None, None, Labels::NONE);
        let (weight, preference, via_label, table) = (1, 0, None, None);
        Path { kind, next_hop, sw_if, weight, preference, labels, via_label, table }
    }
    /// A path that follows those of a label.
    pub fn via_label(label: Label) -> Path {
        Path { via_label: Some(label), ..Path::special(PathKind::Normal) }
    }
    /// A connected path.
    pub fn connected(sw_if: SwIfIndex) -> Path {
        Path { sw_if: Some(sw_if), ..Path::special(PathKind::Normal) }
    }
    /// Returns the interface, if all that the path says is that hosts are on it.
    #[must_use]
    pub fn attached(&self) -> Option<SwIfIndex> {
        let plain = self.kind == PathKind::Normal && self.labels == Labels::NONE;
        self.sw_if.filter(|_| plain && self.next_hop.is_none())
    }
    /// Returns the path in the form of a table of such addresses: one to a next hop in the table
    /// itself names none. Next hops of another family are in table 0 unless they name one (RFC
    /// 4798).
    #[must_use]
    pub fn in_table<A: Address>(self, own: TableId) -> Path {
        let followed = self.kind == PathKind::Normal && self.sw_if.is_none();
        let hop = self.next_hop.filter(|_| followed);
        let table = match hop {
            Some(hop) if Version::of_ip(hop) != Version::of::<A>() => {
                Some(self.table.unwrap_or(TableId(0)))
            }
            _ => self.table.filter(|id| *id != own && self.via_label.is_none()),
        };
        Path { table, ..self }
    }
    /// Returns of which family a next hop is that another table follows, and the labels with which
    /// that table tracks it, for packets of this type.
    #[must_use]
    pub fn tracked_as(&self, own: LinkType) -> (LinkType, Labels) {
        match self.next_hop.map_or(own, |hop| Version::of_ip(hop).link()) {
            link if link == own => (own, self.labels),
            // The packet below other labels keeps its protocol.
            link => (link, self.labels.carrying(self.labels.carried().or(Some(own)))),
        }
    }
    /// Returns whether another path leads to the same place.
    #[must_use]
    pub fn is_same(&self, other: &Path) -> bool {
        let place = |p: &Path| (p.kind, p.next_hop, p.via_label, p.sw_if, p.labels, p.table);
        place(self) == place(other)
    }
}

/// Maximum number of labels of a path.
pub const MAX_LABELS: usize = 12;

impl Mode {
    /// Returns its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Mode::Pipe => "pipe",
            Mode::Uniform => "uniform",
            Mode::Ttl => "ttl",
        }
    }
}

/// A stack of MPLS labels, the outermost first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct Labels {
    len: u8,
    all: [Label; MAX_LABELS],
    marks: [Mark; MAX_LABELS],
    before: Before,
    mode: Mode,
    carried: Option<LinkType>,
}

/// TTL and traffic class that a label is pushed with in pipe mode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct Mark {
    /// The TTL; 0 for 64.
    pub ttl: u8,
    /// The traffic class, up to 7.
    pub class: u8,
}

impl Mark {
    /// The usual ones: TTL 64 and class 0.
    pub const USUAL: Mark = Mark { ttl: 0, class: 0 };

    /// Returns the TTL that is sent.
    #[must_use]
    pub const fn sent_ttl(self) -> u8 {
        if self.ttl == 0 { 64 } else { self.ttl }
    }
}

/// Source of the TTL and traffic class of labels (RFC 3443, RFC 3270).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub enum Mode {
    /// TTL and class are the labels' own: the path is one hop to the packet.
    #[default]
    Pipe,
    /// TTL and class are copied from the packet behind, and go back there with the last label.
    Uniform,
    /// The TTL goes back with the last label, and the packet keeps its class, as Linux has it. No
    /// labels are put before packets in this mode.
    Ttl,
}

/// Content behind a stack of labels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub enum Before {
    /// A packet without labels: the last one is the bottom.
    #[default]
    Packet,
    /// A packet without labels, whose last one was popped by a node that asks members of a group
    /// what to do with it.
    Popped,
    /// Labels of the packet.
    Labels,
    /// Labels of the packet, the first of which becomes this one.
    Swapped(Label),
}

impl Labels {
    /// No label.
    pub const NONE: Labels = Labels {
        len: 0,
        all: [Label(0); MAX_LABELS],
        marks: [Mark::USUAL; MAX_LABELS],
        before: Before::Packet,
        mode: Mode::Pipe,
        carried: None,
    };

    /// Returns a stack; `None` if there are more than [`MAX_LABELS`], or one has over 20 bits.
    #[must_use]
    pub fn new(labels: &[Label]) -> Option<Labels> {
        let mut all = [Label(0); MAX_LABELS];
        all.get_mut(..labels.len())?.copy_from_slice(labels);
        let fit = labels.iter().all(|label| *label <= MAX_LABEL);
        fit.then_some(Labels { len: labels.len() as u8, all, ..Labels::NONE })
    }

    /// Returns the same labels with these TTLs and classes, in the same order.
    #[must_use]
    pub fn marked(mut self, marks: &[Mark]) -> Labels {
        let own = usize::from(self.len);
        self.marks[..own].iter_mut().zip(marks).for_each(|(to, mark)| *to = *mark);
        self
    }

    /// Returns TTL and class of each label.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks[..usize::from(self.len)]
    }

    /// Returns each label with its TTL and class.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Label, Mark)> + '_ {
        self.as_slice().iter().copied().zip(self.marks().iter().copied())
    }

    /// A stack of labels with their TTLs and classes.
    fn of(all: &[(Label, Mark)]) -> Option<Labels> {
        let (labels, marks): (Vec<Label>, Vec<Mark>) = all.iter().copied().unzip();
        Some(Labels::new(&labels)?.marked(&marks))
    }

    /// Returns the same labels, put before something else.
    #[must_use]
    pub fn put_before(self, before: Before) -> Labels {
        Labels { before, ..self }
    }

    /// Returns the same labels in another mode.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Labels {
        Labels { mode, ..self }
    }

    /// Returns the same labels before packets of this type; `None` for that of the table's packets.
    #[must_use]
    pub fn carrying(self, carried: Option<LinkType>) -> Labels {
        Labels { carried, ..self }
    }

    /// Returns the type of the packets, if it is not that of the table's.
    #[must_use]
    pub fn carried(&self) -> Option<LinkType> {
        self.carried
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns what the labels are put before.
    #[must_use]
    pub fn before(&self) -> Before {
        self.before
    }

    /// Returns the stack without implicit nulls, which are never sent (RFC 3032 section 2.1).
    #[must_use]
    pub fn sent(&self) -> Labels {
        let sent: Vec<_> = self.iter().filter(|(l, _)| *l != label::IMPLICIT_NULL).collect();
        Labels::of(&sent).unwrap_or_default().like(self)
    }

    /// Returns the stack with the labels of another one before it; `None` if there are too many.
    #[must_use]
    pub fn under(&self, outer: &Labels) -> Option<Labels> {
        let all: Vec<_> = outer.iter().chain(self.iter()).collect();
        Some(Labels::of(&all)?.like(self))
    }

    /// Like [`under`](Self::under), for a path that follows another one; without labels of its own,
    /// it takes the mode of the other.
    #[must_use]
    pub fn following(&self, outer: &Labels) -> Option<Labels> {
        match self.as_slice() {
            [] => Some(outer.put_before(self.before).carrying(self.carried)),
            _ => self.under(outer),
        }
    }

    /// Returns the same labels with all else of another stack.
    fn like(self, other: &Labels) -> Labels {
        Labels { len: self.len, all: self.all, marks: self.marks, ..*other }
    }

    /// Returns the labels, the outermost first.
    #[must_use]
    pub fn as_slice(&self) -> &[Label] {
        &self.all[..usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn stacks_have_up_to_twelve_labels_of_20_bits() {
        assert_eq!(Labels::new(&[]), Some(Labels::NONE));
        let most: Vec<Label> = (0..12).map(|n| Label(MAX_LABEL.0 - n)).collect();
        assert_eq!(Labels::new(&most).map(|l| l.as_slice().to_vec()), Some(most));
        assert_eq!((Labels::new(&[Label(1 << 20)]), Labels::new(&[Label(0); 13])), (None, None));
    }

    #[test]
    fn ttls_and_classes_stay_with_their_labels() {
        let mark = |ttl| Mark { ttl, class: 1 };
        let labels = Labels::new(&[Label(16), label::IMPLICIT_NULL, Label(17)]).unwrap();
        let labels = labels.marked(&[mark(1), mark(2), mark(3), mark(4)]);
        assert_eq!(labels.sent().marks(), [mark(1), mark(3)]);
        let under = labels.sent().under(&Labels::new(&[Label(18)]).unwrap()).unwrap();
        assert_eq!(under.marks(), [Mark::USUAL, mark(1), mark(3)]);
        assert_eq!((Mark::USUAL.sent_ttl(), mark(9).sent_ttl()), (64, 9));
    }

    #[test]
    fn paths_to_the_same_place_may_have_other_weights() {
        let path = Path::via([10, 0, 0, 1], Some(SwIfIndex(1)));
        assert!(path.is_same(&Path { weight: 7, preference: 2, ..path }));
        assert!(!path.is_same(&Path { labels: Labels::new(&[Label(16)]).unwrap(), ..path }));
        assert!(!path.is_same(&Path::via([10, 0, 0, 1], None)));
        assert!(!path.is_same(&Path { table: Some(TableId(7)), ..path }));
    }

    #[test]
    fn next_hops_of_another_family_are_in_its_tables() {
        let (own, other) = (Path::via([10, 0, 0, 1], None), Path::via(Ipv6Addr::LOCALHOST, None));
        let in_7 = |path: Path, table| {
            Path { table, ..path }.in_table::<u32>(TableId(7)).table.map(|id| id.0)
        };
        assert_eq!((in_7(own, None), in_7(own, Some(TableId(7)))), (None, None));
        assert_eq!(in_7(own, Some(TableId(0))), Some(0));
        assert_eq!((in_7(other, None), in_7(other, Some(TableId(7)))), (Some(0), Some(7)));
        let by_interface = Path { sw_if: Some(SwIfIndex(1)), ..other };
        assert_eq!(in_7(by_interface, None), None);
        let labels = Labels::new(&[Label(16)]).unwrap();
        let path = Path { labels, ..own };
        assert_eq!(path.tracked_as(LinkType::Ip4), (LinkType::Ip4, labels));
        let carrying = labels.carrying(Some(LinkType::Ip6));
        assert_eq!(path.tracked_as(LinkType::Ip6), (LinkType::Ip4, carrying));
        assert_eq!(carrying.sent().carried(), Some(LinkType::Ip6));
    }
}
