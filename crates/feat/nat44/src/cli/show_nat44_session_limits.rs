//! `show nat44 session limits`.

use crate::Nat44;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, counted};
use thalweg_graph::Control;

/// `show nat44 session limits`
pub struct ShowNat44SessionLimits;

/// The command.
pub static COMMAND: ShowNat44SessionLimits = ShowNat44SessionLimits;

impl Command<Control> for ShowNat44SessionLimits {
    fn path(&self) -> &'static str {
        "show nat44 session limits"
    }

    fn help(&self) -> &'static str {
        "Show session limits, and the handling of new sessions when the table is full"
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
        let full = if nat.refuses() { "refuse" } else { "recycle" };
        let sessions = |n: u32| counted(n.into(), "session");
        out.line(format_args!("per worker: {}", sessions(nat.sessions().unwrap_or(0))));
        out.line(format_args!("when the table is full: {full}"));
        for (table, most) in nat.limits() {
            out.line(format_args!("vrf {table}: {}", sessions(*most)));
        }
        if nat.per_host() > 0 {
            out.line(format_args!("per host: {}", sessions(nat.per_host())));
        }
        let tables = nat.limits().iter().map(|(t, n)| json!({ "vrf": t.0, "sessions": n }));
        out.json(json!({
            "per-worker": nat.sessions(), "table-full": full, "per-host": nat.per_host(),
            "tables": tables.collect::<Vec<_>>(),
        }));
        Ok(Outcome::Done)
    }
}
