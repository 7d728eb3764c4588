//! Types and helpers shared by the API messages.

use crate::{Clamp, Direction};
use thalweg_api::schema::Module;
use thalweg_api::{Retval, api_enum};

/// The API module.
pub static MSS_CLAMP: Module = Module { name: "mss_clamp", folder: "plugins", version: "1.0.0" };

api_enum! {
    /// Directions of packets.
    pub struct MssClampDir: u8 flags "mss_clamp_dir" {
        /// None.
        NONE = 0, "MSS_CLAMP_DIR_NONE";
        /// Received.
        RX = 1, "MSS_CLAMP_DIR_RX";
        /// Sent.
        TX = 2, "MSS_CLAMP_DIR_TX";
    }
}

impl MssClampDir {
    pub(crate) fn direction(self) -> Result<Option<Direction>, Retval> {
        match self.0 {
            0 => Ok(None),
            1 => Ok(Some(Direction::Rx)),
            2 => Ok(Some(Direction::Tx)),
            3 => Ok(Some(Direction::Both)),
            other => Err(Retval(-7).because(format_args!("no direction {other}: 0 to 3"))),
        }
    }

    pub(crate) fn of(clamp: Option<Clamp>) -> MssClampDir {
        match clamp.map(|clamp| clamp.direction) {
            None => MssClampDir::NONE,
            Some(Direction::Rx) => MssClampDir::RX,
            Some(Direction::Tx) => MssClampDir::TX,
            Some(Direction::Both) => MssClampDir(3),
        }
    }
}
