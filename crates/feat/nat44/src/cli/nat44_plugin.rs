//! `nat44 plugin`.

use crate::cli_support::failed;
use crate::state::{self, DefaultVrfs};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::nat::tuple::MAX_TABLE;

/// `nat44 plugin enable|disable`
pub struct Nat44Plugin;

/// The command.
pub static COMMAND: Nat44Plugin = Nat44Plugin;

fn table(args: &mut Args<'_>) -> Result<u32, CliError> {
    Ok(args.number("table", 0, u64::from(MAX_TABLE))? as u32)
}

impl Command<Control> for Nat44Plugin {
    fn path(&self) -> &'static str {
        "nat44 plugin"
    }

    fn usage(&self) -> &'static str {
        "enable [sessions <number>] [inside-vrf <table>] [outside-vrf <table>] | disable"
    }

    fn help(&self) -> &'static str {
        "Enable NAT44, or disable it and delete its configuration\n\
         Each worker gets room for this number of sessions, 64512 by default. Any other command of the\n\
         family enables NAT44, too. inside-vrf is the default table of mappings; outside-vrf is tried\n\
         first for inside hosts whose own table has no route."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("state")?;
        let mut sessions = None;
        let mut vrfs: Option<DefaultVrfs> = None;
        while on && !args.is_empty() {
            if args.keyword("sessions") {
                sessions = Some(args.number("sessions", 1, u64::from(state::MAX_SESSIONS))? as u32);
            } else if args.keyword("inside-vrf") {
                vrfs.get_or_insert_default().inside = TableId(table(args)?);
            } else if args.keyword("outside-vrf") {
                vrfs.get_or_insert_default().outside = TableId(table(args)?);
            } else {
                args.end()?;
            }
        }
        args.end()?;
        if on {
            state::enable(c, sessions, vrfs).map_err(failed)?;
        } else {
            state::disable(c);
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["enable".into(), "disable".into()],
            ["enable", ..] => ["sessions", "inside-vrf", "outside-vrf"].map(String::from).into(),
            _ => Vec::new(),
        }
    }
}
