//! CLI arguments shared by this crate's commands.

use thalweg_cli::{Args, CliError};
use thalweg_device::{Interfaces, SwIfIndex, interface};
use thalweg_graph::Control;

/// Takes an interface's name.
pub(crate) fn interface(c: &Control, args: &mut Args<'_>) -> Result<SwIfIndex, CliError> {
    args.with("interface", "the name of an interface; `show interface` lists them", |name| {
        interface::find(c, name).ok()
    })
}

/// Names of all Ethernet interfaces, for completion.
pub(crate) fn interfaces(c: &Control) -> Vec<String> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    all.iter().filter(|i| i.ethernet).map(|i| i.name.clone()).collect()
}
