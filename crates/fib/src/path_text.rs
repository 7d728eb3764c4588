//! Paths of routes and labels as they are written. Commands have the words behind `via`, documents
//! alone; both read and write them here.

use crate::label_text::write_labels;
use crate::rib::{Labels, Path, PathKind, TableId};
use crate::version::Version;
use serde_json::{Value, json};
use std::fmt;
use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_wire::mpls::Label;

/// Tables in which a path has packets looked up again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookIn {
    /// Tables of the route's own family: `lookup in table 7`. Paths are kept without it:
    /// [`PathText::of_route`] and [`PathText::of_label`] name the family.
    Own,
    /// Tables of a version of IP.
    Ip(Version),
    /// Tables of the version that the packet behind a label has. No words lead there.
    AnyIp,
    /// Tables of MPLS.
    Mpls,
}

/// Place to which a path leads. `I` is an interface: its index, or its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<I> {
    /// A next hop: `192.0.2.1`, `192.0.2.1 host-eth0`, `192.0.2.1 next-hop-table 7`.
    NextHop {
        /// Its address.
        address: IpAddr,
        /// Interface by which it is reached; without one, routes decide.
        interface: Option<I>,
        /// Table of these routes, if no interface is named.
        table: Option<TableId>,
    },
    /// Hosts on an interface: `host-eth0`.
    Interface(I),
    /// Paths of a label: `via-label 33`.
    Label(Label),
    /// A table: `ip4-lookup-in-table 7`.
    Lookup(LookIn, TableId),
    /// An interface that receives the IP packet: `rx-ip4 host-eth0`.
    Receive(Version, I),
    /// An interface that receives the Ethernet frame: `l2-input-on host-eth0 pop-pw-cw`.
    Layer2 {
        /// The interface.
        interface: I,
        /// A control word precedes the frame (RFC 4385).
        control_word: bool,
    },
    /// A group of next hops, which a feature names: no words lead there.
    Group(u32),
    /// A path that ends here: one of the kinds with neither table, interface nor group.
    End(PathKind),
}

impl<I> Place<I> {
    /// Returns the kind of a path that leads there; `None` if no path of an IP route does.
    #[must_use]
    pub fn kind(&self) -> Option<PathKind> {
        match self {
            Place::NextHop { .. } | Place::Interface(_) | Place::Label(_) => Some(PathKind::Normal),
            Place::Lookup(LookIn::Mpls | LookIn::AnyIp, _) | Place::Layer2 { .. } => None,
            Place::Lookup(_, table) => Some(PathKind::Lookup(*table)),
            Place::Receive(..) => Some(PathKind::InterfaceRx),
            Place::Group(number) => Some(PathKind::Group(*number)),
            Place::End(kind) => Some(*kind),
        }
    }

    /// Returns the interface.
    #[must_use]
    pub fn interface(&self) -> Option<&I> {
        match self {
            Place::NextHop { interface, .. } => interface.as_ref(),
            Place::Interface(interface)
            | Place::Receive(_, interface)
            | Place::Layer2 { interface, .. } => Some(interface),
            Place::Label(_) | Place::Lookup(..) | Place::Group(_) | Place::End(_) => None,
        }
    }

    /// Returns the address of the next hop.
    #[must_use]
    pub fn next_hop(&self) -> Option<IpAddr> {
        match self {
            Place::NextHop { address, .. } => Some(*address),
            _ => None,
        }
    }

    /// Returns the keyword that begins it; nothing for next hops and interfaces.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Place::NextHop { .. } | Place::Interface(_) => "",
            Place::Label(_) => "via-label",
            Place::Lookup(LookIn::Own, _) => "lookup in table",
            Place::Lookup(LookIn::Ip(Version::V4), _) => "ip4-lookup-in-table",
            Place::Lookup(LookIn::Ip(Version::V6), _) => "ip6-lookup-in-table",
            Place::Lookup(LookIn::AnyIp, _) => "ip-lookup-in-table",
            Place::Lookup(LookIn::Mpls, _) => "mpls-lookup-in-table",
            Place::Receive(Version::V4, _) => "rx-ip4",
            Place::Receive(Version::V6, _) => "rx-ip6",
            Place::Layer2 { .. } => "l2-input-on",
            Place::Group(_) => "group",
            Place::End(kind) => kind.word(),
        }
    }

    /// Returns VPP's word for it in lists of paths.
    #[must_use]
    pub fn listed(&self) -> &'static str {
        match self {
            Place::NextHop { interface: Some(_), .. } => "attached-nexthop",
            Place::NextHop { .. } | Place::Label(_) => "recursive",
            Place::Interface(_) => "attached",
            Place::Lookup(..) => "deag",
            Place::Receive(..) | Place::Layer2 { .. } => "intf-rx",
            Place::End(PathKind::Local) => "receive",
            Place::Group(_) | Place::End(_) => "special",
        }
    }

    fn map<J>(self, to: impl FnOnce(I) -> J) -> Place<J> {
        match self {
            Place::NextHop { address, interface, table } => {
                Place::NextHop { address, interface: interface.map(to), table }
            }
            Place::Interface(interface) => Place::Interface(to(interface)),
            Place::Label(label) => Place::Label(label),
            Place::Lookup(of, table) => Place::Lookup(of, table),
            Place::Receive(version, interface) => Place::Receive(version, to(interface)),
            Place::Layer2 { interface, control_word } => {
                Place::Layer2 { interface: to(interface), control_word }
            }
            Place::Group(number) => Place::Group(number),
            Place::End(kind) => Place::End(kind),
        }
    }
}

impl<I: fmt::Display> fmt::Display for Place<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Place::NextHop { address, interface, table } => {
                write!(f, "{address}")?;
                match (interface, table) {
                    (Some(interface), _) => write!(f, " {interface}"),
                    (None, Some(table)) => write!(f, " next-hop-table {table}"),
                    (None, None) => Ok(()),
                }
            }
            Place::Interface(interface) => write!(f, "{interface}"),
            Place::Label(label) => write!(f, "{word} {label}"),
            Place::Lookup(_, table) => write!(f, "{word} {table}"),
            Place::Receive(_, interface) => write!(f, "{word} {interface}"),
            Place::Layer2 { interface, control_word } => {
                write!(f, "{word} {interface}{}", if *control_word { " pop-pw-cw" } else { "" })
            }
            Place::Group(number) => write!(f, "{word} {number}"),
            Place::End(_) => f.write_str(word),
        }
    }
}

/// A path as it is written: `192.0.2.1 host-eth0 weight 2 out-labels 17`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathText<I> {
    /// Place to which it leads.
    pub place: Place<I>,
    /// Weight among other paths, at least 1.
    pub weight: u8,
    /// Preference: the lowest takes part.
    pub preference: u8,
    /// Labels to impose.
    pub labels: Labels,
}

impl<I> PathText<I> {
    /// Returns the path to a place that shares with no other and has no labels.
    #[must_use]
    pub fn to(place: Place<I>) -> PathText<I> {
        PathText { place, weight: 1, preference: 0, labels: Labels::NONE }
    }

    /// Returns the path with its interface named otherwise.
    #[must_use]
    pub fn map<J>(self, to: impl FnOnce(I) -> J) -> PathText<J> {
        let PathText { place, weight, preference, labels } = self;
        PathText { place: place.map(to), weight, preference, labels }
    }

    /// Returns the path as one of a route of a version, whose tables `lookup in table` is about.
    /// The interface that receives a packet does so by that version.
    ///
    /// # Errors
    /// If no such route has it; the text says why.
    pub fn of_route(self, own: Version) -> Result<PathText<I>, String> {
        let word = self.place.word();
        if self.place.kind().is_none() {
            return Err(format!("`{word}' is for labels only"));
        }
        let place = match self.place {
            Place::Lookup(LookIn::Own, table) => Place::Lookup(LookIn::Ip(own), table),
            Place::Lookup(LookIn::Ip(version), _) if version != own => {
                return Err(format!("`{word}' is for {version} prefixes only"));
            }
            Place::Receive(_, interface) => Place::Receive(own, interface),
            place => place,
        };
        if place.kind() != Some(PathKind::Normal) && self.labels != Labels::NONE {
            return Err(format!("a route's path with `{word}' takes no `out-labels'"));
        }
        Ok(PathText { place, ..self })
    }

    /// Returns the path as one of a label, where `lookup in table` is about IPv4.
    #[must_use]
    pub fn of_label(self) -> PathText<I> {
        match self.place {
            Place::Lookup(LookIn::Own, table) => {
                PathText { place: Place::Lookup(LookIn::Ip(Version::V4), table), ..self }
            }
            _ => self,
        }
    }
}

impl PathText<String> {
    /// Returns the path as JSON; a list adds its word for the kind.
    #[must_use]
    pub fn json(&self) -> Value {
        let PathText { place, weight, preference, labels } = self;
        let (via_label, table, of_hop) = match place {
            Place::Label(label) => (Some(label.get()), None, None),
            Place::Lookup(_, table) => (None, Some(table.get()), None),
            Place::NextHop { table, .. } => (None, None, table.map(TableId::get)),
            _ => (None, None, None),
        };
        json!({
            "next_hop": place.next_hop(),
            "interface": place.interface(),
            "via_label": via_label,
            "table": table,
            "next_hop_table": of_hop,
            "weight": weight,
            "preference": preference,
            "labels": labels.as_slice().iter().map(|label| label.get()).collect::<Vec<_>>(),
            "mode": labels.mode().word(),
        })
    }
}

impl PathText<SwIfIndex> {
    /// Returns how a path of packets of a version is written.
    #[must_use]
    pub fn of(path: &Path, own: Version) -> PathText<SwIfIndex> {
        let (interface, table) = (path.sw_if, path.table);
        let place = match (path.kind, path.next_hop, path.via_label, interface) {
            (PathKind::Normal, Some(address), ..) => Place::NextHop { address, interface, table },
            (PathKind::Normal, None, Some(label), _) => Place::Label(label),
            (PathKind::Normal, None, None, Some(interface)) => Place::Interface(interface),
            (PathKind::InterfaceRx, _, _, Some(interface)) => Place::Receive(own, interface),
            (PathKind::Lookup(table), ..) => Place::Lookup(LookIn::Ip(own), table),
            (PathKind::Group(number), ..) => Place::Group(number),
            // A path without what its kind needs leads nowhere.
            (PathKind::Normal | PathKind::InterfaceRx, ..) => Place::End(PathKind::Drop),
            (kind, ..) => Place::End(kind),
        };
        let Path { weight, preference, labels, .. } = *path;
        PathText { place, weight, preference, labels }
    }

    /// Returns the path; `None` if only labels have such.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        let (mut via_label, mut table) = (None, None);
        match self.place {
            Place::NextHop { table: of_hop, .. } => table = of_hop,
            Place::Label(label) => via_label = Some(label),
            _ => {}
        }
        let PathText { place, weight, preference, labels } = *self;
        let (next_hop, sw_if) = (place.next_hop(), place.interface().copied());
        let kind = place.kind()?;
        Some(Path { kind, next_hop, sw_if, weight, preference, labels, via_label, table })
    }

    /// Returns the path of a route of a version.
    ///
    /// # Errors
    /// If no such route has it; the text says why.
    pub fn route_path(self, own: Version) -> Result<Path, String> {
        let path = self.of_route(own)?;
        path.path().ok_or_else(|| format!("`{}' is for labels only", path.place.word()))
    }
}

impl<I: fmt::Display> fmt::Display for PathText<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if self.weight != 1 {
            write!(f, " weight {}", self.weight)?;
        }
        if self.preference != 0 {
            write!(f, " preference {}", self.preference)?;
        }
        write_labels(&self.labels, f)
    }
}
