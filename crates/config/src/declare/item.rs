//! What a document asks for, in pieces that one command each can set and unset.

use super::report::Problem;
use std::collections::BTreeSet;

/// When an item is set, lowest first; items are unset in the opposite order.
pub mod rank {
    /// Routing tables.
    pub const TABLE: u16 = 10;
    /// What must be said before an interface is created.
    pub const BEFORE_CREATE: u16 = 20;
    /// Interfaces.
    pub const CREATE: u16 = 30;
    /// MAC addresses.
    pub const MAC: u16 = 40;
    /// Options of drivers.
    pub const DRIVER: u16 = 50;
    /// Largest frames.
    pub const LINK_MTU: u16 = 60;
    /// Largest packets.
    pub const MTU: u16 = 70;
    /// Layer 2.
    pub const L2: u16 = 80;
    /// Which table an interface uses.
    pub const BIND: u16 = 90;
    /// Interface addresses.
    pub const ADDRESS: u16 = 100;
    /// What holds for all neighbours.
    pub const NEIGHBORS: u16 = 110;
    /// Neighbours.
    pub const NEIGHBOR: u16 = 120;
    /// Routes.
    pub const ROUTE: u16 = 130;
    /// What holds for a service.
    pub const SERVICE: u16 = 140;
    /// A service on an interface.
    pub const SERVICE_PORT: u16 = 150;
    /// Up.
    pub const STATE: u16 = 160;
}

/// The key of the item that creates an interface.
pub fn interface_key(name: &str) -> String {
    format!("interface {name}")
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
    pub(crate) with: Option<String>,
}

impl Item {
    /// An item that a command sets. Its key is its identity: two documents with the same key speak
    /// of the same thing. `path` is where a document says it.
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
            with: None,
        }
    }

    /// The command that takes it back. Without, it goes with what it needs.
    #[must_use]
    pub fn unset(mut self, command: impl Into<String>) -> Item {
        self.unset = Some(command.into());
        self
    }

    /// It can only be while the item with this key is, and is set again when that changes.
    #[must_use]
    pub fn needs(mut self, key: impl Into<String>) -> Item {
        self.needs.push(key.into());
        self
    }

    /// Its place among items of one rank, lowest first; else as they were added.
    #[must_use]
    pub fn order(mut self, order: u32) -> Item {
        self.order = order;
        self
    }

    /// It is a quality of what it needs, and need not be taken back before that goes.
    #[must_use]
    pub fn attribute(mut self) -> Item {
        self.attribute = true;
        self
    }

    /// It cannot be changed in place: it is taken back, then set.
    #[must_use]
    pub fn recreate(mut self) -> Item {
        self.recreate = true;
        self
    }

    /// Where a document does not speak of it, it stays as it is.
    #[must_use]
    pub fn sticky(mut self) -> Item {
        self.sticky = true;
        self
    }

    /// It only matters when the item with this key is being set.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>) -> Item {
        self.with = Some(key.into());
        self
    }

    /// Its key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Items of a document as they are collected.
#[derive(Debug, Default)]
pub struct Draft {
    pub(crate) items: Vec<Item>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) claimed: BTreeSet<String>,
}

impl Draft {
    /// Adds an item.
    pub fn add(&mut self, item: Item) {
        self.items.push(item);
    }

    /// Reports a mistake.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Says that an interface is of one's own kind. Names that nobody claims are mistakes.
    pub fn claim(&mut self, interface: &str) {
        self.claimed.insert(interface.to_owned());
    }
}
