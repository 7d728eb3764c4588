//! `show interface`: state, MTU and counters, in VPP's columns.

use crate::command_line::{interface_arg, interface_maybe, interface_names, sorted};
use crate::interface::{InterfaceView, Mtu, SwIfIndex};
use crate::report;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show interface`
pub struct ShowInterface;

/// The command.
pub static COMMAND: ShowInterface = ShowInterface;

/// Column of the counters.
const COUNTERS: usize = 68;

/// Text of an interface: one line, and one more per further counter.
fn text(c: &Control, v: &InterfaceView, out: &mut Output) {
    let Mtu { l3, ip4, ip6, mpls } = v.mtu;
    let head = [
        format!("{:32}", v.name),
        report::centre(&v.sw_if.to_string(), 5),
        report::centre(report::up_down(v.admin_up), 10),
        report::centre(&format!("{l3}/{ip4}/{ip6}/{mpls}"), 21),
    ]
    .concat();
    let rows: Vec<_> =
        c.interface_totals(v.sw_if).rows().into_iter().filter(|(_, n)| *n > 0).collect();
    let mut head = head.as_str();
    for (name, n) in &rows {
        out.line(format_args!("{head:COUNTERS$}{name:16}{n:16}"));
        head = "";
    }
    if rows.is_empty() {
        out.line(head.trim_end());
    }
}

/// JSON of an interface, all counters included.
fn value(c: &Control, v: &InterfaceView) -> serde_json::Value {
    let Mtu { l3, ip4, ip6, mpls } = v.mtu;
    let counters: serde_json::Map<_, _> = c
        .interface_totals(v.sw_if)
        .rows()
        .into_iter()
        .map(|(name, n)| (name.replace([' ', '-'], "_"), json!(n)))
        .collect();
    json!({
        "name": v.name,
        "index": v.sw_if.get(),
        "type": v.dev_type,
        "admin_up": v.admin_up,
        "link_up": v.link_up,
        "mtu": { "l3": l3, "ip4": ip4, "ip6": ip6, "mpls": mpls },
        "link_mtu": v.link_mtu,
        "promiscuous": v.promiscuous,
        "counters": counters,
    })
}

impl Command<Control> for ShowInterface {
    fn path(&self) -> &'static str {
        "show interface"
    }

    fn usage(&self) -> &'static str {
        "[<interface> ...] [address|features]"
    }

    fn help(&self) -> &'static str {
        "Show interfaces: state, MTU and counters\n\
         Zero counters are omitted. `clear interfaces' clears the counters."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut chosen: Vec<SwIfIndex> = Vec::new();
        let mut what = None;
        while !args.is_empty() {
            // An interface name takes precedence over a keyword that it abbreviates.
            match interface_maybe(c, args) {
                Some(sw_if) => chosen.push(sw_if),
                None if what.is_none() => {
                    what = args.one_of(&["address", "features", "verbose"])?;
                    if what.is_none() {
                        interface_arg(c, args)?;
                    }
                }
                None => args.end()?,
            }
        }
        if chosen.is_empty() {
            chosen = sorted(c);
        }
        Ok(match what {
            Some("address") => report::addresses(c, chosen, out),
            Some("features") => report::features(c, chosen, out),
            _ => {
                let titles = [
                    ("Name", 32),
                    ("Idx", 5),
                    ("State", 10),
                    ("MTU (L3/IP4/IP6/MPLS)", 21),
                    ("Counter", 16),
                    ("Count", 16),
                ];
                let heading: String = titles.map(|(t, n)| report::centre(t, n)).concat();
                out.line(heading.trim_end());
                report::each(c, chosen, out, |c, v, out| match out.wants_json() {
                    true => out.element(value(c, v)),
                    false => text(c, v, out),
                })
            }
        })
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
