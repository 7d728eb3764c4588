//! Reason why a neighbour cannot be configured.

use crate::Version;
use crate::table::MAX_LIMIT;
use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_fib::FibError;

/// Reason why a neighbour cannot be configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NeighborError {
    /// No feature resolves addresses of the family.
    #[error("no resolver is registered for {0} neighbours")]
    NoResolver(Version),
    /// The interface does not exist.
    #[error("no interface with index {0}")]
    NoInterface(SwIfIndex),
    /// The interface is not Ethernet.
    #[error("interface `{0}` is not an Ethernet interface: it has no neighbours")]
    NotEthernet(String),
    /// The limit is below the number of static neighbours.
    #[error(
        "{what} {limit} is too low: {statics} static neighbours are configured; delete some first"
    )]
    Statics {
        /// The limit's name.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// Number of static neighbours.
        statics: usize,
    },
    /// The MAC address is not unicast.
    #[error("{0} is not a unicast MAC address")]
    Mac(String),
    /// No neighbour can have this address.
    #[error("{ip} cannot be a neighbour: {why}")]
    Address {
        /// IP address.
        ip: IpAddr,
        /// Reason.
        why: &'static str,
    },
    /// The neighbour does not exist.
    #[error("no neighbour {ip} on `{interface}`; `show ip neighbors` lists them")]
    Unknown {
        /// IP address.
        ip: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The family has as many neighbours as it may have.
    #[error(
        "the neighbour table is full: the limit is {limit} entries; \
         raise it by `set ip neighbor-config {} limit`",
        family.protocol()
    )]
    Full {
        /// Version.
        family: Version,
        /// The limit.
        limit: usize,
    },
    /// The interface has as many neighbours as it may have.
    #[error(
        "`{interface}` has {limit} {family} neighbours, which is the limit; \
         raise it by `set ip neighbor-config {} interface-limit`",
        family.protocol()
    )]
    InterfaceFull {
        /// Name of the interface.
        interface: String,
        /// Version.
        family: Version,
        /// The limit.
        limit: usize,
    },
    /// All families together have as many neighbours as the router can have.
    #[error("the neighbour table is full: it holds {MAX_LIMIT} entries of all families")]
    AllFull,
    /// A setting is out of range.
    #[error("{what} must be between {min} and {max}, not {found}")]
    Range {
        /// Name of the setting.
        what: &'static str,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// Value given.
        found: u64,
    },
    /// No adjacency could be created.
    #[error(transparent)]
    Fib(#[from] FibError),
}
