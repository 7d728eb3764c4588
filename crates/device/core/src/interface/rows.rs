//! Interfaces as workers read them.

use super::kind::MODES;
use super::{Caps, Interface, MacAddr, Subs, SwIfIndex, Tags};
use crate::link_header::Link;
use std::sync::Arc;
use thalweg_graph::NodeId;
use thalweg_tables::CowTable;

/// An interface, as workers read it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IfRow {
    /// The interface exists.
    pub present: bool,
    /// Administratively up.
    pub admin_up: bool,
    /// Accepts frames for any MAC address (promiscuous or bridged).
    pub accept_all: bool,
    /// MAC address.
    pub mac: MacAddr,
    /// Output node.
    pub output: NodeId,
    /// Node of frames received, if its mode is not [`Mode::Routed`](super::Mode::Routed).
    pub mode_input: Option<NodeId>,
    /// The same, if all frames go there unread: the interface is up, and has no sub-interfaces.
    pub whole_input: Option<NodeId>,
    /// The interface is up, has no sub-interfaces and is no sub-interface: frames are its own,
    /// whatever their tags are.
    pub is_plain: bool,
    /// Tags of frames received are read: the interface has sub-interfaces, or is one.
    pub reads_tags: bool,
    /// The interface carries packets of the router: one that receives frames of several tags
    /// cannot.
    pub carries_packets: bool,
    /// The interface has sub-interfaces.
    pub has_subs: bool,
    /// The interface that it is a part of; 0 if it has a device of its own.
    pub parent: SwIfIndex,
    /// Tags of the frames that it sends.
    pub tags: Tags,
    /// Offloads of the device.
    pub caps: Caps,
    /// Header that its packets begin with.
    pub link: Link,
}

pub(super) static NO_ROW: IfRow = IfRow {
    present: false,
    admin_up: false,
    accept_all: false,
    mac: MacAddr::ZERO,
    output: NodeId(0),
    mode_input: None,
    whole_input: None,
    is_plain: false,
    reads_tags: false,
    carries_packets: false,
    has_subs: false,
    parent: SwIfIndex(0),
    tags: Tags::NONE,
    caps: Caps { tx_csum: false, tx_tso: false, tx_uso: false },
    link: Link::Ethernet,
};

/// All interfaces, as workers read them.
#[derive(Clone, Debug, Default)]
pub struct IfTable {
    rows: CowTable<IfRow>,
    subs: CowTable<Option<Arc<Subs>>>,
    /// Secondary MAC addresses of interfaces with a device.
    macs: CowTable<Option<Arc<[MacAddr]>>>,
}

impl IfTable {
    /// Returns an interface's row; an empty one if it does not exist.
    #[inline]
    pub fn get(&self, sw_if: SwIfIndex) -> &IfRow {
        self.rows.get(sw_if).unwrap_or(&NO_ROW)
    }

    /// Returns an interface's sub-interfaces, if [`IfRow::has_subs`].
    #[inline]
    pub fn subs(&self, sw_if: SwIfIndex) -> Option<&Subs> {
        self.subs.get(sw_if)?.as_deref()
    }

    /// Returns whether frames to an address are those of an interface or of a sub-interface, though
    /// it is not its MAC address.
    #[cold]
    pub fn is_secondary_mac(&self, sw_if: SwIfIndex, mac: [u8; 6]) -> bool {
        let owner = match self.get(sw_if).parent {
            SwIfIndex(0) => sw_if,
            parent => parent,
        };
        let all = self.macs.get(owner).and_then(Option::as_deref);
        all.is_some_and(|all| all.contains(&MacAddr(mac)))
    }

    /// Sets an interface's secondary MAC addresses.
    pub(super) fn set_macs(&mut self, sw_if: SwIfIndex, macs: Option<Arc<[MacAddr]>>) {
        if macs.is_some() || self.macs.get(sw_if).is_some_and(Option::is_some) {
            self.macs.set(sw_if, macs);
        }
    }

    /// Sets an interface's row, and its sub-interfaces if they are the first or the last.
    pub(super) fn set(&mut self, sw_if: SwIfIndex, row: IfRow, subs: Option<Arc<Subs>>) {
        self.rows.set(sw_if, row);
        if subs.is_some() != self.subs(sw_if).is_some() {
            self.subs.set(sw_if, subs);
        }
    }
}

/// Returns an interface as workers see it.
pub(super) fn row(i: &Interface, inputs: &[Option<NodeId>; MODES]) -> IfRow {
    let (v, has_subs) = (&i.view, i.children.is_some());
    let mode_input = inputs[v.mode.place()];
    let reads_tags = has_subs || v.sub.is_some();
    let is_plain = v.admin_up && !reads_tags;
    IfRow {
        present: true,
        admin_up: v.admin_up,
        accept_all: i.accepts_all(),
        mac: v.mac,
        output: v.output,
        mode_input,
        whole_input: mode_input.filter(|_| v.admin_up && !has_subs),
        is_plain,
        reads_tags,
        carries_packets: v.sub.is_none_or(|(_, of)| of.tags().is_some()),
        has_subs,
        parent: v.parent.unwrap_or(SwIfIndex(0)),
        tags: v.tags,
        caps: v.caps,
        link: Link::of(v),
    }
}
