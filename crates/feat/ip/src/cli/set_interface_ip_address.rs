//! `set interface ip address`.

use crate::address::AddressError;
use crate::family::{Version, for_version};
use crate::{IfAddress, Ip, address, cli_args};
use std::net::IpAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::Control;
use thalweg_tables::Address;

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
        "Add an IP address to an interface, or delete one or all\n\
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
        let one = if all { None } else { Some(cli_args::prefix_arg(c, args, "address")?) };
        args.end()?;
        let done = match one {
            None => address::remove_all(c, sw_if),
            Some((ip, len)) => for_version!(Version::of_ip(ip), change(c, del, sw_if, ip, len)),
        };
        done.map(|()| cli_args::when_resolved(c)).map_err(cli_args::address_failed)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c).into_iter().chain(["del".to_owned()]).collect(),
            ["del"] => interface_names(c),
            ["del", name] => {
                let sw_if = interface::find(c, name).ok();
                let all = sw_if.map(|i| [texts::<u32>(c, i), texts::<u128>(c, i)].concat());
                all.into_iter().flatten().chain(["all".to_owned()]).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn change<A: Address>(
    c: &mut Control,
    del: bool,
    sw_if: SwIfIndex,
    ip: IpAddr,
    len: u8,
) -> Result<(), AddressError> {
    let addr = A::from_ip(ip).unwrap_or_default();
    match del {
        true => address::remove(c, sw_if, addr, len),
        false => address::add(c, sw_if, addr, len),
    }
}

/// The addresses of an interface.
fn texts<A: Address>(c: &Control, sw_if: SwIfIndex) -> Vec<String> {
    let ip = c.state::<Ip<A>>();
    ip.borrow().addresses(sw_if).iter().map(IfAddress::to_string).collect()
}
