//! `bvi delete`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{command_line::refused, interface_arg, interface_names, loopback};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: BviDelete = BviDelete;

/// The command's type.
pub struct BviDelete;

impl Command<Control> for BviDelete {
    fn path(&self) -> &'static str {
        "bvi delete"
    }
    fn usage(&self) -> &'static str {
        "<interface>"
    }
    fn help(&self) -> &'static str {
        "Delete an interface that `bvi create' has made"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        let name = c.interface_name(sw_if);
        loopback::delete_bvi(c, sw_if).map_err(refused)?;
        out.json(serde_json::json!({ "deleted": name }));
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let all = if before.is_empty() { interface_names(c) } else { Vec::new() };
        all.into_iter().filter(|name| name.starts_with("bvi")).collect()
    }
}
