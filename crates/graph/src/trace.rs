//! Packet traces: what each node did with a marked packet.

use crate::clock;
use crate::decl::NodeId;
use crate::filter::{ByteFilter, MAX_BYTES};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thalweg_buffer::{Flags, Frame, SwIfIndex};

/// One node's step in a packet's trace.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// The node.
    pub node: NodeId,
    /// Time, in ticks.
    pub at: u64,
    /// Its text, one or more lines without indentation of its own.
    pub text: String,
}

/// The trace of one packet.
#[derive(Clone, Debug, Default)]
pub struct PacketTrace {
    /// Its first bytes where the trace begins, up to [`MAX_BYTES`]; none if the router made it.
    pub head: Box<[u8]>,
    /// Steps in order.
    pub steps: Vec<TraceStep>,
}

/// A node's turn with a traced packet, and the packet as the node gets it.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Number of the packet's trace on its worker.
    pub trace: u16,
    /// The node.
    pub node: NodeId,
    /// Time, in ticks.
    pub at: u64,
    /// Interface of receipt.
    pub rx: SwIfIndex,
    /// Interface of transmission.
    pub tx: SwIfIndex,
    /// The packet's scalar.
    pub aux: u32,
    /// Its marks.
    pub flags: Flags,
    /// Length of the packet.
    pub length: u32,
    /// Its bytes, up to [`Dispatch::MAX`].
    pub bytes: Box<[u8]>,
}

impl Dispatch {
    /// Most bytes of a packet that are kept.
    pub const MAX: usize = 9216;
    /// Most memory in bytes that a worker's dispatches take.
    pub const MEMORY: usize = 64 << 20;
}

/// Dispatches that a worker keeps.
#[derive(Debug, Default)]
pub(crate) struct Dispatches {
    pub(crate) kept: Vec<Dispatch>,
    /// Number that are still to be kept.
    left: u32,
    bytes: usize,
    /// Number so far, for the main thread.
    taken: Arc<AtomicU64>,
}

impl Dispatches {
    pub(crate) fn new(left: u32, taken: Arc<AtomicU64>) -> Dispatches {
        Dispatches { left, taken, ..Dispatches::default() }
    }

    /// Keeps one, if there is room.
    fn keep(&mut self, dispatch: impl FnOnce() -> Dispatch) {
        if self.left == 0 || self.bytes >= Dispatch::MEMORY {
            return;
        }
        let dispatch = dispatch();
        self.bytes += dispatch.bytes.len() + size_of::<Dispatch>();
        self.left -= 1;
        self.kept.push(dispatch);
        self.taken.store(self.kept.len() as u64, Relaxed);
    }
}

/// A worker's traces.
#[derive(Default)]
pub(crate) struct TraceStore {
    pub(crate) packets: Vec<PacketTrace>,
    /// Packets still to be marked, by node.
    pub(crate) wanted: Vec<Wanted>,
    /// Number of the first packet kept. Numbers continue after a clear (and wrap), so that a packet
    /// marked before it does not match another's record.
    first: u16,
    /// Record of dispatches of traced packets, if a capture runs.
    pub(crate) dispatches: Option<Dispatches>,
}

/// Packets to mark.
pub(crate) struct Wanted {
    /// Node at which they enter the graph.
    pub(crate) node: NodeId,
    /// Number still to be marked.
    pub(crate) left: u32,
    /// Filter of the packets; `None` for all.
    pub(crate) filter: Option<Arc<ByteFilter>>,
}

/// Maximum number of packets that a worker keeps traces of.
pub const MAX_TRACES: usize = 16_384;
/// Maximum number of steps kept of one packet: a loop in the graph must not fill the memory.
const MAX_STEPS: usize = 64;
/// Steps at the end that make room for later ones.
const LAST_STEPS: usize = 4;

impl TraceStore {
    /// Returns whether to mark a packet that enters at `node`, and counts it. `bytes` are those
    /// that a filter looks at, if they begin with a link header.
    pub(crate) fn claim(&mut self, node: NodeId, bytes: Option<&[u8]>) -> bool {
        let room = self.packets.len() < MAX_TRACES;
        let Some(wanted) = self.wanted.iter_mut().find(|w| w.node == node) else { return false };
        let meant = wanted.filter.as_ref().is_none_or(|f| bytes.is_some_and(|b| f.matches(b)));
        if !room || !meant {
            return false;
        }
        wanted.left -= 1;
        self.wanted.retain(|w| w.left > 0);
        true
    }

    /// Begins the trace of a packet that begins with these bytes.
    pub(crate) fn open(&mut self, bytes: &[u8]) -> u16 {
        let head = bytes[..bytes.len().min(MAX_BYTES)].into();
        self.packets.push(PacketTrace { head, steps: Vec::new() });
        self.first.wrapping_add((self.packets.len() - 1) as u16)
    }

    /// Returns a packet's trace so far, if it was not cleared.
    pub(crate) fn get(&self, number: u16) -> Option<&PacketTrace> {
        self.packets.get(number.wrapping_sub(self.first) as usize)
    }

    /// Takes over a trace that another worker has started; `None` if there is no room.
    pub(crate) fn adopt(&mut self, trace: PacketTrace) -> Option<u16> {
        if self.packets.len() >= MAX_TRACES {
            return None;
        }
        let number = self.open(&[]);
        if let Some(fresh) = self.packets.last_mut() {
            *fresh = trace;
        }
        Some(number)
    }

    pub(crate) fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.packets.len() as u16);
        self.packets = Vec::new();
        self.wanted.clear();
    }

    pub(crate) fn add(&mut self, number: u16, step: TraceStep) {
        if let Some(p) = self.packets.get_mut(number.wrapping_sub(self.first) as usize) {
            // A packet that goes round keeps its first steps and its end.
            if p.steps.len() == MAX_STEPS {
                p.steps.remove(MAX_STEPS - LAST_STEPS);
            }
            p.steps.push(step);
        }
    }

    /// Keeps a node's turn with packet `i` of a frame, if a capture runs.
    pub(crate) fn dispatch(&mut self, number: u16, node: NodeId, frame: &Frame, i: u8) {
        let Some(dispatches) = &mut self.dispatches else { return };
        dispatches.keep(|| {
            let mut bytes = Vec::with_capacity(frame.total_len(i).min(Dispatch::MAX));
            for part in frame.segments(i) {
                let n = part.len().min(Dispatch::MAX - bytes.len());
                bytes.extend_from_slice(&part[..n]);
            }
            Dispatch {
                trace: number,
                node,
                at: clock::ticks(),
                rx: frame.rx_if(i),
                tx: frame.tx_if(i),
                aux: frame.aux().get(usize::from(i)).copied().unwrap_or(0),
                flags: frame.meta(i).flags(),
                length: frame.total_len(i) as u32,
                bytes: bytes.into(),
            }
        });
    }
}

/// Returns a placeholder for an interface's name, which only the main thread knows.
pub fn interface_token(sw_if: SwIfIndex) -> String {
    format!("\u{1}i{sw_if}\u{1}")
}

/// Returns a placeholder for a drop reason.
pub fn error_token(error: u32) -> String {
    format!("\u{1}e{error}\u{1}")
}

/// Replaces the placeholders in a trace's text.
pub fn resolve_tokens(
    text: &str,
    interface: impl Fn(u32) -> String,
    error: impl Fn(u32) -> String,
) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, part) in text.split('\u{1}').enumerate() {
        // Odd parts are between two delimiters.
        let number = || part.get(1..).and_then(|n| n.parse::<u32>().ok());
        match (i % 2, part.as_bytes().first(), number()) {
            (1, Some(b'i'), Some(n)) => out.push_str(&interface(n)),
            (1, Some(b'e'), Some(n)) => out.push_str(&error(n)),
            _ => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::BytePattern;

    #[test]
    fn tokens_become_names() {
        let text = format!("rx:{} {}", interface_token(SwIfIndex(3)), error_token(7));
        let got = resolve_tokens(&text, |i| format!("if{i}"), |e| format!("err{e}"));
        assert_eq!(got, "rx:if3 err7");
        assert_eq!(resolve_tokens("a\u{1}x\u{1}b", |_| "".into(), |_| "".into()), "axb");
    }

    #[test]
    fn numbers_are_not_reused_after_a_clear() {
        let step = |text: &str| TraceStep { node: NodeId(0), at: 0, text: text.into() };
        let mut t = TraceStore::default();
        let old = t.open(&[]);
        t.clear();
        let new = t.open(&[7; 300]);
        t.add(old, step("old"));
        t.add(new, step("new"));
        assert_eq!(t.packets.len(), 1);
        assert_eq!((t.packets[0].steps.len(), &t.packets[0].head[..]), (1, &[7; MAX_BYTES][..]));
        assert_eq!(t.packets[0].steps[0].text, "new");
    }

    #[test]
    fn claims_end() {
        let mut t = TraceStore::default();
        let filter = ByteFilter::new([BytePattern::new(&[0xff], &[7])]);
        t.wanted.push(Wanted { node: NodeId(4), left: 2, filter: None });
        t.wanted.push(Wanted { node: NodeId(5), left: 1, filter: Some(Arc::new(filter)) });
        assert!(!t.claim(NodeId(1), None));
        assert!(t.claim(NodeId(4), None) && t.claim(NodeId(4), Some(&[1])));
        assert!(!t.claim(NodeId(4), None));
        assert!(!t.claim(NodeId(5), None) && !t.claim(NodeId(5), Some(&[1])));
        assert!(t.claim(NodeId(5), Some(&[7, 1])));
        assert!(t.wanted.is_empty());
    }
}
