//! `show lcp osi-proto`.

use crate::options;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show lcp osi-proto`
pub struct ShowLcpOsiProto;

/// The command.
pub static COMMAND: ShowLcpOsiProto = ShowLcpOsiProto;

impl Command<Control> for ShowLcpOsiProto {
    fn path(&self) -> &'static str {
        "show lcp osi-proto"
    }

    fn help(&self) -> &'static str {
        "Show OSI protocols whose frames are passed between interfaces and their twins"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.list(options::get(c).osi, |number| {
            let text = format!("{number:#04x}");
            (text.clone(), json!(text))
        });
        Ok(Outcome::Done)
    }
}
