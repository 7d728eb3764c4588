//! `show sflow`.

use crate::exporting::ExportSettings;
use crate::service::Status;
use crate::state::{DEFAULT_DROP_LIMIT, OwnRate, PortReport, Report, report};
use crate::stats::PortTotals;
use serde_json::{Value, json};
use std::fmt::Write;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_engine::setting::Worded;
use thalweg_graph::Control;
use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow_agent::agent::Host;
use thalweg_sflow_agent::netlink::{Channel, SendStats};

/// The command.
pub static COMMAND: ShowSFlow = ShowSFlow;

/// The command's type.
pub struct ShowSFlow;

impl Command<Control> for ShowSFlow {
    fn path(&self) -> &'static str {
        "show sflow"
    }
    fn help(&self) -> &'static str {
        "Show sFlow settings and counters\n\
         The first lines are the commands that configure these settings."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let report = report(cx);
        if out.wants_json() {
            out.json(to_json(&report));
        } else {
            out.text(&to_text(&report));
        }
        Ok(Outcome::Done)
    }
}

fn switch(on: bool) -> &'static str {
    if on { "enable" } else { "disable" }
}

/// Commands that make these settings, one per line.
fn configuration(r: &Report) -> Vec<String> {
    let s = &r.settings;
    let mut lines = vec![
        format!("sflow sampling-rate {}", s.sampling_rate),
        format!("sflow direction {}", s.direction.word()),
        format!("sflow polling-interval {}", s.polling_interval),
        format!("sflow header-bytes {}", s.header_bytes),
        match s.drop_limit {
            DEFAULT_DROP_LIMIT => format!("sflow drop-monitoring {}", switch(s.drop_monitoring)),
            limit => format!("sflow drop-monitoring {} limit {limit}", switch(s.drop_monitoring)),
        },
    ];
    if s.sub_interfaces {
        lines.push("sflow sub-interfaces enable".into());
    }
    let of_speed = |(speed, rate)| format!("sflow sampling-rate {rate} speed {speed}");
    lines.extend(s.speed_rates.iter().map(of_speed));
    lines.extend(r.ports.iter().map(|port| match port.own_rate {
        None => format!("sflow enable {}", port.name),
        Some(rate) => format!("sflow enable {} rate {rate}", port.name),
    }));
    let usual = ExportSettings::default();
    let e = &s.export;
    for (line, value, default) in [
        ("sflow host-interval", e.host_interval as usize, usual.host_interval as usize),
        ("sflow datagram-bytes", e.datagram_bytes, usual.datagram_bytes),
        ("sflow sub-agent", e.sub_agent as usize, usual.sub_agent as usize),
    ] {
        if value != default {
            lines.push(format!("{line} {value}"));
        }
    }
    let agent = &e.agent;
    if let Some(address) = agent.address {
        lines.push(format!("sflow agent-address {address}"));
    } else if *agent != usual.agent {
        let device = agent.device.iter().map(|device| format!(" dev {device}"));
        let preferred = agent.preferred.iter().map(|prefix| format!(" prefer {prefix}"));
        let excluded = agent.excluded.iter().map(|prefix| format!(" exclude {prefix}"));
        let options: String = device.chain(preferred).chain(excluded).collect();
        lines.push(format!("sflow agent-address auto{options}"));
    }
    lines.extend(s.export.collectors.iter().map(|c| {
        let port = (c.port != SFLOW_PORT).then(|| format!(" port {}", c.port));
        let namespace = c.namespace.as_ref().map(|name| format!(" namespace {name}"));
        let device = c.device.as_ref().map(|name| format!(" dev {name}"));
        let options: String = [port, namespace, device].into_iter().flatten().collect();
        format!("sflow collector add {}{options}", c.host)
    }));
    lines.extend(s.netlink.command());
    lines
}

fn to_text(r: &Report) -> String {
    let mut text = configuration(r).join("\n");
    let totals = r.totals;
    let none = Status::default();
    let status = r.service.as_ref().unwrap_or(&none);
    let lost = totals.dropped + status.samples_refused;
    let _ = write!(
        text,
        "\nStatus\n  interfaces enabled: {}\n  packet samples sent: {}\n  \
         packet samples dropped: {lost}\n  counter samples sent: {}\n  \
         counter samples dropped: {}\n  drop samples sent: {}\n  drop samples dropped: {}\n",
        r.ports.len(),
        status.samples_sent,
        status.counters_sent,
        status.counters_refused,
        status.drops_sent,
        r.drops_suppressed + status.drops_refused,
    );
    if status.host_samples > 0 {
        let _ = writeln!(text, "  host samples sent: {}", status.host_samples);
    }
    match (&r.service, status.agent_address) {
        (Err(error), _) => {
            let _ = writeln!(text, "  not sending: {error}");
        }
        (_, Some(address)) => {
            let _ = writeln!(text, "  agent address: {address}");
        }
        (_, None) => {
            let why = if status.collectors.is_empty() { "not needed yet" } else { "none found" };
            let _ = writeln!(text, "  agent address: {why}");
        }
    }
    if totals.dropped > 0 {
        let longest = status.longest_pause.as_secs_f64() * 1e3;
        let _ = writeln!(text, "  longest scheduling delay of the sflow thread: {longest:.1} ms");
    }
    if status.samples_unwanted > 0 {
        let _ = writeln!(
            text,
            "  packet samples discarded without a collector: {}",
            status.samples_unwanted
        );
    }
    if status.samples_stale > 0 {
        let _ = writeln!(
            text,
            "  packet samples discarded with deleted interfaces: {}",
            status.samples_stale
        );
    }
    for (config, stats) in &status.collectors {
        let (datagrams, bytes, errors) = (stats.datagrams, stats.bytes, stats.send_errors);
        let at = stats.addr.filter(|_| matches!(config.host, Host::Name(_)));
        let at = at.map(|addr| format!(" ({})", addr.ip())).unwrap_or_default();
        let _ = write!(text, "  collector {config}{at}: datagrams {datagrams}, bytes {bytes}");
        let _ = write!(text, ", errors {errors}");
        let latest = stats.last_error.as_ref().map(|e| format!(" (latest: {e})"));
        let _ = writeln!(text, "{}", latest.unwrap_or_default());
    }
    netlink_text(r, status, &mut text);
    for port in &r.ports {
        let PortTotals { seen, taken, dropped } = port.totals;
        let _ = writeln!(
            text,
            "  {}: index {}, rate {}{}, pool {seen}, samples taken {taken}, sent {}, dropped {dropped}",
            port.name,
            port.sw_if,
            port.rate,
            why(port),
            port.sent,
        );
    }
    text
}

/// Returns the reason why an interface has the rate that it has, if that follows the speed of its
/// link.
fn why(port: &PortReport) -> String {
    match (port.own_rate, port.speed) {
        (Some(OwnRate::Auto), 0) => " (auto; the speed of the link is not known)".into(),
        (Some(OwnRate::Auto), speed) => format!(" (auto; {} Mb/s)", speed / 1_000_000),
        _ => String::new(),
    }
}

/// Appends the state of the netlink channels in use.
fn netlink_text(r: &Report, status: &Status, text: &mut String) {
    for ((channel, line), listeners) in Channel::ALL.iter().zip(&status.netlink).zip(&r.listeners) {
        let SendStats { sent, failed, last_error, .. } = &line.stats;
        if !status.netlink_wanted && sent + failed == 0 {
            continue;
        }
        let _ = write!(text, "  netlink {channel}: sent {sent}, failed {failed}");
        if let Some(listeners) = listeners {
            let _ = write!(text, ", listeners {}", listeners.sockets);
            if listeners.lost > 0 {
                let _ = write!(text, " too slow for {} datagrams", listeners.lost);
            }
        }
        if let Some(why) = line.closed.as_ref().or(last_error.as_ref()) {
            let _ = write!(text, " ({why})");
        }
        text.push('\n');
    }
}

fn netlink_json(r: &Report, status: &Status) -> Value {
    let n = &r.settings.netlink;
    let mut value = json!({
        "mode": n.mode.word(), "sending": status.netlink_wanted,
        "rx_group": n.rx_group, "tx_group": n.tx_group,
    });
    for ((channel, line), listeners) in Channel::ALL.iter().zip(&status.netlink).zip(&r.listeners) {
        value[channel.to_string()] = json!({
            "sent": line.stats.sent, "failed": line.stats.failed,
            "datagrams": line.stats.datagrams, "listeners": listeners.map(|l| l.sockets),
            "lost_by_listeners": listeners.map(|l| l.lost),
            "error": line.closed.as_ref().or(line.stats.last_error.as_ref()),
        });
    }
    value
}

fn to_json(r: &Report) -> Value {
    let none = Status::default();
    let status = r.service.as_ref().unwrap_or(&none);
    let totals = r.totals;
    let ports = r.ports.iter().map(|p| {
        json!({
            "name": p.name, "sw_if_index": p.sw_if.get(), "rate": p.rate,
            "own_rate": p.own_rate.map(|own| match own {
                OwnRate::Fixed(rate) => Value::from(rate),
                OwnRate::Auto => Value::from("auto"),
            }),
            "speed": p.speed,
            "pool": p.totals.seen, "samples": p.totals.taken, "sent": p.sent,
            "drops": p.totals.dropped,
        })
    });
    let collectors = status.collectors.iter().map(|(config, s)| {
        json!({
            "address": config.to_string(), "at": s.addr.map(|addr| addr.to_string()),
            "datagrams": s.datagrams, "bytes": s.bytes,
            "errors": s.send_errors, "last_error": s.last_error,
        })
    });
    json!({
        "sampling_rate": r.settings.sampling_rate,
        "polling_interval": r.settings.polling_interval,
        "header_bytes": r.settings.header_bytes,
        "direction": r.settings.direction.word(),
        "drop_monitoring": r.settings.drop_monitoring,
        "sub_interfaces": r.settings.sub_interfaces,
        "host_interval": r.settings.export.host_interval,
        "datagram_bytes": r.settings.export.datagram_bytes,
        "sub_agent": r.settings.export.sub_agent,
        "agent_address": status.agent_address.map(|a| a.to_string()),
        "interfaces": ports.collect::<Vec<_>>(),
        "samples": {
            "taken": totals.taken,
            "sent": status.samples_sent,
            "dropped": totals.dropped + status.samples_refused,
            "without_collector": status.samples_unwanted,
            "of_deleted_interfaces": status.samples_stale,
            "longest_wait_us": status.longest_pause.as_micros() as u64,
        },
        "counter_samples": { "sent": status.counters_sent, "dropped": status.counters_refused },
        "drop_samples": {
            "sent": status.drops_sent,
            "dropped": r.drops_suppressed + status.drops_refused,
        },
        "host_samples": { "sent": status.host_samples },
        "collectors": collectors.collect::<Vec<_>>(),
        "netlink": netlink_json(r, status),
        "error": r.service.as_ref().err(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{NetlinkMode, NetlinkSettings};
    use crate::service::LineStatus;
    use crate::state::Settings;
    use std::net::SocketAddr;
    use std::time::Duration;
    use thalweg_device::SwIfIndex;
    use thalweg_sflow_agent::agent::{CollectorConfig, CollectorStats};
    use thalweg_sflow_agent::netlink::Listeners;

    fn example() -> Report {
        let port = |sw_if, name: &str, own_rate: Option<u32>, seen, taken, dropped| PortReport {
            sw_if,
            name: name.into(),
            own_rate: own_rate.map(OwnRate::Fixed),
            rate: own_rate.unwrap_or(10_000),
            speed: 0,
            totals: PortTotals { seen, taken, dropped },
            sent: taken,
        };
        let [first, second] = ["192.0.2.9:6343", "[2001:db8::9]:7000"]
            .map(|c| CollectorConfig::from(c.parse::<SocketAddr>().unwrap()));
        let second = CollectorConfig { namespace: Some("mgmt".into()), ..second };
        let failing = CollectorStats {
            datagrams: 1,
            bytes: 1252,
            send_errors: 2,
            last_error: Some("the send buffer is full".into()),
            ..CollectorStats::default()
        };
        let status = Status {
            samples_sent: 14,
            longest_pause: Duration::from_micros(4200),
            counters_sent: 3,
            agent_address: Some("192.0.2.1".parse().unwrap()),
            collectors: vec![(first.clone(), CollectorStats::default()), (second.clone(), failing)],
            netlink_wanted: true,
            netlink: [
                LineStatus {
                    closed: Some("this kernel has no psample family: modprobe psample".into()),
                    ..LineStatus::default()
                },
                LineStatus {
                    stats: SendStats { sent: 5, datagrams: 2, ..SendStats::default() },
                    closed: None,
                },
                LineStatus::default(),
            ],
            ..Status::default()
        };
        let export =
            ExportSettings { collectors: vec![first, second], ..ExportSettings::default() };
        let netlink = NetlinkSettings { mode: NetlinkMode::Enable, ..NetlinkSettings::default() };
        Report {
            settings: Settings { export, netlink, ..Settings::default() },
            ports: vec![
                port(SwIfIndex(1), "host-eth0", None, 140_000, 13, 0),
                port(SwIfIndex(2), "pg0", Some(100), 160, 1, 2),
            ],
            totals: PortTotals { seen: 141_000, taken: 14, dropped: 2 },
            drops_suppressed: 0,
            service: Ok(status),
            listeners: [None, Some(Listeners { sockets: 1, lost: 3 }), None],
        }
    }

    #[test]
    fn text_is_configuration_and_status() {
        thalweg_testkit::golden!("tests/golden/show_sflow.txt", to_text(&example()));
        let idle = Report {
            settings: Settings::default(),
            ports: Vec::new(),
            totals: PortTotals::default(),
            drops_suppressed: 0,
            service: Err("no more threads".into()),
            listeners: [None; 3],
        };
        thalweg_testkit::golden!("tests/golden/show_sflow_idle.txt", to_text(&idle));
    }

    #[test]
    fn json_holds_the_same() {
        let value = to_json(&example());
        assert_eq!(value["sampling_rate"], 10_000);
        assert_eq!(value["interfaces"][1]["rate"], 100);
        assert_eq!(value["interfaces"][1]["own_rate"], 100);
        assert_eq!(value["interfaces"][0]["pool"], 140_000);
        assert_eq!(
            value["samples"],
            json!({
                "taken": 14, "sent": 14, "dropped": 2, "without_collector": 0,
                "of_deleted_interfaces": 0, "longest_wait_us": 4200,
            })
        );
        assert_eq!(value["collectors"][1]["address"], "[2001:db8::9]:7000 namespace mgmt");
        assert_eq!(value["collectors"][1]["errors"], 2);
    }

    #[test]
    fn a_rate_by_speed_says_why() {
        let mut r = example();
        r.ports[0].own_rate = Some(OwnRate::Auto);
        assert!(
            to_text(&r).contains("rate 10000 (auto; the speed of the link is not known), pool")
        );
        (r.ports[0].speed, r.ports[0].rate) = (2_500_000_000, 2500);
        assert!(to_text(&r).contains("rate 2500 (auto; 2500 Mb/s), pool"), "{}", to_text(&r));
        assert_eq!(to_json(&r)["interfaces"][0]["own_rate"], "auto");
        let line = format!("sflow enable {} rate auto", r.ports[0].name);
        assert!(configuration(&r).contains(&line));
    }
}
