//! Items: pieces of configuration, each set and unset by one command.

use super::report::Problem;
use std::collections::BTreeSet;

/// Order in which items are set, lowest first; they are unset in the opposite order.
pub mod rank {
    /// Routing tables.
    pub const TABLE: u16 = 10;
    /// Settings required before an interface is created.
    pub const BEFORE_CREATE: u16 = 20;
    /// Interfaces.
    pub const CREATE: u16 = 30;
    /// MAC addresses of interfaces.
    pub const MAC: u16 = 40;
    /// Driver options.
    pub const DRIVER: u16 = 50;
    /// Link MTUs.
    pub const LINK_MTU: u16 = 60;
    /// Packet MTUs.
    pub const MTU: u16 = 70;
    /// Layer 2.
    pub const L2: u16 = 80;
    /// Routing tables of interfaces.
    pub const BIND: u16 = 90;
    /// Interface addresses.
    pub const ADDRESS: u16 = 100;
    /// Settings of all neighbours.
    pub const NEIGHBORS: u16 = 110;
    /// Neighbours.
    pub const NEIGHBOR: u16 = 120;
    /// Routes.
    pub const ROUTE: u16 = 130;
    /// Settings of a service.
    pub const SERVICE: u16 = 140;
    /// A service on an interface.
    pub const SERVICE_PORT: u16 = 150;
    /// Administrative state.
    pub const STATE: u16 = 160;
    /// Pairs of interfaces and Linux interfaces, which take over all that is set before.
    pub const PAIR: u16 = 170;
    /// Settings that need what a pair turns on, such as IPv6.
    pub const WITH_PAIR: u16 = 180;
}

/// The key of the item that creates an interface.
pub fn interface_key(name: &str) -> String {
    format!("{INTERFACE}{name}")
}

/// Beginning of the key of an item that creates an interface.
const INTERFACE: &str = "interface ";

/// Returns the interface that an item with this key creates.
pub(crate) fn named_interface(key: &str) -> Option<&str> {
    key.strip_prefix(INTERFACE)
}

/// Text about an interface that a document names and does not describe.
pub fn no_interface(name: &str) -> String {
    format!("there is no interface `{name}' in this document")
}

/// A piece of configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub(crate) key: String,
    pub(crate) path: String,
    pub(crate) rank: u16,
    pub(crate) order: u32,
    pub(crate) set: String,
    pub(crate) unset: Option<String>,
    pub(crate) needs: Vec<String>,
    pub(crate) attribute: bool,
    pub(crate) recreate: bool,
    pub(crate) sticky: bool,
    pub(crate) may_wait: bool,
    pub(crate) with: Option<String>,
    pub(crate) claims: Option<String>,
    pub(crate) implicit: bool,
}

impl Item {
    /// Creates an item that a command sets. Its key is its identity: items of two documents with
    /// the same key are the same object. `path` is its path in a document.
    pub fn new(
        rank: u16,
        key: impl Into<String>,
        path: impl Into<String>,
        set: impl Into<String>,
    ) -> Item {
        Item {
            key: key.into(),
            path: path.into(),
            rank,
            order: 0,
            set: set.into(),
            unset: None,
            needs: Vec::new(),
            attribute: false,
            recreate: false,
            sticky: false,
            may_wait: false,
            with: None,
            claims: None,
            implicit: false,
        }
    }

    /// Sets the command that unsets it. Without one, it is removed along with what it needs.
    #[must_use]
    pub fn unset(mut self, command: impl Into<String>) -> Item {
        self.unset = Some(command.into());
        self
    }

    /// Makes it depend on the item with this key: it is set again when that changes.
    #[must_use]
    pub fn needs(mut self, key: impl Into<String>) -> Item {
        self.needs.push(key.into());
        self
    }

    /// Sets its order among items of one rank, lowest first; by default items stay in the order
    /// added.
    #[must_use]
    pub fn order(mut self, order: u32) -> Item {
        self.order = order;
        self
    }

    /// Marks it as something that may name interfaces which come later: a document need not
    /// describe them.
    #[must_use]
    pub fn may_wait(mut self) -> Item {
        self.may_wait = true;
        self
    }

    /// Marks it as an attribute of what it needs, which need not be unset before that is removed.
    #[must_use]
    pub fn attribute(mut self) -> Item {
        self.attribute = true;
        self
    }

    /// Marks it as one that cannot be changed in place: it is unset, then set.
    #[must_use]
    pub fn recreate(mut self) -> Item {
        self.recreate = true;
        self
    }

    /// Marks it as sticky: it stays as it is if a document does not mention it.
    #[must_use]
    pub fn sticky(mut self) -> Item {
        self.sticky = true;
        self
    }

    /// Makes it a property of the item with this key, which can be given only before that is set:
    /// if it differs, that is unset and set again.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>) -> Item {
        self.with = Some(key.into());
        self
    }

    /// Names the thing that it takes and that exists once, such as an index or a file: another item
    /// that has it by default steps aside, and one that gets another one gives it back first.
    #[must_use]
    pub fn claims(mut self, what: impl Into<String>) -> Item {
        self.claims = Some(what.into());
        self
    }

    /// Marks it as a default: it is set only along with what it belongs to, and is no difference.
    #[must_use]
    pub fn implicit(mut self) -> Item {
        self.implicit = true;
        self
    }

    /// Returns its key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the keys of the items that it needs.
    pub fn needed(&self) -> &[String] {
        &self.needs
    }
}

/// Items of a document as they are collected.
#[derive(Debug, Default)]
pub struct Draft {
    pub(crate) items: Vec<Item>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) claimed: BTreeSet<String>,
    /// Kinds of values that a section reads.
    pub(crate) read: BTreeSet<&'static str>,
    /// Problems of values unless a section reads their kind.
    pub(crate) unread: Vec<(&'static str, Problem)>,
}

impl Draft {
    /// Adds an item.
    pub fn add(&mut self, item: Item) {
        self.items.push(item);
    }

    /// Reports a problem.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Claims an interface as one of the caller's kind. Names that no section claims are problems.
    pub fn claim(&mut self, interface: &str) {
        self.claimed.insert(interface.to_owned());
    }

    /// Declares that a section reads values of a kind: `IPv6` among the addresses of a list.
    pub fn reads(&mut self, kind: &'static str) {
        self.read.insert(kind);
    }

    /// Reports a problem of a value unless a section reads its kind.
    pub fn unless_read(&mut self, kind: &'static str, problem: Problem) {
        self.unread.push((kind, problem));
    }
}
