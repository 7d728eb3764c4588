//! `set interface ip address`.

use crate::{Ip4, address, cli_args};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_device::interface;
use thalweg_graph::Control;

/// `set interface ip address [del] <interface> <address>/<length>`
pub struct SetInterfaceIpAddress;

/// The command.
pub static COMMAND: SetInterfaceIpAddress = SetInterfaceIpAddress;

impl Command<Control> for SetInterfaceIpAddress {
    fn path(&self) -> &'static str {
        "set interface ip address"
    }

    fn usage(&self) -> &'static str {
        "[del] <interface> <address>/<length> | all"
    }

    fn help(&self) -> &'static str {
        "Add an IPv4 address to an interface, or delete one or all\n\
         The subnet becomes connected through the interface. Subnets of one table must not overlap;\n\
         an interface may have several addresses of one subnet."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let del = args.exact("del");
        let sw_if = interface_arg(c, args)?;
        let all = del && args.exact("all");
        let one = if all { None } else { Some(args.ipv4_prefix("address")?) };
        args.end()?;
        let done = match (one, del) {
            (None, _) => address::remove_all(c, sw_if),
            (Some((addr, len)), true) => address::remove(c, sw_if, addr, len),
            (Some((addr, len)), false) => address::add(c, sw_if, addr, len),
        };
        done.map(|()| cli_args::when_resolved(c)).map_err(cli_args::address_failed)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c).into_iter().chain(["del".to_owned()]).collect(),
            ["del"] => interface_names(c),
            ["del", name] => {
                let sw_if = interface::find(c, name).ok();
                let ip4 = c.state::<Ip4>();
                let ip4 = ip4.borrow();
                let list = sw_if.map_or(&[][..], |i| ip4.addresses(i));
                let addresses = list.iter().map(|(a, l)| format!("{a}/{l}"));
                addresses.chain(["all".to_owned()]).collect()
            }
            _ => Vec::new(),
        }
    }
}
