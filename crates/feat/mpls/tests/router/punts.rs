//! Labelled packets that a feature takes.

use crate::lab::{Mpls, labelled, router};
use thalweg_buffer::PktMut;
use thalweg_engine::Feature;
use thalweg_engine::punt;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::mpls::Entry;

/// A feature that takes packets.
pub static TAKER: Feature = Feature { name: "taker", nodes: &[&TAKES], ..Feature::DEFAULT };

thalweg_graph::errors! { TAKEN: Info, UNKNOWN, "packets taken"; }

static TAKES: NodeDecl =
    NodeDecl { name: "taker", errors: ERRORS, build: |_| Built::node(Takes), ..NodeDecl::DEFAULT };

struct Takes;

impl Node for Takes {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, kept) = cx.take(p);
        assert!(Entry::parse(packet.data()).is_ok(), "with its labels");
        cx.count(TAKEN, 1);
        cx.deliver(packet);
        kept
    }
}

#[test]
fn alerts_and_local_labels_are_punted_to_whom_takes_them() {
    let mut lab = router();
    lab.ok("mpls local-label add 20 eos via local");
    let why = "mpls packet to the router itself";
    for (reason, label) in [("mpls-router-alert", 1), ("mpls-local", 20)] {
        lab.lost(0, &labelled(&[label], 9), "mpls-lookup", why);
        punt::take(&mut lab.c, reason, "taker").expect("a receiver");
        let before = lab.count("taker", "packets taken");
        for n in [1, 30] {
            assert_eq!(lab.forward(0, &labelled(&[label], 9), n), []);
        }
        assert_eq!(lab.count("taker", "packets taken") - before, 31);
        punt::release(&mut lab.c, reason).expect("no receiver");
        lab.lost(0, &labelled(&[label], 9), "mpls-lookup", why);
    }
    lab.close();
}
