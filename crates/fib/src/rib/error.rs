//! Reason why a route is refused.

use crate::FibError;
use std::net::IpAddr;
use thalweg_device::DeviceError;
use thalweg_tables::LpmError;
use thalweg_wire::mpls::Label;

/// Reason why a route is refused, or a path of it leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum RibError {
    /// The next hop is not reachable.
    #[error(
        "next hop {0} is not reachable: no connected subnet and no route covers it; name its \
         interface, or add the address first"
    )]
    Unreachable(IpAddr),
    /// The route of the next hop leads nowhere.
    #[error("next hop {0} is not reachable: the route that covers it leads nowhere itself")]
    Nowhere(IpAddr),
    /// Nothing leads to the next hop in another table.
    #[error("next hop {0} is not reachable in table {1}")]
    NowhereIn(IpAddr, u32),
    /// Recursion loop.
    #[error("next hop {0} resolves through itself (recursion loop)")]
    Loop(IpAddr),
    /// The next hop is one of the router's own addresses.
    #[error("next hop {0} is this router's own address")]
    Own(IpAddr),
    /// The next hop is of another family, and can be anywhere.
    #[error("next hop {0} is not of the route's family; name its interface")]
    Family(IpAddr),
    /// The next hop is an address of one link.
    #[error("next hop {0} is link-local; name its interface")]
    LinkLocal(IpAddr),
    /// The label that is followed has no paths that lead on.
    #[error(
        "label {0} leads nowhere: `show mpls fib {0}' shows its paths where it is no bottom \
         (`non-eos')"
    )]
    Label(Label),
    /// The group does not exist.
    #[error("no next-hop group {0}")]
    NoGroup(u32),
    /// The other table does not follow the next hop.
    #[error("next hop {0} is not followed in table {1}")]
    NotTracked(IpAddr, u32),
    /// The path has too many labels with those of the route that leads there.
    #[error("more than {} MPLS labels in all", super::MAX_LABELS)]
    Labels,
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No forwarding object could be created.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The table is full.
    #[error(transparent)]
    Lpm(#[from] LpmError),
}

impl RibError {
    /// Returns whether other routes or addresses decide this: a path that fails for such a reason
    /// is kept, and leads somewhere once these have changed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            RibError::Unreachable(_)
            | RibError::Nowhere(_)
            | RibError::NowhereIn(..)
            | RibError::Loop(_)
            | RibError::Own(_)
            | RibError::Label(_)
            | RibError::Labels
            | RibError::Fib(FibError::Depth | FibError::Loop) => true,
            RibError::Family(_)
            | RibError::LinkLocal(_)
            | RibError::NoGroup(_)
            | RibError::NotTracked(..)
            | RibError::Device(_)
            | RibError::Fib(_)
            | RibError::Lpm(_) => false,
        }
    }
}
