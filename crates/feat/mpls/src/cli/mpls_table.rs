//! `mpls table`: adds and deletes label tables.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The command's type.
pub struct MplsTable;

/// The command.
pub static COMMAND: MplsTable = MplsTable;

impl Command<Control> for MplsTable {
    fn path(&self) -> &'static str {
        "mpls table"
    }
    fn usage(&self) -> &'static str {
        "[add|del] <id> [name <name>]"
    }
    fn help(&self) -> &'static str {
        "Add or delete a label table\n\
         Interfaces use table 0, which has to be added before one of them takes MPLS."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let del = args.one_of(&["add", "del"])? == Some("del");
        let id = TableId(args.u32("table")?);
        let name = if args.exact("name") { Some(args.word("name")?) } else { None };
        args.end()?;
        match del {
            true => crate::del_table(c, id)?,
            false => crate::add_table(c, id, name)?,
        }
        Ok(Outcome::Done)
    }
}
