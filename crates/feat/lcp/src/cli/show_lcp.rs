//! `show lcp`.

use super::lcp_param;
use crate::class::Class;
use crate::options::{self, Options};
use crate::pairs::{self, PairView};
use crate::sync::{self, NamespaceView};
use serde_json::{Map, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_device_linux::mirror::MirrorCounters;
use thalweg_graph::Control;

/// `show lcp [phy <interface>|verbose]`
pub struct ShowLcp;

/// The command.
pub static COMMAND: ShowLcp = ShowLcp;

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A pair as VPP shows it.
fn line(pair: &PairView) -> String {
    let namespace = pair.pair.namespace.as_ref().map_or(String::new(), |n| format!(" netns {n}"));
    let away = if pair.is_away { " (away)" } else { "" };
    format!(
        "itf-pair: [{}] {} {} {} {} type {}{namespace}{away}",
        pair.number,
        pair.phy,
        pair.host,
        pair.name,
        pair.ifindex,
        pair.kind()
    )
}

fn row(c: &Control, pair: &PairView) -> serde_json::Value {
    let refused = sync::refused(c, pair.pair.phy).into_iter();
    let refused: Vec<_> = refused.map(|(what, why)| json!({ "what": what, "why": why })).collect();
    let punted: Map<String, serde_json::Value> = Class::ALL
        .iter()
        .zip(pair.punted)
        .map(|(class, n)| {
            (class.name().into(), json!({ "passed": n.passed, "limited": n.limited }))
        })
        .collect();
    json!({
        "index": pair.number,
        "phy": pair.phy,
        "host": pair.host,
        "name": pair.name,
        "ifindex": pair.ifindex,
        "type": pair.kind(),
        "netns": pair.pair.namespace,
        "away": pair.is_away,
        "punted": punted,
        "refused": refused,
    })
}

fn settings(o: &Options, out: &mut Output) {
    let namespace = o.namespace.as_deref().unwrap_or("<unset>");
    out.line(format_args!("lcp default netns '{namespace}'"));
    out.line(format_args!("lcp lcp-auto-subint {}", word(o.auto_subint)));
    out.line(format_args!("lcp lcp-sync {}", word(o.sync)));
    out.line(format_args!("lcp lcp-sync-unnumbered {}", word(o.sync_unnumbered)));
    if let Some(address) = o.fpm {
        out.line(format_args!("lcp fpm {address}"));
    }
    // VPP shows these settings; they are about routes of the kernel.
    for name in lcp_param::WORDS {
        out.line(format_args!("lcp {name} off"));
    }
}

/// Counters of a namespace.
fn namespace_line(n: &NamespaceView) -> String {
    let name = if n.name.is_empty() { "of the router" } else { &n.name };
    let MirrorCounters { notices, overruns, looks, orders, refused } = n.counters;
    format!(
        "netns {name}: {} twins, {notices} notices, {overruns} overruns, {looks} looks, \
         {orders} orders, {refused} refused",
        n.twins
    )
}

fn namespace_row(n: &NamespaceView) -> serde_json::Value {
    json!({
        "netns": n.name,
        "twins": n.twins,
        "notices": n.counters.notices,
        "overruns": n.counters.overruns,
        "looks": n.counters.looks,
        "orders": n.counters.orders,
        "refused": n.counters.refused,
    })
}

impl Command<Control> for ShowLcp {
    fn path(&self) -> &'static str {
        "show lcp"
    }

    fn usage(&self) -> &'static str {
        "[phy <interface>|verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the twins of interfaces in the kernel, and the settings for all"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let option = match args.is_empty() {
            true => "",
            false => args.choice("option", &["phy", "verbose"])?,
        };
        let phy = if option == "phy" { Some(interface_arg(c, args)?) } else { None };
        args.end()?;
        let (options, all) = match phy {
            Some(phy) => (None, pairs::get(c, phy).into_iter().collect()),
            None => (Some(options::get(c)), pairs::all(c)),
        };
        if let Some(options) = &options {
            settings(options, out);
        }
        for pair in &all {
            out.line(line(pair));
            for (what, why) in sync::refused(c, pair.pair.phy) {
                out.line(format_args!("  {} does not take {what} of its twin: {why}", pair.phy));
            }
        }
        let (namespaces, changes) = (sync::namespaces(c), sync::counters(c));
        if option == "verbose" {
            namespaces.iter().for_each(|n| out.line(namespace_line(n)));
            out.line(format_args!(
                "changes of twins by Linux: {} taken, {} refused",
                changes.taken, changes.not_taken
            ));
        }
        let rows: Vec<serde_json::Value> = all.iter().map(|pair| row(c, pair)).collect();
        out.json(match options {
            None => json!({ "pairs": rows }),
            Some(o) => json!({
                "netns": o.namespace,
                "auto-subint": o.auto_subint,
                "sync": o.sync,
                "sync-unnumbered": o.sync_unnumbered,
                "fpm": o.fpm.map(|address| address.to_string()),
                "pairs": rows,
                "namespaces": namespaces.iter().map(namespace_row).collect::<Vec<_>>(),
                "changes": { "taken": changes.taken, "refused": changes.not_taken },
            }),
        });
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => vec!["phy".into(), "verbose".into()],
            ["phy"] => interface_names(c),
            _ => Vec::new(),
        }
    }
}
