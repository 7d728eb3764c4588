//! `ethernet-input`: dispatches frames by the mode of their interface, and those of routed ones by
//! ethertype.
//!
//! Reads: rx interface. Next: the node registered for the interface's mode, with the frame as it
//! came; or that of the ethertype, with the packet's start advanced past the Ethernet header, which
//! stays readable before the start.

use crate::Ethertypes;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::{Lanes, Pattern};
use thalweg_buffer::{Frame, Iface, PktMut, Rows};
use thalweg_device::{IfRow, IfTable, Interfaces};
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ethernet::ethertype;

thalweg_graph::errors! {
    SHORT: Error, 324, "frame too short";
    NOT_US: Error, 305, "l3 mac mismatch";
    VLAN: Error, 264, "unknown vlan";
    LLC: Error, 270, "unsupported 802.3 LLC frame";
    UNKNOWN: Error, 270, "unknown ethernet type";
    DOWN: Error, 331, "interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ethernet-input",
    errors: ERRORS,
    build: |cx| {
        Built::node(EthernetInput {
            interfaces: Interfaces::table(cx),
            types: cx.shared(),
            ip4: None,
            row: IfRow::default(),
            uniform: false,
            mode_input: None,
        })
    },
    ..NodeDecl::DEFAULT
};

struct EthernetInput {
    interfaces: Arc<Snapshot<IfTable>>,
    types: Arc<Snapshot<Ethertypes>>,
    /// Next node for IPv4, the most frequent ethertype; looked up once per frame.
    ip4: Option<Verdict>,
    /// Interface row of the frame, if all its packets share one interface.
    row: IfRow,
    uniform: bool,
    /// Next node of the frame, if its interface is up and in another mode than routed.
    mode_input: Option<Verdict>,
}

const HEADER: usize = 14;

/// Pattern of the first 16 bytes of a packet that takes the fast path.
fn pattern(row: &IfRow, kind: [u8; 2]) -> Pattern {
    let (mut want, mut mask) = ([0u8; 16], [0u8; 16]);
    if row.accept_all {
        // Any destination address is accepted, but broadcast and multicast frames are counted.
        mask[0] = 1;
    } else {
        want[..6].copy_from_slice(&row.mac);
        mask[..6].fill(0xff);
    }
    want[12..14].copy_from_slice(&kind);
    mask[12..14].fill(0xff);
    Pattern::new(want, mask)
}

impl EthernetInput {
    /// Counts broadcast and multicast frames. Returns whether the frame is addressed to this
    /// interface.
    #[inline]
    fn for_us(cx: &NodeCx<'_>, row: &IfRow, dst: [u8; 6], p: &PktMut<'_>) -> bool {
        if dst[0] & 1 != 0 {
            cx.stats().interface(p.rx_if()).received_by_group(dst, p.total_len() as u64);
            return true;
        }
        dst == row.mac || row.accept_all
    }

    /// As the kernel, for a frame of several interfaces, if all are in the same mode.
    #[inline(never)]
    fn mixed(&self, cx: &NodeCx<'_>, frame: &mut Frame, each: &mut [Verdict]) -> FrameVerdict {
        let guard = cx.guard();
        let table = self.interfaces.load(guard);
        let mode_input = table.get(frame.rx_if(0)).mode_input;
        let same = |row: &IfRow| row.admin_up && row.mode_input == mode_input;
        if !frame.rx_runs().all(|(rx_if, _)| same(table.get(rx_if))) {
            return FrameVerdict::PerPacket;
        }
        if let Some(node) = mode_input {
            return FrameVerdict::Whole(Verdict::node(node));
        }
        let Some(kind) = frame.data(0).get(12..14) else { return FrameVerdict::PerPacket };
        let kind = [kind[0], kind[1]];
        let known = self.types.load(guard).get(u16::from_be_bytes(kind));
        let Some(next) = known.map(Verdict::node) else { return FrameVerdict::PerPacket };
        let of = |rx_if: u32| (rx_if, pattern(table.get(rx_if), kind));
        let mut last = of(frame.rx_if(0));
        let rest = Rows::of(frame.heads().enumerate().map(|(i, head)| {
            let rx_if = frame.rx_if(i as u8);
            if rx_if != last.0 {
                last = of(rx_if);
            }
            !last.1.matches(head)
        }));
        frame.pull_all(HEADER as u16, rest);
        if rest.is_empty() {
            return FrameVerdict::Whole(next);
        }
        each[..frame.len()].fill(next);
        FrameVerdict::Each(rest)
    }

    #[cold]
    fn other(&self, cx: &NodeCx<'_>, kind: u16) -> Verdict {
        match self.types.load(cx.guard()).get(kind) {
            Some(id) => Verdict::node(id),
            None if kind < 0x600 => Verdict::drop(LLC),
            None if kind == ethertype::VLAN || kind == ethertype::DOT1AD => Verdict::drop(VLAN),
            None => Verdict::drop(UNKNOWN),
        }
    }
}

impl Node for EthernetInput {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        let guard = cx.guard();
        self.uniform = matches!(frame.rx(), Iface::Uniform(_));
        self.mode_input = None;
        if let Iface::Uniform(sw_if) = frame.rx() {
            self.row = *self.interfaces.load(guard).get(sw_if);
            if self.row.admin_up
                && let Some(node) = self.row.mode_input
            {
                self.mode_input = Some(Verdict::node(node));
                return;
            }
        }
        self.ip4 = self.types.load(guard).get(ethertype::IPV4).map(Verdict::node);
    }

    #[inline]
    fn whole(&self) -> Option<Verdict> {
        self.mode_input
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if !self.uniform {
            self.row = *self.interfaces.load(cx.guard()).get(p.rx_if());
        }
        if let Some(node) = self.row.mode_input {
            return if self.row.admin_up { Verdict::node(node) } else { Verdict::drop(DOWN) };
        }
        let Some(header) = p.data().first_chunk::<HEADER>() else { return Verdict::drop(SHORT) };
        let dst = [header[0], header[1], header[2], header[3], header[4], header[5]];
        let kind = u16::from_be_bytes([header[12], header[13]]);
        if !self.row.admin_up {
            return Verdict::drop(DOWN);
        }
        if !Self::for_us(cx, &self.row, dst, &p) {
            return Verdict::drop(NOT_US);
        }
        match self.ip4 {
            Some(v) if kind == ethertype::IPV4 => {
                p.pull(HEADER);
                v
            }
            _ => {
                let v = self.other(cx, kind);
                p.pull(HEADER);
                v
            }
        }
    }

    /// Packets are compared with the most frequent header: addressed to this
    /// interface, with the first packet's ethertype.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if frame.is_empty() {
            return FrameVerdict::PerPacket;
        }
        if !self.uniform {
            return self.mixed(cx, frame, each);
        }
        if !self.row.admin_up {
            return FrameVerdict::PerPacket;
        }
        let Some(kind) = frame.data(0).get(12..14) else { return FrameVerdict::PerPacket };
        let kind = [kind[0], kind[1]];
        let known = self.types.load(cx.guard()).get(u16::from_be_bytes(kind));
        let Some(next) = known.map(Verdict::node) else { return FrameVerdict::PerPacket };
        let pattern = pattern(&self.row, kind);
        let rest = if frame.long_heads().is_some_and(|heads| pattern.matches_all(heads)) {
            Rows::NONE
        } else {
            Rows::of(frame.heads().map(|h| !pattern.matches(h)))
        };
        frame.pull_all(HEADER as u16, rest);
        if rest.is_empty() {
            return FrameVerdict::Whole(next);
        }
        each[..frame.len()].fill(next);
        FrameVerdict::Each(rest)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        // The start was moved past the header, unless the frame was too short for one or not for a
        // protocol.
        let mut header = [0u8; HEADER];
        let before = match frame.stepped(i) {
            0 => frame.data(i).get(..HEADER).unwrap_or_default(),
            _ => frame.before(i, HEADER),
        };
        if before.len() == HEADER {
            header.copy_from_slice(before);
            let _ = thalweg_wire::fmt::ethernet(&header, out, 0);
        }
    }
}
