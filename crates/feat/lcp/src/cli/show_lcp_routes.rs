//! `show lcp routes`.

use crate::routes::{self, Destinations, Look, MOST_SHOWN, RoutesView, Unresolved};
use serde_json::{Value, json};
use std::time::Instant;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_device_linux::routes::FpmState;
use thalweg_graph::Control;

/// `show lcp routes [unresolved]`
pub struct ShowLcpRoutes;

/// The command.
pub static COMMAND: ShowLcpRoutes = ShowLcpRoutes;

fn name(n: &RoutesView) -> &str {
    if n.name.is_empty() { "of the router" } else { &n.name }
}

/// Seconds until routes go that are not announced again.
fn seconds_left(fpm: &FpmState) -> Option<u64> {
    fpm.stale_until.map(|at| at.saturating_duration_since(Instant::now()).as_secs())
}

/// Counters and sizes of what `zebra` sends.
fn fpm_lines(n: &RoutesView, fpm: &FpmState, out: &mut Output) {
    let s = &n.state;
    out.line(format_args!(
        "netns {} by FPM: {} routes, {} labels, {} next-hop objects, {} changes wait",
        name(n),
        s.routes,
        s.labels,
        s.objects,
        s.waiting
    ));
    let client = match (fpm.client, fpm.listens) {
        (Some(client), _) => format!("connection of {client}"),
        (None, true) => "no connection".into(),
        (None, false) => "does not listen, the log says why".into(),
    };
    let stale = seconds_left(fpm)
        .map_or_else(String::new, |left| format!("; what is not announced again goes in {left} s"));
    out.line(format_args!("  {}: {client}{stale}", fpm.address));
    out.line(format_args!(
        "  {} connections, {} refused, {} frames, {} faults, {} messages",
        fpm.connections, fpm.refused, fpm.frames, fpm.faults, s.counters.notices
    ));
    out.line(format_args!(
        "  {} bytes; {} unsupported, {} beyond limits",
        s.memory, s.left.unsupported, s.left.beyond
    ));
}

/// Counters and sizes of a namespace.
fn lines(n: &RoutesView, out: &mut Output) {
    let s = &n.state;
    if let Some(fpm) = &s.fpm {
        return fpm_lines(n, fpm, out);
    }
    let complete = if s.complete { "" } else { " (the first list is not complete)" };
    out.line(format_args!(
        "netns {}: {} routes, {} labels, {} next-hop objects, {} changes wait{complete}",
        name(n),
        s.routes,
        s.labels,
        s.objects,
        s.waiting
    ));
    out.line(format_args!(
        "  {} notices, {} overruns, {} resyncs, {} interrupted, {} failed, {} restarts",
        s.counters.notices,
        s.counters.overruns,
        s.counters.resyncs,
        s.counters.interrupted,
        s.counters.failed,
        s.counters.restarts
    ));
    if let Some(last) = s.counters.last {
        out.line(format_args!(
            "  last resync {} s ago: {} ms, {} differed ({})",
            last.at.elapsed().as_secs(),
            last.took.as_millis(),
            last.differences,
            last.cause.word()
        ));
    }
    out.line(format_args!(
        "  {} bytes, {} of them for notices at most; {} unsupported, {} beyond limits",
        s.memory, s.buffer, s.left.unsupported, s.left.beyond
    ));
}

fn row(n: &RoutesView) -> Value {
    let s = &n.state;
    let fpm = s.fpm.as_ref().map(|fpm| {
        json!({
            "address": fpm.address.to_string(),
            "listens": fpm.listens,
            "client": fpm.client.map(|client| client.to_string()),
            "connections": fpm.connections,
            "refused": fpm.refused,
            "frames": fpm.frames,
            "faults": fpm.faults,
            "stale-seconds-left": seconds_left(fpm),
        })
    });
    json!({
        "netns": n.name,
        "source": n.source(),
        "fpm": fpm,
        "complete": s.complete,
        "routes": s.routes,
        "labels": s.labels,
        "objects": s.objects,
        "waiting": s.waiting,
        "notices": s.counters.notices,
        "overruns": s.counters.overruns,
        "resyncs": s.counters.resyncs,
        "interrupted": s.counters.interrupted,
        "failed": s.counters.failed,
        "restarts": s.counters.restarts,
        "last": s.counters.last.map(|last| json!({
            "cause": last.cause.word(),
            "ms": last.took.as_millis() as u64,
            "differences": last.differences,
            "seconds-ago": last.at.elapsed().as_secs(),
        })),
        "memory": s.memory,
        "buffer": s.buffer,
        "unsupported": s.left.unsupported,
        "beyond-limits": s.left.beyond,
    })
}

impl Command<Control> for ShowLcpRoutes {
    fn path(&self) -> &'static str {
        "show lcp routes"
    }

    fn usage(&self) -> &'static str {
        "[unresolved]"
    }

    fn help(&self) -> &'static str {
        "Show how the kernel's routes are followed, or those that stay in the kernel alone"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let unresolved = args.exact("unresolved");
        args.end()?;
        if !unresolved {
            let (all, counters) = (routes::namespaces(c), routes::counters(c));
            all.iter().for_each(|n| lines(n, out));
            out.line(format_args!(
                "{} changes taken, {} routes refused",
                counters.taken, counters.refused
            ));
            out.json(json!({
                "namespaces": all.iter().map(row).collect::<Vec<_>>(),
                "taken": counters.taken,
                "refused": counters.refused,
            }));
            return Ok(Outcome::Done);
        }
        Ok(Outcome::pending(ShowUnresolved(Look::new(c))))
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { vec!["unresolved".into()] } else { Vec::new() }
    }
}

/// A look at all routes, in slices: there may be millions.
struct ShowUnresolved(Look);

impl Task<Control> for ShowUnresolved {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        if self.0.go_on(c) {
            return TaskPoll::At(now);
        }
        let Look { found, count, .. } = &self.0;
        found.iter().for_each(|one| out.line(unresolved_line(one)));
        if *count > found.len() {
            out.line(format_args!("{} more; {MOST_SHOWN} are shown", count - found.len()));
        }
        let rows: Vec<Value> = found.iter().map(unresolved_row).collect();
        out.json(json!({ "count": count, "routes": rows }));
        TaskPoll::Done
    }
}

fn unresolved_line(Unresolved { namespace, is_fpm, of, why }: &Unresolved) -> String {
    let by = if *is_fpm { " by FPM" } else { "" };
    match of {
        Destinations::Prefix { table, ip, bits } => {
            format!("{ip}/{bits} netns {namespace}{by} table {table}: {why}")
        }
        Destinations::Label(label) => format!("label {label} netns {namespace}{by}: {why}"),
    }
}

fn unresolved_row(Unresolved { namespace, is_fpm, of, why }: &Unresolved) -> Value {
    let (table, prefix, label) = match of {
        Destinations::Prefix { table, ip, bits } => {
            (Some(table), Some(format!("{ip}/{bits}")), None)
        }
        Destinations::Label(label) => (None, None, Some(label)),
    };
    json!({
        "netns": namespace,
        "source": if *is_fpm { "fpm" } else { "kernel" },
        "table": table,
        "prefix": prefix,
        "label": label,
        "reason": why,
    })
}
