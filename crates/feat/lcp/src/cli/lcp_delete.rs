//! `lcp delete`.

use crate::pairs;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;

/// `lcp delete <interface>`
pub struct LcpDelete;

/// The command.
pub static COMMAND: LcpDelete = LcpDelete;

impl Command<Control> for LcpDelete {
    fn path(&self) -> &'static str {
        "lcp delete"
    }

    fn usage(&self) -> &'static str {
        "<interface>|sw_if_index <n>"
    }

    fn help(&self) -> &'static str {
        "Delete the twin of an interface, and those of its sub-interfaces"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.exact("sw_if_index");
        let phy = interface_arg(c, args)?;
        args.end()?;
        crate::delete(c, phy).map_err(Refused::from)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _: &[&str], _: &str) -> Vec<String> {
        pairs::all(c).into_iter().map(|pair| pair.phy).collect()
    }
}
