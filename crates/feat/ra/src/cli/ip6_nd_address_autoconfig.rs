//! `ip6 nd address autoconfig`: addresses and default routes by other routers' advertisements.

use crate::autoconfig::{self, Takes};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `ip6 nd address autoconfig <interface> [default-route] [disable]`
pub struct Ip6NdAddressAutoconfig;

/// The command.
pub static COMMAND: Ip6NdAddressAutoconfig = Ip6NdAddressAutoconfig;

impl Command<Control> for Ip6NdAddressAutoconfig {
    fn path(&self) -> &'static str {
        "ip6 nd address autoconfig"
    }

    fn usage(&self) -> &'static str {
        "<interface> [default-route] [disable]"
    }

    fn help(&self) -> &'static str {
        "Take addresses from other routers' advertisements on an interface\n\
         With `default-route', also routes to those that offer themselves as default routers."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let (mut default_route, mut disable) = (false, false);
        while !args.is_empty() {
            match args.choice("setting", &["default-route", "disable"])? {
                "disable" => disable = true,
                _ => default_route = true,
            }
        }
        autoconfig::set(c, sw_if, (!disable).then_some(Takes { default_route }))?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            _ => ["default-route", "disable"].map(str::to_owned).to_vec(),
        }
    }
}
