//! `set interface nat44`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `set interface nat44`
pub struct SetInterfaceNat44;

/// The command.
pub static COMMAND: SetInterfaceNat44 = SetInterfaceNat44;

impl Command<Control> for SetInterfaceNat44 {
    fn path(&self) -> &'static str {
        "set interface nat44"
    }

    fn usage(&self) -> &'static str {
        "{in <interface> | out <interface>} ... [output-feature] [del]"
    }

    fn help(&self) -> &'static str {
        "Set the NAT44 role of interfaces: inside or outside\n\
         Packets are translated on input; with output-feature, on output of the outside interface. An\n\
         interface may have both roles."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut parts, mut output, mut add) = (Vec::new(), false, true);
        while !args.is_empty() {
            if args.exact("in") {
                parts.push((interface_arg(c, args)?, true));
            } else if args.exact("out") {
                parts.push((interface_arg(c, args)?, false));
            } else if args.keyword("output-feature") {
                output = true;
            } else if args.exact("del") {
                add = false;
            } else {
                return Err(args.bad("word", "`in', `out', `output-feature' or `del'"));
            }
        }
        if parts.is_empty() {
            return Err(args.bad("interface", "`in' or `out' and an interface"));
        }
        for (sw_if, inside) in parts {
            state::set_interface(c, sw_if, inside, output, add).map_err(failed)?;
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before.last() {
            Some(&"in" | &"out") => interface_names(c),
            _ => ["in", "out", "output-feature", "del"].map(str::to_owned).into(),
        }
    }
}
