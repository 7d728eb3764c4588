//! `show interface secondary-mac-address`: MAC addresses that are an interface's own, besides the
//! first.

use crate::command_line::{interface_arg, interface_names, sorted};
use crate::interface;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show interface secondary-mac-address`
pub struct ShowInterfaceSecondaryMacAddress;

/// The command.
pub static COMMAND: ShowInterfaceSecondaryMacAddress = ShowInterfaceSecondaryMacAddress;

impl Command<Control> for ShowInterfaceSecondaryMacAddress {
    fn path(&self) -> &'static str {
        "show interface secondary-mac-address"
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show the secondary MAC addresses of interfaces; sub-interfaces have their parent's"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let chosen = match args.is_empty() {
            true => sorted(c),
            false => vec![interface_arg(c, args)?],
        };
        args.end()?;
        let mut list = Vec::new();
        for sw_if in chosen {
            let (Ok(v), Ok(macs)) =
                (interface::view(c, sw_if), interface::secondary_macs(c, sw_if))
            else {
                continue;
            };
            let state = if v.admin_up { "up" } else { "down" };
            out.line(format_args!("{} ({state}):", v.name));
            let macs: Vec<String> = macs.iter().map(ToString::to_string).collect();
            macs.iter().for_each(|mac| out.line(format_args!("  {mac}")));
            list.push(json!({ "interface": v.name, "index": sw_if.get(), "macs": macs }));
        }
        out.json(list.into());
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { Vec::new() }
    }
}
