//! Conversions that sFlow's API messages share.

use crate::state::{Direction, SFlowError};
use thalweg_api::Retval;

impl From<SFlowError> for Retval {
    fn from(error: SFlowError) -> Self {
        Retval(error.code()).because(error)
    }
}

impl Direction {
    /// Returns the number by which messages call it.
    pub(crate) fn number(self) -> u32 {
        match self {
            Direction::Rx => 1,
            Direction::Tx => 2,
            Direction::Both => 3,
        }
    }

    /// The direction of a number.
    pub(crate) fn from_number(number: u32) -> Result<Self, Retval> {
        let all = [Direction::Rx, Direction::Tx, Direction::Both];
        let found = all.into_iter().find(|direction| direction.number() == number);
        found.ok_or(Retval::INVALID_VALUE)
    }
}
