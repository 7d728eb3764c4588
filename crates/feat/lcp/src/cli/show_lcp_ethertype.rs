//! `show lcp ethertype`.

use crate::options;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show lcp ethertype`
pub struct ShowLcpEthertype;

/// The command.
pub static COMMAND: ShowLcpEthertype = ShowLcpEthertype;

impl Command<Control> for ShowLcpEthertype {
    fn path(&self) -> &'static str {
        "show lcp ethertype"
    }

    fn help(&self) -> &'static str {
        "Show ethertypes whose frames are passed between interfaces and their twins"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.list(options::get(c).ethertypes, |number| {
            let text = format!("{number:#06x}");
            (text.clone(), json!(text))
        });
        Ok(Outcome::Done)
    }
}
