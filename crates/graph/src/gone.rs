//! Stands in for a node whose interface was deleted.

use crate::decl::NodeId;
use crate::node::Runner;
use crate::worker::NodeCx;
use std::any::Any;
use thalweg_buffer::Frame;

/// Drops what still arrives, e.g. by an adjacency read just before.
pub(crate) struct Gone {
    pub(crate) to: NodeId,
    pub(crate) error: u32,
}

impl Runner for Gone {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        frame.aux_mut().fill(self.error);
        cx.enqueue(frame, self.to);
    }
    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
