//! What layer 2's commands share.

use crate::{L2, L2Error, MAX_BRIDGE_ID};
use thalweg_cli::{Args, CliError};
use thalweg_graph::Control;

/// The id of a bridge domain, which need not be there.
pub(crate) fn bridge_arg(args: &mut Args<'_>) -> Result<u32, CliError> {
    args.number("bridge domain", 1, MAX_BRIDGE_ID.into()).map(|id| id as u32)
}

/// The ids of the bridge domains that there are.
pub(crate) fn bridge_ids(c: &Control) -> Vec<String> {
    c.state::<L2>().borrow().bridges().list().map(|(id, _)| id.to_string()).collect()
}

pub(crate) fn failed(e: L2Error) -> CliError {
    CliError::failed(e)
}

/// `on` or `off`.
pub(crate) fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
