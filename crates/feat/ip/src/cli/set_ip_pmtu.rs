//! `set ip pmtu`: path MTUs of addresses.

use crate::cli_args::{address_arg, table_arg};
use crate::path_mtu::{self, PathMtuError};
use std::net::IpAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `set ip pmtu [del] <address> …`
pub struct SetIpPmtu;

/// The command.
pub static COMMAND: SetIpPmtu = SetIpPmtu;

/// Converts an error to that of a command.
pub(crate) fn failed(e: PathMtuError) -> CliError {
    let code = match e {
        PathMtuError::Table(_) => -65,
        PathMtuError::Range { .. } => -7,
        PathMtuError::Unknown(_) => -6,
        PathMtuError::Full => -1,
    };
    CliError::with_code(e, code)
}

impl Command<Control> for SetIpPmtu {
    fn path(&self) -> &'static str {
        "set ip pmtu"
    }

    fn usage(&self) -> &'static str {
        "<address> <bytes> [table <id>] | del <address> [table <id>]"
    }

    fn help(&self) -> &'static str {
        "Set how long packets to an IPv4 or IPv6 address may be\n\
         Longer ones are fragmented, or answered by ICMP as where a link has that MTU: those that come\n\
         by interfaces of the table, 0 by default, and the router's own."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let del = args.exact("del");
        let address = address_arg(c, args, "address")?;
        let mtu = if del { None } else { Some(args.u16("path MTU")?) };
        let table = if args.exact("table") { table_arg(args)? } else { TableId(0) };
        args.end()?;
        match address {
            IpAddr::V4(ip) => path_mtu::set(c, table, ip.to_bits(), mtu),
            IpAddr::V6(ip) => path_mtu::set(c, table, ip.to_bits(), mtu),
        }
        .map_err(failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["del".to_owned()],
            [_, _] => vec!["table".to_owned()],
            _ => Vec::new(),
        }
    }
}
