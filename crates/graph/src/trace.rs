//! Packet traces: what each node did with a marked packet.

use crate::decl::NodeId;
use crate::filter::ByteFilter;
use std::sync::Arc;
use thalweg_buffer::SwIfIndex;

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
    /// Steps in order.
    pub steps: Vec<TraceStep>,
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
}

/// Packets to mark.
pub(crate) struct Wanted {
    /// Node at which they enter the graph.
    pub(crate) node: NodeId,
    /// Number still to be marked.
    pub(crate) left: u32,
    /// Which of them; `None` for all.
    pub(crate) filter: Option<Arc<ByteFilter>>,
}

/// Maximum number of packets that a worker keeps traces of.
pub const MAX_TRACES: usize = 16_384;
/// Maximum number of steps kept of one packet: a loop in the graph must not fill the memory.
const MAX_STEPS: usize = 64;

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

    pub(crate) fn open(&mut self) -> u16 {
        self.packets.push(PacketTrace::default());
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
        let number = self.open();
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
        if let Some(p) = self.packets.get_mut(number.wrapping_sub(self.first) as usize)
            && p.steps.len() < MAX_STEPS
        {
            p.steps.push(step);
        }
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
        let old = t.open();
        t.clear();
        let new = t.open();
        t.add(old, step("old"));
        t.add(new, step("new"));
        assert_eq!(t.packets.len(), 1);
        assert_eq!(t.packets[0].steps.len(), 1);
        assert_eq!(t.packets[0].steps[0].text, "new");
    }

    #[test]
    fn claims_end() {
        let mut t = TraceStore::default();
        let filter = ByteFilter(vec![BytePattern::new(&[0xff], &[7])]);
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
