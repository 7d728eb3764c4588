//! Helpers shared by the packet generator's API messages.

use crate::message_types::PgInterfaceMode;
use crate::{Mode, PgError, create_port};
use thalweg_api::Retval;
use thalweg_api::types::InterfaceIndex;
use thalweg_graph::Control;

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
