//! Common parts of messages about punted packets. Packets for the router itself go to its own
//! nodes; there is no way out of it to another program yet.

use crate::api::message_types::Punt;
use thalweg_api::Retval;

impl Punt {
    /// Returns the reason why nothing is done.
    pub(super) fn refuse(&self, what: &str) -> Retval {
        match self.r#type.known() {
            // VPP answers so for what it cannot do.
            true => Retval::UNSPECIFIED.because(what),
            false => Retval::INVALID_VALUE,
        }
    }
}
