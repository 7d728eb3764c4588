//! `show vlib graphviz`: the graph in the Graphviz language.

use crate::cli::show_vlib_graph::print_dot;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show vlib graphviz`
pub struct ShowVlibGraphviz;

/// The command.
pub static COMMAND: ShowVlibGraphviz = ShowVlibGraphviz;

impl Command<Control> for ShowVlibGraphviz {
    fn path(&self) -> &'static str {
        "show vlib graphviz"
    }

    fn help(&self) -> &'static str {
        "Show the graph in the Graphviz language"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        print_dot(c, out);
        Ok(Outcome::Done)
    }
}
