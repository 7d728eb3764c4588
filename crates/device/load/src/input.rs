//! `load-input`: hosts send, and their ports receive it. Next: the ports' `device-input` arc.

use std::any::Any;
use std::time::Duration;

use thalweg_graph::{BuildCx, Built, InputNode, Kind, NodeCx, NodeDecl, PerWorker, Poll, clock};

use crate::hosts::{All, Message};

/// The node's declaration.
pub(crate) static NODE: NodeDecl =
    NodeDecl { name: "load-input", kind: Kind::Input, build, ..NodeDecl::DEFAULT };

fn build(cx: &BuildCx<'_>) -> Built {
    Built::input(Input { all: cx.control.per_worker() })
}

struct Input {
    all: PerWorker<All>,
}

/// Time after which hosts that say nothing have their next turn.
const PAUSE: Duration = Duration::from_micros(200);

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let Some(mut all) = cx.take_local(self.all) else { return Poll::Idle };
        let packets = all.poll(cx);
        let empty = all.is_empty();
        let due = all.next_due(cx).unwrap_or(PAUSE).min(PAUSE);
        cx.put_local(self.all, all);
        match packets {
            0 if empty => Poll::Idle,
            0 => Poll::At(cx.now() + clock::ticks_in(due)),
            n => Poll::Busy(n),
        }
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<Message>() else { return };
        let mut all = cx.take_local(self.all).unwrap_or_default();
        all.message(cx, *message);
        cx.put_local(self.all, all);
    }
}
