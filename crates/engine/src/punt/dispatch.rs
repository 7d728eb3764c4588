//! `punt-dispatch`: passes punted packets on to the node that takes them, within their limit.
//!
//! Reads: aux (the punt reason). Next: the reason's receiver.

use super::{Counts, Limit, OfWorker, Punt, Reason, Registry};
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict, clock};
use thalweg_tables::limit::RateLimit;

thalweg_graph::errors! {
    LIMITED: Error, TRAFFIC_SHAPING, "punt rate limit exceeded";
    NO_RECEIVER: Error, UNHANDLED_PROTO, "no receiver for punted packet";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "punt-dispatch",
    errors: ERRORS,
    build: |cx| {
        let registry = cx.control.state::<Registry>();
        let registry = registry.borrow();
        let second = clock::hz() as u64;
        let limits = registry.reasons.iter().zip(0..).map(|(e, i)| e.limit(Reason(i)));
        Built::node(Dispatch {
            punt: Punt::new(cx),
            limits: limits.map(|limit| rate_limit(limit, second)).collect(),
            names: registry.reasons.iter().map(|e| e.decl.name).collect(),
            counts: registry.counts.clone(),
            worker: cx.worker,
        })
    },
    ..NodeDecl::DEFAULT
};

fn rate_limit(limit: Limit, second: u64) -> RateLimit {
    RateLimit::steady(limit.rate, limit.burst, second)
}

struct Dispatch {
    punt: Punt,
    /// Limits by reason.
    limits: Vec<RateLimit>,
    names: Vec<&'static str>,
    counts: Arc<[OfWorker]>,
    worker: usize,
}

impl Dispatch {
    /// The limit and the counters of a reason.
    fn reason(&mut self, reason: Reason) -> Option<(&mut RateLimit, &Counts)> {
        let i = usize::from(reason.0);
        Some((self.limits.get_mut(i)?, self.counts.get(self.worker)?.0.get(i)?))
    }
}

impl Node for Dispatch {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let reason = Reason::of(&p);
        // The reason may have been released while the packet was on its way.
        let Some(receiver) = self.punt.0.load(cx.guard()).node(reason) else {
            return Verdict::drop(NO_RECEIVER);
        };
        let Some((limit, counts)) = self.reason(reason) else {
            return Verdict::drop(NO_RECEIVER);
        };
        if !limit.allow(cx.now()) {
            counts.limited.add(1);
            return Verdict::drop(LIMITED);
        }
        counts.packets.add(1);
        counts.bytes.add(p.total_len() as u64);
        cx.stats().interface(p.rx_if()).punt.add(1);
        Verdict::node(receiver)
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(limit) = message.downcast::<Limit>()
            && let Some(of) = self.limits.get_mut(usize::from(limit.reason.0))
        {
            *of = rate_limit(*limit, clock::hz() as u64);
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let reason = frame.aux()[usize::from(i)] as usize;
        let _ = writeln!(out, "reason {}", self.names.get(reason).unwrap_or(&"none"));
    }
}
