//! Targets of the packet path, and which of them it meets.

use serde_json::Value;

use Limit::{AtLeast, AtMost};

use crate::results::{Bench, number, spread, value};

/// Bound of a value.
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
    /// VPP 26.06's figure, measured elsewhere on this kind of machine.
    vpp: &'static str,
    /// Concerns two workers: the report adds how much more two processors do than one.
    two: bool,
    /// The row of the same table that the value is a multiple of.
    over: Option<&'static [&'static str]>,
    /// Column that meets the target as well: no more are above the limit than in a control run at
    /// the same time.
    or_none: Option<&'static str>,
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
    /// Measured in an hour in which the machine was slow.
    pub slow: bool,
    pub vpp: &'static str,
}

const L2: &str = "L2 cross connect";
const BRIDGE: &str = "L2 bridge domain, 1 MAC address";
const MACS: &str = "L2 bridge domain, 10,000 MAC addresses";
const FLOW: &str = "IPv4, 1 flow";
const HOSTS: &str = "IPv4, 10,000 flows over 10,000 /32 routes";
const HOPS: &str = "IPv4, 10,000 /32 routes over 16 next hops";
const SWAP: &str = "MPLS, 1 label swapped";
const PUSH: &str = "IPv4, 1 flow, 1 label pushed";
const POP: &str = "MPLS, 1 label popped, then IPv4";
const LABELS: &str = "MPLS, 100,000 labels swapped, at random";
const INTERNET: &str = "IPv4, 500,000 routes, random destinations";
const VLANS: &str = "IPv4, 1 flow between VLANs";
const MANY_VLANS: &str = "IPv4, 1 flow between 2 of 4,094 VLANs";
const RANDOM_VLANS: &str = "IPv4, 4,094 VLANs at random";
const TAGS: &str = "L2 bridge domain, tag rewrite, 1 MAC address";
const TAGS_MACS: &str = "L2 bridge domain, tag rewrite, 10,000 MAC addresses";
const SIX: &str = "IPv6, 1 flow";
const SIX_HOSTS: &str = "IPv6, 10,000 destinations under one /48";
const SIX_HOPS: &str = "IPv6, 10,000 /64 routes over 16 next hops";
const SIX_INTERNET: &str = "IPv6, 250,000 routes, random destinations";
const TRACKED: &str = "established TCP, 1k connections";
const TRACKED_MILLION: &str = "established TCP, 1M connections";

/// Another program than VPP, which has no such table.
const OVS: [&str; 5] = ["OvS 211", "OvS 290", "OvS 1583", "OvS 1005", "OvS 358"];

const CLOCKS: &str = "clocks/packet";
/// No packet is handed over.
const APART: &str = "of the worker that receives";
const CONNECTIONS: &str = "Five million connections deleted at once";
const SESSIONS: &str = "A million NAT44 sessions deleted at once";
const MILLION: &str = "A million routes";
const HELD: &str = "Ten million connections held";
const TRIPS: &str = "Round trips, TCP, processor time when idle";

const fn path(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target {
        what,
        table: "Forwarding paths",
        row,
        column: "clocks/packet",
        limit: AtMost(limit),
        digits: 1,
        unit: CLOCKS,
        vpp: "",
        two: false,
        over: None,
        or_none: None,
    }
}

/// A path that may take N times the clocks of another in the same run.
const fn over(
    what: &'static str,
    row: &'static [&'static str],
    over: &'static [&'static str],
    limit: f64,
) -> Target {
    Target { digits: 2, unit: "×", over: Some(over), ..path(what, row, limit) }
}

const fn sample(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target {
        table: "sFlow: packets per second",
        column: "clocks/sample",
        digits: 0,
        unit: "clocks",
        vpp: "9–13 clocks per packet at all rates",
        ..path(what, row, limit)
    }
}

const fn toll(what: &'static str, row: &'static [&'static str], limit: f64) -> Target {
    Target { column: "toll", digits: 2, unit: "%", vpp: "15–21 %", ..sample(what, row, limit) }
}

/// A target of another table than those of [`path`].
const fn of(
    what: &'static str,
    (table, row, column): (&'static str, &'static [&'static str], &'static str),
    limit: Limit,
    unit: &'static str,
) -> Target {
    Target { table, row, column, limit, digits: 2, unit, ..path(what, row, 0.0) }
}

const fn nat(
    what: &'static str,
    row: &'static [&'static str],
    limit: f64,
    vpp: &'static str,
) -> Target {
    let target = of(what, ("NAT44", row, "with NAT44"), AtMost(limit), CLOCKS);
    Target { digits: 1, vpp, ..target }
}

const fn tracking(
    what: &'static str,
    row: &'static [&'static str],
    limit: f64,
    peer: &'static str,
) -> Target {
    let target = of(what, ("Tracking", row, "one worker"), AtMost(limit), CLOCKS);
    Target { digits: 1, vpp: peer, ..target }
}

/// The tracker with connections of IPv6, over those of IPv4.
const fn tracking_six(
    what: &'static str,
    row: &'static [&'static str],
    over: &'static [&'static str],
) -> Target {
    let target = tracking(what, row, 1.3, "");
    Target { over: Some(over), digits: 2, unit: "×", ..target }
}

/// Two workers over one.
const fn two(
    what: &'static str,
    at: (&'static str, &'static [&'static str], &'static str),
    least: f64,
) -> Target {
    Target { two: true, ..of(what, at, AtLeast(least), "×") }
}

const fn two_nats(what: &'static str, row: &'static [&'static str]) -> Target {
    two(what, ("NAT44 workers", row, "ratio"), 1.9)
}

const fn two_trackers(what: &'static str, row: &'static [&'static str]) -> Target {
    two(what, ("Tracking", row, "two over one"), 1.9)
}

/// Rate of two workers together.
const fn both_trackers(
    what: &'static str,
    row: &'static [&'static str],
    least: f64,
    peer: &'static str,
) -> Target {
    let target = of(what, ("Tracking", row, "two workers together"), AtLeast(least), "Mpps");
    Target { digits: 1, vpp: peer, ..target }
}

/// The longest loop of a worker's own while all of a table goes, or none above that more than the
/// machine makes itself.
const fn stall(what: &'static str, table: &'static str, row: &'static [&'static str]) -> Target {
    let at = (table, row, "longest loop of its own");
    let target = of(what, at, AtMost(100.0), "µs, a loop");
    Target { digits: 0, or_none: Some("more"), ..target }
}

const fn slice(what: &'static str, row: &'static [&'static str]) -> Target {
    let column = "longest slice, main thread's processor time";
    Target { digits: 1, ..of(what, ("A million routes", row, column), AtMost(5.0), "ms") }
}

const fn loops(what: &'static str, row: &'static [&'static str]) -> Target {
    let at = ("Changes under load", row, "99.9 %");
    Target { digits: 1, ..of(what, at, AtMost(100.0), "µs") }
}

const fn relative(what: &'static str, row: &'static [&'static str], limit: Limit) -> Target {
    of(what, (TRIPS, row, "ratio"), limit, "× the kernel")
}

const TARGETS: &[Target] = &[
    Target { vpp: "24–25", ..path(L2, &[L2], 8.0) },
    Target { vpp: "42", ..path(BRIDGE, &[BRIDGE], 20.0) },
    Target { vpp: "59", ..path(MACS, &[MACS], 30.0) },
    Target { vpp: "50–52", ..path(FLOW, &[FLOW], 22.0) },
    Target { vpp: "49.5", ..path(HOSTS, &[HOSTS], 28.0) },
    Target { vpp: "55", ..path(HOPS, &[HOPS], 28.0) },
    Target { vpp: "187 (143 of them look-up)", ..path(INTERNET, &[INTERNET], 40.0) },
    Target { vpp: "64 clocks", ..over(SWAP, &[SWAP], &[FLOW], 1.0) },
    over(PUSH, &[PUSH], &[FLOW], 1.5),
    over(POP, &[POP], &[FLOW], 1.5),
    over(LABELS, &[LABELS], &[FLOW], 2.5),
    Target { vpp: "65 clocks", ..over(SIX, &[SIX], &[FLOW], 1.4) },
    Target { vpp: "68 clocks", ..over(SIX_HOSTS, &[SIX_HOSTS], &[FLOW], 1.7) },
    Target { vpp: "91 clocks", ..over(SIX_HOPS, &[SIX_HOPS], &[FLOW], 2.2) },
    over(SIX_INTERNET, &[SIX_INTERNET], &[INTERNET], 2.0),
    over(VLANS, &[VLANS], &[FLOW], 1.4),
    over(MANY_VLANS, &[MANY_VLANS], &[FLOW], 1.4),
    over(RANDOM_VLANS, &[RANDOM_VLANS], &[FLOW], 3.0),
    over(TAGS, &[TAGS], &[BRIDGE], 2.0),
    over(TAGS_MACS, &[TAGS_MACS], &[MACS], 1.5),
    toll("sFlow 1:1M, cross connect", &[L2, "1:1M"], 0.5),
    toll("sFlow 1:1M, IPv4", &[FLOW, "1:1M"], 0.5),
    toll("sFlow 1:10k, cross connect", &[L2, "1:10k"], 0.5),
    toll("sFlow 1:10k, IPv4", &[FLOW, "1:10k"], 0.5),
    toll("sFlow 1:1k, cross connect", &[L2, "1:1k"], 0.5),
    toll("sFlow 1:1k, IPv4", &[FLOW, "1:1k"], 0.5),
    toll("sFlow 1:100, cross connect", &[L2, "1:100"], 3.0),
    toll("sFlow 1:100, IPv4", &[FLOW, "1:100"], 3.0),
    toll("sFlow 1:10, cross connect", &[L2, "1:10"], 25.0),
    toll("sFlow 1:10, IPv4", &[FLOW, "1:10"], 25.0),
    sample("a sample at 1:100, cross connect", &[L2, "1:100"], 60.0),
    sample("a sample at 1:100, IPv4", &[FLOW, "1:100"], 60.0),
    sample("a sample at 1:1k, cross connect", &[L2, "1:1k"], 85.0),
    sample("a sample at 1:1k, IPv4", &[FLOW, "1:1k"], 85.0),
    Target {
        table: "Idle features",
        column: "added to the loop",
        digits: 2,
        ..path("an idle feature", &[FLOW, "a feature that passes frames on"], 1.0)
    },
    Target {
        table: "Idle features",
        column: "added to the loop",
        digits: 2,
        ..path("a hop", &[L2, "a hop, on device-input"], 0.5)
    },
    Target {
        table: "Frame sizes",
        column: "end to end",
        digits: 0,
        unit: "clocks",
        ..path("a lone packet, end to end", &[FLOW, "1"], 600.0)
    },
    two("two workers over one, IPv4, 1 flow", ("Workers", &[FLOW], "ratio"), 1.95),
    nat("NAT44, 1 session", &["1", "sequential"], 55.0, "116"),
    nat("NAT44, 16k sessions in turn", &["16384", "sequential"], 70.0, "207"),
    nat("NAT44, 16k sessions at random", &["16384", "random"], 80.0, "257"),
    nat("NAT44, 1M sessions in turn", &["1048576", "sequential"], 130.0, "610"),
    nat("NAT44, 1M sessions at random", &["1048576", "random"], 160.0, "1152"),
    Target {
        vpp: "2.3",
        ..of("NAT44 over IPv4, 1 session", ("NAT44", &["1"], "ratio"), AtMost(2.2), "×")
    },
    of(
        "new NAT44 sessions, one worker",
        ("New NAT44 sessions", &[], "per second, one worker"),
        AtLeast(2.0),
        "M/s",
    ),
    two_nats("NAT44, two workers over one, 1 session each", &[APART, "2", "sequential"]),
    two_nats("NAT44, two workers over one, 16k sessions in turn", &[APART, "16384", "sequential"]),
    two_nats("NAT44, two workers over one, 16k sessions at random", &[APART, "16384", "random"]),
    two_nats("NAT44, two workers over one, 1M sessions in turn", &[APART, "1048576", "sequential"]),
    two_nats("NAT44, two workers over one, 1M sessions at random", &[APART, "1048576", "random"]),
    two_nats("new NAT44 sessions, two workers over one", &[APART, "new ones", "sequential"]),
    tracking("tracker, 1k connections", &[TRACKED], 50.0, OVS[0]),
    tracking("tracker, 16k connections", &["established TCP, 16k connections"], 65.0, OVS[1]),
    tracking("tracker, 1M connections", &[TRACKED_MILLION], 150.0, OVS[2]),
    tracking("tracker, new connections", &["new TCP connections"], 250.0, OVS[3]),
    tracking("tracker, short connections", &["short TCP connections, 6 packets"], 90.0, OVS[4]),
    tracking_six(
        "tracker, IPv6, 1k, over IPv4",
        &["IPv6, established TCP, 1k connections"],
        &[TRACKED],
    ),
    tracking_six(
        "tracker, IPv6, 1M, over IPv4",
        &["IPv6, established TCP, 1M connections"],
        &[TRACKED_MILLION],
    ),
    two_trackers("two trackers over one, 1k connections", &["established TCP, 1k connections"]),
    two_trackers("two trackers over one, 16k connections", &["established TCP, 16k connections"]),
    two_trackers("two trackers over one, 1M connections", &["established TCP, 1M connections"]),
    two_trackers("two trackers over one, new connections", &["new TCP connections"]),
    two_trackers("two trackers over one, short lives", &["short TCP connections, 6 packets"]),
    // Ten times what Open vSwitch's two threads do together, and nine times; of six packets each.
    both_trackers("two trackers, new connections", &["new TCP connections"], 14.4, "OvS 1.44"),
    both_trackers(
        "two trackers, short connections, 6 packets",
        &["short TCP connections, 6 packets"],
        9.0 * 1.01 * 6.0,
        "OvS 6.06",
    ),
    of(
        "connections through four rules, one worker",
        ("Connections", &["four rules, tracked", "1"], "rate"),
        AtLeast(1.2),
        "M/s",
    ),
    two(
        "connections through four rules, two workers over one",
        ("Connections", &["four rules, tracked", "2"], "over one worker"),
        1.9,
    ),
    of(
        "connections over veth, four rules, against Open vSwitch",
        (
            "New TCP connections: Thalweg and the others",
            &["Thalweg, AF_PACKET, four rules", "Open vSwitch, netdev, AF_PACKET, four rules"],
            "rate",
        ),
        AtLeast(1.3),
        "×",
    ),
    of(
        "memory per connection",
        ("Five million connections", &["memory per connection, bytes"], "value"),
        AtMost(128.0),
        "bytes",
    ),
    of(
        "load tester, connections a second",
        ("Load tester: connections a second", &["short TCP connections, 7 packets"], "rate"),
        AtLeast(3.0),
        "M/s",
    ),
    of(
        "load tester, ten million held, a loop over a bare one's",
        (HELD, &["all of it"], "over a bare loop's"),
        AtMost(1.0),
        "ms",
    ),
    of(
        "load tester, ten million held, memory of both sides",
        (HELD, &["all of it"], "memory of both sides"),
        AtMost(1.3),
        "GiB",
    ),
    of(
        "five million connections listed, a slice",
        ("Five million connections", &["longest slice of a list, ms"], "value"),
        AtMost(50.0),
        "ms",
    ),
    stall("five million connections expired", CONNECTIONS, &["`clear conntrack ct_nw_proto=17`"]),
    stall("five million connections timed out", CONNECTIONS, &["silent for too long, all of them"]),
    stall("a million NAT44 sessions cleared", SESSIONS, &["`clear nat44 sessions`"]),
    of(
        "routes by the function",
        (MILLION, &["added by the function"], "rate"),
        AtLeast(1.0),
        "M/s",
    ),
    of("memory of a million routes", ("Memory", &[], "memory"), AtMost(64.0), "MiB"),
    slice("`exec` of a million routes, slices", &["`exec FILE`"]),
    slice("`ip route add count`, slices", &["`ip route add count 1000000`"]),
    slice(
        "a million routes follow a next hop, slices",
        &["moved with the next hop that all resolve through"],
    ),
    slice(
        "a million routes gone with an interface, slices",
        &["gone with the interface that all lead to"],
    ),
    slice("a million routes gone with a table, slices", &["gone with the table that all are in"]),
    loops("50,000 routes changed per second, a loop", &["routes"]),
    loops("interfaces up and down, a loop", &["interface up and down"]),
    loops("sFlow on and off, a loop", &["sflow enable-disable"]),
    loops("sampling rates changed, a loop", &["sflow sampling-rate"]),
    loops("neighbors changed, a loop", &["neighbors"]),
    relative("ping every 1 s", &["ping every 1 s, median"], AtMost(1.3)),
    relative("ping every 10 ms", &["ping every 10 ms, median"], AtMost(1.3)),
    relative("ping every 0.5 ms", &["ping every 0.5 ms, median"], AtMost(1.3)),
    relative("ping every 10 ms, polling", &["polling: ping every 10 ms, median"], AtMost(1.3)),
    relative("TCP, offloads on", &["TCP, offloads on"], AtLeast(0.8)),
    relative("TCP, offloads off", &["TCP, offloads off"], AtLeast(0.8)),
    of("an idle router", (TRIPS, &["idle, v2"], "thalweg"), AtMost(1.0), "% of a processor"),
];

/// Finds each target's value.
pub fn reached(benches: &[Bench]) -> Vec<Reached> {
    TARGETS.iter().map(|t| t.reached(benches)).collect()
}

impl Target {
    fn cell<'b>(&self, benches: &'b [Bench], column: &str) -> Option<(&'b Bench, &'b Value)> {
        self.cell_of(benches, self.row, column)
    }

    fn cell_of<'b>(
        &self,
        benches: &'b [Bench],
        row: &[&str],
        column: &str,
    ) -> Option<(&'b Bench, &'b Value)> {
        let of = |bench: &'b Bench| Some((bench, bench.table(self.table)?));
        let (bench, table) = benches.iter().find_map(of)?;
        Some((bench, table.find(row, column)?))
    }

    fn reached(&self, benches: &[Bench]) -> Reached {
        let (bench, cell) = self.cell(benches, self.column).unzip();
        let one = match self.over {
            Some(row) => self.cell_of(benches, row, self.column).and_then(|(_, c)| value(c)),
            None => Some(1.0),
        };
        let cell = cell.filter(|_| one.is_some());
        let one = one.unwrap_or(1.0);
        let measured = cell.and_then(value).map(|v| v / one);
        let (mut target, mut holds) = match self.limit {
            AtMost(n) => (format!("≤ {n} {}", self.unit), measured.map(|v| v <= n)),
            AtLeast(n) => (format!("≥ {n} {}", self.unit), measured.map(|v| v >= n)),
        };
        if let Some([other, ..]) = self.over {
            target += &format!(" {other}");
        }
        let mut text = match cell.map(|c| (spread(c), measured)) {
            Some((Some(s), _)) => {
                let n = |v: f64| number(v / one, self.digits);
                // A dash before a sign reads badly.
                let to = if s.least < 0.0 { " to " } else { "–" };
                format!("{} ({}{to}{})", n(s.median), n(s.least), n(s.most))
            }
            Some((None, Some(v))) => number(v, self.digits),
            _ => "not measured".into(),
        };
        if let Some(column) = self.or_none {
            target += ", or none more above that than in a bare loop";
            if let Some((_, more)) = self.cell(benches, column)
                && let (Some(guide), Some(none)) = (more["guide"].as_str(), more["holds"].as_bool())
            {
                let met = |yes| if yes { "✔" } else { "✘" };
                let short = met(holds == Some(true));
                text += &format!(" {short}; more a second than a bare loop: {guide} {}", met(none));
                holds = holds.map(|short| short || none);
            }
        }
        if let Some(two) = bench.filter(|_| self.two).and_then(Bench::two) {
            text += &format!("; the processors themselves {two}");
        }
        let noisy = cell.is_some_and(|c| c["noisy"] == true);
        let slow = holds.is_some() && bench.is_some_and(Bench::slow);
        Reached { what: self.what, target, value: text, holds, noisy, slow, vpp: self.vpp }
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
            "ended": "", "steal_percent": 0.0, "noisy": false, "two_processors": [1.2, 1.25],
            "tables": [{"title": "Forwarding paths", "notes": [],
                "columns": [{"name": "path", "unit": ""}, {"name": "clocks/packet", "unit": ""}],
                "rows": [[L2, cell(7.9)], [BRIDGE, cell(22.5)]]},
                {"title": "Workers", "notes": [],
                "columns": [{"name": "what", "unit": ""}, {"name": "ratio", "unit": ""}],
                "rows": [[FLOW, cell(1.5)]]}]
        }))
        .unwrap();
        let all = reached(&[bench]);
        assert_eq!((all[0].holds, all[0].value.as_str()), (Some(true), "7.9 (1.0–9.0)"));
        assert_eq!(all[1].holds, Some(false));
        assert_eq!((all[2].holds, all[2].value.as_str()), (None, "not measured"));
        let two = all.iter().find(|t| t.what.starts_with("two workers")).unwrap();
        assert_eq!(two.value, "1.50 (1.00–9.00); the processors themselves 1.20, 1.25");
    }

    /// Appends the sources below a folder.
    fn read(folder: &std::path::Path, sources: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, sources);
            } else if path.extension().is_some_and(|e| e == "rs") {
                *sources += &std::fs::read_to_string(&path).unwrap();
            }
        }
    }

    /// A target about a table that no benchmark makes is never measured, without a message.
    #[test]
    fn the_tables_of_targets_are_made() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut sources = String::new();
        for part in
            ["bench/pg", "bench/control", "bench/load", "bench/sflow", "bench/compare", "crates"]
        {
            read(&root.join(part), &mut sources);
        }
        for target in TARGETS {
            let title = format!("\"{}\"", target.table);
            assert!(sources.contains(&title), "{}: no benchmark has a table {title}", target.what);
        }
    }

    #[test]
    fn a_value_may_be_a_multiple_of_another_row() {
        let cell = |median: f64| json!({"median": median, "least": 9.0, "most": 30.0, "rounds": 5});
        let bench = |rows: Value| -> Bench {
            serde_json::from_value(json!({
                "bench": "forwarding", "title": "", "about": [], "machine": {}, "started": "",
                "ended": "", "steal_percent": 0.0, "noisy": false,
                "tables": [{"title": "Forwarding paths", "notes": [],
                    "columns": [{"name": "path", "unit": ""}, {"name": "clocks/packet", "unit": ""}],
                    "rows": rows}]
            }))
            .unwrap()
        };
        let pop = |bench| reached(&[bench]).into_iter().find(|t| t.what == POP).unwrap();
        let both = pop(bench(json!([[FLOW, cell(12.0)], [POP, cell(24.0)]])));
        assert_eq!((both.holds, both.value.as_str()), (Some(false), "2.00 (0.75–2.50)"));
        assert_eq!(both.target, "≤ 1.5 × IPv4, 1 flow");
        let alone = pop(bench(json!([[POP, cell(24.0)]])));
        assert_eq!((alone.holds, alone.value.as_str()), (None, "not measured"));
    }

    #[test]
    fn long_loops_are_the_machines_if_there_are_none_more() {
        let bench = |longest: f64, more: Value| -> Bench {
            serde_json::from_value(json!({
                "bench": "sessions", "title": "", "about": [], "machine": {}, "started": "",
                "ended": "", "steal_percent": 0.0, "noisy": false,
                "tables": [{"title": SESSIONS, "notes": [],
                    "columns": [{"name": "how", "unit": ""},
                        {"name": "longest loop of its own", "unit": "µs"},
                        {"name": "more", "unit": "a second"}],
                    "rows": [["`clear nat44 sessions`",
                        {"median": longest, "least": 80.0, "most": 130.0, "rounds": 5}, more]]}]
            }))
            .unwrap()
        };
        let look = |bench| {
            let all = reached(&[bench]);
            all.into_iter().find(|t| t.what.starts_with("a million NAT44")).unwrap()
        };
        let none = json!({"guide": "2.5 (-3.8 to 9.7), none", "holds": true});
        let some = json!({"guide": "5.0 (1.0–9.0), none", "holds": false});
        assert_eq!(look(bench(90.0, some.clone())).holds, Some(true));
        assert_eq!(look(bench(120.0, some)).holds, Some(false));
        assert_eq!(look(bench(120.0, Value::Null)).holds, Some(false));
        let met = look(bench(120.0, none));
        assert_eq!(met.holds, Some(true));
        assert_eq!(
            met.value,
            "120 (80–130) ✘; more a second than a bare loop: 2.5 (-3.8 to 9.7), none ✔"
        );
    }
}
