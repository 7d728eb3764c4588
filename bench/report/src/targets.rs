//! What the packet path is to reach, and whether it does.

use serde_json::Value;

use crate::results::{Bench, number, spread, value};

/// What a value has to be.
#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A target, and where its value stands.
struct Target {
    what: &'static str,
    table: &'static str,
    row: &'static [&'static str],
    column: &'static str,
    limit: Limit,
    digits: usize,
    unit: &'static str,
    /// What VPP 26.06 takes, measured elsewhere on this kind of machine.
    vpp: &'static str,
}

/// A target with its value.
#[derive(Clone, Debug)]
pub struct Reached {
    pub what: &'static str,
    pub target: String,
    /// The median and the ends, or that it was not measured.
    pub value: String,
    /// `None` if it was not measured.
    pub holds: Option<bool>,
    pub noisy: bool,
    pub vpp: &'static str,
}

const L2: &str = "L2 cross connect";
const BRIDGE: &str = "L2 bridge domain, 1 MAC address";
const STATIONS: &str = "L2 bridge domain, 10,000 MAC addresses";
const FLOW: &str = "IPv4, 1 flow";
const HOSTS: &str = "IPv4, 10,000 flows over 10,000 /32 routes";
const HOPS: &str = "IPv4, 10,000 /32 routes over 16 next hops";
const INTERNET: &str = "IPv4, 500,000 routes, random destinations";

const CLOCKS: &str = "clocks/packet";

const fn way(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target {
        what,
        table: "Ways of packets",
        row,
        column: "clocks/packet",
        limit: Limit::AtMost(limit),
        digits: 1,
        unit: CLOCKS,
        vpp: "",
    }
}

const fn sample(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target {
        table: "sFlow: packets per second",
        column: "clocks/sample",
        digits: 0,
        unit: "clocks",
        vpp: "9–13 clocks per packet at any rate",
        ..way(what, row, limit)
    }
}

const fn toll(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target { column: "toll", digits: 2, unit: "%", vpp: "15–21 %", ..sample(what, row, limit) }
}

/// A tracker by itself; Open vSwitch's is not measured here.
const fn track(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target { table: "Tracking", column: "one worker", ..way(what, row, limit) }
}

const fn twice(what: &'static str, row: &'static [&'static str]) -> Target {
    Target {
        column: "two over one",
        limit: Limit::AtLeast(1.9),
        digits: 2,
        unit: "×",
        ..track(what, row, 0.0)
    }
}

const fn nat(
    what: &'static str,
    row: &'static [&'static str],
    limit: f64,
    vpp: &'static str,
) -> Target {
    Target { table: "NAT44", column: "with NAT44", vpp, ..way(what, row, limit) }
}

const TARGETS: [Target; 40] = [
    Target { vpp: "24–25", ..way(L2, &[L2], 8.0) },
    Target { vpp: "42", ..way(BRIDGE, &[BRIDGE], 20.0) },
    Target { vpp: "59", ..way(STATIONS, &[STATIONS], 30.0) },
    Target { vpp: "50–52", ..way(FLOW, &[FLOW], 22.0) },
    Target { vpp: "49.5", ..way(HOSTS, &[HOSTS], 28.0) },
    Target { vpp: "55", ..way(HOPS, &[HOPS], 28.0) },
    Target { vpp: "187 (143 of them look-up)", ..way(INTERNET, &[INTERNET], 40.0) },
    toll("sFlow 1:1M, cross connect", &[L2, "1:1M"], 0.5),
    toll("sFlow 1:1M, IPv4", &[FLOW, "1:1M"], 0.5),
    toll("sFlow 1:10k, cross connect", &[L2, "1:10k"], 0.5),
    toll("sFlow 1:10k, IPv4", &[FLOW, "1:10k"], 0.5),
    toll("sFlow 1:1k, cross connect", &[L2, "1:1k"], 0.5),
    toll("sFlow 1:1k, IPv4", &[FLOW, "1:1k"], 0.5),
    toll("sFlow 1:100, cross connect", &[L2, "1:100"], 3.0),
    toll("sFlow 1:100, IPv4", &[FLOW, "1:100"], 3.0),
    sample("a sample at 1:100, cross connect", &[L2, "1:100"], 60.0),
    sample("a sample at 1:100, IPv4", &[FLOW, "1:100"], 60.0),
    sample("a sample at 1:1k, cross connect", &[L2, "1:1k"], 85.0),
    sample("a sample at 1:1k, IPv4", &[FLOW, "1:1k"], 85.0),
    Target {
        table: "Idle features",
        column: "added to the loop",
        digits: 2,
        ..way("an idle feature", &[FLOW, "a feature that passes frames on"], 1.0)
    },
    Target {
        table: "Idle features",
        column: "added to the loop",
        digits: 2,
        ..way("a hop", &[L2, "a hop, on device-input"], 0.5)
    },
    Target {
        table: "A lone packet",
        column: "end to end",
        digits: 0,
        unit: "clocks",
        ..way("a lone packet, end to end", &[FLOW, "one behind the other"], 600.0)
    },
    Target {
        table: "Workers",
        column: "ratio",
        limit: Limit::AtLeast(1.95),
        digits: 2,
        unit: "×",
        ..way("two workers over one, IPv4, 1 flow", &[FLOW], 0.0)
    },
    track("established TCP, 1k connections", &["established TCP, 1k connections"], 50.0),
    track("established TCP, 16k connections", &["established TCP, 16k connections"], 65.0),
    track("established TCP, 1M connections", &["established TCP, 1M connections"], 150.0),
    track("new TCP connections", &["new TCP connections"], 250.0),
    track("short TCP connections, 6 packets", &["short TCP connections, 6 packets"], 90.0),
    twice("two trackers over one, 1k connections", &["established TCP, 1k connections"]),
    twice("two trackers over one, short connections", &["short TCP connections, 6 packets"]),
    Target {
        table: "Connections",
        column: "rate",
        limit: Limit::AtLeast(1.2),
        digits: 2,
        unit: "M connections/s",
        ..way("connections through four rules", &["four rules, tracked", "1"], 0.0)
    },
    Target {
        table: "New TCP connections: Thalweg beside the others",
        column: "rate",
        limit: Limit::AtLeast(1.3),
        digits: 2,
        unit: "×",
        ..way(
            "real TCP connections through four rules, over Open vSwitch",
            &["Thalweg, AF_PACKET, four rules", "Open vSwitch, netdev, AF_PACKET, four rules"],
            0.0,
        )
    },
    nat("NAT44, 1 session", &["1", "sequential"], 55.0, "116"),
    nat("NAT44, 16k sessions in order", &["16384", "sequential"], 70.0, "207"),
    nat("NAT44, 16k sessions at random", &["16384", "random"], 80.0, "257"),
    nat("NAT44, 1M sessions in order", &["1048576", "sequential"], 130.0, "610"),
    nat("NAT44, 1M sessions at random", &["1048576", "random"], 160.0, "1152"),
    Target {
        column: "ratio",
        digits: 2,
        unit: "×",
        ..nat("NAT44 over IPv4 alone, 1 session", &["1", "sequential"], 2.2, "2.3")
    },
    Target {
        table: "New NAT44 sessions",
        column: "per second, one worker",
        limit: Limit::AtLeast(2.0),
        digits: 2,
        unit: "million/s",
        ..way("new NAT44 sessions", &[], 0.0)
    },
    Target {
        table: "NAT44 workers",
        column: "ratio",
        limit: Limit::AtLeast(1.9),
        digits: 2,
        unit: "×",
        ..way("two workers over one, NAT44", &["of the worker that receives"], 0.0)
    },
];

/// Looks each target's value up.
pub fn reached(benches: &[Bench]) -> Vec<Reached> {
    TARGETS.iter().map(|t| t.reached(benches)).collect()
}

impl Target {
    fn cell<'b>(&self, benches: &'b [Bench]) -> Option<&'b Value> {
        benches.iter().find_map(|b| b.table(self.table))?.find(self.row, self.column)
    }

    fn reached(&self, benches: &[Bench]) -> Reached {
        let cell = self.cell(benches);
        let (target, holds) = match self.limit {
            Limit::AtMost(n) => {
                (format!("≤ {n} {}", self.unit), cell.and_then(value).map(|v| v <= n))
            }
            Limit::AtLeast(n) => {
                (format!("≥ {n} {}", self.unit), cell.and_then(value).map(|v| v >= n))
            }
        };
        let text = match cell.map(|c| (spread(c), value(c))) {
            Some((Some(s), _)) => {
                let n = |v| number(v, self.digits);
                // A dash before a sign reads badly.
                let to = if s.least < 0.0 { " to " } else { "–" };
                format!("{} ({}{to}{})", n(s.median), n(s.least), n(s.most))
            }
            Some((None, Some(v))) => number(v, self.digits),
            _ => "not measured".into(),
        };
        let noisy = cell.is_some_and(|c| c["noisy"] == true);
        Reached { what: self.what, target, value: text, holds, noisy, vpp: self.vpp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_target_is_judged_by_the_median() {
        let cell = |median: f64| json!({"median": median, "least": 1.0, "most": 9.0, "rounds": 5});
        let bench: Bench = serde_json::from_value(json!({
            "bench": "forwarding", "title": "", "about": [], "machine": {}, "started": "",
            "ended": "", "steal_percent": 0.0, "noisy": false,
            "tables": [{"title": "Ways of packets", "notes": [],
                "columns": [{"name": "path", "unit": ""}, {"name": "clocks/packet", "unit": ""}],
                "rows": [[L2, cell(7.9)], [BRIDGE, cell(22.5)]]}]
        }))
        .unwrap();
        let all = reached(&[bench]);
        assert_eq!((all[0].holds, all[0].value.as_str()), (Some(true), "7.9 (1.0–9.0)"));
        assert_eq!(all[1].holds, Some(false));
        assert_eq!((all[2].holds, all[2].value.as_str()), (None, "not measured"));
    }
}
