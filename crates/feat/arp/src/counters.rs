//! ARP packets by interface, as VPP's clients read them in the statistics segment.

use thalweg_feat_neighbor::PacketCounters;

/// Names of the counters below `/net/arp`, in the order of [`Counted`].
pub const NAMES: [&str; 6] =
    ["rx/requests", "rx/replies", "rx/gratuitous", "tx/requests", "tx/replies", "tx/gratuitous"];

/// Counted events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Requests received.
    RxRequest,
    /// Replies received.
    RxReply,
    /// Packets received that announce their sender.
    RxGratuitous,
    /// Requests sent.
    TxRequest,
    /// Replies sent.
    TxReply,
    /// Packets sent that announce our addresses.
    TxGratuitous,
}

impl thalweg_feat_neighbor::Counted<{ NAMES.len() }> for Counted {
    fn index(self) -> usize {
        self as usize
    }
}

/// The counters of all threads.
pub type ArpCounters = PacketCounters<Counted, { NAMES.len() }>;
