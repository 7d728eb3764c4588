//! `show bihash`: the hash tables of all features.

use crate::metrics::state::OfWorkers;
use serde_json::json;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_feat_flow::Tracking;
use thalweg_feat_l2::L2;
use thalweg_feat_neighbor::neighbors::Neighbors;
use thalweg_graph::Control;

/// `show bihash [detail|verbose]`
pub struct ShowBihash;

/// The command.
pub static COMMAND: ShowBihash = ShowBihash;

/// A table: name, elements, room for elements if it is limited.
type Row = (String, u64, Option<u64>);

impl Command<Control> for ShowBihash {
    fn path(&self) -> &'static str {
        "show bihash"
    }

    fn usage(&self) -> &'static str {
        "[detail|verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the hash tables of all features, and how full they are\n\
         Those of NAT44 and of tracked connections exist once per worker, while in use. The words\n\
         add nothing."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let _ = args.keyword("detail") || args.keyword("verbose");
        args.end()?;
        OfWorkers::with(c, out, |c, known, out| show(rows(c, known), out))
    }
}

fn show(rows: Vec<Row>, out: &mut Output) {
    let mut table = Table::new()
        .column("Name", Align::Left, 24)
        .column("Elements", Align::Right, 12)
        .column("Room", Align::Right, 12);
    let mut values = Vec::new();
    for (name, elements, room) in rows {
        let text = room.map_or_else(|| "-".to_owned(), |room| room.to_string());
        values.push(json!({ "name": name, "elements": elements, "room": room }));
        table.row([name, elements.to_string(), text]);
    }
    out.json(values.into());
    write!(out, "{table}");
}

fn rows(c: &Control, known: OfWorkers) -> Vec<Row> {
    let mut rows = Vec::new();
    {
        let l2 = c.state::<L2>();
        let l2 = l2.borrow();
        let (macs, _) = l2.bridges().count();
        rows.push(("l2fib".to_owned(), macs.into(), Some(l2.bridges().limit().into())));
        rows.push(("neighbors".to_owned(), c.state::<Neighbors>().borrow().len() as u64, None));
    }
    if let Some(nat) = known.nat {
        for (worker, view) in nat.workers.iter().enumerate() {
            let (elements, room) = (u64::from(view.sessions) * 2, u64::from(view.room.0) * 2);
            rows.push((format!("nat44 flows, worker {worker}"), elements, Some(room)));
        }
    }
    if let Some(sums) = known.connections {
        let limit = c.state::<Tracking>().borrow().limit;
        rows.push(("connections".to_owned(), sums.live.total().into(), Some(limit.into())));
    }
    rows
}
