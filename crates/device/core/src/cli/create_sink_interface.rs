//! `create sink interface`: an interface that discards its packets, for benchmarks.

use crate::command_line::refused;
use crate::{interface, loopback};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `create sink interface`
pub struct CreateSinkInterface;

/// The command.
pub static COMMAND: CreateSinkInterface = CreateSinkInterface;

impl Command<Control> for CreateSinkInterface {
    fn path(&self) -> &'static str {
        "create sink interface"
    }

    fn usage(&self) -> &'static str {
        "[instance <n>]"
    }

    fn help(&self) -> &'static str {
        "Create interface sink<n>, which counts and discards transmitted packets"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let instance = match args.keyword("instance") {
            true => Some(args.number("instance", 0, 16_383)? as u32),
            false => None,
        };
        args.end()?;
        let sw_if = loopback::create_sink(c, instance).map_err(refused)?;
        let name = interface::view(c, sw_if).map_err(refused)?.name;
        out.json(serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.line(name);
        Ok(Outcome::Done)
    }
}
