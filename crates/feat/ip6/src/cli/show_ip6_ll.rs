//! `show ip6-ll`: the link-local addresses of each link, which are in no table.

use crate::{dad, link_local};
use serde_json::json;
use std::net::IpAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_feat_neighbor::Neighbors;
use thalweg_graph::Control;

/// `show ip6-ll [<interface>]`
pub struct ShowIp6Ll;

/// The command.
pub static COMMAND: ShowIp6Ll = ShowIp6Ll;

impl Command<Control> for ShowIp6Ll {
    fn path(&self) -> &'static str {
        "show ip6-ll"
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show what link-local addresses lead to on each interface"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = if args.is_empty() { None } else { Some(interface_arg(c, args)?) };
        args.end()?;
        let mut rows = Vec::new();
        for (sw_if, own) in link_local::all(c) {
            if only.is_some_and(|only| only != sw_if) {
                continue;
            }
            let name = c.interface_name(sw_if);
            let held = dad::holds(c, sw_if, own);
            out.line(format_args!("IP6-link-local:{name}"));
            let why = if held { " (not used: see `show ip6 dad')" } else { "" };
            out.line(format_args!("  {own}/128\n    dpo-receive: {own} on {name}{why}"));
            let neighbors: Vec<_> = {
                let all = c.state::<Neighbors>();
                let all = all.borrow();
                let first = IpAddr::V6(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0));
                let last =
                    IpAddr::V6(std::net::Ipv6Addr::from_bits((0xfebf << 112) | (u128::MAX >> 16)));
                all.between(sw_if, first, last).collect()
            };
            for n in &neighbors {
                if let Some(mac) = n.mac {
                    out.line(format_args!("  {}/128\n    ipv6 via {} {name}: {mac}", n.ip, n.ip));
                }
            }
            out.line(format_args!("  fe80::/10\n    ipv6-glean: {name}"));
            rows.push(json!({
                "interface": name, "address": own, "used": !held,
                "neighbors": neighbors.iter().filter_map(|n| Some(json!({
                    "address": n.ip, "mac": n.mac?.to_string(),
                }))).collect::<Vec<_>>(),
            }));
        }
        out.json(json!(rows));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
