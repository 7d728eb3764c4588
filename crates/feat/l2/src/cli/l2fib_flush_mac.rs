//! `l2fib flush-mac`.

use crate::Flush;
use crate::cli_support::{bridge_arg, bridge_ids, flush};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: L2fibFlushMac = L2fibFlushMac;

/// The command's type.
pub struct L2fibFlushMac;

const SCOPES: &[&str] = &["all", "interface", "bridge-domain"];

impl Command<Control> for L2fibFlushMac {
    fn path(&self) -> &'static str {
        "l2fib flush-mac"
    }
    fn usage(&self) -> &'static str {
        "all | interface <interface> | bridge-domain <id>"
    }
    fn help(&self) -> &'static str {
        "Flush learned MAC addresses\n\
         All of them, those of a port, or those of a bridge domain. Static entries stay."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let what = match args.choice("which", SCOPES)? {
            "all" => Flush::Learned,
            "interface" => Flush::Port(interface_arg(c, args)?),
            _ => Flush::Bridge(bridge_arg(args)?),
        };
        args.end()?;
        flush(c, what, out)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => SCOPES.iter().map(ToString::to_string).collect(),
            ["interface"] => interface_names(c),
            ["bridge-domain"] => bridge_ids(c),
            _ => Vec::new(),
        }
    }
}
