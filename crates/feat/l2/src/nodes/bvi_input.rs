//! `bvi-input`: passes frames that a bridge domain forwards to its BVI on to layer 3, as received
//! by the BVI.
//!
//! Reads: tx interface, the BVI. Writes: rx interface. Next: the BVI's features for what it
//! receives, or `ethernet-input`.

use crate::trace::addresses;
use std::any::Any;
use thalweg_buffer::{Frame, Iface};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, NodeCx, NodeDecl, Runner};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "bvi-input",
    next: &["ethernet-input"],
    build: |_| Built::runner(BviInput),
    ..NodeDecl::DEFAULT
};

struct BviInput;

impl Runner for BviInput {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| {
            let bvi = interface_token(f.tx_if(i));
            let _ = writeln!(out, "bvi-input: {bvi} {}", addresses(f, i));
        });
        if let Iface::Uniform(bvi) = frame.tx() {
            return cx.enter_interface(frame, bvi);
        }
        let mut at = 0;
        while at < frame.len() {
            let bvi = frame.tx_if(at as u8);
            let mut run = cx.new_frame();
            while at < frame.len() && frame.tx_if(at as u8) == bvi {
                let (packet, _) = cx.take(frame.pkt(at as u8));
                // A run is no longer than the frame that it is a part of.
                if let Err(packet) = run.push(packet) {
                    cx.consume(packet);
                }
                at += 1;
            }
            cx.enter_interface(run, bvi);
        }
        frame.compact(());
        cx.put_frame(frame);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
