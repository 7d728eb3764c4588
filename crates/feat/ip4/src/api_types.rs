//! Types and helpers shared by the API messages.

use crate::cli_support::proxy_failed;
use crate::proxy_arp::ProxyError;
use thalweg_api::schema::Module;
use thalweg_api::types::Ip4Address;
use thalweg_api::{ApiType, Retval};

/// The API module.
pub static ARP: Module = Module { name: "arp", folder: "core", version: "1.0.0" };

/// A range of addresses that the router answers for.
#[derive(Clone, Debug, Default, ApiType)]
pub struct ProxyArp {
    /// Table id.
    pub table_id: u32,
    /// First address.
    pub low: Ip4Address,
    /// Last address.
    pub hi: Ip4Address,
}

impl From<ProxyError> for Retval {
    fn from(error: ProxyError) -> Self {
        let error = proxy_failed(error);
        Retval(error.code()).because(error)
    }
}
