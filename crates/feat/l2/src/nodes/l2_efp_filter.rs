//! `l2-efp-filter`: drops frames that a port would not receive as its own: those whose tags, as
//! they leave, belong to another sub-interface or to none.
//!
//! Reads: tx interface. Next: that interface's output node.

use crate::L2Table;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF, PktMut};
use thalweg_device::{IfTable, Interfaces, NoInterface, SwIfIndex};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    OTHER_TAGS: Error, VLAN_TAG_MISMATCH, "L2 EFP filter post-rewrite drops";
    GONE: Error, PORT_LIST_IS_EMPTY, "L2 Output interface not valid";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-efp-filter",
    errors: ERRORS,
    build: |cx| Built::node(EfpFilter { table: cx.shared(), interfaces: Interfaces::table(cx) }),
    ..NodeDecl::DEFAULT
};

struct EfpFilter {
    table: Arc<Snapshot<L2Table>>,
    interfaces: Arc<Snapshot<IfTable>>,
}

/// Returns whether a frame that came from the link would be one of an interface.
fn would_receive(all: &IfTable, sw_if: SwIfIndex, frame: &[u8]) -> bool {
    let (port, own) = match all.get(sw_if).parent {
        LOCAL_IF => (sw_if, LOCAL_IF),
        parent => (parent, sw_if),
    };
    let Some(subs) = all.subs(port) else { return true };
    match subs.find(frame) {
        Ok((found, _)) => found == own,
        // A port itself takes what none of its sub-interfaces does.
        Err(NoInterface::Unknown) => own == LOCAL_IF,
        Err(NoInterface::Short) => false,
    }
}

impl Node for EfpFilter {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let guard = cx.guard();
        let Some(output) = self.table.load(guard).filter(p.tx_if()) else {
            return Verdict::drop(GONE);
        };
        match would_receive(self.interfaces.load(guard), p.tx_if(), p.data()) {
            true => Verdict::node(output),
            false => Verdict::drop(OTHER_TAGS),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let tx = interface_token(frame.tx_if(i));
        let _ = writeln!(out, "l2-efp-filter: {tx} {}", addresses(frame, i));
    }
}
