//! `set host-interface`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set host-interface qdisc-bypass <interface> enable|disable`
pub struct SetHostInterface;

/// The command.
pub static COMMAND: SetHostInterface = SetHostInterface;

impl Command<Control> for SetHostInterface {
    fn path(&self) -> &'static str {
        "set host-interface"
    }

    fn usage(&self) -> &'static str {
        "qdisc-bypass <interface> enable|disable"
    }

    fn help(&self) -> &'static str {
        "Send past the device's queueing discipline, or through it\n\
         Past it is faster; through it, its shaping and its counters apply."
    }

    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let _ = out;
        args.choice("option", &["qdisc-bypass"])?;
        let name = args.word("interface")?;
        let on = args.enable_disable("qdisc bypass")?;
        args.end()?;
        crate::set_qdisc_bypass(cx, name, on).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
}
