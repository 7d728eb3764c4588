//! `sflow direction`.

use crate::cli_support::refused;
use crate::state::Direction;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowDirection = SFlowDirection;

/// The command's type.
pub struct SFlowDirection;

impl Command<Control> for SFlowDirection {
    fn path(&self) -> &'static str {
        "sflow direction"
    }
    fn usage(&self) -> &'static str {
        "rx|tx|both"
    }
    fn help(&self) -> &'static str {
        "Sample received packets (rx), sent packets (tx) or both"
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let direction = match args.choice("sampling direction", &["rx", "tx", "both"])? {
            "rx" => Direction::Rx,
            "tx" => Direction::Tx,
            _ => Direction::Both,
        };
        args.end()?;
        crate::state::set_direction(cx, direction).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
