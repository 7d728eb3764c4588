//! `tcp-mss-clamping-ip4-in`: lowers the MSS of SYNs that an interface receives.
//!
//! Reads: the IPv4 and TCP headers. Next: the next feature of the `ip4-unicast` arc.

use crate::Limits;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut, SwIfIndex};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::packet;
use thalweg_wire::tcp::{self, TcpView};

thalweg_graph::errors! {
    CLAMPED: Info, 256, "clamped";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tcp-mss-clamping-ip4-in",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl {
        arc: "ip4-unicast",
        before: &["nat44-ed-classify", "nat44-ed-hairpin", "nat44-ed-in2out", "nat44-ed-out2in"],
        after: &["ip4-not-enabled"],
    }),
    build: |cx| Built::node(ClampIn { limits: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct ClampIn {
    limits: Arc<Snapshot<Limits>>,
}

/// Lowers the MSS of a packet that opens a connection to the limit of an interface; returns whether
/// it has. Where the packet is a fragment, its first one has the option.
#[inline]
pub(crate) fn clamp(
    limits: &Snapshot<Limits>,
    cx: &NodeCx<'_>,
    p: &mut PktMut<'_>,
    sw_if: SwIfIndex,
) -> bool {
    if p.data().get(9) != Some(&protocol::TCP) {
        return false;
    }
    let parsed = packet::parse(p.data(), 0);
    // Without a whole header there are no flags.
    if parsed.flags & tcp::flag::SYN == 0 {
        return false;
    }
    let Some(limit) = limits.load(cx.guard()).get(&sw_if) else { return false };
    let offered = |p: &PktMut<'_>| {
        let segment = p.data().get(parsed.l4..parsed.end)?;
        TcpView::parse(segment).ok()?.mss()
    };
    if offered(p).is_none_or(|mss| mss <= limit.mss) {
        return false;
    }
    let partial =
        p.may_have_flags() && p.flags().contains(Flags::OFFLOAD) && p.meta().offload.needs_csum;
    packet::clamp_mss(p.data_mut(), &parsed, limit.mss, partial);
    true
}

/// Writes what a trace shows of a packet.
pub(crate) fn trace(
    limits: &Snapshot<Limits>,
    cx: &NodeCx<'_>,
    sw_if: SwIfIndex,
    data: &[u8],
    out: &mut dyn Write,
) {
    let most = limits.load(cx.guard()).get(&sw_if).map_or(0, |limit| limit.mss);
    let _ = writeln!(out, "max mss: {most}");
    let _ = thalweg_wire::fmt::ip4(data, out, 0);
}

impl Node for ClampIn {
    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let rx_if = p.rx_if();
        if clamp(&self.limits, cx, &mut p, rx_if) {
            cx.count(CLAMPED, 1);
        }
        Verdict::CONTINUE
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace(&self.limits, cx, frame.rx_if(i), frame.data(i), out);
    }
}
