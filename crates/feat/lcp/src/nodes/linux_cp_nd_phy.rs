//! `linux-cp-nd-phy`: messages of neighbour and listener discovery that the router reads itself,
//! except solicitations of its addresses, go to the twin of the interface as well.
//!
//! Reads: rx interface, the Ethernet header before the packet. Next: the next feature of the
//! `ip6-local` arc.

use super::linux_cp_punt::ToTwin;
use crate::class::Class;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::icmpv6::kind;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::Ipv6View;

thalweg_graph::errors! {
    COPIED: Info, UNKNOWN, "ND packets copied to host";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-nd-phy",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-local")),
    build: |cx| Built::node(NdPhy(ToTwin::new(cx))),
    ..NodeDecl::DEFAULT
};

struct NdPhy(ToTwin);

/// Returns whether both ends of a pair have a use for a packet.
fn is_for_both(packet: &[u8]) -> bool {
    let Ok(transport) = Ipv6View::parse_prefix(packet).and_then(|ip| ip.transport()) else {
        return false;
    };
    transport.protocol == protocol::ICMPV6
        && matches!(
            transport.payload.first(),
            Some(
                &(kind::NEIGHBOR_ADVERTISEMENT
                    | kind::ROUTER_SOLICITATION
                    | kind::ROUTER_ADVERTISEMENT
                    | kind::LISTENER_QUERY)
            )
        )
}

impl Node for NdPhy {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if is_for_both(p.data()) && self.0.send_copy(cx, &mut p, (ethertype::IPV6, Class::Nd)) {
            cx.count(COPIED, 1);
        }
        Verdict::CONTINUE
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let copied = if is_for_both(frame.data(i)) { "for both" } else { "for the router" };
        let _ = writeln!(out, "rx {}: {copied}", interface_token(frame.rx_if(i)));
    }
}
