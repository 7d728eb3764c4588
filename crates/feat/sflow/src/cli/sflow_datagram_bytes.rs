//! `sflow datagram-bytes`.

use crate::cli_support::{refused, required};
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
        "Set the most bytes of an sFlow datagram\n\
         1400 is the default: it fits into an Ethernet frame with room for a tunnel's headers."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "the bytes of a datagram")?;
        let bytes = args.number("bytes", 0, u16::MAX.into())? as usize;
        args.end()?;
        crate::exporting::set_datagram_bytes(cx, bytes).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
