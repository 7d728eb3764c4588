//! `sflow agent-config`.

use crate::cli_support::{refused, required};
use crate::exporting::take_configuration;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_sflow_agent::conf::{HsflowdConf, Reader};

/// The command.
pub static COMMAND: SFlowAgentConfig = SFlowAgentConfig;

/// The command's type.
pub struct SFlowAgentConfig;

impl Command<Control> for SFlowAgentConfig {
    fn path(&self) -> &'static str {
        "sflow agent-config"
    }
    fn usage(&self) -> &'static str {
        "<file>"
    }
    fn help(&self) -> &'static str {
        "Load settings from a file with the syntax of hsflowd.conf\n\
         The file sets collectors, the agent's address, intervals, lengths and the limit of drop\n\
         samples, and the sampling rates if it has any. It does not enable or disable\n\
         interfaces. If the file has an error, nothing changes."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "a file")?;
        let file = args.word("file")?;
        args.end()?;
        let bytes = std::fs::read(file)
            .map_err(|error| CliError::failed(format_args!("cannot read {file}: {error}")))?;
        let (conf, warnings) =
            HsflowdConf::parse_bytes(Reader::Router, file, &bytes).map_err(CliError::failed)?;
        take_configuration(cx, &conf).map_err(refused)?;
        for warning in warnings {
            out.text(&format!("{warning}\n"));
        }
        Ok(Outcome::Done)
    }
}
