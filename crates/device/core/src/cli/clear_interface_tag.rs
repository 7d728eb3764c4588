//! `clear interface tag`: removes an interface's tag.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `clear interface tag`
pub struct ClearInterfaceTag;

/// The command.
pub static COMMAND: ClearInterfaceTag = ClearInterfaceTag;

impl Command<Control> for ClearInterfaceTag {
    fn path(&self) -> &'static str {
        "clear interface tag"
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        "Remove the tag of an interface"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        interface::set_tag(c, sw_if, "").map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "tag": "" }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { Vec::new() }
    }
}
