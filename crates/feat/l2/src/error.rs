//! What can be wrong with a request.

use thalweg_api::Retval;
use thalweg_device::DeviceError;
use thalweg_tables::mac::MacError;

/// Greatest id of a bridge domain.
pub const MAX_BRIDGE_ID: u32 = (1 << 24) - 1;

/// Why layer 2 cannot be configured so.
#[derive(Debug, thiserror::Error)]
pub enum L2Error {
    /// The interface, or what was asked of it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no such bridge domain.
    #[error("there is no bridge domain {0}: `create bridge-domain {0}' makes it")]
    NoBridge(u32),
    /// There is one of that id.
    #[error("bridge domain {0} exists already")]
    Exists(u32),
    /// Ids have a range.
    #[error("a bridge domain's id is between 1 and {MAX_BRIDGE_ID}, not {0}")]
    Id(u32),
    /// Its ports have to go first.
    #[error("bridge domain {0} has interfaces: take them out by `set interface l3' first")]
    InUse(u32),
    /// There are as many as can be.
    #[error("no room for another bridge domain: {0} is the limit")]
    Full(u16),
    /// The interface is not one of its ports.
    #[error("`{name}' is not in bridge domain {id}")]
    NotAPort {
        /// The interface.
        name: String,
        /// The bridge domain.
        id: u32,
    },
    /// A port needs a station's address.
    #[error("a station's MAC address expected: neither a group's nor zero")]
    NotUnicast,
    /// The address is not in the table.
    #[error("bridge domain {id} does not know {mac}")]
    NoAddress {
        /// The bridge domain.
        id: u32,
        /// The address.
        mac: String,
    },
    /// The table of addresses.
    #[error(transparent)]
    Mac(#[from] MacError),
    /// Not there yet.
    #[error("{0} is not supported yet")]
    NotYet(&'static str),
}

impl From<L2Error> for Retval {
    fn from(e: L2Error) -> Retval {
        match e {
            L2Error::Device(e) => e.into(),
            L2Error::NoBridge(_) | L2Error::NotAPort { .. } | L2Error::NoAddress { .. } => {
                Retval::NO_SUCH_ENTRY
            }
            L2Error::Exists(_) => Retval::BD_ALREADY_EXISTS,
            L2Error::Id(_) => Retval::BD_ID_EXCEED_MAX,
            L2Error::InUse(_) => Retval::BD_IN_USE,
            L2Error::Full(_) | L2Error::Mac(_) => Retval::TABLE_TOO_BIG,
            L2Error::NotUnicast => Retval::INVALID_VALUE,
            L2Error::NotYet(_) => Retval::UNSUPPORTED,
        }
    }
}
