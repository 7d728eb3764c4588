//! `delete loopback interface`: deletes a loopback or a sink.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `delete loopback interface`
pub struct DeleteLoopbackInterface;

/// The command.
pub static COMMAND: DeleteLoopbackInterface = DeleteLoopbackInterface;

impl Command<Control> for DeleteLoopbackInterface {
    fn path(&self) -> &'static str {
        "delete loopback interface"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["loopback delete-interface"]
    }

    fn usage(&self) -> &'static str {
        "intfc <interface>"
    }

    fn help(&self) -> &'static str {
        "Delete a loopback interface (or a sink)"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        if !args.keyword("intfc") {
            return Err(args.bad("option", "`intfc' and an interface"));
        }
        let sw_if = interface_arg(c, args)?;
        let v = interface::view(c, sw_if).map_err(refused)?;
        if !matches!(v.dev_type, "Loopback" | "sink") {
            return Err(args
                .bad_last("interface", format!("a loopback; this is a {} interface", v.dev_type)));
        }
        args.end()?;
        interface::delete(c, sw_if).map_err(refused)?;
        out.json(serde_json::json!({ "deleted": v.name }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["intfc".into()],
            _ => interface_names(c).into_iter().filter(|n| n.starts_with("loop")).collect(),
        }
    }
}
