//! `interface-rx-dpo-ip6`: lets an interface receive the packets that a label or a route sends to
//! it.
//!
//! Reads: rx interface. Next: `ip6-input`, with all that the interface does to what it receives.

use thalweg_device::entry::{self, Way};
use thalweg_graph::NodeDecl;
use thalweg_graph::trace::interface_token;

thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "interface that is to receive the packet is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "interface-rx-dpo-ip6",
    next: &["ip6-input"],
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        entry::build(cx, Way::Packets, DOWN, |frame, i, out| {
            let _ = writeln!(out, "interface-rx-dpo: {}", interface_token(frame.rx_if(i)));
            let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
        })
    },
    ..NodeDecl::DEFAULT
};
