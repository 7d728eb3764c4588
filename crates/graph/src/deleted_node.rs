//! The placeholder for a node whose interface is deleted.

use crate::decl::NodeId;
use crate::node::Runner;
use crate::worker::NodeCx;
use std::any::Any;
use thalweg_buffer::Frame;

/// Drops packets that still arrive, e.g. through an adjacency that was read just before the
/// deletion.
pub(crate) struct DeletedNode {
    pub(crate) to: NodeId,
    pub(crate) error: u32,
}

impl Runner for DeletedNode {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        frame.aux_mut().fill(self.error);
        cx.enqueue(frame, self.to);
    }
    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
