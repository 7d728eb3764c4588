//! `ip punt redirect`: where punted packets go.

use crate::family::{Version, version_text};
use crate::redirect::{self, RedirectError};
use crate::{Path, cli_args};
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names, refused};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `ip punt redirect [add|del] rx <interface>|all [via …]`, and the same for another version.
pub struct IpPuntRedirect<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: IpPuntRedirect<u32> = IpPuntRedirect(PhantomData);

/// Converts an error to that of a command.
pub(crate) fn failed(e: RedirectError) -> CliError {
    let code = match e {
        RedirectError::Device(e) => return refused(e),
        RedirectError::Route(e) => return cli_args::route_failed(e),
        RedirectError::NoPath => -7,
        RedirectError::Unknown(..) => -6,
    };
    CliError::with_code(e, code)
}

impl<A: Address> Command<Control> for IpPuntRedirect<A> {
    fn path(&self) -> &'static str {
        version_text!(A: WORD, " punt redirect")
    }

    fn usage(&self) -> &'static str {
        "[add|del] rx <interface>|all [via <next hop> [<interface>] | via <interface>] ..."
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Send ", NAME, " packets to the router that nothing here takes elsewhere\n\
                     By the paths given, instead of refusing or dropping them: what has no \
                     listener, an unknown\nprotocol, or an ICMP message that the router has no use \
                     for. `all' is for interfaces\nwithout a redirect of their own.")
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut del, mut rx_if, mut paths) = (false, None, Vec::<Path>::new());
        while !args.is_empty() {
            if args.exact("del") {
                del = true;
            } else if args.exact("rx") {
                rx_if = Some(match args.exact("all") {
                    true => redirect::ALL,
                    false => interface_arg(c, args)?,
                });
            } else if args.exact("via") {
                let path = cli_args::path_arg(c, args)?;
                paths.push(cli_args::route_path(path, Version::of::<A>())?);
            } else if !args.exact("add") {
                args.end()?;
            }
        }
        let Some(rx_if) = rx_if else {
            return Err(args.bad("interface", "rx <interface>, or rx all"));
        };
        match del {
            true => redirect::remove::<A>(c, rx_if).map_err(failed)?,
            false if paths.is_empty() => {
                return Err(args.bad("path", "via <next hop> [<interface>], or via <interface>"));
            }
            false => redirect::set::<A>(c, rx_if, paths).map_err(failed)?,
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        match before {
            [] => words(&["add", "del", "rx"]),
            [.., "rx"] => [words(&["all"]), interface_names(c)].concat(),
            [.., "via"] => interface_names(c),
            _ if before.contains(&"rx") => words(&["via"]),
            _ => words(&["rx"]),
        }
    }
}
