//! Bindings of a label: paths, or a prefix of an IP table.

use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::table::watch;
use thalweg_feat_ip::{Ip, RouteError};
use thalweg_fib::rib::{Labels, Mode, Path, PathKind};
use thalweg_fib::{LookIn, PathText, Place, TableId, Version};
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};
use thalweg_wire::mpls::{Label, label};

/// A path of a label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Via {
    /// Path to a next hop, or to where IPv4 routes lead, too.
    Path(Path),
    /// The IPv6 packet behind the bottom is looked up in a table, or received by an interface.
    Ip6(Path),
    /// The next label is looked up in a table.
    Mpls(TableId),
    /// The IP packet behind the bottom is looked up in the table with this number of its version,
    /// with what it takes over of the label. Linux has such paths.
    AnyIp(TableId, Mode),
    /// The Ethernet frame behind the bottom is received by an interface: the end of a pseudowire.
    Layer2 {
        /// The interface.
        sw_if: SwIfIndex,
        /// A control word precedes the frame (RFC 4385).
        control_word: bool,
    },
}

impl Via {
    /// Returns a path of a label as it is written.
    #[must_use]
    pub fn of(path: PathText<SwIfIndex>) -> Via {
        let path = path.of_label();
        match (path.place, path.path()) {
            (Place::Layer2 { interface, control_word }, _) => {
                Via::Layer2 { sw_if: interface, control_word }
            }
            (
                Place::Lookup(LookIn::Ip(Version::V6), _) | Place::Receive(Version::V6, _),
                Some(p),
            ) => Via::Ip6(p),
            (Place::Lookup(_, table), None) => Via::Mpls(table),
            (_, Some(p)) => Via::Path(p),
            // Each other place has a path.
            (_, None) => Via::Path(Path::special(PathKind::Drop)),
        }
    }

    /// Returns how it is written.
    #[must_use]
    pub fn text(&self) -> PathText<SwIfIndex> {
        match *self {
            Via::Path(path) => PathText::of(&path, Version::V4),
            Via::Ip6(path) => PathText::of(&path, Version::V6),
            Via::Mpls(table) => PathText::to(Place::Lookup(LookIn::Mpls, table)),
            Via::AnyIp(table, mode) => PathText {
                labels: Via::popped(mode),
                ..PathText::to(Place::Lookup(LookIn::AnyIp, table))
            },
            Via::Layer2 { sw_if, control_word } => {
                PathText::to(Place::Layer2 { interface: sw_if, control_word })
            }
        }
    }

    /// Returns the labels of a path by which a label is popped in this mode.
    #[must_use]
    pub fn popped(mode: Mode) -> Labels {
        match mode {
            Mode::Pipe => Labels::NONE,
            mode => Labels::new(&[label::IMPLICIT_NULL]).unwrap_or_default().in_mode(mode),
        }
    }

    /// Returns how it is written, with the interface's name.
    pub(crate) fn named(&self, c: &Control) -> PathText<String> {
        self.text().map(|i| c.interface_name(i))
    }

    pub(crate) fn sw_if(&self) -> Option<SwIfIndex> {
        match self {
            Via::Path(path) | Via::Ip6(path) => path.sw_if,
            Via::Layer2 { sw_if, .. } => Some(*sw_if),
            Via::Mpls(_) | Via::AnyIp(..) => None,
        }
    }

    /// The label whose paths it follows.
    pub(crate) fn via_label(&self) -> Option<Label> {
        match self {
            Via::Path(path) => path.via_label,
            Via::Ip6(_) | Via::Mpls(_) | Via::AnyIp(..) | Via::Layer2 { .. } => None,
        }
    }

    pub(crate) fn is_same(&self, other: &Via) -> bool {
        match (self, other) {
            (Via::Path(a), Via::Path(b)) | (Via::Ip6(a), Via::Ip6(b)) => a.is_same(b),
            _ => self == other,
        }
    }
}

/// A prefix of an IP table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bound {
    table: TableId,
    addr: IpAddr,
    len: u8,
}

impl Bound {
    /// Returns a prefix of a table, without bits behind its length; `None` if that is too large.
    #[must_use]
    pub fn new(table: TableId, addr: IpAddr, len: u8) -> Option<Bound> {
        let addr = match addr {
            IpAddr::V4(v4) => Prefix::new(v4.to_bits(), len).ok()?.addr().to_ip(),
            IpAddr::V6(v6) => Prefix::new(v6.to_bits(), len).ok()?.addr().to_ip(),
        };
        Some(Bound { table, addr, len })
    }

    pub(crate) fn of<A: Address>(table: TableId, prefix: Prefix<A>) -> Bound {
        Bound { table, addr: prefix.addr().to_ip(), len: prefix.len() }
    }

    /// Returns the version.
    #[must_use]
    pub fn version(self) -> Version {
        Version::of_ip(self.addr)
    }

    /// Returns the table.
    #[must_use]
    pub fn table(self) -> TableId {
        self.table
    }

    /// Returns the prefix as text.
    #[must_use]
    pub fn prefix(self) -> String {
        format!("{}/{}", self.addr, self.len)
    }

    /// The prefix, if it is of this family.
    fn own<A: Address>(self) -> Option<Prefix<A>> {
        Prefix::new(A::from_ip(self.addr)?, self.len).ok()
    }

    /// Starts or stops events about changes of its route.
    pub(crate) fn watch(self, c: &Control, on: bool) -> Result<(), RouteError> {
        fn in_family<A: Address>(c: &Control, to: Bound, on: bool) -> Result<(), RouteError> {
            to.own::<A>().map_or(Ok(()), |prefix| watch(c, to.table, prefix, on))
        }
        match self.version() {
            Version::V4 => in_family::<u32>(c, self, on),
            Version::V6 => in_family::<u128>(c, self, on),
        }
    }

    /// Returns the paths of its route; `None` if the table has gone.
    pub(crate) fn paths(self, c: &Control) -> Option<Vec<Path>> {
        fn in_family<A: Address>(c: &Control, to: Bound) -> Option<Vec<Path>> {
            let ip = c.state::<Ip<A>>();
            let ip = ip.borrow();
            ip.serial(to.table)?;
            let view = to.own().and_then(|prefix| ip.route(to.table, prefix));
            Some(view.map_or_else(Vec::new, |view| view.paths))
        }
        match self.version() {
            Version::V4 => in_family::<u32>(c, self),
            Version::V6 => in_family::<u128>(c, self),
        }
    }
}

/// Returns whether a path is meant by another one, which may leave its labels out.
pub(crate) fn matches(path: &Via, meant: &Via) -> bool {
    match (path, meant) {
        (Via::Path(a), Via::Path(b)) | (Via::Ip6(a), Via::Ip6(b)) => {
            (a.kind, a.next_hop, a.via_label) == (b.kind, b.next_hop, b.via_label)
                && (b.sw_if.is_none() || a.sw_if == b.sw_if)
                && (b.labels == Labels::NONE || a.labels == b.labels)
        }
        _ => path == meant,
    }
}

/// Returns whether a path can share a label with others.
pub(crate) fn is_normal(via: &Via) -> bool {
    matches!(via, Via::Path(path) if path.kind == PathKind::Normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_fib::path_words::path_of;

    #[test]
    fn paths_of_labels_keep_their_words() {
        for text in [
            "192.0.2.1 next-hop-table 9 weight 2 out-labels 17",
            "2001:db8::1 pg0",
            "pg0",
            "via-label 33 weight 2 out-labels 44",
            "ip4-lookup-in-table 9 out-labels implicit-null uniform",
            "ip6-lookup-in-table 9",
            "mpls-lookup-in-table 9",
            "rx-ip4 pg0",
            "rx-ip6 pg0 out-labels implicit-null uniform",
            "l2-input-on pg0",
            "l2-input-on pg0 pop-pw-cw",
            "local",
            "drop",
        ] {
            let path = path_of(text).unwrap().map(|_| SwIfIndex(3));
            assert_eq!(Via::of(path).text(), path, "{text}");
        }
    }
}
