//! `show lcp routes`.

use crate::routes::{self, Destinations, MOST_SHOWN, RoutesView, Unresolved};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show lcp routes [unresolved]`
pub struct ShowLcpRoutes;

/// The command.
pub static COMMAND: ShowLcpRoutes = ShowLcpRoutes;

fn name(n: &RoutesView) -> &str {
    if n.name.is_empty() { "of the router" } else { &n.name }
}

/// Counters and sizes of a namespace.
fn lines(n: &RoutesView, out: &mut Output) {
    let s = &n.state;
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
        "  {} notices, {} overruns, {} resyncs, {} interrupted, {} failed",
        s.counters.notices,
        s.counters.overruns,
        s.counters.resyncs,
        s.counters.interrupted,
        s.counters.failed
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
    json!({
        "netns": n.name,
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
        let (some, count) = routes::unresolved(c);
        for Unresolved { namespace, of, why } in &some {
            match of {
                Destinations::Prefix { table, ip, bits } => {
                    out.line(format_args!("{ip}/{bits} netns {namespace} table {table}: {why}"));
                }
                Destinations::Label(label) => {
                    out.line(format_args!("label {label} netns {namespace}: {why}"));
                }
            }
        }
        if count > some.len() {
            out.line(format_args!("{} more; {MOST_SHOWN} are shown", count - some.len()));
        }
        let rows = some.iter().map(|Unresolved { namespace, of, why }| {
            let (table, prefix, label) = match of {
                Destinations::Prefix { table, ip, bits } => {
                    (Some(table), Some(format!("{ip}/{bits}")), None)
                }
                Destinations::Label(label) => (None, None, Some(label)),
            };
            json!({
                "netns": namespace,
                "table": table,
                "prefix": prefix,
                "label": label,
                "reason": why,
            })
        });
        out.json(json!({ "count": count, "routes": rows.collect::<Vec<_>>() }));
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { vec!["unresolved".into()] } else { Vec::new() }
    }
}
