//! `show lcp`.

use crate::class::Class;
use crate::options::{self, Options};
use crate::pairs::{self, PairView};
use serde_json::{Map, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `show lcp [phy <interface>]`
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

fn row(pair: &PairView) -> serde_json::Value {
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
    })
}

fn settings(o: &Options, out: &mut Output) {
    let namespace = o.namespace.as_deref().unwrap_or("<unset>");
    out.line(format_args!("lcp default netns '{namespace}'"));
    out.line(format_args!("lcp lcp-auto-subint {}", word(o.auto_subint)));
    out.line(format_args!("lcp lcp-sync {}", word(o.sync)));
    out.line(format_args!("lcp lcp-sync-unnumbered {}", word(o.sync_unnumbered)));
    out.line(format_args!("lcp del-static-on-link-down {}", word(o.del_static)));
    out.line(format_args!("lcp del-dynamic-on-link-down {}", word(o.del_dynamic)));
}

impl Command<Control> for ShowLcp {
    fn path(&self) -> &'static str {
        "show lcp"
    }

    fn usage(&self) -> &'static str {
        "[phy <interface>]"
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
        let phy = match args.is_empty() {
            true => None,
            false => {
                args.choice("option", &["phy"])?;
                Some(interface_arg(c, args)?)
            }
        };
        args.end()?;
        let (options, all) = match phy {
            Some(phy) => (None, pairs::get(c, phy).into_iter().collect()),
            None => (Some(options::get(c)), pairs::all(c)),
        };
        if let Some(options) = &options {
            settings(options, out);
        }
        all.iter().for_each(|pair| out.line(line(pair)));
        let rows: Vec<serde_json::Value> = all.iter().map(row).collect();
        out.json(match options {
            None => json!({ "pairs": rows }),
            Some(o) => json!({
                "netns": o.namespace,
                "auto-subint": o.auto_subint,
                "sync": o.sync,
                "sync-unnumbered": o.sync_unnumbered,
                "del-static-on-link-down": o.del_static,
                "del-dynamic-on-link-down": o.del_dynamic,
                "pairs": rows,
            }),
        });
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { vec!["phy".into()] } else { interface_names(c) }
    }
}
