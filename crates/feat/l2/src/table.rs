//! Layer 2 tables as workers read them.
//!
//! A change costs the same however many ports there are: it copies a page of ports, and a page of
//! the members of a bridge domain.

use crate::L2;
use crate::bridges::{Domain, PortFlags, Role};
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF};
use thalweg_device::{InterfaceView, Interfaces, SwIfIndex, TagEdit};
use thalweg_graph::{Control, NodeId};
use thalweg_tables::CowTable;

/// A layer 2 interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Port {
    /// Next node: the cross connect's output, or the bridge domain's first node.
    pub(crate) next: Option<NodeId>,
    /// Output node of the interface, or a node before it that changes or checks tags.
    pub(crate) output: Option<NodeId>,
    /// Number of its bridge domain; 0 if none.
    pub(crate) bridge: u16,
    /// Split horizon group; ports of the same nonzero group do not exchange frames.
    pub(crate) group: u8,
    /// Frames are flooded to it.
    pub(crate) is_member: bool,
    /// Steps taken with frames that it receives.
    pub(crate) flags: PortFlags,
    /// Interface on whose behalf frames leave: the cross connect's other end, or this port of a
    /// bridge domain. 0 if that neither is a sub-interface nor changes or checks tags.
    pub(crate) sender: SwIfIndex,
}

/// Change that a port makes to the tags of its frames, and their next node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rewriting {
    /// Change of frames that it receives.
    pub(crate) rx: TagEdit,
    /// Next node of these: what [`Port::next`] would be without.
    pub(crate) next: Option<NodeId>,
    /// Change of frames that it sends.
    pub(crate) tx: TagEdit,
    /// True if frames to send must have the tags that the port gives to those that it receives.
    pub(crate) checked: bool,
    /// Node that comes after the change of frames that it sends.
    pub(crate) output: Option<NodeId>,
}

/// A port of a bridge domain, to flood to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Member {
    pub(crate) sw_if: SwIfIndex,
    pub(crate) output: NodeId,
    pub(crate) group: u8,
    /// The same as [`Port::sender`].
    pub(crate) sender: SwIfIndex,
}

/// The ports of a bridge domain, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    /// Members by place, from 0; those behind the last are what they were.
    rows: CowTable<Member>,
    count: u32,
}

impl Members {
    /// Returns all of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        (0..self.count).filter_map(|place| self.rows.get(place))
    }

    fn at(&self, place: u32) -> Option<&Member> {
        self.rows.get(place).filter(|_| place < self.count)
    }

    /// Adds one; returns its place.
    fn push(&mut self, member: Member) -> u32 {
        self.rows.set(self.count, member);
        self.count += 1;
        self.count - 1
    }

    /// Removes the one in a place. The last one takes that, and is returned with it.
    fn remove(&mut self, place: u32) -> Option<Member> {
        let last = *self.at(self.count.checked_sub(1)?)?;
        self.count -= 1;
        self.rows.set(place, last);
        (place < self.count).then_some(last)
    }
}

/// A bridge domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bridge {
    pub(crate) learn: bool,
    /// True if more addresses may be learned.
    pub(crate) room: bool,
    pub(crate) forward: bool,
    pub(crate) flood: bool,
    pub(crate) flood_unknown: bool,
    /// Answers for hosts that it knows.
    pub(crate) arp_answer: bool,
    /// ARP requests that are not answered go to [`unknown`](Self::unknown).
    pub(crate) arp_forward: bool,
    pub(crate) members: Members,
    /// Port that gets unknown unicast frames instead.
    pub(crate) unknown: Option<SwIfIndex>,
    /// Number of ports on whose behalf frames leave ([`Port::sender`]).
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
    arp_answer: false,
    arp_forward: false,
    unknown: None,
    members: Members { rows: CowTable::new(), count: 0 },
    subs: 0,
    first: NodeId(0),
};

/// Cross connects and bridge domains as workers read them.
#[derive(Clone, Debug, Default)]
pub struct L2Table {
    ports: CowTable<Port>,
    /// Changes of ports that rewrite tags.
    rewritings: CowTable<Option<Rewriting>>,
    /// Output nodes of ports that check what they send.
    filters: CowTable<Option<NodeId>>,
    /// Places of ports among the members of their bridge domains.
    places: CowTable<u32>,
    /// Bridges by number, from 1.
    bridges: CowTable<Option<Arc<Bridge>>>,
    learn: NodeId,
    forward: NodeId,
    rewrite_rx: NodeId,
    rewrite_tx: NodeId,
    filter_tx: NodeId,
    bvi_input: NodeId,
}

impl L2Table {
    #[inline]
    pub(crate) fn port(&self, sw_if: SwIfIndex) -> Port {
        self.ports.get(sw_if).copied().unwrap_or_default()
    }
    /// Returns how a port rewrites tags, if it does.
    #[inline]
    pub(crate) fn rewriting(&self, sw_if: SwIfIndex) -> Option<&Rewriting> {
        self.rewritings.get(sw_if)?.as_ref()
    }
    /// Returns where frames go on to that a port has to check, if it does.
    pub(crate) fn filter(&self, sw_if: SwIfIndex) -> Option<NodeId> {
        *self.filters.get(sw_if)?
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
    /// Returns how a port in layer 2 changes the tags of frames that it receives; `None` for other
    /// interfaces.
    pub fn received(&self, sw_if: SwIfIndex) -> Option<TagEdit> {
        self.port(sw_if).next?;
        Some(self.rewriting(sw_if).map_or(TagEdit::default(), |rewriting| rewriting.rx))
    }
    /// Returns the node that frames to a port in layer 2 go to in place of its output node, if one
    /// takes them: it changes or checks their tags first, or passes them on to the router, as a BVI
    /// leads there. The node reads the tx interface.
    pub fn before_output(&self, sw_if: SwIfIndex) -> Option<NodeId> {
        let port = self.port(sw_if);
        port.next?;
        if self.is_bvi(port) {
            return Some(self.bvi_input);
        }
        match self.rewriting(sw_if) {
            Some(_) => Some(self.rewrite_tx),
            None => self.filter(sw_if).map(|_| self.filter_tx),
        }
    }
    /// Returns whether a port leads to the router itself.
    pub(crate) fn is_bvi(&self, port: Port) -> bool {
        port.output == Some(self.bvi_input)
    }

    /// Changes a bridge domain; makes it if the number is new.
    fn change(&mut self, number: u16, change: impl FnOnce(&mut Bridge)) {
        let mut bridge = self.bridge(number).clone();
        change(&mut bridge);
        self.bridges.set(number, Some(Arc::new(bridge)));
    }

    /// Follows the settings of a bridge domain.
    fn set_bridge(&mut self, domain: &Domain) {
        let first = if domain.learn { self.learn } else { self.forward };
        self.change(domain.number, |b| {
            (b.learn, b.room, b.forward) = (domain.learn, domain.has_room(), domain.forward);
            (b.flood, b.flood_unknown, b.first) = (domain.flood, domain.flood_unknown, first);
            (b.arp_answer, b.arp_forward) = (domain.arp_term, domain.arp_ufwd);
            b.unknown = domain.unknown_forward();
        });
        for sw_if in domain.ports.keys() {
            // One that has joined a moment ago gets its place next.
            if self.port(*sw_if).bridge == domain.number {
                let first = self.first(domain.number, domain.flags(*sw_if));
                self.set_next(*sw_if, Some(first));
            }
        }
    }

    /// Returns the first node of frames that a port with these flags receives.
    fn first(&self, number: u16, flags: PortFlags) -> NodeId {
        match self.bridge(number).first {
            first if first == self.learn && !flags.has(PortFlags::LEARN) => self.forward,
            first => first,
        }
    }

    /// Sets where the frames that a port receives go, once their tags are right.
    fn set_next(&mut self, sw_if: SwIfIndex, next: Option<NodeId>) {
        let next = match self.rewriting(sw_if).copied() {
            Some(rewriting) if !rewriting.rx.is_none() => {
                self.rewritings.set(sw_if, Some(Rewriting { next, ..rewriting }));
                Some(self.rewrite_rx)
            }
            _ => next,
        };
        self.ports.set(sw_if, Port { next, ..self.port(sw_if) });
    }

    fn set_bridge_if_new(&mut self, domain: &Domain) {
        if self.bridges.get(domain.number).is_none_or(Option::is_none) {
            self.set_bridge(domain);
        }
    }

    /// Gives an interface its place.
    fn set_port(&mut self, sw_if: SwIfIndex, port: Port) {
        let old = self.port(sw_if).bridge;
        let place = self.places.get(sw_if).copied().unwrap_or_default();
        if self.bridge(old).members.at(place).is_some_and(|m| m.sw_if == sw_if) {
            let mut moved = None;
            self.change(old, |b| {
                b.subs -= u32::from(b.members.at(place).is_some_and(|m| m.sender != SwIfIndex(0)));
                moved = b.members.remove(place);
            });
            if let Some(Member { sw_if, .. }) = moved {
                self.places.set(sw_if, place);
            }
        }
        if let (number @ 1.., Some(output), true) = (port.bridge, port.output, port.is_member) {
            let Port { group, sender, .. } = port;
            let mut place = 0;
            self.change(number, |b| {
                place = b.members.push(Member { sw_if, output, group, sender });
                b.subs += u32::from(sender != SwIfIndex(0));
            });
            self.places.set(sw_if, place);
        }
        self.ports.set(sw_if, port);
    }
}

/// Nodes that the table leads to.
const NODES: [&str; 6] =
    ["l2-learn", "l2-fwd", "l2-input-vtr", "l2-output", "l2-efp-filter", "bvi-input"];

/// Refuses to start without the nodes that the table leads to.
pub(crate) fn check_nodes(c: &Control) {
    for name in NODES {
        c.named_node(name, "the table of bridge domains");
    }
}

/// Publishes a change to workers.
fn update(c: &Control, change: impl FnOnce(&mut L2Table, &L2, &Interfaces)) {
    let (state, all) = (c.state::<L2>(), c.state::<Interfaces>());
    let mut table = state.borrow().writer.get().clone();
    for (at, name) in [
        &mut table.learn,
        &mut table.forward,
        &mut table.rewrite_rx,
        &mut table.rewrite_tx,
        &mut table.filter_tx,
        &mut table.bvi_input,
    ]
    .into_iter()
    .zip(NODES)
    {
        *at = c.node(name).unwrap_or_default();
    }
    change(&mut table, &state.borrow(), &all.borrow());
    state.borrow_mut().writer.publish(c.domain(), table);
}

/// Publishes the place of an interface, and its tag rewrite.
pub(crate) fn publish_port(c: &Control, sw_if: SwIfIndex) {
    update(c, |table, l2, all| {
        let checks = |of: SwIfIndex| l2.efp_filters.contains(&of);
        let is_sender =
            |v: &&InterfaceView| v.shares_output || !v.rewrite.is_none() || checks(v.sw_if);
        let sender = |of: SwIfIndex| all.get(of).filter(is_sender).map_or(LOCAL_IF, |_| of);
        let (rewrite_tx, filter_tx) = (table.rewrite_tx, table.filter_tx);
        let checked = |v: &InterfaceView| if checks(v.sw_if) { filter_tx } else { v.output };
        let output = |of: SwIfIndex| {
            all.get(of).map(|v| if v.rewrite.is_none() { checked(v) } else { rewrite_tx })
        };
        let rewriting = all.get(sw_if).filter(|v| !v.rewrite.is_none()).map(|v| {
            let (rx, tx) = v.rewrite.edits(v.sub.map(|(_, of)| of));
            let output = Some(checked(v));
            Rewriting { rx, next: None, tx, checked: checks(sw_if), output }
        });
        if rewriting.is_some() || table.rewriting(sw_if).is_some() {
            table.rewritings.set(sw_if, rewriting);
        }
        let filter = all.get(sw_if).filter(|_| checks(sw_if)).map(|v| v.output);
        if filter != table.filter(sw_if) {
            table.filters.set(sw_if, filter);
        }
        let was = table.port(sw_if).bridge;
        if table.bridge(was).unknown == Some(sw_if) {
            table.change(was, |b| b.unknown = None);
        }
        let mut port = Port::default();
        if let Some(tx) = l2.xconnects.get(&sw_if).copied() {
            port = Port { next: output(tx), sender: sender(tx), ..port };
        } else if let Some(domain) = l2.bridges.of(sw_if).and_then(|id| l2.bridges.get(id)) {
            let role = domain.role(sw_if);
            table.set_bridge_if_new(domain);
            if table.bridge(domain.number).unknown != domain.unknown_forward() {
                table.change(domain.number, |b| b.unknown = domain.unknown_forward());
            }
            let (output, sender) = match role {
                Role::Bvi => (Some(table.bvi_input), sw_if),
                _ => (output(sw_if), sender(sw_if)),
            };
            port = Port {
                next: Some(table.first(domain.number, domain.flags(sw_if))),
                output,
                bridge: domain.number,
                group: domain.group(sw_if),
                is_member: role != Role::UnknownForward,
                flags: domain.flags(sw_if),
                sender,
            };
        }
        table.set_port(sw_if, port);
        table.set_next(sw_if, port.next);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The table behaves like a map: members are those that joined and have not left, whatever
        /// their places.
        #[test]
        fn members_come_and_go(
            steps in prop::collection::vec((1u32..400, 0u16..3, any::<bool>()), 1..300),
        ) {
            let mut table = L2Table::default();
            let mut model: BTreeMap<SwIfIndex, (u16, bool)> = BTreeMap::new();
            for (sw_if, bridge, is_sub) in steps {
                let output = Some(NodeId(sw_if as u16));
                let sw_if = SwIfIndex(sw_if);
                let sender = if is_sub { sw_if } else { LOCAL_IF };
                let port = Port { bridge, output, sender, is_member: true, ..Port::default() };
                table.set_port(sw_if, port);
                model.remove(&sw_if);
                if bridge > 0 {
                    model.insert(sw_if, (bridge, is_sub));
                }
            }
            for number in 1..3 {
                let bridge = table.bridge(number);
                let mut found: Vec<_> =
                    bridge.members.iter().map(|m| (m.sw_if, m.sender != LOCAL_IF)).collect();
                found.sort_unstable();
                let of = |(sw_if, (of, is_sub)): (&SwIfIndex, &(u16, bool))| {
                    (*of == number).then_some((*sw_if, *is_sub))
                };
                let expected: Vec<_> = model.iter().filter_map(of).collect();
                prop_assert_eq!(bridge.subs as usize, expected.iter().filter(|(_, s)| *s).count());
                prop_assert_eq!(found, expected);
            }
        }
    }
}
