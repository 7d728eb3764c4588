//! `set interface tag`: tags an interface, for the program that manages it.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface tag`
pub struct SetInterfaceTag;

/// The command.
pub static COMMAND: SetInterfaceTag = SetInterfaceTag;

impl Command<Control> for SetInterfaceTag {
    fn path(&self) -> &'static str {
        "set interface tag"
    }

    fn usage(&self) -> &'static str {
        "<interface> <tag>"
    }

    fn help(&self) -> &'static str {
        "Tag an interface\n\
         Programs such as vppcfg tag the interfaces they manage. `clear interface tag' removes the tag."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let tag = args.word("tag")?;
        args.end()?;
        interface::set_tag(c, sw_if, tag).map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "tag": tag }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { Vec::new() }
    }
}
