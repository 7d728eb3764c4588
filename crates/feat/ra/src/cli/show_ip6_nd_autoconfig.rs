//! `show ip6 nd autoconfig`: what interfaces have by other routers' advertisements.

use crate::autoconfig::{self, Found, Router};
use serde_json::json;
use std::time::Instant;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::{Control, clock};

/// `show ip6 nd autoconfig`
pub struct ShowIp6NdAutoconfig;

/// The command.
pub static COMMAND: ShowIp6NdAutoconfig = ShowIp6NdAutoconfig;

fn seconds(until: Option<Instant>) -> Option<u64> {
    until.map(|until| until.saturating_duration_since(clock::now()).as_secs())
}

impl Command<Control> for ShowIp6NdAutoconfig {
    fn path(&self) -> &'static str {
        "show ip6 nd autoconfig"
    }

    fn help(&self) -> &'static str {
        "Show addresses and default routers by other routers' advertisements"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let mut rows = Vec::new();
        for (sw_if, takes) in autoconfig::all(c) {
            let name = c.interface_name(sw_if);
            let (addresses, routers) = autoconfig::found(c, sw_if);
            let what = if takes.default_route { "addresses, default routes" } else { "addresses" };
            out.line(format_args!("{name}: {what}"));
            for Found { ip, until, .. } in &addresses {
                match seconds(*until) {
                    Some(left) => out.line(format_args!("  {ip}/64 valid for {left} seconds")),
                    None => out.line(format_args!("  {ip}/64 valid for ever")),
                }
            }
            for Router { ip, until, preference, .. } in &routers {
                let (left, word) = (seconds(Some(*until)).unwrap_or(0), preference.word());
                out.line(format_args!("  router {ip} for {left} seconds, preference {word}"));
            }
            rows.push(json!({
                "interface": name, "default-route": takes.default_route,
                "addresses": addresses.iter().map(|a| json!({
                    "address": format!("{}/64", a.ip), "seconds": seconds(a.until),
                })).collect::<Vec<_>>(),
                "routers": routers.iter().map(|r| json!({
                    "address": r.ip, "seconds": seconds(Some(r.until)),
                    "preference": r.preference.word(),
                })).collect::<Vec<_>>(),
            }));
        }
        let full = autoconfig::overflows(c);
        if full > 0 {
            out.line(format_args!("{full} addresses and routers did not find room"));
        }
        out.json(json!({ "interfaces": rows, "no-room": full }));
        Ok(Outcome::Done)
    }
}
