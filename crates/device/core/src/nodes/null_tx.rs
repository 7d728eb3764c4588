//! `null-tx`: frees what loopbacks, BVIs and sinks send, and counts it as sent.
//!
//! Reads: nothing. Next: none.

use std::any::Any;
use thalweg_buffer::Frame;
use thalweg_graph::{Built, Kind, NodeCx, NodeDecl, Runner};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "null-tx",
    kind: Kind::Tx,
    build: |_| Built::runner(NullTx),
    ..NodeDecl::DEFAULT
};

struct NullTx;

impl Runner for NullTx {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "{} bytes, freed", f.total_len(i));
        });
        cx.sent_frame(frame);
    }
    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
