//! Layer 2 tables as workers read them.

use crate::L2;
use thalweg_buffer::Frame;
use thalweg_device::{Interfaces, SwIfIndex};
use thalweg_graph::{Control, NodeId};

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
    /// Ports with their output nodes and split horizon groups.
    pub(crate) members: Vec<(SwIfIndex, NodeId, u8)>,
}

static NO_BRIDGE: Bridge = Bridge {
    learn: false,
    room: false,
    forward: false,
    flood: false,
    flood_unknown: false,
    members: Vec::new(),
};

/// Cross connects and bridge domains as workers read them.
#[derive(Clone, Debug, Default)]
pub struct L2Table {
    ports: Vec<Port>,
    /// Indexed by number, from 1.
    bridges: Vec<Bridge>,
    learn: NodeId,
    forward: NodeId,
}

impl L2Table {
    #[inline]
    pub(crate) fn port(&self, sw_if: u32) -> Port {
        self.ports.get(sw_if as usize).copied().unwrap_or_default()
    }
    #[inline]
    pub(crate) fn bridge(&self, number: u16) -> &Bridge {
        self.bridges.get(usize::from(number)).unwrap_or(&NO_BRIDGE)
    }
    /// Returns the number (not the id) of an interface's bridge domain; 0 if none.
    #[inline]
    pub fn bridge_of(&self, sw_if: u32) -> u16 {
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
    pub fn output(&self, sw_if: u32) -> Option<NodeId> {
        self.port(sw_if).output
    }
    /// Returns the first node of an interface's bridge domain when it bridges without flow rules.
    #[inline]
    pub fn normal(&self, sw_if: u32) -> Option<NodeId> {
        match self.port(sw_if).bridge {
            0 => None,
            number if self.bridge(number).learn => Some(self.learn),
            _ => Some(self.forward),
        }
    }
}

/// Publishes the configuration to workers.
pub(crate) fn publish(c: &Control) {
    let state = c.state::<L2>();
    let all = c.state::<Interfaces>();
    let table = {
        let (l2, all) = (state.borrow(), all.borrow());
        build(c, &l2, &all)
    };
    state.borrow_mut().writer.publish(c.domain(), table);
}

fn build(c: &Control, l2: &L2, all: &Interfaces) -> L2Table {
    let output = |sw_if: SwIfIndex| all.get(sw_if).map(|v| v.output);
    let node = |name| c.node(name).unwrap_or_default();
    let mut table =
        L2Table { learn: node("l2-learn"), forward: node("l2-fwd"), ..L2Table::default() };
    let mut set = |sw_if: SwIfIndex, port: Port| {
        let at = sw_if as usize;
        if table.ports.len() <= at {
            table.ports.resize(at + 1, Port::default());
        }
        table.ports[at] = port;
    };
    for (rx, tx) in &l2.xconnects {
        set(*rx, Port { next: output(*tx), ..Port::default() });
    }
    let mut bridges = vec![Bridge::default()];
    for domain in l2.bridges.domains() {
        let number = domain.number;
        let first = match (domain.rules, domain.learn) {
            (Some(rules), _) => rules,
            (None, true) => table.learn,
            (None, false) => table.forward,
        };
        let mut members = Vec::new();
        for (sw_if, group) in domain.ports() {
            let Some(output) = output(sw_if) else { continue };
            members.push((sw_if, output, group));
            let port = Port { next: Some(first), output: Some(output), bridge: number, group };
            set(sw_if, port);
        }
        let at = usize::from(number);
        if bridges.len() <= at {
            bridges.resize(at + 1, Bridge::default());
        }
        bridges[at] = Bridge {
            learn: domain.learn,
            room: domain.has_room(),
            forward: domain.forward,
            flood: domain.flood,
            flood_unknown: domain.flood_unknown,
            members,
        };
    }
    table.bridges = bridges;
    table
}
