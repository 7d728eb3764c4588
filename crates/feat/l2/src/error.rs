//! Errors of layer 2 configuration.

use crate::arp_term::MAX_ARP_ENTRIES;
use std::net::IpAddr;
use thalweg_api::Retval;
use thalweg_device::DeviceError;
use thalweg_tables::mac::MacError;

/// Largest bridge domain id.
pub const MAX_BRIDGE_ID: u32 = (1 << 24) - 1;

/// Reason why a layer 2 request failed.
#[derive(Debug, thiserror::Error)]
pub enum L2Error {
    /// The interface does not exist or does not support the request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The bridge domain does not exist.
    #[error("there is no bridge domain {0}: `create bridge-domain {0}' makes it")]
    NoBridge(u32),
    /// The bridge domain id is in use.
    #[error("bridge domain {0} already exists")]
    Exists(u32),
    /// The id is out of range.
    #[error("a bridge domain's id is between 1 and {MAX_BRIDGE_ID}, not {0}")]
    Id(u32),
    /// The bridge domain has ports.
    #[error("bridge domain {0} has interfaces: remove them with `set interface l3' first")]
    InUse(u32),
    /// The limit of bridge domains is reached.
    #[error("no room for another bridge domain: the limit is {0}")]
    Full(u16),
    /// The interface is not a port of the bridge domain.
    #[error("`{name}' is not in bridge domain {id}")]
    NotAPort {
        /// Name of the interface.
        name: String,
        /// Bridge domain id.
        id: u32,
    },
    /// The interface is no port of a bridge domain.
    #[error("`{0}' is in no bridge domain: `set interface l2 bridge' adds it to one")]
    Unbridged(String),
    /// The MAC address is not unicast.
    #[error("a unicast MAC address expected, not a multicast or zero address")]
    NotUnicast,
    /// A document cannot express the tag.
    #[error("a tag has up to 63 bytes, without quotes and control characters")]
    Tag,
    /// The address is not in the table.
    #[error("bridge domain {id} has no entry for {mac}")]
    NoAddress {
        /// Bridge domain id.
        id: u32,
        /// MAC address.
        mac: String,
    },
    /// The address is not one of a host.
    #[error("the address of a host expected, not {0}")]
    NotAHost(IpAddr),
    /// The bridge domain does not answer for the address with that MAC address.
    #[error("bridge domain {id} does not answer for {ip} with {mac}")]
    NoArpEntry {
        /// Bridge domain id.
        id: u32,
        /// Address.
        ip: IpAddr,
        /// MAC address.
        mac: String,
    },
    /// The limit of addresses to answer for is reached.
    #[error("no room for another address to answer for: the limit is {MAX_ARP_ENTRIES}")]
    ArpFull,
    /// The bridge domain has a BVI.
    #[error("bridge domain {id} has a BVI already: `{name}'")]
    HasBvi {
        /// Bridge domain id.
        id: u32,
        /// Name of the BVI.
        name: String,
    },
    /// Only loopbacks can be a BVI.
    #[error("a BVI is a loopback (`create loopback interface'), not `{0}'")]
    NotALoopback(String),
    /// The address is the BVI's.
    #[error("{0} is the BVI's own address: `set interface mac address' changes it")]
    OfBvi(String),
    /// The MAC address table failed.
    #[error(transparent)]
    Mac(#[from] MacError),
    /// The option is not supported.
    #[error("{0} is not supported yet")]
    NotYet(&'static str),
}

impl From<L2Error> for Retval {
    fn from(e: L2Error) -> Retval {
        match e {
            L2Error::Device(e) => e.into(),
            L2Error::NoBridge(_) | L2Error::NoAddress { .. } => Retval::NO_SUCH_ENTRY,
            L2Error::NotAPort { .. } | L2Error::Unbridged(_) => Retval::INVALID_SW_IF_INDEX,
            L2Error::Exists(_) => Retval::BD_ALREADY_EXISTS,
            L2Error::Id(_) => Retval::BD_ID_EXCEED_MAX,
            L2Error::InUse(_) => Retval::BD_IN_USE,
            L2Error::NoArpEntry { .. } => Retval::UNSPECIFIED,
            L2Error::Full(_) | L2Error::Mac(_) | L2Error::ArpFull => Retval::TABLE_TOO_BIG,
            L2Error::NotUnicast | L2Error::NotAHost(_) | L2Error::Tag | L2Error::OfBvi(_) => {
                Retval::INVALID_VALUE
            }
            L2Error::HasBvi { .. } => Retval::BD_ALREADY_HAS_BVI,
            L2Error::NotALoopback(_) => Retval::INVALID_INTERFACE,
            L2Error::NotYet(_) => Retval::UNSUPPORTED,
        }
    }
}
