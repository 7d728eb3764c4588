//! `show classify tables`: the tables that choose packets for traces and captures.

use super::show_classify_filter::hex;
use crate::classify::{Classifier, ClassifyError, NONE, Table};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show classify tables [index <n>] [verbose [<n>]]`
pub struct ShowClassifyTables;

/// The command.
pub static COMMAND: ShowClassifyTables = ShowClassifyTables;

impl Command<Control> for ShowClassifyTables {
    fn path(&self) -> &'static str {
        "show classify tables"
    }

    fn usage(&self) -> &'static str {
        "[index <n>] [verbose [<n>]]"
    }

    fn help(&self) -> &'static str {
        "Show classifier tables, with `verbose' also their sessions\n\
         `show classify filter' has the traces and captures that use them."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut only, mut verbose) = (None, false);
        while !args.is_empty() {
            match args.choice("option", &["index", "verbose"])? {
                "index" => only = Some(args.u32("table")?),
                _ => {
                    verbose = true;
                    // `verbose` has one degree only.
                    if args.peek().is_some_and(|w| w.parse::<u32>().is_ok()) {
                        args.u32("verbosity")?;
                    }
                }
            }
        }
        args.end()?;
        let state = c.state::<Classifier>();
        let state = state.borrow();
        if let Some(index) = only.filter(|index| state.table(*index).is_none()) {
            return Err(ClassifyError::NoTable(index).into());
        }
        let shown = state.tables().filter(|(index, _)| only.is_none_or(|only| only == *index));
        let shown: Vec<(u32, &Table)> = shown.collect();
        out.json(shown.iter().map(|(index, table)| row(*index, table)).collect());
        if shown.is_empty() {
            out.line("No classifier tables configured");
            return Ok(Outcome::Done);
        }
        let of = ["TableIdx", "Sessions", "NextTbl", "NextNode"];
        out.line(format_args!("{:>10}{:>10}{:>10}{:>10}", of[0], of[1], of[2], of[3]));
        for (index, table) in shown {
            text(index, table, verbose, out);
        }
        Ok(Outcome::Done)
    }
}

fn row(index: u32, table: &Table) -> Value {
    let sessions = table.sessions.iter().map(|(key, session)| {
        json!({ "match": hex(key), "hit_next": session.hit_next, "opaque": session.opaque,
                "advance": session.advance })
    });
    json!({
        "table": index, "next": table.next, "miss_next": table.miss_next,
        "buckets": table.buckets, "skip": table.skip, "vectors": table.vectors(),
        "mask": hex(&table.mask), "sessions": sessions.collect::<Vec<_>>(),
    })
}

fn text(index: u32, table: &Table, verbose: bool, out: &mut Output) {
    // VPP shows signed numbers: -1 is none.
    let signed = |number: u32| number as i32;
    out.line(format_args!(
        "{index:>10}{:>10}{:>10}{:>10}",
        table.sessions.len(),
        signed(table.next.unwrap_or(NONE)),
        signed(table.miss_next)
    ));
    out.line(format_args!(
        "  nbuckets {}, skip {} match {} flag 0 offset 0",
        table.buckets,
        table.skip,
        table.vectors()
    ));
    out.line(format_args!("  mask {}", hex(&table.mask)));
    if verbose {
        for (key, session) in &table.sessions {
            out.line(format_args!(
                "    next_index {} advance {} opaque {}",
                signed(session.hit_next),
                session.advance,
                signed(session.opaque)
            ));
            out.line(format_args!("        k: {}", hex(key)));
        }
    }
}
