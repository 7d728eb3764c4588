//! Advertisements in `show ip6 interface`.

use crate::config::{Port, Ports};
use serde_json::{Value, json};
use thalweg_cli::Output;
use thalweg_device::{InterfaceView, MtuOf};
use thalweg_graph::{Control, clock};

pub(crate) fn part(c: &Control, view: &InterfaceView, out: &mut Output) -> (&'static str, Value) {
    let state = c.state::<Ports>();
    let Port { config, progress } = state.borrow().0.get(&view.sw_if).cloned().unwrap_or_default();
    let (mtu, now) = (view.mtu.of(MtuOf::Ip6), clock::now());
    if !config.prefixes.is_empty() {
        out.line("  Advertised Prefixes:");
    }
    let mut prefixes = Vec::new();
    for p in &config.prefixes {
        let (ip, len, left) = (p.ip, p.len, p.left(now));
        out.line(format_args!("      prefix {ip}, length {len}"));
        prefixes.push(json!({
            "prefix": format!("{ip}/{len}"), "on-link": p.on_link, "autonomous": p.autonomous,
            "advertised": p.advertised, "valid": left.valid, "preferred": left.preferred,
        }));
    }
    out.line(format_args!("    MTU is {mtu}"));
    if config.send {
        let not = if config.managed { "" } else { " don't" };
        let (longest, shortest) = config.interval;
        out.line(format_args!("    ND advertised reachable time is {}", config.reachable_ms));
        let retransmit = config.retransmit_ms;
        out.line(format_args!("    ND advertised retransmit interval is {retransmit} (msec)"));
        out.line(format_args!(
            "    ND router advertisements are sent every {longest}.0 seconds (min interval is \
             {shortest}.0)"
        ));
        let lifetime = config.lifetime;
        out.line(format_args!("    ND router advertisements live for {lifetime} seconds"));
        // VPP's words; the flag says that hosts get their addresses by DHCPv6.
        out.line(format_args!("    Hosts {not} use stateless autoconfig for addresses"));
    }
    let (sent, solicited, dropped) = (progress.sent, progress.solicited, progress.dropped);
    out.line(format_args!("    ND router advertisements sent {sent}"));
    out.line(format_args!("    ND router solicitations received {solicited}"));
    out.line(format_args!("    ND router solicitations dropped {dropped}"));
    let json = json!({
        "send": config.send, "managed": config.managed, "other": config.other,
        "lifetime": config.lifetime, "max-interval": config.interval.0,
        "min-interval": config.interval.1, "hop-limit": config.hop_limit,
        "preference": config.preference.word(), "prefixes": prefixes,
        "dns-servers": config.servers, "dns-domains": config.domains,
        "routes": config.routes.iter().map(|r| format!("{}/{}", r.ip, r.len)).collect::<Vec<_>>(),
        "sent": sent, "solicited": solicited, "dropped": dropped,
    });
    ("router-advertisements", json)
}
