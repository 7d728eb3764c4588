//! `show arp proxy`: addresses of other hosts that the router answers ARP for.

use crate::proxy_arp;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show arp proxy`
pub struct ShowArpProxy;

/// The command.
pub static COMMAND: ShowArpProxy = ShowArpProxy;

impl Command<Control> for ShowArpProxy {
    fn path(&self) -> &'static str {
        "show arp proxy"
    }

    fn help(&self) -> &'static str {
        "Show the ranges of proxy ARP and the interfaces on which they are answered"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let names: Vec<String> =
            proxy_arp::interfaces(c).into_iter().map(|i| c.interface_name(i)).collect();
        let ranges = proxy_arp::ranges(c);
        if !ranges.is_empty() {
            out.line(format_args!("Proxy arps enabled for:"));
        }
        let mut rows = Vec::new();
        for r in &ranges {
            out.line(format_args!("Fib_index {}   {} - {} ", r.table, r.first, r.last));
            rows.push(json!({ "table": r.table.get(), "first": r.first, "last": r.last }));
        }
        if !names.is_empty() {
            out.line(format_args!("Interfaces: {}", names.join(", ")));
        }
        out.json(json!({ "ranges": rows, "interfaces": names }));
        Ok(Outcome::Done)
    }
}
