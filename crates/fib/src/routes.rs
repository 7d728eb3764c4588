//! Lookups in the protocols' route tables, for descriptions of routed packets.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use thalweg_device::SwIfIndex;
use thalweg_tables::qsbr::Guard;

/// The route tables of a protocol.
pub trait Routes: Send + Sync {
    /// Returns the length of the longest route that contains an address, in the table for packets
    /// received on `rx_if`; `None` if there is none, or the address is another protocol's.
    fn prefix_len(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> Option<u8>;

    /// Returns the table for packets received on `rx_if`; `None` if the protocol does not say.
    fn table(&self, _guard: &Guard<'_>, _rx_if: SwIfIndex) -> Option<u32> {
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
