//! `delete tap`.

use crate::device::{self, DEV_TYPE};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface;
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `delete tap <interface>`
pub struct DeleteTap;

/// The command.
pub static COMMAND: DeleteTap = DeleteTap;

impl Command<Control> for DeleteTap {
    fn path(&self) -> &'static str {
        "delete tap"
    }

    fn usage(&self) -> &'static str {
        "<interface>|sw_if_index <n>"
    }

    fn help(&self) -> &'static str {
        "Delete a TAP or TUN interface, and the kernel's device unless it is persistent"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.exact("sw_if_index");
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        let name = c.interface_name(sw_if);
        device::delete(c, sw_if).map_err(CliError::failed)?;
        out.json(serde_json::json!({ "deleted": name }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        tap_names(c)
    }
}

pub(crate) fn tap_names(c: &Control) -> Vec<String> {
    let is_tap = |name: &String| {
        let view = interface::find(c, name).and_then(|sw_if| interface::view(c, sw_if));
        view.is_ok_and(|v| v.dev_type == DEV_TYPE)
    };
    interface_names(c).into_iter().filter(is_tap).collect()
}
