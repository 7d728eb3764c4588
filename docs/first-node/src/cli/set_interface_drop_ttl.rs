//! `set interface drop-ttl`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// `set interface drop-ttl <interface> enable|disable`
pub struct SetInterfaceDropTtl;

/// The command.
pub static COMMAND: SetInterfaceDropTtl = SetInterfaceDropTtl;

impl Command<Control> for SetInterfaceDropTtl {
    fn path(&self) -> &'static str {
        "set interface drop-ttl"
    }

    fn usage(&self) -> &'static str {
        "<interface> enable|disable"
    }

    fn help(&self) -> &'static str {
        "Drop packets with an unlucky TTL that the interface receives"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let on = args.choice("verb", &["enable", "disable"])? == "enable";
        args.end()?;
        c.enable_feature("ip4-unicast", "drop-ttl", sw_if, on).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
}
