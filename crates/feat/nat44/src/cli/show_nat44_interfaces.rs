//! `show nat44 interfaces`.

use crate::Nat44;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat44 interfaces`
pub struct ShowNat44Interfaces;

/// The command.
pub static COMMAND: ShowNat44Interfaces = ShowNat44Interfaces;

impl Command<Control> for ShowNat44Interfaces {
    fn path(&self) -> &'static str {
        "show nat44 interfaces"
    }

    fn help(&self) -> &'static str {
        "Show inside and outside interfaces"
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
        out.line("NAT44 interfaces:");
        let mut rows = Vec::new();
        for (sw_if, role) in nat.roles() {
            let name = c.interface_name(*sw_if);
            let sides = match (role.inside, role.outside) {
                (true, true) => "in out",
                (true, false) => "in",
                _ => "out",
            };
            let feature = if role.output { " output-feature" } else { "" };
            out.line(format_args!(" {name}{feature} {sides}"));
            rows.push(json!({
                "interface": name, "in": role.inside, "out": role.outside,
                "output-feature": role.output,
            }));
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}
