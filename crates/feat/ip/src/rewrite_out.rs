//! The node that writes the link header of packets that have passed the features of an output arc.

use crate::link::{Link, Packets};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_fib::{Dpo, Kind};
use thalweg_graph::{BuildCx, Built, ErrorCode, FrameVerdict, Node, NodeCx, NodeId, Verdict};

/// Constants of a version's leaving packets. Verdicts and drop reasons are those of its node for
/// them.
pub trait Leaving: Packets {
    /// Packets to groups leave by the node, too.
    const HAS_GROUPS: bool;
    /// The packet has no headroom for the link header.
    const NO_ROOM: ErrorCode;
    /// The next hop was lost.
    const LOST: ErrorCode;

    /// Returns the verdict of a packet that exceeds the MTU; `None` if its segments suit it.
    fn exceeding(p: &PktMut<'_>, mtu: u16) -> Option<Verdict>;
}

/// The node.
pub struct RewriteOut<V> {
    link: Link<V>,
}

impl<V: Leaving> RewriteOut<V> {
    /// Builds the node.
    pub fn build(cx: &BuildCx<'_>) -> Built {
        Built::node(Self { link: Link::new(cx) })
    }
}

impl<V: Leaving> Node for RewriteOut<V> {
    #[inline]
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.link.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        // A packet that a feature held may find another adjacency under this number.
        let as_written = state.kind == Kind::AS_WRITTEN;
        let to_group = V::HAS_GROUPS && state.kind == Kind::MULTICAST;
        let sends = state.kind.is_complete() || as_written || to_group;
        if !sends || state.tx_if() != p.tx_if() {
            return Verdict::drop(V::LOST);
        }
        if p.total_len() > usize::from(state.mtu)
            && let Some(verdict) = V::exceeding(&p, state.mtu)
        {
            return verdict;
        }
        if as_written {
            // Nothing but its link header was stepped over.
            let there = p.push(p.stepped()).is_some();
            let output = Verdict::node(NodeId(entry.next() as u16));
            return if there { output } else { Verdict::drop(V::NO_ROOM) };
        }
        self.link.write(&mut p, entry, state).unwrap_or(Verdict::drop(V::NO_ROOM))
    }

    #[inline(always)]
    fn frame<L: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let here = |i: usize, dpo: u32| {
            self.link.dpos.get(Dpo(dpo)).state().tx_if() == frame.tx_if(i as u8)
        };
        if frame.flags().contains(Flags::CHAINED)
            || !frame.aux().iter().enumerate().all(|(i, dpo)| here(i, *dpo))
        {
            return FrameVerdict::PerPacket;
        }
        self.link.frame::<L, false>(frame, each)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        self.link.trace(frame, i, out);
    }
}
