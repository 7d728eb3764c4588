//! `show nat44 vrf tables`.

use crate::Nat44;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `show nat44 vrf tables`
pub struct ShowNat44VrfTables;

/// The command.
pub static COMMAND: ShowNat44VrfTables = ShowNat44VrfTables;

impl Command<Control> for ShowNat44VrfTables {
    fn path(&self) -> &'static str {
        "show nat44 vrf tables"
    }

    fn help(&self) -> &'static str {
        "Show the routes between routing tables, in the order they are tried"
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
        for (table, routes) in nat.vrfs() {
            let routes: Vec<String> = routes.iter().map(TableId::to_string).collect();
            let routes = if routes.is_empty() { "none".into() } else { routes.join(" ") };
            out.line(format_args!("table {table} reaches: {routes}"));
        }
        let all = nat.vrfs().iter().map(|(table, to)| {
            let to: Vec<u32> = to.iter().map(|t| t.0).collect();
            json!({ "table": table.0, "routes": to })
        });
        out.json(all.collect());
        Ok(Outcome::Done)
    }
}
