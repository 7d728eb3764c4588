//! Operations of a longest-prefix match that route tables of any family need for the packet path.

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

    /// Returns the number of prefixes by length, from 0 to the address's number of bits.
    fn lengths(&self) -> Vec<usize>;

    /// Makes what workers no longer read available again. To be called now and then.
    fn reclaim(&mut self, domain: &Domain);
}

impl<A: Address, L: Lpm<A> + ?Sized> Lpm<A> for Box<L> {
    fn set(&mut self, prefix: Prefix<A>, leaf: Leaf, domain: &Domain) -> Result<(), LpmError> {
        (**self).set(prefix, leaf, domain)
    }

    fn unset(&mut self, prefix: Prefix<A>) {
        (**self).unset(prefix);
    }

    fn memory(&self) -> usize {
        (**self).memory()
    }

    fn lengths(&self) -> Vec<usize> {
        (**self).lengths()
    }

    fn reclaim(&mut self, domain: &Domain) {
        (**self).reclaim(domain);
    }
}
