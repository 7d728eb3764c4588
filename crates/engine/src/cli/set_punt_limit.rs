//! `set punt limit`: how many packets of a reason are punted.

use crate::punt;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `set punt limit <reason> <packets-per-second>|default`
pub struct SetPuntLimit;

/// The command.
pub static COMMAND: SetPuntLimit = SetPuntLimit;

impl Command<Control> for SetPuntLimit {
    fn path(&self) -> &'static str {
        "set punt limit"
    }

    fn usage(&self) -> &'static str {
        "<reason> <packets-per-second>|default"
    }

    fn help(&self) -> &'static str {
        "Set how many packets of a punt reason are passed on per second\n\
         The limit holds for each worker; 0 drops all. `show punt reasons' lists reasons and limits."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let reason = args.word("punt reason")?.to_owned();
        let limit = match args.keyword("default") {
            true => None,
            false => Some(args.u32("packets per second")?),
        };
        args.end()?;
        punt::set_limit(c, &reason, limit).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => punt::reasons(c).iter().map(|r| r.decl.name.to_owned()).collect(),
            [_] => vec!["default".into()],
            _ => Vec::new(),
        }
    }
}
