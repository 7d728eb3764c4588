//! `delete host-interface`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `delete host-interface name <device>`
pub struct DeleteHostInterface;

/// The command.
pub static COMMAND: DeleteHostInterface = DeleteHostInterface;

impl Command<Control> for DeleteHostInterface {
    fn path(&self) -> &'static str {
        "delete host-interface"
    }

    fn usage(&self) -> &'static str {
        "name <device>"
    }

    fn help(&self) -> &'static str {
        "Delete a host interface"
    }

    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let _ = out;
        args.choice("option", &["name"])?;
        let name = args.word("device")?;
        args.end()?;
        crate::delete(cx, name).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
}
