//! `set ip6 nd proxy`: answers for a host of another link.

use crate::nd_proxy;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `set ip6 nd proxy <interface> [del] <address>`
pub struct SetIp6NdProxy;

/// The command.
pub static COMMAND: SetIp6NdProxy = SetIp6NdProxy;

impl Command<Control> for SetIp6NdProxy {
    fn path(&self) -> &'static str {
        "set ip6 nd proxy"
    }

    fn usage(&self) -> &'static str {
        "<interface> [del] <address>"
    }

    fn help(&self) -> &'static str {
        "Answer neighbour solicitations for a host behind an interface on all other interfaces\n\
         A route to the host comes with it."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let del = args.exact("del");
        let ip = args.ipv6("address")?;
        let del = args.exact("del") || del;
        args.end()?;
        match del {
            true => nd_proxy::remove(c, sw_if, ip)?,
            false => nd_proxy::add(c, sw_if, ip)?,
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => vec!["del".to_owned()],
            _ => Vec::new(),
        }
    }
}
