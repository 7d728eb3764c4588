//! `show conntrack summary`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_conntrack::WhenFull;
use thalweg_graph::Control;

use crate::tracking;
use crate::{Sums, Tracking};

/// The command.
pub static COMMAND: ShowConntrackSummary = ShowConntrackSummary;

/// The command's type.
pub struct ShowConntrackSummary;

impl Command<Control> for ShowConntrackSummary {
    fn path(&self) -> &'static str {
        "show conntrack summary"
    }
    fn usage(&self) -> &'static str {
        ""
    }
    fn help(&self) -> &'static str {
        "Show the settings of connection tracking, the number of connections, and counters."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        tracking::with_sums(cx, out, |cx, sums, out| show(cx, &sums, out))
    }
}

fn show(cx: &Control, sums: &Sums, out: &mut Output) {
    let settings = cx.state::<Tracking>().borrow().clone();
    let Sums { counts, live, cache, zones: in_zones } = sums;
    out.line("Connections Stats:");
    out.line(format_args!("    Total: {}", live.total()));
    for (name, n) in [
        ("TCP", live.tcp),
        ("UDP", live.udp),
        ("ICMP", live.icmp),
        ("Other", live.other),
        ("of IPv6", live.ipv6),
    ] {
        if n > 0 {
            out.line(format_args!("  {name}: {n}"));
        }
    }
    let word = |on: bool| if on { "enabled" } else { "disabled" };
    let full = match settings.when_full {
        WhenFull::Refuse => "refuse new ones",
        WhenFull::Recycle => "recycle the oldest unanswered",
    };
    out.line(format_args!("Limit: {}, when full: {full}", settings.limit));
    out.line(format_args!("TCP sequence checking: {}", word(settings.check_windows)));
    out.line(format_args!("Checksum verification: {}", word(settings.checksums)));
    for (zone, policy) in &settings.policies {
        let zone = zone.map_or("all".into(), |zone| zone.to_string());
        out.line(format_args!("Zone:{zone}, Timeout Policies: {policy}"));
    }
    let default = settings.zone_limits.get(&None).copied().unwrap_or(0);
    out.line(format_args!("default limit={default}"));
    for (zone, limit) in &settings.zone_limits {
        if let Some(zone) = zone {
            let count = in_zones.get(zone).copied().unwrap_or(0);
            out.line(format_args!("zone={zone},limit={limit},count={count}"));
        }
    }
    for (name, n) in counts.all() {
        out.line(format_args!("{name:<36}{n:>16}"));
    }
    out.line(format_args!("{:<36}{:>16}", "flow cache hits", cache[0]));
    out.line(format_args!("{:<36}{:>16}", "flow cache misses", cache[1]));
    let counted: serde_json::Map<String, serde_json::Value> =
        counts.keyed().map(|(name, n)| (name.into(), n.into())).collect();
    out.json(serde_json::json!({
        "total": live.total(), "tcp": live.tcp, "udp": live.udp, "icmp": live.icmp,
        "ipv6": live.ipv6,
        "limit": settings.limit, "counts": counted,
        "flow_cache_hits": cache[0], "flow_cache_misses": cache[1],
    }));
}
