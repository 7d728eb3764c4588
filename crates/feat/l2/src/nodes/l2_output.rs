//! `l2-output`: changes the VLAN tags of frames that a layer 2 interface sends back to what its
//! peers expect, for interfaces with a tag rewrite.
//!
//! Reads: tx interface. Next: that interface's output node, or `l2-efp-filter`.

use crate::rewriting::{Retag, Side};
use crate::table::Rewriting;
use thalweg_buffer::{Frame, Iface, PktMut};
use thalweg_device::{SwIfIndex, TagEdit};
use thalweg_graph::{Built, NodeDecl, NodeId, Verdict};
use thalweg_wire::vlan::TAG_LEN;

thalweg_graph::errors! {
    FEW_TAGS: Error, VLAN_TAG_MISMATCH, "L2 output tag rewrite drops";
    GONE: Error, PORT_LIST_IS_EMPTY, "L2 Output interface not valid";
    OTHER_TAGS: Error, VLAN_TAG_MISMATCH, "L2 EFP filter pre-rewrite drops";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: Output::NAME,
    errors: ERRORS,
    build: |cx| Built::node(Retag::<Output>::new(cx.shared())),
    ..NodeDecl::DEFAULT
};

struct Output;

impl Side for Output {
    const NAME: &'static str = "l2-output";
    const FEW_TAGS: Verdict = Verdict::drop(FEW_TAGS);
    const OTHER_TAGS: Verdict = Verdict::drop(OTHER_TAGS);
    const GONE: Verdict = Verdict::drop(GONE);

    #[inline]
    fn ports(frame: &Frame) -> Iface {
        frame.tx()
    }
    #[inline]
    fn port(frame: &Frame, i: u8) -> SwIfIndex {
        frame.tx_if(i)
    }
    #[inline]
    fn packet(p: &PktMut<'_>) -> SwIfIndex {
        p.tx_if()
    }
    #[inline]
    fn change(rewriting: &Rewriting) -> (&TagEdit, Option<NodeId>) {
        (&rewriting.tx, rewriting.output)
    }
    #[inline]
    fn checked(rewriting: &Rewriting) -> Option<&[[u8; TAG_LEN]]> {
        rewriting.checked.then(|| rewriting.rx.push())
    }
}
