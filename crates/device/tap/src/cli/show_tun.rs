//! `show tun`: TUNs, and their ends in the kernel.

use crate::cli::delete_tap::tap_names;
use crate::cli::show_tap::show;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device_linux::Framing;
use thalweg_graph::Control;

/// `show tun [<interface> ...]`
pub struct ShowTun;

/// The command.
pub static COMMAND: ShowTun = ShowTun;

impl Command<Control> for ShowTun {
    fn path(&self) -> &'static str {
        "show tun"
    }

    fn usage(&self) -> &'static str {
        "[<interface> ...]"
    }

    fn help(&self) -> &'static str {
        "Show TUN interfaces and the kernel's devices at their other ends; TAPs: `show tap'"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        show(c, args, out, Framing::Ip)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        tap_names(c)
    }
}
