//! `sflow header-bytes`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowHeaderBytes = SFlowHeaderBytes;

/// The command's type.
pub struct SFlowHeaderBytes;

impl Command<Control> for SFlowHeaderBytes {
    fn path(&self) -> &'static str {
        "sflow header-bytes"
    }
    fn usage(&self) -> &'static str {
        "<B>"
    }
    fn help(&self) -> &'static str {
        "Set the number of header bytes sent of a sampled packet\n\
         Rounded up to a multiple of 32 between 64 and 256. The default is 128."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let asked = args.u32("header bytes")?;
        args.end()?;
        let taken = crate::state::set_header_bytes(cx, asked);
        if asked != u32::from(taken) {
            tracing::warn!("sflow: header-bytes {asked} rounded to {taken}");
            out.line(format_args!(
                "header-bytes {asked} rounded to {taken}: a multiple of 32 from 64 to 256"
            ));
        }
        if let Some(note) = crate::exporting::note_cut(cx) {
            out.line(format_args!("{note}"));
        }
        out.json(serde_json::json!({ "asked": asked, "header_bytes": taken }));
        Ok(Outcome::Done)
    }
}
