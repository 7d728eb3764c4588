//! `set interface ip table`.

use crate::family::version_text;
use crate::{Ip, address, cli_args};
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `set interface ip table <interface> <id>`, and the same for another version.
pub struct SetInterfaceIpTable<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: SetInterfaceIpTable<u32> = SetInterfaceIpTable(PhantomData);

impl<A: Address> Command<Control> for SetInterfaceIpTable<A> {
    fn path(&self) -> &'static str {
        version_text!(A: "set interface ", WORD, " table")
    }

    fn usage(&self) -> &'static str {
        "<interface> <id>"
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Bind an interface to another ", NAME, " routing table\n\
                     The table must exist (`", WORD, " table add'), and the interface \
                     must have no address yet.")
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
        address::set_table::<A>(c, sw_if, table).map_err(cli_args::address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => {
                let ids = c.state::<Ip<A>>().borrow().table_ids();
                ids.iter().map(TableId::to_string).collect()
            }
            _ => Vec::new(),
        }
    }
}
