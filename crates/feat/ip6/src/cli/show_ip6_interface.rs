//! `show ip6 interface`: addresses and groups of interfaces.

use crate::{dad, link_local, show};
use serde_json::json;
use std::net::Ipv6Addr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_device::{InterfaceView, Interfaces, MtuOf, interface};
use thalweg_feat_ip::Ip6;
use thalweg_feat_nd as nd;
use thalweg_graph::Control;

/// `show ip6 interface [<interface>]`
pub struct ShowIp6Interface;

/// The command.
pub static COMMAND: ShowIp6Interface = ShowIp6Interface;

impl Command<Control> for ShowIp6Interface {
    fn path(&self) -> &'static str {
        "show ip6 interface"
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show the IPv6 addresses of interfaces, and the groups that they have joined"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = if args.is_empty() { None } else { Some(interface_arg(c, args)?) };
        args.end()?;
        let views: Vec<InterfaceView> = match only {
            Some(i) => interface::view(c, i).into_iter().collect(),
            None => {
                let all = c.state::<Interfaces>();
                let all: Vec<InterfaceView> = all.borrow().iter().cloned().collect();
                let speaks = |v: &InterfaceView| link_local::of(c, v.sw_if).is_some();
                all.into_iter().filter(speaks).collect()
            }
        };
        let mut json = Vec::new();
        for view in views {
            json.push(show_one(c, &view, out));
        }
        out.json(json.into());
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}

/// Shows an interface; returns it as JSON.
fn show_one(c: &Control, view: &InterfaceView, out: &mut Output) -> serde_json::Value {
    let Some(own) = link_local::of(c, view.sw_if) else {
        out.line("IP6 disabled");
        return json!({ "interface": view.name, "enabled": false });
    };
    let addresses: Vec<(Ipv6Addr, u8)> = {
        let ip6 = c.state::<Ip6>();
        let ip6 = ip6.borrow();
        let all = ip6.usable_addresses(view.sw_if);
        all.map(|a| (Ipv6Addr::from_bits(a.addr), a.len)).collect()
    };
    let groups = nd::groups(c, view.sw_if);
    let mtu = view.mtu.of(MtuOf::Ip6);
    out.line(format_args!("{} is admin {}", view.name, if view.admin_up { "up" } else { "down" }));
    let is_local = |ip: &Ipv6Addr| ip.is_unique_local();
    for (title, local) in [("Local unicast", true), ("Global unicast", false)] {
        let some: Vec<_> = addresses.iter().filter(|(ip, _)| is_local(ip) == local).collect();
        if !some.is_empty() {
            out.line(format_args!("  {title} address(es):"));
        }
        for (ip, len) in some {
            out.line(format_args!("    {ip}/{len}"));
        }
    }
    out.line("  Link-local address(es):");
    out.line(format_args!("    {own}"));
    out.line("  Neighbor Discovery: enabled");
    out.line("    ICMP redirects are disabled");
    out.line("    ICMP unreachables are not sent");
    let tested = if dad::config(c).is_some() { "enabled" } else { "disabled" };
    out.line(format_args!("    ND DAD is {tested}"));
    let parts: Vec<_> = show::parts(c).into_iter().map(|part| part(c, view, out)).collect();
    let held: Vec<_> = dad::list(c).into_iter().filter(|((i, _), _)| *i == view.sw_if).collect();
    if dad::config(c).is_some() {
        out.line("  DAD: enabled");
    }
    let transmits = dad::config(c).unwrap_or_default().transmits;
    for ((_, ip), e) in &held {
        let (word, sent) = (e.state.word(), e.sent);
        out.line(format_args!("    {ip} {word} (transmits: {sent}/{transmits})"));
    }
    out.line("  Joined group address(es):");
    groups.iter().for_each(|group| out.line(format_args!("    {group}")));
    let mut json = json!({
        "interface": view.name, "enabled": true, "admin_up": view.admin_up,
        "link_local": own, "mtu": mtu, "groups": groups,
        "addresses": addresses.iter().map(|(ip, len)| format!("{ip}/{len}")).collect::<Vec<_>>(),
        "not_used": held.iter().map(|((_, ip), e)| json!({
            "address": ip, "state": e.state.word(),
        })).collect::<Vec<_>>(),
    });
    for (key, value) in parts {
        json[key] = value;
    }
    json
}
