//! `interface-rx-dpo-l2`: has an interface receive the Ethernet frames of a pseudowire.
//!
//! Reads: rx interface, the pseudowire's. Next: `ethernet-input`.

use std::any::Any;
use std::sync::Arc;
use thalweg_buffer::{Frame, Iface};
use thalweg_device::{IfTable, Interfaces, SwIfIndex};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, NodeCx, NodeDecl, Runner};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    DOWN: Error, 331, "interface of the pseudowire is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "interface-rx-dpo-l2",
    next: &["ethernet-input"],
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| Built::runner(Receive { table: Interfaces::table(cx) }),
    ..NodeDecl::DEFAULT
};

struct Receive {
    table: Arc<Snapshot<IfTable>>,
}

impl Receive {
    /// Passes packets of one interface on.
    fn enter(&self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>, sw_if: SwIfIndex) {
        if !self.table.load(cx.guard()).get(sw_if).admin_up {
            cx.drop_frame(frame, DOWN);
            return;
        }
        cx.interface_input(&mut frame, sw_if);
        cx.enqueue_next(frame, 0);
    }
}

impl Runner for Receive {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "interface-rx-dpo: {}", interface_token(f.rx_if(i)));
        });
        if let Iface::Uniform(sw_if) = frame.rx() {
            return self.enter(cx, frame, sw_if);
        }
        let mut at = 0;
        while at < frame.len() {
            let sw_if = frame.rx_if(at as u8);
            let mut run = cx.new_frame();
            while at < frame.len() && frame.rx_if(at as u8) == sw_if {
                let (packet, _) = cx.take(frame.pkt(at as u8));
                // A run is no longer than the frame that it is a part of.
                if let Err(packet) = run.push(packet) {
                    cx.consume(packet);
                }
                at += 1;
            }
            self.enter(cx, run, sw_if);
        }
        frame.compact(());
        cx.put_frame(frame);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
