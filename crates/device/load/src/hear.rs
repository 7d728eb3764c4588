//! `load-hear`: hosts hear what another worker has received for them. Next: none.

use std::any::Any;

use thalweg_buffer::Frame;
use thalweg_device::SwIfIndex;
use thalweg_graph::{BuildCx, Built, Kind, NodeCx, NodeDecl, PerWorker, Runner};

use crate::hosts::All;

/// The node's declaration.
pub(crate) static NODE: NodeDecl =
    NodeDecl { name: "load-hear", kind: Kind::Tx, build, ..NodeDecl::DEFAULT };

/// The queue that leads to it. Packets have the number of their port in `aux`.
pub(crate) const QUEUE: &str = "load";

fn build(cx: &BuildCx<'_>) -> Built {
    Built::runner(Hear { all: cx.control.per_worker() })
}

struct Hear {
    all: PerWorker<All>,
}

impl Runner for Hear {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "load tester, {} bytes", f.total_len(i));
        });
        if let Some(mut all) = cx.take_local(self.all) {
            let mut from = 0;
            for same in frame.aux().chunk_by(|a, b| a == b) {
                let rows = from..from + same.len();
                from = rows.end;
                // Frames are not handed over again, whatever they are.
                all.hear(cx, SwIfIndex(same[0]), (&frame, rows), None);
            }
            cx.put_local(self.all, all);
        }
        cx.sent_frame(frame);
    }

    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}
