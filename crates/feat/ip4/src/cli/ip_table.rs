//! `ip table`: adds and deletes routing tables.

use crate::cli_args;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `ip table add|del <id>`
pub struct IpTable;

/// The command.
pub static COMMAND: IpTable = IpTable;

impl Command<Control> for IpTable {
    fn path(&self) -> &'static str {
        "ip table"
    }

    fn usage(&self) -> &'static str {
        "add|del <id>"
    }

    fn help(&self) -> &'static str {
        "Add or delete an IPv4 routing table\n\
         Table 0 always exists. A table is deleted with all its routes, but not while an\n\
         interface uses it; see `show ip table'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let del = args.choice("verb", &["add", "del"])? == "del";
        let id = cli_args::table_arg(args)?;
        args.end()?;
        let done = if del { crate::del_table(c, id) } else { crate::add_table(c, id) };
        done.map(|()| Outcome::Done).map_err(cli_args::route_failed)
    }
}
