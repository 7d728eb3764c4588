//! `show trace path`: the traced packets that took one way through the graph.

use crate::cli::show_trace;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show trace path <number> ...`
pub struct ShowTracePath;

/// The command.
pub static COMMAND: ShowTracePath = ShowTracePath;

impl Command<Control> for ShowTracePath {
    fn path(&self) -> &'static str {
        "show trace path"
    }

    fn usage(&self) -> &'static str {
        "<number> ..."
    }

    fn help(&self) -> &'static str {
        "Show the traced packets that took one way\n\
         The number is that of `show trace paths'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let paths = show_trace::paths(c)?;
        let mut chosen = Vec::new();
        while chosen.is_empty() || !args.is_empty() {
            let number = args.number("path", 0, u64::from(u32::MAX))? as usize;
            let path = paths.get(number).ok_or_else(|| {
                let n = paths.len();
                CliError::failed(format_args!("no path {number}: `show trace paths' lists {n}"))
            })?;
            chosen.push((number, path));
        }
        out.json(chosen.iter().map(|(_, path)| path.to_json()).collect());
        for (number, path) in chosen {
            out.text(&path.text(number));
        }
        Ok(Outcome::Done)
    }
}
