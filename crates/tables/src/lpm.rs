//! What route tables of any family need of a longest-prefix match for the packet path.

use crate::lpm4::{Leaf, LpmError};
use crate::prefix::{Address, Prefix};
use crate::qsbr::Domain;

/// The owner's half of a table in which workers look addresses up.
pub trait Lpm<A: Address> {
    /// Adds a prefix, or replaces its leaf.
    ///
    /// # Errors
    ///
    /// [`LpmError`]; nothing has changed then. Replacing never fails.
    fn set(&mut self, prefix: Prefix<A>, leaf: Leaf, domain: &Domain) -> Result<(), LpmError>;

    /// Removes a prefix, if it is there.
    fn unset(&mut self, prefix: Prefix<A>);

    /// Returns the bytes in use.
    fn memory(&self) -> usize;
}
