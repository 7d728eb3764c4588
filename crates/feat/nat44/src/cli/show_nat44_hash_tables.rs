//! `show nat44 hash tables`.

use crate::{Nat44, view};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat44 hash tables`
pub struct ShowNat44HashTables;

/// The command.
pub static COMMAND: ShowNat44HashTables = ShowNat44HashTables;

impl Command<Control> for ShowNat44HashTables {
    fn path(&self) -> &'static str {
        "show nat44 hash tables"
    }

    fn usage(&self) -> &'static str {
        "[detail|verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the hash tables of sessions and mappings, and how full they are\n\
         Each session has two keys, one per direction. `detail' and `verbose' add nothing."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let _ = args.keyword("detail") || args.keyword("verbose");
        args.end()?;
        let (inside, outside) = c.state::<Nat44>().borrow().config().mappings.keys();
        for (name, n) in
            [("static_mapping_by_local", inside), ("static_mapping_by_external", outside)]
        {
            out.line(format_args!("Hash table '{name}'"));
            out.line(format_args!("    {n} active elements"));
        }
        view::with_workers(c, out, move |c, all, out| {
            let mut rows = Vec::new();
            for (worker, (w, thread)) in all.iter().zip(c.threads().iter().skip(1)).enumerate() {
                let (n, (room, bytes)) = (u64::from(w.sessions) * 2, w.room);
                out.line(format_args!("-------- thread {} {} --------", worker + 1, thread.name));
                out.line("Hash table 'flow_hash'");
                out.line(format_args!("    {n} active elements, room for {}", u64::from(room) * 2));
                out.line(format_args!("    memory: {bytes} bytes when full"));
                rows.push(json!({ "worker": worker, "elements": n, "room": u64::from(room) * 2, "bytes": bytes }));
            }
            let tables = json!({ "by-local": inside, "by-external": outside });
            out.json(json!({ "static-mappings": tables, "flows": Value::from(rows) }));
        })
    }
}
