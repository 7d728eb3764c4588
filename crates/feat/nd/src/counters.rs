//! Neighbour discovery packets by interface, as VPP's clients read them in the statistics segment.

use thalweg_feat_neighbor::PacketCounters;

/// Names of the counters below `/net/ip6-nd`, in the order of [`Counted`].
pub const NAMES: [&str; 4] = ["rx/requests", "rx/replies", "tx/requests", "tx/replies"];

/// Counted messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Solicitations received.
    RxRequest,
    /// Advertisements received.
    RxReply,
    /// Solicitations sent.
    TxRequest,
    /// Advertisements sent.
    TxReply,
}

impl thalweg_feat_neighbor::Counted<{ NAMES.len() }> for Counted {
    fn index(self) -> usize {
        self as usize
    }
}

/// The counters of all threads.
pub type NdCounters = PacketCounters<Counted, { NAMES.len() }>;
