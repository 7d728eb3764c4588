//! What the commands have in common.

use crate::state::SFlowError;
use thalweg_cli::{Args, CliError};
use thalweg_device::Interfaces;
use thalweg_graph::Control;

/// Says what is missing if there is no argument left.
pub(crate) fn required(args: &Args<'_>, what: &str) -> Result<(), CliError> {
    if args.is_empty() {
        return Err(CliError::failed(format_args!("Please specify {what}...")));
    }
    Ok(())
}

/// What was refused, as a command's failure.
pub(crate) fn refused(error: SFlowError) -> CliError {
    let code = error.code();
    CliError::with_code(error, code)
}

/// Names of interfaces that may have sFlow.
pub(crate) fn ports(c: &Control) -> Vec<String> {
    let all = c.state::<Interfaces>();
    all.borrow().iter().filter(|v| crate::state::is_port(v)).map(|v| v.name.clone()).collect()
}
