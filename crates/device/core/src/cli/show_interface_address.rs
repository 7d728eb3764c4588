//! `show interface address`: addresses and layer 2 membership of interfaces.

use crate::command_line::{interface_arg, interface_names, sorted};
use crate::report;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show interface address`
pub struct ShowInterfaceAddress;

/// The command.
pub static COMMAND: ShowInterfaceAddress = ShowInterfaceAddress;

impl Command<Control> for ShowInterfaceAddress {
    fn path(&self) -> &'static str {
        "show interface address"
    }

    fn usage(&self) -> &'static str {
        "[<interface> ...]"
    }

    fn help(&self) -> &'static str {
        "Show addresses and layer 2 membership of interfaces"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut chosen = Vec::new();
        while !args.is_empty() {
            chosen.push(interface_arg(c, args)?);
        }
        if chosen.is_empty() {
            chosen = sorted(c);
        }
        Ok(report::addresses(c, chosen, out))
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
