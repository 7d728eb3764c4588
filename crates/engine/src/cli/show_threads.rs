//! `show threads`: threads and the processors they run on.

use crate::report;
use serde_json::{Value, json};
use std::fmt::Write;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::Control;

/// `show threads`
pub struct ShowThreads;

/// The command.
pub static COMMAND: ShowThreads = ShowThreads;

struct Row {
    id: usize,
    name: String,
    kind: &'static str,
    lwp: i32,
    policy: String,
    lcore: Option<usize>,
    pinned: bool,
    core: Option<usize>,
    socket: Option<usize>,
    state: &'static str,
    events_lost: u64,
}

impl Command<Control> for ShowThreads {
    fn path(&self) -> &'static str {
        "show threads"
    }

    fn help(&self) -> &'static str {
        "Show threads and the processors they run on\n\
         The lcore of a thread that is not pinned is the one it last ran on. Workers report events,\n\
         such as ARP replies, to the main thread; if it fell behind and events were lost, a line\n\
         below the table gives their number."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let rows = collect(c);
        out.json(rows.iter().map(to_json).collect());
        out.text(&format(&rows));
        Ok(Outcome::Done)
    }
}

fn collect(c: &Control) -> Vec<Row> {
    let row = |(id, t): (usize, thalweg_graph::control::ThreadInfo)| {
        let now = report::scheduling(t.tid);
        let lcore = t.core.or(now.cpu);
        let at = |what: &str| lcore.and_then(|cpu| report::topology(cpu, what));
        Row {
            id,
            name: t.name,
            kind: if id == 0 { "" } else { "workers" },
            lwp: t.tid,
            policy: now.policy,
            lcore,
            pinned: t.core.is_some(),
            core: at("core_id"),
            socket: at("physical_package_id"),
            state: match id.checked_sub(1) {
                Some(w) if c.worker_sleeps(w) => "sleeping",
                Some(_) => "polling",
                None => "running",
            },
            events_lost: id
                .checked_sub(1)
                .map_or(0, |w| c.worker_stats(w).totals.events_lost.get()),
        }
    };
    c.threads().into_iter().enumerate().map(row).collect()
}

fn to_json(r: &Row) -> Value {
    json!({
        "id": r.id, "name": r.name, "type": r.kind, "lwp": r.lwp, "sched_policy": r.policy,
        "lcore": r.lcore, "pinned": r.pinned, "core": r.core, "socket": r.socket,
        "state": r.state, "events_lost": r.events_lost,
    })
}

fn format(rows: &[Row]) -> String {
    let headings = [
        ("ID", 7),
        ("Name", 20),
        ("Type", 12),
        ("LWP", 8),
        ("Sched Policy (Priority)", 25),
        ("lcore", 7),
        ("Core", 7),
        ("Socket", 7),
        ("State", 10),
    ];
    let blank = Table::new().gap(0);
    let mut table = headings.iter().fold(blank, |t, (name, w)| t.column(name, Align::Left, *w));
    for r in rows {
        let number = |n: Option<usize>| n.map_or(String::new(), |n| n.to_string());
        table.row([
            r.id.to_string(),
            r.name.clone(),
            r.kind.into(),
            r.lwp.to_string(),
            r.policy.clone(),
            number(r.lcore),
            number(r.core),
            number(r.socket),
            r.state.into(),
        ]);
    }
    let mut text = table.to_string();
    for r in rows.iter().filter(|r| r.events_lost > 0) {
        let _ = writeln!(text, "{}: {} events to the main thread lost", r.name, r.events_lost);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_as_vpp_prints_it() {
        let row = |id, name: &str, kind, lcore, core, state| Row {
            id,
            name: name.into(),
            kind,
            lwp: 4711 + id as i32,
            policy: "other (0)".into(),
            lcore,
            pinned: lcore.is_some(),
            core,
            socket: core.map(|_| 0),
            state,
            events_lost: 0,
        };
        let mut rows = [
            row(0, "main", "", Some(1), Some(1), "running"),
            row(1, "thalweg_wk_0", "workers", Some(2), Some(2), "polling"),
            row(2, "thalweg_wk_1", "workers", None, None, "sleeping"),
        ];
        thalweg_testkit::golden!("tests/golden/threads.txt", format(&rows));
        let without = format(&rows);
        rows[2].events_lost = 7;
        let with = format(&rows);
        let lost = "thalweg_wk_1: 7 events to the main thread lost\n";
        assert_eq!(with.strip_prefix(without.trim_end()).map(str::trim_start), Some(lost));
        assert_eq!(to_json(&rows[2])["events_lost"], 7);
    }
}
