//! `l2-flood`: sends a frame to all other ports of its bridge domain.
//!
//! Reads: rx interface, destination address. Writes: tx interface, for sub-interfaces. Marks
//! packets to broadcast and multicast addresses and counts them as received by other ports than a
//! BVI. The first port gets
//! the frame itself, each of the others a copy. Next: the ports' output nodes. Frames to addresses
//! that no bridge forwards (IEEE 802.1Q-2018 section 8.6.3) are dropped: protocols of one link,
//! such as LACP, LLDP, pause and spanning trees.

use crate::L2Table;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, NodeId, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    COPIES: Info, UNKNOWN, "copies sent";
    NO_BUFFERS: Warning, NO_BUFFER_SPACE, "copies not sent: no buffers";
    NO_PORT: Error, PORT_LIST_IS_EMPTY, "no ports to flood to";
    RESERVED: Info, DMAC_IS_RESERVED, "link-local group address: not bridged";
    COPIED_TOO_OFTEN: Error, TTL_EXCEEDED, "flooded too often: bridges lead to each other";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-flood",
    errors: ERRORS,
    build: |cx| Built::node(L2Flood { table: cx.shared(), to: Vec::with_capacity(64) }),
    ..NodeDecl::DEFAULT
};

struct L2Flood {
    table: Arc<Snapshot<L2Table>>,
    /// Output nodes of the current packet, and sub-interfaces on whose behalf it leaves there.
    to: Vec<(NodeId, SwIfIndex)>,
}

/// Returns whether an address is one of those of IEEE 802.1Q-2018, table 8-1: of one link.
fn is_reserved(dst: [u8; 6]) -> bool {
    matches!(dst, [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00..=0x0f])
}

impl Node for L2Flood {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let rx_if = p.rx_if();
        if let Some(dst) = p.data().first_chunk::<6>().copied()
            && dst[0] & 1 != 0
        {
            let table = self.table.load(cx.guard());
            // A BVI has sent it, and counted it so.
            if !table.is_bvi(table.port(rx_if)) {
                cx.stats().interface(rx_if).received_by_group(dst, p.total_len() as u64);
            }
            if is_reserved(dst) {
                return Verdict::drop(RESERVED);
            }
            p.mark(Flags::MULTICAST);
        }
        {
            let table = self.table.load(cx.guard());
            let port = table.port(rx_if);
            let others = table
                .bridge(port.bridge)
                .members
                .iter()
                .filter(|m| m.sw_if != rx_if && (port.group == 0 || port.group != m.group));
            self.to.clear();
            self.to.extend(others.map(|m| (m.output, m.sender)));
        }
        let Some(((first, sender), others)) = self.to.split_first() else {
            return Verdict::drop(NO_PORT);
        };
        if !others.is_empty() && !cx.may_copy(p.meta_mut()) {
            return Verdict::drop(COPIED_TOO_OFTEN);
        }
        let mut copies = 0;
        for (to, sender) in others {
            let Some(mut packet) = cx.copy(&p) else { break };
            if *sender != SwIfIndex(0) {
                packet.set_tx_if(*sender);
            }
            cx.send(packet, Verdict::node(*to));
            copies += 1;
        }
        if copies > 0 {
            cx.copied(&mut p, 1 + copies as u16);
        }
        if *sender != SwIfIndex(0) {
            p.set_tx_if(*sender);
        }
        cx.count(COPIES, copies);
        cx.count(NO_BUFFERS, others.len() as u64 - copies);
        Verdict::node(*first)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let rx = interface_token(frame.rx_if(i));
        let ports = self.to.len();
        let _ = writeln!(out, "l2-flood: {rx} {} to {ports} ports", addresses(frame, i));
    }
}
