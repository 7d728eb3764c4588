//! `show nat44 summary`.

use crate::{Nat44, view};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat44 summary`
pub struct ShowNat44Summary;

/// The command.
pub static COMMAND: ShowNat44Summary = ShowNat44Summary;

impl Command<Control> for ShowNat44Summary {
    fn path(&self) -> &'static str {
        "show nat44 summary"
    }

    fn help(&self) -> &'static str {
        "Show the number of sessions by protocol, and session counters"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let Some(most) = c.state::<Nat44>().borrow().sessions() else {
            out.line("NAT44 is disabled");
            out.json(json!({ "enabled": false }));
            return Ok(Outcome::Done);
        };
        view::with_workers(c, out, move |_, workers, out| {
            let sum = |f: &dyn Fn(&view::WorkerView) -> u64| workers.iter().map(f).sum::<u64>();
            let kind = |i: usize| sum(&move |w| u64::from(w.counts.by_protocol[i]));
            let lines = [
                ("total sessions", sum(&|w| u64::from(w.sessions))),
                ("total tcp sessions", kind(0)),
                ("total udp sessions", kind(1)),
                ("total icmp sessions", kind(2)),
                ("total other sessions", kind(3)),
                ("sessions created", sum(&|w| w.flows.added)),
                ("sessions expired", sum(&|w| w.flows.expired)),
                ("sessions removed", sum(&|w| w.flows.removed)),
                ("half open sessions recycled", sum(&|w| w.flows.recycled)),
                ("sessions refused, table full", sum(&|w| w.flows.refused)),
            ];
            out.line(format_args!("max translations per thread: {most} fib 0"));
            let mut all = serde_json::Map::new();
            all.insert("max-translations-per-thread".into(), most.into());
            for (name, n) in lines {
                out.line(format_args!("{name}: {n}"));
                all.insert(name.replace([' ', ','], "-").replace("--", "-"), n.into());
            }
            out.json(all.into());
        })
    }
}
