//! `set interface l2 bridge`.

use crate::Role;
use crate::cli_support::{bridge_arg, bridge_ids, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetInterfaceL2Bridge = SetInterfaceL2Bridge;

/// The command's type.
pub struct SetInterfaceL2Bridge;

impl Command<Control> for SetInterfaceL2Bridge {
    fn path(&self) -> &'static str {
        "set interface l2 bridge"
    }
    fn usage(&self) -> &'static str {
        "<interface> <id> [bvi|uu-fwd] [<split horizon group>]"
    }
    fn help(&self) -> &'static str {
        "Add an interface to a bridge domain\n\
         The bridge domain is created if needed. Ports of one split horizon group do not reach each\n\
         other, except in group 0. `set interface l3 <interface>' removes a port. `bvi' is the router's\n\
         own port, a loopback: with an address it routes for the hosts of the bridge domain. `uu-fwd'\n\
         gets unknown unicast frames in place of all others."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let id = bridge_arg(args)?;
        let role = match args.one_of(&["bvi", "uu-fwd"])? {
            Some("bvi") => Role::Bvi,
            Some(_) => Role::UnknownForward,
            None => Role::Member,
        };
        let group = if args.is_empty() { 0 } else { args.u8("split horizon group")? };
        args.end()?;
        crate::join_bridge(c, sw_if, id, role, group).map_err(failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => bridge_ids(c),
            [_, _] => ["bvi", "uu-fwd"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}
