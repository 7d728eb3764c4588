//! `pg-input`: sends the packets of the streams that run on this worker.
//!
//! Writes: rx interface (and tx interface, if the stream names one). Next: the rx interface's
//! `device-input` arc, or the node that the stream names.

use crate::source::Source;
use crate::stream::Shared;
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thalweg_buffer::{FRAME_SIZE, Frame};
use thalweg_device::SwIfIndex;
use thalweg_graph::{
    BuildCx, Built, Event, InputNode, Kind, NodeCx, NodeDecl, NodeId, Poll, clock,
};
use thalweg_wire::fmt;

thalweg_graph::errors! {
    NO_BUFFERS: Warning, NO_BUFFER_SPACE, "no buffers for generated packets";
    SENT: Info, UNKNOWN, "packets generated";
}

/// The node's declaration.
pub static NODE: NodeDecl =
    NodeDecl { name: "pg-input", kind: Kind::Input, errors: ERRORS, build, ..NodeDecl::DEFAULT };

fn build(bcx: &BuildCx<'_>) -> Built {
    Built::input(PgInput { shared: bcx.shared::<Shared>(), running: Vec::new() })
}

/// Maximum number of frames per stream and loop, so that a high rate needs no short loops.
const BURST: usize = 4;
/// Backlog in seconds that a stream may make up for after its worker was busy.
const BACKLOG: f64 = 0.005;
/// Delay in seconds before the next attempt without buffers.
const RETRY: f64 = 20e-6;

/// Node at which a stream's packets enter the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// The interface receives the packets.
    Device,
    /// Start at a node, with the transmit interface set.
    Node(NodeId, SwIfIndex),
}

/// A stream on its worker.
pub(crate) struct Running {
    /// Key of this run of the stream.
    pub(crate) key: u64,
    /// Number of the stream, for traces.
    pub(crate) number: usize,
    pub(crate) source: Source,
    pub(crate) entry: Entry,
    pub(crate) rx_if: SwIfIndex,
    /// Packets left to send; `u64::MAX` for endless.
    pub(crate) left: u64,
    /// Packets per second; 0 for as fast as possible.
    pub(crate) rate: f64,
    pub(crate) max_frame: usize,
    /// Packets sent, for `show packet-generator`.
    pub(crate) sent: Arc<AtomicU64>,
    /// Token bucket: packets that may be sent as of `since`.
    pub(crate) tokens: f64,
    pub(crate) since: u64,
    /// Packets without Ethernet header, for traces.
    pub(crate) ip: bool,
}

/// Messages from the main thread.
pub(crate) enum Message {
    /// Streams that begin together.
    Start(Vec<Running>),
    Stop(u64),
}

struct PgInput {
    shared: Arc<Shared>,
    running: Vec<Running>,
}

impl InputNode for PgInput {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let (mut sent, mut next) = (0, u64::MAX);
        let mut i = 0;
        while i < self.running.len() {
            let r = &mut self.running[i];
            // The last loop's packets have left the graph by now: only then is the stream done.
            if r.left == 0 {
                let event = Event::new(self.shared.done, r.rx_if, cx.now(), &r.key.to_ne_bytes());
                if cx.event(event) {
                    let gone = self.running.swap_remove(i);
                    cx.discard(Box::new(gone));
                } else {
                    sent += 1;
                    i += 1;
                }
                continue;
            }
            match r.poll(cx) {
                Poll::Busy(n) => sent += n,
                Poll::At(t) => next = next.min(t),
                Poll::Idle => {}
            }
            i += 1;
        }
        match (sent, next) {
            (0, u64::MAX) => Poll::Idle,
            (0, t) => Poll::At(t),
            (n, _) => Poll::Busy(n),
        }
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        match message.downcast::<Message>().map(|m| *m) {
            Ok(Message::Start(streams)) => {
                let since = clock::ticks();
                self.running.extend(streams.into_iter().map(|r| Running { since, ..r }));
            }
            Ok(Message::Stop(key)) => {
                if let Some(i) = self.running.iter().position(|r| r.key == key) {
                    let gone = self.running.swap_remove(i);
                    cx.discard(Box::new(gone));
                }
            }
            Err(_) => {}
        }
    }
}

impl Running {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let now = cx.now();
        let mut due = BURST * FRAME_SIZE;
        if self.rate > 0.0 {
            let passed = now.saturating_sub(self.since) as f64 / clock::hz();
            let most = (self.rate * BACKLOG).max(1.0);
            self.tokens = (self.tokens + passed * self.rate).min(most);
            self.since = now.max(self.since);
            if self.tokens < 1.0 {
                let wait = (1.0 - self.tokens) / self.rate * clock::hz();
                // A packet in centuries is due after the end of the clock.
                return Poll::At(now.saturating_add(wait.ceil().max(1.0) as u64));
            }
            due = due.min(self.tokens as usize);
        } else {
            due = self.max_frame;
        }
        let mut done = 0;
        while done < due && self.left > 0 {
            let want = (due - done).min(self.max_frame).min(self.left.min(1 << 20) as usize);
            let n = self.send(cx, want);
            done += n;
            if n < want {
                cx.count(NO_BUFFERS, 1);
                break;
            }
        }
        self.tokens -= done as f64;
        if done == 0 { Poll::At(now + (RETRY * clock::hz()) as u64) } else { Poll::Busy(done) }
    }

    fn send(&mut self, cx: &mut NodeCx<'_>, want: usize) -> usize {
        let mut frame = self.source.fill(cx, want);
        let n = frame.len();
        if n == 0 {
            cx.put_frame(frame);
            return 0;
        }
        if self.left != u64::MAX {
            self.left -= n as u64;
        }
        self.sent.store(self.sent.load(Relaxed) + n as u64, Relaxed);
        cx.count(SENT, n as u64);
        let (number, rx_if, ip) = (self.number, self.rx_if, self.ip);
        let trace = |f: &Frame, i, out: &mut dyn Write| trace(number, rx_if, ip, f, i, out);
        match self.entry {
            Entry::Device => cx.device_input(frame, rx_if, trace),
            Entry::Node(node, tx_if) => {
                frame.set_rx(self.rx_if);
                frame.set_tx(tx_if);
                let stats = cx.stats();
                stats.totals.rx.add(n as u64);
                stats.interface(self.rx_if).rx_packets.add(n as u64);
                stats.interface(self.rx_if).rx_bytes.add(frame.bytes());
                cx.trace_input(&mut frame, trace);
                cx.enqueue(frame, node);
            }
        }
        n
    }
}

fn trace(number: usize, rx_if: SwIfIndex, ip: bool, f: &Frame, i: u8, out: &mut dyn Write) {
    let _ = writeln!(out, "stream {number}, {} bytes, sw_if_index {rx_if}", f.total_len(i));
    let _ = match ip {
        true => fmt::ip(f.data(i), out, 0),
        false => fmt::packet(f.data(i), out, 0),
    };
}
