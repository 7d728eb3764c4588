//! `delete sub-interface`: deletes an interface for a VLAN.

use crate::command_line::{interface_arg, refused};
use crate::interface::{self, Interfaces};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `delete sub-interface`
pub struct DeleteSubInterface;

/// The command.
pub static COMMAND: DeleteSubInterface = DeleteSubInterface;

impl Command<Control> for DeleteSubInterface {
    fn path(&self) -> &'static str {
        "delete sub-interface"
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        "Delete a sub-interface"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let v = interface::view(c, sw_if).map_err(refused)?;
        if v.sub.is_none() {
            let right = format!("a sub-interface; this is a {} interface", v.dev_type);
            return Err(args.bad_last("interface", right));
        }
        args.end()?;
        interface::delete(c, sw_if).map_err(refused)?;
        out.json(serde_json::json!({ "deleted": v.name }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if !before.is_empty() {
            return Vec::new();
        }
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        all.iter().filter(|v| v.sub.is_some()).map(|v| v.name.clone()).collect()
    }
}
