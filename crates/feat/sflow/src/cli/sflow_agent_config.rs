//! `sflow agent-config`.

use crate::cli_support::refused;
use crate::exporting::take_configuration;
use std::path::PathBuf;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_graph::Control;
use thalweg_sflow_agent::conf::{ConfError, HsflowdConf, Reader};

/// The command.
pub static COMMAND: SFlowAgentConfig = SFlowAgentConfig;

/// The command's type.
pub struct SFlowAgentConfig;

/// Maximum size of the file in bytes.
const MAX_FILE: u64 = 1 << 20;

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
        _: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let file = args.word("file")?;
        args.end()?;
        let (name, path) = (file.to_owned(), PathBuf::from(file));
        let read = move || thalweg_files::client::read(&path, MAX_FILE);
        in_background(read, move |cx, file, out| {
            let file = file.map_err(CliError::failed)?;
            let wrong = |e: ConfError| {
                let place = e.0.first().map_or(name.as_str(), |problem| &problem.place);
                CliError::failed(file.explain(place, &e))
            };
            let parsed = HsflowdConf::parse_bytes(Reader::Router, &name, file.bytes());
            let (conf, warnings) = parsed.map_err(wrong)?;
            take_configuration(cx, &conf).map_err(refused)?;
            for warning in warnings {
                out.line(file.explain(&warning.place, &warning));
            }
            Ok(None)
        })
    }
}
