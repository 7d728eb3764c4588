//! What messages about punted packets have in common. Packets for the router itself go to its own
//! nodes; there is no way out of it to another program yet.

use super::messages::acl_dump::IpProto;
use thalweg_api::schema::Module;
use thalweg_api::types::AddressFamily;
use thalweg_api::{ApiType, Retval, api_enum, api_union};

/// The module.
pub static PUNT: Module = Module { name: "punt", folder: "core", version: "2.2.1" };

api_enum! {
    /// Which packets.
    pub struct PuntType: u32 = "punt_type" {
        /// By protocol and port.
        L4 = 0, "PUNT_API_TYPE_L4";
        /// By protocol.
        IP_PROTO = 1, "PUNT_API_TYPE_IP_PROTO";
        /// By the reason why the router has no use for them.
        EXCEPTION = 2, "PUNT_API_TYPE_EXCEPTION";
    }
}

api_union! {
    /// Which packets, in detail.
    pub struct PuntUnion(4) = "punt_union" {
        exception: PuntException, case "PUNT_API_TYPE_EXCEPTION";
        l4: PuntL4, case "PUNT_API_TYPE_L4";
        ip_proto: PuntIpProto, case "PUNT_API_TYPE_IP_PROTO";
    }
}

/// By protocol and port.
#[derive(Clone, Copy, Debug, ApiType)]
pub struct PuntL4 {
    /// IPv4 or IPv6.
    pub af: AddressFamily,
    /// UDP or TCP.
    pub protocol: IpProto,
    /// The destination's port.
    pub port: u16,
}

/// By protocol.
#[derive(Clone, Copy, Debug, ApiType)]
pub struct PuntIpProto {
    /// IPv4 or IPv6.
    pub af: AddressFamily,
    /// The protocol.
    pub protocol: IpProto,
}

/// By reason.
#[derive(Clone, Copy, Debug, ApiType)]
pub struct PuntException {
    /// The reason's number.
    pub id: u32,
}

/// Which packets.
#[derive(Clone, Copy, Debug, ApiType)]
pub struct Punt {
    /// By what.
    pub r#type: PuntType,
    /// In detail.
    #[api(discriminator = "type")]
    pub punt: PuntUnion,
}

/// A reason.
#[derive(Clone, Debug, ApiType)]
pub struct PuntReason {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
}

impl Punt {
    /// Why nothing is done.
    pub(super) fn refuse(&self, what: &str) -> Retval {
        match self.r#type.known() {
            // As VPP answers for what it cannot do.
            true => Retval::UNSPECIFIED.because(what),
            false => Retval::INVALID_VALUE,
        }
    }
}
