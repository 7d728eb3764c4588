//! `l2-input`: passes frames of layer 2 interfaces to their cross connect or bridge domain.
//!
//! Reads: rx interface. Writes: tx interface, if the cross connect ends in a sub-interface. Next:
//! the peer's output node, `l2-learn` or `l2-fwd`.

use crate::L2Table;
use crate::table::Port;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Frame, Iface, LOCAL_IF, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    NO_PEER: Error, PORT_LIST_IS_EMPTY, "no cross connect";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-input",
    errors: ERRORS,
    build: |cx| Built::node(L2Input { table: cx.shared(), all: None }),
    ..NodeDecl::DEFAULT
};

struct L2Input {
    table: Arc<Snapshot<L2Table>>,
    /// Verdict for all packets of the frame.
    all: Option<Verdict>,
}

/// Returns the sub-interface on whose behalf a port's frames leave right away, 0 if there is none.
#[inline]
fn sender(port: Port) -> SwIfIndex {
    if port.bridge == 0 { port.sender } else { LOCAL_IF }
}

impl L2Input {
    #[inline]
    fn verdict(port: Port) -> Verdict {
        match port.next {
            Some(node) => Verdict::node(node),
            None => Verdict::drop(NO_PEER),
        }
    }

    #[inline]
    fn port(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex) -> Port {
        self.table.load(cx.guard()).port(rx_if)
    }

    /// Does the kernel's work for a frame of several interfaces.
    #[inline(never)]
    fn mixed(&self, cx: &NodeCx<'_>, frame: &mut Frame) -> FrameVerdict {
        // Ports of one bridge domain have the same next node.
        let first = Self::verdict(self.port(cx, frame.rx_if(0)));
        if !frame.rx_runs().all(|(rx_if, _)| Self::verdict(self.port(cx, rx_if)) == first) {
            return FrameVerdict::PerPacket;
        }
        let (mut at, mut senders) = (0, [LOCAL_IF; FRAME_SIZE]);
        for (rx_if, n) in frame.rx_runs() {
            senders[at..at + n].fill(sender(self.port(cx, rx_if)));
            at += n;
        }
        if senders.iter().any(|sw_if| *sw_if != LOCAL_IF) {
            frame.set_tx_each(&senders);
        }
        FrameVerdict::Whole(first)
    }
}

impl Node for L2Input {
    const TOUCHES_DATA: bool = false;

    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.all = match frame.rx() {
            Iface::Uniform(rx_if) => {
                let port = self.port(cx, rx_if);
                (sender(port) == SwIfIndex(0)).then(|| Self::verdict(port))
            }
            Iface::Mixed => None,
        };
    }

    #[inline]
    fn whole(&self) -> Option<Verdict> {
        self.all
    }

    /// A frame with one rx interface has one verdict.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        _each: &mut [Verdict],
    ) -> FrameVerdict {
        match frame.rx() {
            Iface::Uniform(rx_if) => {
                let port = self.port(cx, rx_if);
                if sender(port) != SwIfIndex(0) {
                    frame.set_tx(port.sender);
                }
                FrameVerdict::Whole(Self::verdict(port))
            }
            Iface::Mixed => self.mixed(cx, frame),
        }
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let port = self.port(cx, p.rx_if());
        if sender(port) != SwIfIndex(0) {
            p.set_tx_if(port.sender);
        }
        Self::verdict(port)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let rx = interface_token(frame.rx_if(i));
        let _ = writeln!(out, "l2-input: {rx} {}", addresses(frame, i));
    }
}
