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
        let mut numbers = Vec::new();
        while numbers.is_empty() || !args.is_empty() {
            numbers.push(args.number("path", 0, u64::from(u32::MAX))? as usize);
        }
        show_trace::with_paths(c, out, move |paths, out| {
            let path = |number: usize| {
                paths.get(number).ok_or_else(|| {
                    let n = paths.len();
                    CliError::failed(format_args!("no path {number}: `show trace paths' lists {n}"))
                })
            };
            let chosen = numbers.iter().map(|n| path(*n)).collect::<Result<Vec<_>, _>>()?;
            out.json(chosen.iter().map(|path| path.to_json()).collect());
            for (number, path) in numbers.iter().zip(chosen) {
                out.text(&path.text(*number));
            }
            Ok(())
        })
    }
}
