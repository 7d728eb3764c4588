//! Helpers shared by the API messages.

use crate::message_types::MssClampDir;
use crate::{Clamp, Direction};
use thalweg_api::Retval;

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
