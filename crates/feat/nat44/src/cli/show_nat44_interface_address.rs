//! `show nat44 interface address`.

use crate::Nat44;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat44 interface address`
pub struct ShowNat44InterfaceAddress;

/// The command.
pub static COMMAND: ShowNat44InterfaceAddress = ShowNat44InterfaceAddress;

impl Command<Control> for ShowNat44InterfaceAddress {
    fn path(&self) -> &'static str {
        "show nat44 interface address"
    }

    fn help(&self) -> &'static str {
        "Show the interfaces whose addresses are pool addresses"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let nat = c.state::<Nat44>();
        let nat = nat.borrow();
        let mut rows = Vec::new();
        for twice in [false, true] {
            let title = if twice { "twice-nat " } else { "" };
            out.line(format_args!("NAT44 {title}pool address interfaces:"));
            for (sw_if, _) in nat.address_interfaces().iter().filter(|b| b.1 == twice) {
                let name = c.interface_name(*sw_if);
                out.line(format_args!(" {name}"));
                rows.push(json!({ "interface": name, "twice-nat": twice }));
            }
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}
