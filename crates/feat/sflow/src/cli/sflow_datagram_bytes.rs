//! `sflow datagram-bytes`.

use crate::cli_support::refused;
use crate::exporting::note_cut;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowDatagramBytes = SFlowDatagramBytes;

/// The command's type.
pub struct SFlowDatagramBytes;

impl Command<Control> for SFlowDatagramBytes {
    fn path(&self) -> &'static str {
        "sflow datagram-bytes"
    }
    fn usage(&self) -> &'static str {
        "<bytes>"
    }
    fn help(&self) -> &'static str {
        "Set the maximum size of an sFlow datagram\n\
         The default, 1400, fits into an Ethernet frame and leaves room for tunnel headers. \
         Headers of sampled packets that do not fit are cut."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let bytes = args.number("bytes", 0, u16::MAX.into())? as usize;
        args.end()?;
        crate::exporting::set_datagram_bytes(cx, bytes).map_err(refused)?;
        if let Some(note) = note_cut(cx) {
            out.line(format_args!("{note}"));
        }
        Ok(Outcome::Done)
    }
}
