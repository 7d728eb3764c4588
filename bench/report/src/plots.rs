//! Plots of what benchmarks have found, as SVG that takes the page's colours.

use anyhow::Result;
use thalweg_plot::{Line, PlotError, Titles, bars, line_plot};

use crate::results::{Bench, Table, value};

/// A plot.
pub struct Plot {
    /// Its file's name, without `.svg`.
    pub name: &'static str,
    /// Title of the table that it belongs to.
    pub table: &'static str,
    pub svg: String,
}

impl Plot {
    /// The plot as a file of its own, on white.
    pub fn standalone(&self) -> String {
        thalweg_plot::standalone(&self.svg)
    }
}

/// Every plot for which there are results.
pub fn all(benches: &[Bench]) -> Result<Vec<Plot>> {
    let table = |title: &str| benches.iter().find_map(|b| b.table(title));
    let mut plots = Vec::new();
    let mut add = |name, table, svg: Result<String, PlotError>| -> Result<()> {
        plots.push(Plot { name, table, svg: svg? });
        Ok(())
    };
    if let Some(t) = table("sFlow: packets per second") {
        let (labels, lines) = lines(t, "path", "sFlow", "of unsampled");
        let titles = Titles { title: "Rate with sFlow", x: "sampled", y: "of the rate without" };
        add("sflow", "sFlow: packets per second", line_plot(&titles, &labels, &lines, false))?;
    }
    if let Some(t) = table("Clocks per node") {
        let (labels, stacks) = stacks(t);
        let titles = Titles { title: "Clocks per packet by node", x: "", y: "clocks/packet" };
        add("nodes", "Clocks per node", bars(&titles, &labels, &stacks, true))?;
    }
    if let Some(t) = table("Frame sizes") {
        let (labels, lines) = lines(t, "path", "packets/frame", "clocks/packet");
        let titles = Titles {
            title: "Clocks per packet by frame size",
            x: "packets/frame",
            y: "clocks/packet",
        };
        add("frames", "Frame sizes", line_plot(&titles, &labels, &lines, true))?;
    }
    if let Some(t) = table("Route tables") {
        let (labels, mut lines) = lines(t, "destinations", "routes", "clocks/packet");
        lines.iter_mut().for_each(|(name, _)| *name = format!("destinations: {name}"));
        let titles =
            Titles { title: "Clocks per packet by routes", x: "routes", y: "clocks/packet" };
        add("routes", "Route tables", line_plot(&titles, &labels, &lines, false))?;
    }
    if let Some(t) = table("Levels of instructions") {
        let labels: Vec<String> = t.rows.iter().map(|row| short(&text(&row[0]))).collect();
        let of = |at: usize| t.rows.iter().map(|row| row.get(at).and_then(value)).collect();
        let sets: Vec<Line> =
            (1..t.columns.len()).map(|at| (t.columns[at].name.clone(), of(at))).collect();
        let titles = Titles { title: "Levels of instructions", x: "", y: "clocks/packet" };
        add("levels", "Levels of instructions", bars(&titles, &labels, &sets, false))?;
    }
    if let Some(t) = table(FIRST_PACKET) {
        let (labels, lines) = lines(t, "forwarder", "pause", "50 %");
        let titles =
            Titles { title: "First packet: median by pause", x: "pause", y: "latency, µs" };
        add("first-packet", FIRST_PACKET, line_plot(&titles, &labels, &lines, true))?;
        let (labels, lines) = quantiles(t, "10 ms");
        let titles = Titles {
            title: "First packet after 10 ms: the share that takes no longer",
            x: "",
            y: "latency, µs",
        };
        if !lines.is_empty() {
            add("first-packet-quantiles", FIRST_PACKET, line_plot(&titles, &labels, &lines, true))?;
        }
    }
    Ok(plots)
}

const FIRST_PACKET: &str = "First packet after a pause";

/// A line for each forwarder over the quantiles, which are columns, after one pause.
fn quantiles(t: &Table, pause: &str) -> (Vec<String>, Vec<Line>) {
    let columns = t.columns.iter().enumerate();
    let columns: Vec<(usize, &str)> = columns
        .filter(|(_, c)| c.name.ends_with('%') || c.name == "longest")
        .map(|(at, c)| (at, c.name.as_str()))
        .collect();
    let labels = columns.iter().map(|(_, name)| (*name).to_owned()).collect();
    let rows = t.rows.iter().filter(|row| text(&row[0]) == pause);
    let line = |row: &Vec<serde_json::Value>| {
        (text(&row[1]), columns.iter().map(|(at, _)| row.get(*at).and_then(value)).collect())
    };
    (labels, rows.map(line).collect())
}

fn text(cell: &serde_json::Value) -> String {
    match cell {
        serde_json::Value::String(s) => s.clone(),
        serde_json::Value::Number(n) => crate::results::number(n.as_f64().unwrap_or(0.0), 0),
        _ => String::new(),
    }
}

/// Part of a name that tells paths apart and fits below a bar.
fn short(name: &str) -> String {
    let name = name.trim_start_matches("IPv4, ");
    let last = name.rsplit(" over ").next().unwrap_or(name);
    last.split(", ").next().unwrap_or(last).to_owned()
}

/// A line for each value of one column, over the values of another.
fn lines(t: &Table, line: &str, x: &str, y: &str) -> (Vec<String>, Vec<Line>) {
    let (Some(line), Some(x), Some(y)) = (t.column(line), t.column(x), t.column(y)) else {
        return (Vec::new(), Vec::new());
    };
    let distinct = |at: usize| {
        let mut all: Vec<String> = Vec::new();
        for cell in t.rows.iter().map(|row| text(&row[at])) {
            if !all.contains(&cell) {
                all.push(cell);
            }
        }
        all
    };
    let labels = distinct(x);
    let at = |name: &str, label: &String| {
        let row = t.rows.iter().find(|row| text(&row[line]) == name && text(&row[x]) == *label);
        row.and_then(|row| value(&row[y]))
    };
    let one = |name: String| {
        let values = labels.iter().map(|label| at(&name, label)).collect();
        (name, values)
    };
    let all = distinct(line).into_iter().map(one).collect();
    (labels, all)
}

/// Nodes of each path, without the generator's.
fn stacks(t: &Table) -> (Vec<String>, Vec<Line>) {
    let (labels, _) = lines(t, "node", "path", "clocks/packet");
    let (_, mut nodes) = lines(t, "node", "path", "clocks/packet");
    nodes.retain(|(name, _)| name != "pg-input");
    (labels.iter().map(|l| short(l)).collect(), nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn benches() -> Vec<Bench> {
        let table = json!({
            "title": "Frame sizes", "notes": [],
            "columns": [{"name": "path", "unit": ""}, {"name": "packets/frame", "unit": ""},
                        {"name": "clocks/packet", "unit": ""}],
            "rows": [["a", 1.0, 300.0], ["a", 256.0, 2.0], ["b", 1.0, {"missing": "why"}]]
        });
        let bench = json!({
            "bench": "frames", "title": "", "about": [], "machine": {}, "started": "", "ended": "",
            "steal_percent": 0.0, "noisy": false, "tables": [table]
        });
        vec![serde_json::from_value(bench).unwrap()]
    }

    #[test]
    fn what_was_measured_is_drawn() {
        let plots = all(&benches()).unwrap();
        assert_eq!(plots.len(), 1);
        let svg = &plots[0].svg;
        assert!(svg.contains("currentColor") && svg.contains("256") && svg.contains("polyline"));
        assert!(plots[0].standalone().starts_with("<svg style"), "{}", &svg[..80]);
    }

    #[test]
    fn quantiles_of_one_pause_are_lines() {
        let table = json!({
            "title": FIRST_PACKET, "notes": [],
            "columns": [{"name": "pause", "unit": ""}, {"name": "forwarder", "unit": ""},
                        {"name": "packets", "unit": ""}, {"name": "50 %", "unit": "µs"},
                        {"name": "longest", "unit": "µs"}],
            "rows": [["10 ms", "kernel", 5.0, 2.0, 9.0], ["1 s", "kernel", 5.0, 3.0, null]]
        });
        let table: Table = serde_json::from_value(table).unwrap();
        let (labels, lines) = quantiles(&table, "10 ms");
        assert_eq!(labels, ["50 %", "longest"]);
        assert_eq!(lines, [("kernel".to_owned(), vec![Some(2.0), Some(9.0)])]);
    }

    #[test]
    fn bars_have_short_names() {
        assert_eq!(short("IPv4, 10,000 /32 routes over 16 next hops"), "16 next hops");
        assert_eq!(short("IPv4, 500,000 routes, random destinations"), "500,000 routes");
        assert_eq!(short("L2 cross connect"), "L2 cross connect");
    }

    #[test]
    fn lines_have_gaps_where_nothing_was_measured() {
        let benches = benches();
        let t = benches[0].table("Frame sizes").unwrap();
        let (labels, lines) = lines(t, "path", "packets/frame", "clocks/packet");
        assert_eq!(labels, ["1", "256"]);
        assert_eq!(lines[0].1, [Some(300.0), Some(2.0)]);
        assert_eq!(lines[1].1, [None, None]);
    }
}
