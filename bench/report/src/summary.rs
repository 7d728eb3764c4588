//! Blocks of the page about performance: the machine, a dozen rows end to end, missed targets.

use std::fmt::Write;

use serde_json::Value;

use crate::markdown;
use crate::results::{Bench, number, value};
use crate::targets::Reached;

/// A path of one worker between the packet generator's interfaces.
struct Path {
    name: &'static str,
    table: &'static str,
    row: &'static [&'static str],
    /// Clocks per packet without the generator's input.
    clocks: &'static str,
    /// Clocks per packet of VPP 26.06 on another machine, its generator's input excluded as well.
    vpp: &'static str,
}

const PATHS: &[Path] = &[
    path("L2 cross connect", "24–25"),
    path("L2 bridge domain, 10,000 MAC addresses", "59"),
    path("IPv4, 1 flow", "50–52"),
    path("IPv4, 10,000 flows over 10,000 /32 routes", "49.5"),
    path("IPv4, 500,000 routes, random destinations", "187"),
    nat("NAT44, 1 session", &["1", "sequential"], "116"),
    nat("NAT44, a million sessions at random", &["1048576", "random"], "1152"),
];

const fn path(name: &'static str, vpp: &'static str) -> Path {
    Path { name, table: "Forwarding paths", row: &[], clocks: "clocks/packet", vpp }
}

const fn nat(name: &'static str, row: &'static [&'static str], vpp: &'static str) -> Path {
    Path { name, table: "NAT44", row, clocks: "with NAT44", vpp }
}

/// A place in a table: its title, the first cells of the row, and the column.
type Place = (&'static str, &'static [&'static str], &'static str);

/// A measurement over virtual Ethernet, with those of other forwarders in the same run.
struct Wire {
    name: &'static str,
    unit: &'static str,
    digits: usize,
    thalweg: Place,
    kernel: Option<Place>,
    /// Open vSwitch in user space over packet sockets, and over AF_XDP.
    ovs: [Option<Place>; 2],
}

const SMALL: &str = "Packets of 64 bytes";
const TCP: &str = "TCP, offloads on";
const CONNECTIONS: &str = "New TCP connections";
const PING: &str = "Round trips, TCP, processor time when idle";

const WIRES: &[Wire] = &[
    Wire {
        name: "64-byte packets, L2",
        unit: "Mpps",
        digits: 2,
        thalweg: (SMALL, &["layer 2", "Thalweg, AF_PACKET"], "delivered"),
        kernel: Some((SMALL, &["layer 2", "kernel"], "delivered")),
        ovs: [
            Some((SMALL, &["layer 2", "Open vSwitch, netdev, AF_PACKET"], "delivered")),
            Some((SMALL, &["layer 2", "Open vSwitch, netdev, AF_XDP"], "delivered")),
        ],
    },
    Wire {
        name: "64-byte packets, IPv4",
        unit: "Mpps",
        digits: 2,
        thalweg: (SMALL, &["IPv4", "Thalweg, AF_PACKET"], "delivered"),
        kernel: Some((SMALL, &["IPv4", "kernel"], "delivered")),
        ovs: [
            Some((SMALL, &["IPv4", "Open vSwitch, netdev, AF_PACKET"], "delivered")),
            Some((SMALL, &["IPv4", "Open vSwitch, netdev, AF_XDP"], "delivered")),
        ],
    },
    Wire {
        name: "one TCP connection, offloads on, L2",
        unit: "Gbit/s",
        digits: 1,
        thalweg: (TCP, &["layer 2", "Thalweg, AF_PACKET"], "rate"),
        kernel: Some((TCP, &["layer 2", "kernel"], "rate")),
        ovs: [Some((TCP, &["layer 2", "Open vSwitch, netdev, AF_PACKET"], "rate")), None],
    },
    Wire {
        name: "new TCP connections, four stateful rules",
        unit: "thousand/s",
        digits: 1,
        thalweg: (CONNECTIONS, &["Thalweg, AF_PACKET, four rules"], "rate"),
        kernel: None,
        ovs: [Some((CONNECTIONS, &["Open vSwitch, netdev, AF_PACKET, four rules"], "rate")), None],
    },
    Wire {
        name: "new TCP connections, NAT44",
        unit: "thousand/s",
        digits: 1,
        thalweg: (CONNECTIONS, &["Thalweg, AF_PACKET, NAT44"], "rate"),
        kernel: Some((CONNECTIONS, &["kernel routing, nft `masquerade`"], "rate")),
        ovs: [None, None],
    },
    Wire {
        name: "ping every 10 ms, median",
        unit: "µs",
        digits: 0,
        thalweg: (PING, &["ping every 10 ms, median"], "thalweg"),
        kernel: Some((PING, &["ping every 10 ms, median"], "kernel")),
        ovs: [None, None],
    },
];

/// The blocks, each with its title.
pub fn blocks(benches: &[Bench], reached: &[Reached]) -> Vec<(&'static str, String)> {
    vec![
        ("machine", machine(benches)),
        ("one worker, end to end", paths(benches)),
        ("over virtual Ethernet", wires(benches)),
        ("sFlow in short", sampling(benches)),
        ("missed", missed(reached)),
    ]
}

fn machine(benches: &[Bench]) -> String {
    benches.first().map(markdown::machine).unwrap_or_default()
}

fn cell(benches: &[Bench], (table, row, column): Place) -> Option<&Value> {
    benches.iter().find_map(|b| b.table(table))?.find(row, column)
}

fn measured(benches: &[Bench], place: Option<Place>) -> Option<f64> {
    value(cell(benches, place?)?)
}

fn text(measured: Option<f64>, digits: usize) -> String {
    measured.map_or("–".into(), |value| number(value, digits))
}

/// Rates, and what they are in clocks: those of the counter over the rate, of which the path and
/// the generator's input have their shares.
fn paths(benches: &[Bench]) -> String {
    let mut table = String::from(
        "| one worker, 64-byte packets | Mpps | clocks/packet, end to end | of it the generator | \
         of it the path | the path in VPP 26.06, another machine |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mhz = benches.iter().find_map(|b| b.machine["tsc_mhz"].as_f64());
    for path in PATHS {
        let row: &[&str] = if path.row.is_empty() { &[path.name] } else { path.row };
        let find = |column| {
            let table = benches.iter().find_map(|b| b.table(path.table))?;
            value(table.find(row, column)?)
        };
        let (rate, own) = (find("rate"), find(path.clocks));
        let all = mhz.zip(rate).map(|(mhz, rate)| mhz / rate);
        let generator = all.zip(own).map(|(all, own)| all - own);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            path.name,
            text(rate, 1),
            text(all, 1),
            text(generator, 1),
            text(own, 1),
            path.vpp
        );
    }
    table
}

fn wires(benches: &[Bench]) -> String {
    let mut table = String::from(
        "| over virtual Ethernet | unit | Thalweg | kernel | Open vSwitch, AF_PACKET | \
         Open vSwitch, AF_XDP |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for wire in WIRES {
        let [packet, xdp] = wire.ovs;
        let cells = [Some(wire.thalweg), wire.kernel, packet, xdp]
            .map(|place| text(measured(benches, place), wire.digits));
        let _ = writeln!(table, "| {} | {} | {} |", wire.name, wire.unit, cells.join(" | "));
    }
    table
}

/// Share of the rate that sampling costs, and the samples lost.
fn sampling(benches: &[Bench]) -> String {
    const PATHS: [&str; 2] = ["L2 cross connect", "IPv4, 1 flow"];
    let mut table = String::from(
        "| sampling rate | cost, % of the rate: L2 cross connect | samples lost | IPv4, 1 flow | \
         samples lost |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for rate in ["1:10k", "1:1k", "1:100", "1:10"] {
        let cells = PATHS.map(|path| {
            let row = [path, rate];
            let find = |column| {
                benches
                    .iter()
                    .find_map(|b| b.table("sFlow: packets per second"))?
                    .find(&row, column)
            };
            let lost = find("lost").and_then(Value::as_str).unwrap_or("–");
            format!("{} | {lost}", text(find("toll").and_then(value), 2))
        });
        let _ = writeln!(table, "| {rate} | {} |", cells.join(" | "));
    }
    table
}

fn missed(reached: &[Reached]) -> String {
    let missed: Vec<&Reached> = reached.iter().filter(|t| t.holds == Some(false)).collect();
    let judged = reached.iter().filter(|t| t.holds.is_some()).count();
    let mut table = format!(
        "{} of {judged} targets are met. Missed:\n\n| what | target | measured |\n\
         | --- | ---: | ---: |\n",
        judged - missed.len()
    );
    for t in missed {
        let _ = writeln!(table, "| {} | {} | {} |", t.what, t.target, t.value);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn benches() -> Vec<Bench> {
        let spread =
            |median: f64| json!({"median": median, "least": 1.0, "most": 9.0, "rounds": 3});
        let table = |title: &str, columns: &[&str], rows: Value| {
            let columns: Vec<Value> =
                columns.iter().map(|name| json!({"name": name, "unit": ""})).collect();
            json!({"title": title, "columns": columns, "rows": rows, "notes": []})
        };
        let forwarding = json!({
            "bench": "forwarding", "title": "", "about": [], "started": "", "ended": "",
            "steal_percent": 0.0, "noisy": false,
            "machine": {"cpu": "A", "cores": 2, "tsc_mhz": 2500.0, "kernel": "6.1"},
            "tables": [
                table(
                    "Forwarding paths",
                    &["path", "rate", "clocks/packet"],
                    json!([["IPv4, 1 flow", spread(200.0), spread(9.5)]])
                ),
                table(
                    "NAT44",
                    &["sessions", "order", "rate", "with NAT44"],
                    json!([["1", "sequential", spread(100.0), spread(20.0)]])
                ),
                table(
                    "sFlow: packets per second",
                    &["path", "sFlow", "toll", "lost"],
                    json!([["IPv4, 1 flow", "1:10", spread(15.01), "27.7 %"]])
                ),
                table(SMALL, &["path", "forwarder", "delivered"], json!([
                    ["IPv4", "kernel", spread(0.856)],
                    ["IPv4", "Thalweg, AF_PACKET", spread(0.96)]
                ])),
            ],
        });
        vec![serde_json::from_value(forwarding).unwrap()]
    }

    #[test]
    fn rates_are_divided_into_the_generator_and_the_path() {
        let table = paths(&benches());
        assert!(table.contains("| IPv4, 1 flow | 200.0 | 12.5 | 3.0 | 9.5 | 50–52 |\n"), "{table}");
        assert!(
            table.contains("| NAT44, 1 session | 100.0 | 25.0 | 5.0 | 20.0 | 116 |"),
            "{table}"
        );
        assert!(table.contains("| L2 cross connect | – | – | – | – | 24–25 |"), "{table}");
    }

    #[test]
    fn forwarders_stand_in_one_row() {
        let table = wires(&benches());
        let row = "| 64-byte packets, IPv4 | Mpps | 0.96 | 0.86 | – | – |\n";
        assert!(table.contains(row), "{table}");
        assert_eq!(table.lines().count(), 2 + WIRES.len());
    }

    #[test]
    fn samples_have_their_cost_and_loss() {
        let table = sampling(&benches());
        assert!(table.contains("| 1:10 | – | – | 15.01 | 27.7 % |\n"), "{table}");
        assert_eq!(table.lines().count(), 6);
    }

    #[test]
    fn only_missed_targets_are_listed() {
        let target = |what, holds| Reached {
            what,
            target: "≤ 1 s".into(),
            value: "2".into(),
            holds,
            noisy: false,
            slow: false,
            vpp: "",
        };
        let text = missed(&[target("a", Some(true)), target("b", Some(false)), target("c", None)]);
        assert!(text.starts_with("1 of 2 targets are met."), "{text}");
        assert!(text.ends_with("| --- | ---: | ---: |\n| b | ≤ 1 s | 2 |\n"), "{text}");
    }
}
