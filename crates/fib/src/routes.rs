//! Lookups in the protocols' route tables, for descriptions of routed packets.

use crate::Dpo;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use thalweg_device::SwIfIndex;
use thalweg_tables::qsbr::Guard;

/// A label table's action on the outermost label of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelStep {
    /// The label is swapped for this one.
    Swapped(u32),
    /// The label of the adjacency that the packet takes takes its place, or it is popped.
    ByMember,
    /// The label is popped.
    Popped,
    /// The label is popped, and the next one looked up in the table with this id.
    LookedUp(u32),
}

/// The route tables of a protocol.
pub trait Routes: Send + Sync {
    /// Returns the length of the longest route that contains an address, in the table for packets
    /// received on `rx_if`; `None` if there is none, or the address is another protocol's.
    fn prefix_len(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> Option<u8>;

    /// Returns the table for packets received on `rx_if`; `None` if the protocol does not say.
    fn table(&self, _guard: &Guard<'_>, _rx_if: SwIfIndex) -> Option<u32> {
        None
    }

    /// Returns what the label table with an id does with the label of a stack entry; `None` if
    /// nobody has bound it, or the protocol has no labels.
    fn label(&self, _guard: &Guard<'_>, _table: u32, _entry: u32) -> Option<LabelStep> {
        None
    }

    /// Returns the interface of the tunnel by one of whose paths packets leave that meet an
    /// adjacency.
    fn tunnel(&self, _entry: Dpo) -> Option<SwIfIndex> {
        None
    }

    /// Returns whether a configured route delivers an address to the router itself, which is not
    /// the address of an interface.
    fn is_local(&self, _guard: &Guard<'_>, _rx_if: SwIfIndex, _address: IpAddr) -> bool {
        false
    }
}

/// The route tables of all protocols.
#[derive(Default)]
pub struct RouteBook(Mutex<Vec<Arc<dyn Routes>>>);

impl RouteBook {
    /// Adds a protocol's tables.
    pub fn add(&self, routes: Arc<dyn Routes>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(routes);
    }

    /// Returns all of them.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Routes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
