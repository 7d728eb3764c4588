//! `set host-interface`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set host-interface qdisc-bypass|checksum-offload <interface> enable|disable`
pub struct SetHostInterface;

/// The command.
pub static COMMAND: SetHostInterface = SetHostInterface;

impl Command<Control> for SetHostInterface {
    fn path(&self) -> &'static str {
        "set host-interface"
    }

    fn usage(&self) -> &'static str {
        "qdisc-bypass|checksum-offload <interface> enable|disable"
    }

    fn help(&self) -> &'static str {
        "Change how a host interface transmits\n\
         qdisc-bypass: bypass the device's queueing discipline, which is faster; if disabled, its\n\
         shaping and counters apply. checksum-offload (VPP: l4-cksum-offload): offload checksums and segmentation to the kernel\n\
         and its device, if the interface was created with it; if disabled, the worker does both."
    }

    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let _ = out;
        let option =
            args.choice("option", &["qdisc-bypass", "checksum-offload", "l4-cksum-offload"])?;
        let name = args.word("interface")?;
        let on = args.enable_disable(option)?;
        args.end()?;
        let set = match option {
            "qdisc-bypass" => crate::set_qdisc_bypass,
            _ => crate::set_checksum_offload,
        };
        set(cx, name, on).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
}
