//! `error-drop`: every packet that is dropped for a reason passes here.
//!
//! Reads: rx interface, aux (the reason's global index). Next: `drop`. Taps of the `error-drop` arc
//! inspect the packets, so that an operator sees why they are dropped.

use crate::decl::{Built, Kind, NodeDecl};
use crate::node::Runner;
use crate::trace::interface_token;
use crate::worker::NodeCx;
use std::any::Any;
use thalweg_buffer::{Frame, Iface};

crate::next_nodes! { DROP => "drop" }
crate::errors! {
    GONE: Error, UNKNOWN, "interface is deleted";
    CONGESTED: Error, NO_BUFFER_SPACE, "congestion drop";
    CIRCLE: Error, TTL_EXCEEDED, "packet goes round in the graph";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "error-drop",
    kind: Kind::Drop,
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "drop",
    build: |_| Built::runner(ErrorDrop),
    ..NodeDecl::DEFAULT
};

struct ErrorDrop;

impl Runner for ErrorDrop {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        match frame.rx() {
            Iface::Uniform(sw_if) => cx.stats().interface(sw_if).drops.add(frame.len() as u64),
            Iface::Mixed => {
                for i in 0..frame.len() {
                    cx.stats().interface(frame.rx_if(i as u8)).drops.add(1);
                }
            }
        }
        cx.drop_taps(&mut frame);
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "rx:{}", interface_token(f.rx_if(i)));
        });
        cx.dispose_whole(frame, DROP);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
