//! Common parts of the commands.

use crate::state::SFlowError;
use thalweg_cli::CliError;
use thalweg_device::Interfaces;
use thalweg_graph::Control;

/// Converts a refusal to a command's failure.
pub(crate) fn refused(error: SFlowError) -> CliError {
    let code = error.code();
    CliError::with_code(error, code)
}

/// Names of interfaces that may have sFlow.
pub(crate) fn ports(c: &Control) -> Vec<String> {
    let all = c.state::<Interfaces>();
    all.borrow().iter().filter(|v| crate::state::is_port(v)).map(|v| v.name.clone()).collect()
}
