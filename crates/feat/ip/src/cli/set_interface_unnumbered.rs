//! `set interface unnumbered`.

use crate::{Ip4, address, cli_args};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `set interface unnumbered <interface> use <interface> | del <interface>`
pub struct SetInterfaceUnnumbered;

/// The command.
pub static COMMAND: SetInterfaceUnnumbered = SetInterfaceUnnumbered;

impl Command<Control> for SetInterfaceUnnumbered {
    fn path(&self) -> &'static str {
        "set interface unnumbered"
    }

    fn usage(&self) -> &'static str {
        "<interface> use <interface> | del <interface>"
    }

    fn help(&self) -> &'static str {
        "Let an interface use the addresses of another one, or not any more\n\
         They are the sources of its ARP requests and ICMP messages, and it answers for them. Hosts\n\
         behind it are reached by routes to the interface; both should be in one table."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let del = args.exact("del");
        let sw_if = interface_arg(c, args)?;
        let lender = match del {
            true => None,
            false => {
                args.choice("word", &["use"])?;
                Some(interface_arg(c, args)?)
            }
        };
        args.end()?;
        address::set_unnumbered(c, sw_if, lender).map_err(cli_args::address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let unnumbered = || {
            let ip4 = c.state::<Ip4>();
            let ip4 = ip4.borrow();
            ip4.lenders().map(|(i, _)| c.interface_name(i)).collect()
        };
        match before {
            [] => interface_names(c).into_iter().chain(["del".to_owned()]).collect(),
            ["del"] => unnumbered(),
            [_] => vec!["use".to_owned()],
            [_, "use"] => interface_names(c),
            _ => Vec::new(),
        }
    }
}
