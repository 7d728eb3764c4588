//! `l2-fwd`: forwards a bridge domain's frames by destination MAC address.
//!
//! Reads: rx interface, destination address. Writes: tx interface, for sub-interfaces. Next: the
//! port's output node, `l2-flood` for broadcast, multicast and unknown unicast frames, or
//! `l2-uu-fwd` for these if a port of its own gets them; `arp-term-l2bd` first for multicast, if
//! the bridge domain has something to do with ARP.

use crate::L2Table;
use crate::bridges::PortFlags;
use crate::table::{Bridge, Port};
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, Iface, LOCAL_IF, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::mac::{MacBuckets, MacKey, MacValue};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::next_nodes! {
    FLOOD => "l2-flood",
    UU_FWD => "l2-uu-fwd",
    ARP_TERM => "arp-term-l2bd",
}
thalweg_graph::errors! {
    SHORT: Error, PKT_TOO_SMALL, "frame too short";
    NO_BRIDGE: Error, UNKNOWN_L2, "no bridge domain";
    OFF: Error, UNKNOWN_L2, "forwarding disabled";
    NO_FLOOD: Error, DMAC_FILTER, "flooding disabled";
    UNKNOWN: Error, UNKNOWN_L2, "unknown destination MAC address";
    SAME_PORT: Error, PORT_LOOPBACK_FILTER, "reflection drop";
    SAME_GROUP: Error, SPLIT_HORIZON, "split horizon";
    FILTERED: Error, DMAC_FILTER, "filter mac drop";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-fwd",
    errors: ERRORS,
    next: NEXT_NODES,
    build: |cx| Built::node(L2Forward { table: cx.shared(), macs: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct L2Forward {
    table: Arc<Snapshot<L2Table>>,
    macs: Arc<Snapshot<MacBuckets>>,
}

/// Forwarding context of one ingress port.
#[derive(Clone, Copy)]
struct Ingress<'a> {
    table: &'a L2Table,
    macs: &'a MacBuckets,
    sw_if: SwIfIndex,
    port: Port,
}

impl<'a> Ingress<'a> {
    #[inline(always)]
    fn new(table: &'a L2Table, macs: &'a MacBuckets, sw_if: SwIfIndex) -> Self {
        Ingress { table, macs, sw_if, port: table.port(sw_if) }
    }

    #[inline(always)]
    fn find(&self, key: MacKey) -> Option<MacValue> {
        self.macs.find(key, self.macs.hash(key))
    }

    #[inline(always)]
    fn to(&self, key: MacKey, found: Option<MacValue>) -> Verdict {
        if key.is_multicast() {
            return self.group();
        }
        let Some(value) = found else { return self.unknown() };
        let to = self.table.port(SwIfIndex(value.port()));
        let group = self.port.group;
        let plain = !value.is_filter()
            & (SwIfIndex(value.port()) != self.sw_if)
            & (to.bridge == self.port.bridge)
            & (group == 0 || group != to.group);
        match to.output {
            Some(output) if plain => Verdict::node(output),
            _ => self.slow_path(value.is_filter(), SwIfIndex(value.port()), to),
        }
    }

    /// Returns the sub-interface on whose behalf a frame leaves, 0 if that is none.
    #[inline(always)]
    fn sender(&self, found: Option<MacValue>) -> SwIfIndex {
        found.map_or(LOCAL_IF, |value| self.table.port(SwIfIndex(value.port())).sender)
    }

    #[cold]
    fn slow_path(&self, filter: bool, at: SwIfIndex, to: Port) -> Verdict {
        if filter {
            Verdict::drop(FILTERED)
        } else if at == self.sw_if {
            Verdict::drop(SAME_PORT)
        } else if to.bridge == self.port.bridge && to.output.is_some() {
            Verdict::drop(SAME_GROUP)
        } else {
            // The port has just left the bridge domain.
            self.unknown()
        }
    }

    #[cold]
    fn group(&self) -> Verdict {
        let bridge = self.table.bridge(self.port.bridge);
        match bridge.flood && self.port.flags.has(PortFlags::FLOOD) {
            _ if bridge.arp_answer || bridge.arp_forward => ARP_TERM,
            true => FLOOD,
            false => Verdict::drop(NO_FLOOD),
        }
    }

    #[cold]
    fn unknown(&self) -> Verdict {
        let bridge = self.table.bridge(self.port.bridge);
        match bridge.flood_unknown && self.port.flags.has(PortFlags::FLOOD_UNKNOWN) {
            _ if bridge.unknown.is_some() => UU_FWD,
            true => FLOOD,
            false => Verdict::drop(UNKNOWN),
        }
    }

    /// Verdict that applies to all frames of the port.
    #[inline]
    fn all(&self, key: MacKey) -> Option<Verdict> {
        if self.port.bridge == 0 {
            return Some(Verdict::drop(NO_BRIDGE));
        }
        let off = !self.forwards(self.table.bridge(self.port.bridge)) && !key.is_multicast();
        off.then_some(Verdict::drop(OFF))
    }

    /// Returns whether known unicast frames of the port are forwarded.
    #[inline(always)]
    fn forwards(&self, bridge: &Bridge) -> bool {
        bridge.forward & self.port.flags.has(PortFlags::FORWARD)
    }
}

impl L2Forward {
    /// Does the kernel's work for a frame of several ports of one bridge domain.
    #[inline(never)]
    fn mixed(&self, cx: &NodeCx<'_>, frame: &mut Frame, each: &mut [Verdict]) -> FrameVerdict {
        let guard = cx.guard();
        let (table, macs) = (self.table.load(guard), self.macs.load(guard));
        let number = table.bridge_of_all(frame).filter(|n| *n != 0 && table.bridge(*n).forward);
        let Some(number) = number else { return FrameVerdict::PerPacket };
        let Some(heads) = frame.long_heads::<12>() else { return FrameVerdict::PerPacket };
        let mut keys = [MacKey::new(0, [0; 6]); 256];
        for (key, head) in keys.iter_mut().zip(heads) {
            *key = MacKey::pair(number, head).0;
        }
        let (keys, each) = (&keys[..frame.len()], &mut each[..frame.len()]);
        let mut senders = [LOCAL_IF; 256];
        let mut from = Ingress::new(table, macs, frame.rx_if(0));
        let mut forwards = from.port.flags.has(PortFlags::FORWARD);
        macs.find_each(keys, |i, key, found| {
            let rx_if = frame.rx_if(i as u8);
            if rx_if != from.sw_if {
                from = Ingress::new(table, macs, rx_if);
                forwards &= from.port.flags.has(PortFlags::FORWARD);
            }
            each[i] = from.to(key, found);
            senders[i] = from.sender(found);
        });
        if !forwards {
            return FrameVerdict::PerPacket;
        }
        if table.bridge(number).subs > 0 {
            frame.set_tx_each(&senders);
        }
        FrameVerdict::Each(thalweg_buffer::Rows::NONE)
    }
}

/// Does the kernel's work for keys that differ where some ports send on behalf of a sub-interface.
#[inline(never)]
fn each_for_senders(
    from: &Ingress<'_>,
    keys: &[MacKey],
    frame: &mut Frame,
    each: &mut [Verdict],
) -> FrameVerdict {
    let mut senders = [LOCAL_IF; 256];
    // Most frames go to few ports. 0 is no verdict.
    let mut last = (0, FLOOD, LOCAL_IF);
    let (mut first, mut differ) = (None, false);
    from.macs.find_each(keys, |i, key, found| {
        let way = found.map_or(0, MacValue::output);
        if way != last.0 || way == 0 || key.is_multicast() {
            last = (way, from.to(key, found), from.sender(found));
            differ |= *first.get_or_insert(last.2) != last.2;
        }
        each[i] = last.1;
        senders[i] = last.2;
    });
    match first {
        Some(sender) if !differ => frame.set_tx(sender),
        _ => frame.set_tx_each(&senders),
    }
    FrameVerdict::Each(thalweg_buffer::Rows::NONE)
}

impl Node for L2Forward {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(header) = p.data().first_chunk() else { return Verdict::drop(SHORT) };
        let guard = cx.guard();
        let from = Ingress::new(self.table.load(guard), self.macs.load(guard), p.rx_if());
        let (key, _) = MacKey::pair(from.port.bridge, header);
        if let Some(all) = from.all(key) {
            return all;
        }
        let found = from.find(key);
        let sender = from.sender(found);
        if sender != SwIfIndex(0) {
            p.set_tx_if(sender);
        }
        from.to(key, found)
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let Iface::Uniform(sw_if) = frame.rx() else { return self.mixed(cx, frame, each) };
        let Some(heads) = frame.long_heads::<12>() else { return FrameVerdict::PerPacket };
        let guard = cx.guard();
        let from = Ingress::new(self.table.load(guard), self.macs.load(guard), sw_if);
        let bridge = from.table.bridge(from.port.bridge);
        if from.port.bridge == 0 || !from.forwards(bridge) {
            return FrameVerdict::PerPacket;
        }
        let has_senders = bridge.subs > 0;
        let mut keys = [MacKey::new(0, [0; 6]); 256];
        let mut n = 0;
        for (key, head) in keys.iter_mut().zip(heads) {
            *key = MacKey::pair(from.port.bridge, head).0;
            n += 1;
        }
        let mut differ = false;
        for key in &keys[..n] {
            differ |= *key != keys[0];
        }
        if !differ {
            let found = from.find(keys[0]);
            if has_senders {
                frame.set_tx(from.sender(found));
            }
            return FrameVerdict::Whole(from.to(keys[0], found));
        }
        if has_senders {
            return each_for_senders(&from, &keys[..n], frame, each);
        }
        // Most frames go to few ports. 0 is no verdict.
        let mut last = (0, FLOOD);
        let each = &mut each[..n];
        from.macs.find_each(&keys[..n], |i, key, found| {
            let way = found.map_or(0, MacValue::output);
            if way != last.0 || way == 0 || key.is_multicast() {
                last = (way, from.to(key, found));
            }
            each[i] = last.1;
        });
        FrameVerdict::Each(thalweg_buffer::Rows::NONE)
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (sw_if, rx) = (frame.rx_if(i), interface_token(frame.rx_if(i)));
        let guard = cx.guard();
        let (table, macs) = (self.table.load(guard), self.macs.load(guard));
        let index = table.bridge_of(sw_if);
        let _ = write!(out, "l2-fwd: {rx} {} bd_index {index}", addresses(frame, i));
        if let Some(header) = frame.data(i).first_chunk() {
            let (key, _) = MacKey::pair(index, header);
            match macs.find(key, macs.hash(key)) {
                Some(v) => _ = write!(out, " to {}", interface_token(SwIfIndex(v.port()))),
                None => _ = write!(out, " unknown"),
            }
        }
        let _ = writeln!(out);
    }
}
