//! Types shared by the packet generator's API messages.

use crate::{Mode, PgError, create_port};
use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Retval, api_enum};
use thalweg_graph::Control;

/// The API module.
pub static PG: Module = Module { name: "pg", folder: "core", version: "2.1.0" };

api_enum! {
    /// Mode of a port.
    pub struct PgInterfaceMode: u8 = "pg_interface_mode" {
        /// Ethernet frames.
        ETHERNET = 0, "PG_API_MODE_ETHERNET";
        /// IPv4 packets.
        IP4 = 1, "PG_API_MODE_IP4";
        /// IPv6 packets.
        IP6 = 2, "PG_API_MODE_IP6";
    }
    /// Offload flags of a port. It accepts any packet, with or without them.
    pub struct PgInterfaceFlags: u32 = "pg_interface_flags" {
        /// No flag.
        NONE = 0, "PG_API_FLAG_NONE";
        /// Checksum offload.
        CSUM_OFFLOAD = 1, "PG_API_FLAG_CSUM_OFFLOAD";
        /// Segmentation offload.
        GSO = 2, "PG_API_FLAG_GSO";
        /// Coalesces segments.
        GRO_COALESCE = 4, "PG_API_FLAG_GRO_COALESCE";
    }
}

impl From<PgError> for Retval {
    fn from(error: PgError) -> Self {
        let number = match error {
            PgError::Device(e) => return e.into(),
            PgError::NoStream(_) => Retval::NO_SUCH_ENTRY,
            PgError::NoPort(_) => Retval::INVALID_SW_IF_INDEX,
            PgError::Pcap { .. } => Retval::CANNOT_CREATE_PCAP_FILE,
            PgError::NoInput { .. } => Retval::UNSUPPORTED,
            _ => Retval::INVALID_VALUE,
        };
        number.because(error)
    }
}

/// Creates a port, or finds it.
pub(crate) fn create(
    c: &mut Control,
    id: InterfaceIndex,
    mode: PgInterfaceMode,
) -> Result<InterfaceIndex, Retval> {
    let mode = match mode {
        PgInterfaceMode::ETHERNET => Mode::Ethernet,
        PgInterfaceMode::IP4 => Mode::Ip4,
        PgInterfaceMode::IP6 => Mode::Ip6,
        _ => return Err(Retval::INVALID_VALUE),
    };
    Ok(InterfaceIndex(create_port(c, id.0, mode)?.0))
}
