//! Layer 2 tables as workers read them.
//!
//! A change costs the same however many ports there are: it copies a page of ports, and the members
//! of one bridge domain.

use crate::L2;
use crate::bridges::Domain;
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF};
use thalweg_device::{Interfaces, SwIfIndex};
use thalweg_graph::{Control, NodeId};
use thalweg_tables::CowTable;

/// A layer 2 interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Port {
    /// Next node: the cross connect's output, or the bridge domain's first node.
    pub(crate) next: Option<NodeId>,
    /// Output node of the interface.
    pub(crate) output: Option<NodeId>,
    /// Number of its bridge domain; 0 if none.
    pub(crate) bridge: u16,
    /// Split horizon group; ports of the same nonzero group do not exchange frames.
    pub(crate) group: u8,
    /// Sub-interface on whose behalf frames leave: the cross connect's other end, or this port of a
    /// bridge domain. 0 if that is no sub-interface.
    pub(crate) sender: SwIfIndex,
}

/// A port of a bridge domain, to flood to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) sw_if: SwIfIndex,
    pub(crate) output: NodeId,
    pub(crate) group: u8,
    /// As [`Port::sender`].
    pub(crate) sender: SwIfIndex,
}

/// A bridge domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bridge {
    pub(crate) learn: bool,
    /// Whether more addresses may be learned.
    pub(crate) room: bool,
    pub(crate) forward: bool,
    pub(crate) flood: bool,
    pub(crate) flood_unknown: bool,
    /// Ports by index.
    pub(crate) members: Vec<Member>,
    /// Number of ports that are sub-interfaces.
    pub(crate) subs: u32,
    /// First node of its frames.
    first: NodeId,
}

static NO_BRIDGE: Bridge = Bridge {
    learn: false,
    room: false,
    forward: false,
    flood: false,
    flood_unknown: false,
    members: Vec::new(),
    subs: 0,
    first: NodeId(0),
};

/// Cross connects and bridge domains as workers read them.
#[derive(Clone, Debug, Default)]
pub struct L2Table {
    ports: CowTable<Port>,
    /// By number, from 1.
    bridges: CowTable<Option<Arc<Bridge>>>,
    learn: NodeId,
    forward: NodeId,
}

impl L2Table {
    #[inline]
    pub(crate) fn port(&self, sw_if: SwIfIndex) -> Port {
        self.ports.get(sw_if).copied().unwrap_or_default()
    }
    #[inline]
    pub(crate) fn bridge(&self, number: u16) -> &Bridge {
        self.bridges.get(number).and_then(Option::as_deref).unwrap_or(&NO_BRIDGE)
    }
    /// Returns the number (not the id) of an interface's bridge domain; 0 if none.
    #[inline]
    pub fn bridge_of(&self, sw_if: SwIfIndex) -> u16 {
        self.port(sw_if).bridge
    }
    /// Returns the number of the bridge domain that all packets of a frame come from, if there is
    /// one such number.
    pub(crate) fn bridge_of_all(&self, frame: &Frame) -> Option<u16> {
        let mut all = frame.rx_runs().map(|(rx_if, _)| self.bridge_of(rx_if));
        let first = all.next()?;
        all.all(|number| number == first).then_some(first)
    }
    /// Returns the output node of a port.
    #[inline]
    pub fn output(&self, sw_if: SwIfIndex) -> Option<NodeId> {
        self.port(sw_if).output
    }
    /// Returns the first node of an interface's bridge domain when it bridges without flow rules.
    #[inline]
    pub fn normal(&self, sw_if: SwIfIndex) -> Option<NodeId> {
        match self.port(sw_if).bridge {
            0 => None,
            number if self.bridge(number).learn => Some(self.learn),
            _ => Some(self.forward),
        }
    }

    /// Changes a bridge domain; makes it if there is none of that number.
    fn change(&mut self, number: u16, change: impl FnOnce(&mut Bridge)) {
        let mut bridge = self.bridge(number).clone();
        change(&mut bridge);
        self.bridges.set(number, Some(Arc::new(bridge)));
    }

    /// Follows the settings of a bridge domain.
    fn set_bridge(&mut self, domain: &Domain) {
        let first = match (domain.rules, domain.learn) {
            (Some(rules), _) => rules,
            (None, true) => self.learn,
            (None, false) => self.forward,
        };
        self.change(domain.number, |b| {
            (b.learn, b.room, b.forward) = (domain.learn, domain.has_room(), domain.forward);
            (b.flood, b.flood_unknown, b.first) = (domain.flood, domain.flood_unknown, first);
        });
        let members: Vec<SwIfIndex> =
            self.bridge(domain.number).members.iter().map(|m| m.sw_if).collect();
        for sw_if in members {
            let port = Port { next: Some(first), ..self.port(sw_if) };
            self.ports.set(sw_if, port);
        }
    }

    fn set_bridge_if_new(&mut self, domain: &Domain) {
        if self.bridges.get(domain.number).is_none_or(Option::is_none) {
            self.set_bridge(domain);
        }
    }

    /// Gives an interface its place.
    fn set_port(&mut self, sw_if: SwIfIndex, port: Port) {
        let old = self.port(sw_if).bridge;
        let at = |bridge: &Bridge| bridge.members.binary_search_by_key(&sw_if, |m| m.sw_if);
        if old != 0 {
            self.change(old, |b| {
                if let Ok(at) = at(b) {
                    b.subs -= u32::from(b.members.remove(at).sender != SwIfIndex(0));
                }
            });
        }
        if let (number @ 1.., Some(output)) = (port.bridge, port.output) {
            let Port { group, sender, .. } = port;
            self.change(number, |b| {
                if let Err(at) = at(b) {
                    b.members.insert(at, Member { sw_if, output, group, sender });
                    b.subs += u32::from(sender != SwIfIndex(0));
                }
            });
        }
        self.ports.set(sw_if, port);
    }
}

/// Publishes a change to workers.
fn update(c: &Control, change: impl FnOnce(&mut L2Table, &L2, &Interfaces)) {
    let (state, all) = (c.state::<L2>(), c.state::<Interfaces>());
    let (mut table, node) = (state.borrow().writer.get().clone(), |name| c.node(name));
    (table.learn, table.forward) =
        (node("l2-learn").unwrap_or_default(), node("l2-fwd").unwrap_or_default());
    change(&mut table, &state.borrow(), &all.borrow());
    state.borrow_mut().writer.publish(c.domain(), table);
}

/// Publishes the place of an interface.
pub(crate) fn publish_port(c: &Control, sw_if: SwIfIndex) {
    update(c, |table, l2, all| {
        let sender =
            |of: SwIfIndex| all.get(of).filter(|v| v.parent.is_some()).map_or(LOCAL_IF, |_| of);
        let output = |of: SwIfIndex| all.get(of).map(|v| v.output);
        let mut port = Port::default();
        if let Some(tx) = l2.xconnects.get(&sw_if).copied() {
            port = Port { next: output(tx), sender: sender(tx), ..port };
        } else if let Some(domain) = l2.bridges.of(sw_if).and_then(|id| l2.bridges.get(id)) {
            table.set_bridge_if_new(domain);
            port = Port {
                next: Some(table.bridge(domain.number).first),
                output: output(sw_if),
                bridge: domain.number,
                group: domain.group(sw_if),
                sender: sender(sw_if),
            };
        }
        table.set_port(sw_if, port);
    });
}

/// Publishes the settings of a bridge domain.
pub(crate) fn publish_bridge(c: &Control, id: u32) {
    update(c, |table, l2, _| {
        if let Some(domain) = l2.bridges.get(id) {
            table.set_bridge(domain);
        }
    });
}

/// Publishes that a bridge domain has gone.
pub(crate) fn remove_bridge(c: &Control, number: u16) {
    update(c, |table, _, _| table.bridges.set(number, None));
}

/// Publishes which bridge domains may learn more addresses, if that has changed.
pub(crate) fn publish_room(c: &Control) {
    let changed: Vec<u32> = {
        let state = c.state::<L2>();
        let l2 = state.borrow();
        let has_room = |number| l2.writer.get().bridge(number).room;
        let all = l2.bridges.list();
        all.filter(|(_, d)| d.has_room() != has_room(d.number)).map(|(id, _)| id).collect()
    };
    if !changed.is_empty() {
        update(c, |table, l2, _| {
            for domain in changed.iter().filter_map(|id| l2.bridges.get(*id)) {
                table.change(domain.number, |b| b.room = domain.has_room());
            }
        });
    }
}
