//! `ip4-path-mtu`: fragments packets above the path MTU of their destination, or answers them.
//!
//! Reads: rx interface (its table; of the router's own packets, that of the tx interface), tx
//! interface. Keeps: aux (the adjacency). Next: the next feature of the `ip4-output` arc, also for
//! fragments; `ip4-icmp-error` for what must not be fragmented.

use super::ip4_frag::{Cutter, Failure};
use crate::icmp::{self, Cause};
use crate::link::{Length, too_long};
use crate::tables::Tables;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF, PktMut, SwIfIndex};
use thalweg_feat_ip::path_mtu::PathMtus;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::next_nodes! { ICMP_ERROR => "ip4-icmp-error" }
thalweg_graph::errors! {
    FRAGMENTS: Info, UNKNOWN, "fragments sent";
    TOO_BIG: Error, FRAG_NEEDED, "ip4 path MTU exceeded and DF set";
    NO_BUFFERS: Error, NO_BUFFER_SPACE, "no buffers for fragments";
    SUPER: Error, IP_HEADER_CORRUPTED, "invalid GSO request";
    SMALL_MTU: Error, PKT_TOO_BIG, "MTU too small for fragments";
    NOT_IP4: Error, IP_HEADER_CORRUPTED, "bad ip4 header";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-path-mtu",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-output").at(Stage::Check)),
    build: |cx| {
        let cutter = Cutter::new();
        Built::node(PathMtu { mtus: cx.shared(), tables: cx.shared(), cutter })
    },
    ..NodeDecl::DEFAULT
};

struct PathMtu {
    mtus: Arc<Snapshot<PathMtus<u32>>>,
    tables: Arc<Snapshot<Tables>>,
    cutter: Cutter,
}

impl PathMtu {
    fn find(&self, cx: &NodeCx<'_>, data: &[u8], (rx, tx): (SwIfIndex, SwIfIndex)) -> Option<u16> {
        let to = data.get(16..).and_then(<[u8]>::first_chunk::<4>)?;
        let from = if rx == LOCAL_IF { tx } else { rx };
        let table = self.tables.load(cx.guard()).fib_id(from);
        self.mtus.load(cx.guard()).get(table, u32::from_be_bytes(*to))
    }
}

impl Node for PathMtu {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(mtu) = self.find(cx, p.data(), (p.rx_if(), p.tx_if())) else {
            return Verdict::CONTINUE;
        };
        if p.total_len() <= usize::from(mtu) {
            return Verdict::CONTINUE;
        }
        match too_long(&p, mtu) {
            Length::Suits => return Verdict::CONTINUE,
            Length::Fragment => {}
            Length::Refused => {
                let cause = Cause::frag_needed(mtu);
                return icmp::request_error(cx, &mut p, cause, TOO_BIG, ICMP_ERROR);
            }
        }
        match self.cutter.cut(cx, &mut p, mtu, |_| true) {
            Ok(n) => {
                cx.count(FRAGMENTS, n);
                self.cutter.send(cx, p, Verdict::CONTINUE)
            }
            Err(Failure::NoBuffers) => Verdict::drop(NO_BUFFERS),
            Err(Failure::Gso) => Verdict::drop(SUPER),
            Err(Failure::SmallMtu) => Verdict::drop(SMALL_MTU),
            Err(Failure::NotIp4) => Verdict::drop(NOT_IP4),
        }
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        match self.find(cx, frame.data(i), (frame.rx_if(i), frame.tx_if(i))) {
            Some(mtu) => _ = writeln!(out, "path mtu {mtu}"),
            None => _ = writeln!(out, "no path mtu"),
        }
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
