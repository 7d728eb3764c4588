//! `l2-input-vtr`: changes the VLAN tags of frames that a layer 2 interface receives.
//!
//! Reads: rx interface. Next: what `l2-input` would choose without a rewrite.

use crate::rewriting::{Retag, Side};
use crate::table::Rewriting;
use thalweg_buffer::{Frame, Iface, PktMut};
use thalweg_device::{SwIfIndex, TagEdit};
use thalweg_graph::{Built, NodeDecl, NodeId, Verdict};

thalweg_graph::errors! {
    FEW_TAGS: Error, VLAN_TAG_MISMATCH, "L2 input tag rewrite drops";
    NO_PEER: Error, PORT_LIST_IS_EMPTY, "no cross connect";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: Input::NAME,
    errors: ERRORS,
    build: |cx| Built::node(Retag::<Input>::new(cx.shared())),
    ..NodeDecl::DEFAULT
};

struct Input;

impl Side for Input {
    const NAME: &'static str = "l2-input-vtr";
    const FEW_TAGS: Verdict = Verdict::drop(FEW_TAGS);
    const GONE: Verdict = Verdict::drop(NO_PEER);

    #[inline]
    fn ports(frame: &Frame) -> Iface {
        frame.rx()
    }
    #[inline]
    fn port(frame: &Frame, i: u8) -> SwIfIndex {
        frame.rx_if(i)
    }
    #[inline]
    fn packet(p: &PktMut<'_>) -> SwIfIndex {
        p.rx_if()
    }
    #[inline]
    fn change(rewriting: &Rewriting) -> (&TagEdit, Option<NodeId>) {
        (&rewriting.rx, rewriting.next)
    }
}
