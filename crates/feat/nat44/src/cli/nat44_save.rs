//! `nat44 save`.

use crate::cli_support::{Storing, stored};
use crate::{Nat44, store};
use std::path::PathBuf;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::file_path;
use thalweg_graph::Control;

/// `nat44 save`
pub struct Nat44Save;

/// The command.
pub static COMMAND: Nat44Save = Nat44Save;

impl Command<Control> for Nat44Save {
    fn path(&self) -> &'static str {
        "nat44 save"
    }

    fn usage(&self) -> &'static str {
        "<file> [every <seconds> [restore]] | never"
    }

    fn help(&self) -> &'static str {
        "Save all sessions to a file, now or periodically, for `nat44 restore`\n\
         The file is replaced once the new one is complete. `restore' first restores the sessions in\n\
         the file, if there is one: if it cannot be read, it is not replaced."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        if args.exact("never") {
            args.end()?;
            store::save_every(c, None).map_err(stored)?;
            return Ok(Outcome::Done);
        }
        let file = PathBuf::from(args.word("file")?);
        if !args.keyword("every") {
            args.end()?;
            let work = store::save(c, &file).map_err(stored)?;
            return Ok(Outcome::pending(Storing::new(work)));
        }
        if let Some(expected) = file.to_str().and_then(|f| file_path(f).err()) {
            return Err(args.bad("file", expected));
        }
        let seconds = args.number("seconds", 1, 86_400)? as u32;
        let restores = args.keyword("restore");
        args.end()?;
        store::check(&file).map_err(stored)?;
        // A file that the router saves to is older than its sessions by now.
        let is_own = c.state::<Nat44>().borrow().saving().is_some_and(|(to, _)| *to == file);
        if restores && !is_own {
            let work = store::restore(c, &file, true).map_err(stored)?;
            return Ok(Outcome::pending(Storing::then_every(work, file, seconds)));
        }
        store::save_every(c, Some((file, seconds))).map_err(stored)?;
        Ok(Outcome::Done)
    }
}
