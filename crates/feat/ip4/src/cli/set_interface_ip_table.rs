//! `set interface ip table`.

use crate::{Ip4, address, cli_args};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `set interface ip table <interface> <id>`
pub struct SetInterfaceIpTable;

/// The command.
pub static COMMAND: SetInterfaceIpTable = SetInterfaceIpTable;

impl Command<Control> for SetInterfaceIpTable {
    fn path(&self) -> &'static str {
        "set interface ip table"
    }

    fn usage(&self) -> &'static str {
        "<interface> <id>"
    }

    fn help(&self) -> &'static str {
        "Bind an interface to another IPv4 routing table\n\
         The table must exist (`ip table add'), and the interface must have no address yet."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let table = cli_args::table_arg(args)?;
        args.end()?;
        address::set_table(c, sw_if, table).map_err(cli_args::address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => {
                let ids = c.state::<Ip4>().borrow().table_ids();
                ids.iter().map(u32::to_string).collect()
            }
            _ => Vec::new(),
        }
    }
}
