//! `set interface index`: reserves the index of a future interface.

use crate::command_line::refused;
use crate::{SwIfIndex, interface};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface index`
pub struct SetInterfaceIndex;

/// The command.
pub static COMMAND: SetInterfaceIndex = SetInterfaceIndex;

impl Command<Control> for SetInterfaceIndex {
    fn path(&self) -> &'static str {
        "set interface index"
    }

    fn usage(&self) -> &'static str {
        "<name> {<n> | none}"
    }

    fn help(&self) -> &'static str {
        "Reserve an interface index for an interface that is created later\n\
         sFlow collectors and API clients identify interfaces by index; this keeps it stable.\n\
         By default an interface gets the lowest free index. `none' ends the reservation."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = args.word("name")?;
        if args.exact("none") {
            args.end()?;
            interface::release_index(c, name).map_err(refused)?;
            return Ok(Outcome::Done);
        }
        let index = args.u32("index")?;
        args.end()?;
        interface::reserve_index(c, name, SwIfIndex(index)).map_err(refused)?;
        out.json(serde_json::json!({ "name": name, "index": index }));
        Ok(Outcome::Done)
    }
}
