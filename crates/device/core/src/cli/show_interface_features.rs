//! `show interface features`: features enabled on an interface, by arc.

use crate::command_line::{interface_arg, interface_names};
use crate::report;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show interface features`
pub struct ShowInterfaceFeatures;

/// The command.
pub static COMMAND: ShowInterfaceFeatures = ShowInterfaceFeatures;

impl Command<Control> for ShowInterfaceFeatures {
    fn path(&self) -> &'static str {
        "show interface features"
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        "Show the features enabled on an interface, by arc"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        Ok(report::features(c, vec![sw_if], out))
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { Vec::new() }
    }
}
