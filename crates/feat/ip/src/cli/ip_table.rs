//! `ip table`: adds and deletes routing tables.

use crate::cli_args;
use crate::family::version_text;
use crate::table::set_unreachables;
use crate::{Ip, add_table, del_table};
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `ip table add|del <id>`, and the same for another version.
pub struct IpTable<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: IpTable<u32> = IpTable(PhantomData);

impl<A: Address> Command<Control> for IpTable<A> {
    fn path(&self) -> &'static str {
        version_text!(A: WORD, " table")
    }

    fn usage(&self) -> &'static str {
        "add <id> [name <name>] | del <id> | unreachables <id> on|off"
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Add, name or delete an ", NAME, " routing table\n\
                     Table 0 always exists. A table is deleted with all its routes, but not while \
                     an\ninterface uses it; see `show ", WORD, " table'. Packets without a route are \
                     dropped;\n`unreachables <id> on' answers them by ICMP errors, as RFC 1812 says.")
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verb = args.choice("verb", &["add", "del", "unreachables"])?;
        let (del, id) = (verb == "del", cli_args::table_arg(args)?);
        if verb == "unreachables" {
            let on = args.choice("switch", &["on", "off"])? == "on";
            args.end()?;
            set_unreachables::<A>(c, id, on).map_err(cli_args::route_failed)?;
            return Ok(Outcome::Done);
        }
        let name = if !del && args.keyword("name") { Some(args.word("name")?) } else { None };
        if let Some(expected) = name.and_then(|name| crate::check_table_name(name).err()) {
            return Err(args.bad_last("name", expected));
        }
        args.end()?;
        // A table that is there can be named, too.
        let there = name.is_some() && c.state::<Ip<A>>().borrow().table_ids().contains(&id);
        let done = match (del, there) {
            (true, _) => del_table::<A>(c, id),
            (false, true) => Ok(()),
            (false, false) => add_table::<A>(c, id),
        };
        done.map_err(cli_args::route_failed)?;
        if let Some(name) = name {
            c.state::<Ip<A>>().borrow_mut().name_table(id, name);
        }
        Ok(Outcome::Done)
    }
}
