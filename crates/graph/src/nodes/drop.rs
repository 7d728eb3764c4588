//! `drop`: counts each packet under its reason and frees it.
//!
//! Reads: aux (the reason's global number). Next: none.

use crate::decl::{Built, Kind, NodeDecl};
use crate::node::Runner;
use crate::trace::error_token;
use crate::worker::NodeCx;
use std::any::Any;
use thalweg_buffer::Frame;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "drop",
    kind: Kind::Drop,
    drop: "drop",
    build: |_| Built::runner(Drop),
    ..NodeDecl::DEFAULT
};

struct Drop;

impl Runner for Drop {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        // Consecutive packets of a frame are mostly dropped for the same reason: count runs.
        for run in frame.aux().chunk_by(|a, b| a == b) {
            cx.stats().error(run[0]).add(run.len() as u64);
        }
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "{}", error_token(f.aux()[i as usize]));
        });
        cx.dropped_frame(frame);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
