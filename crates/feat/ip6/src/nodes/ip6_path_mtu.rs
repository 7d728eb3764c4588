//! `ip6-path-mtu`: answers packets above the path MTU of their destination (RFC 8200 section 5).
//!
//! Reads: rx interface (its table; of the router's own packets, that of the tx interface), tx
//! interface. Keeps: aux (the adjacency). Next: the next feature of the `ip6-output` arc, or
//! `ip6-icmp-error`.

use crate::icmp;
use crate::link::suits;
use crate::tables::Tables;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF, PktMut, SwIfIndex};
use thalweg_feat_ip::path_mtu::PathMtus;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::next_nodes! { ICMP_ERROR => "ip6-icmp-error" }
thalweg_graph::errors! {
    TOO_BIG: Error, FRAG_NEEDED, "ip6 path MTU exceeded";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-path-mtu",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-output").at(Stage::Check)),
    build: |cx| Built::node(PathMtu { mtus: cx.shared(), tables: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct PathMtu {
    mtus: Arc<Snapshot<PathMtus<u128>>>,
    tables: Arc<Snapshot<Tables>>,
}

impl PathMtu {
    fn find(&self, cx: &NodeCx<'_>, data: &[u8], (rx, tx): (SwIfIndex, SwIfIndex)) -> Option<u16> {
        let to = data.get(24..).and_then(<[u8]>::first_chunk::<16>)?;
        let from = if rx == LOCAL_IF { tx } else { rx };
        let table = self.tables.load(cx.guard()).fib_id(from);
        self.mtus.load(cx.guard()).get(table, u128::from_be_bytes(*to))
    }
}

impl Node for PathMtu {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let mtu = self.find(cx, p.data(), (p.rx_if(), p.tx_if()));
        let exceeded = mtu.filter(|mtu| p.total_len() > usize::from(*mtu) && !suits(&p, *mtu));
        let Some(mtu) = exceeded else { return Verdict::CONTINUE };
        let cause = icmp::packet_too_big(mtu);
        icmp::request_error(cx, &mut p, cause, TOO_BIG, ICMP_ERROR)
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        match self.find(cx, frame.data(i), (frame.rx_if(i), frame.tx_if(i))) {
            Some(mtu) => _ = writeln!(out, "path mtu {mtu}"),
            None => _ = writeln!(out, "no path mtu"),
        }
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
