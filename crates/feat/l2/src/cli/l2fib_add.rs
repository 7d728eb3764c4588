//! `l2fib add`.

use crate::Origin;
use crate::cli_support::{bridge_arg, bridge_ids, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: L2fibAdd = L2fibAdd;

/// The command's type.
pub struct L2fibAdd;

impl Command<Control> for L2fibAdd {
    fn path(&self) -> &'static str {
        "l2fib add"
    }
    fn usage(&self) -> &'static str {
        "<mac> <bridge domain> filter|<interface> [static]"
    }
    fn help(&self) -> &'static str {
        "Add a MAC address to a bridge domain\n\
         A static entry neither moves nor ages; any other is treated as learned.\n\
         Frames to one with `filter' are dropped."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mac = args.mac("MAC address")?;
        let id = bridge_arg(args)?;
        let (port, origin) = if args.exact("filter") {
            (None, Origin::Filter)
        } else {
            let port = Some(interface_arg(c, args)?);
            match args.one_of(&["static", "filter", "bvi"])? {
                Some("static") => (port, Origin::Static),
                Some("filter") => (port, Origin::Filter),
                Some(_) => {
                    return Err(failed(crate::L2Error::NotYet("a BVI")));
                }
                None => (port, Origin::Added),
            }
        };
        args.end()?;
        crate::add_address(c, id, mac, port, origin).map_err(failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [_] => bridge_ids(c),
            [_, _] => interface_names(c).into_iter().chain(["filter".into()]).collect(),
            [_, _, _] => vec!["static".into(), "filter".into()],
            _ => Vec::new(),
        }
    }
}
