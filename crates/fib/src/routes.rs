//! What protocols' route tables say of an address, for those who describe packets that were routed.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use thalweg_tables::qsbr::Guard;

/// The route tables of a protocol.
pub trait Routes: Send + Sync {
    /// Length of the longest route that holds an address, where packets that came by `rx_if` are
    /// looked up; `None` if there is none, or the address is another protocol's.
    fn prefix_len(&self, guard: &Guard<'_>, rx_if: u32, address: IpAddr) -> Option<u8>;
}

/// All protocols' route tables.
#[derive(Default)]
pub struct RouteBook(Mutex<Vec<Arc<dyn Routes>>>);

impl RouteBook {
    /// Enters a protocol's tables.
    pub fn add(&self, routes: Arc<dyn Routes>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(routes);
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Routes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
