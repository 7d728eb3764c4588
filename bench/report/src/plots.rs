//! Plots of what benchmarks have found, as SVG that takes the page's colours.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::results::{Bench, Table, value};

/// A plot.
pub struct Plot {
    /// Its file's name, without `.svg`.
    pub name: &'static str,
    /// Title of the table that it belongs to.
    pub table: &'static str,
    pub svg: String,
}

const SIZE: (u32, u32) = (760, 380);
/// Readable on white and on black.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x2f, 0x7f, 0xd6),
    RGBColor(0xd9, 0x82, 0x1b),
    RGBColor(0x2b, 0x9e, 0x6d),
    RGBColor(0xc9, 0x4a, 0x4a),
    RGBColor(0x8a, 0x63, 0xc7),
    RGBColor(0x80, 0x80, 0x80),
    RGBColor(0x1f, 0x9a, 0xa8),
];

/// A line of a plot: its name and a value for each of the axis's labels.
type Line = (String, Vec<Option<f64>>);

impl Plot {
    /// The plot as a file of its own, on white.
    pub fn standalone(&self) -> String {
        self.svg.replacen("<svg ", "<svg style=\"background:#fff;color:#222\" ", 1)
    }
}

/// Every plot for which there are results.
pub fn all(benches: &[Bench]) -> Result<Vec<Plot>> {
    let table = |title: &str| benches.iter().find_map(|b| b.table(title));
    let mut plots = Vec::new();
    let mut add = |name, table, svg: Result<String>| -> Result<()> {
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

/// What fits below a bar: what tells a path from the others.
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

struct Titles {
    title: &'static str,
    x: &'static str,
    y: &'static str,
}

/// Draws, and lets text and axes have the colour of the page's text.
fn draw(
    titles: &Titles,
    paint: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let root = root.titled(titles.title, ("sans-serif", 18)).map_err(|e| anyhow!("{e}"))?;
        paint(&root)?;
        root.present().map_err(|e| anyhow!("{e}"))?;
    }
    Ok(svg.replace("#000000", "currentColor"))
}

fn most(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|l| &l.1).flatten().fold(0.0, |most: f64, v| most.max(*v))
}

fn line_plot(titles: &Titles, labels: &[String], lines: &[Line], log: bool) -> Result<String> {
    let scale = |v: f64| if log { v.max(1e-3).log10() } else { v };
    let values = || lines.iter().flat_map(|l| &l.1).flatten().map(|v| scale(*v));
    let top = values().fold(f64::MIN, f64::max);
    let low = if log { values().fold(f64::MAX, f64::min).floor() } else { 0.0 };
    let label = |x: &f64| match labels.get(x.round() as usize) {
        Some(text) if (x - x.round()).abs() < 0.01 => text.clone(),
        _ => String::new(),
    };
    let last = labels.len().saturating_sub(1) as f64;
    draw(titles, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.2..last + 0.2, low..top + (top - low).max(0.1) * 0.1)?;
        let y_label = |v: &f64| {
            let v = if log { 10f64.powf(*v) } else { *v };
            if v >= 10.0 { format!("{v:.0}") } else { format!("{v:.2}") }
        };
        chart
            .configure_mesh()
            .x_labels(labels.len() * 4)
            .x_label_formatter(&label)
            .y_label_formatter(&y_label)
            .x_desc(titles.x)
            .y_desc(titles.y)
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (i, (name, values)) in lines.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points: Vec<(f64, f64)> =
                (0..).zip(values).filter_map(|(x, v)| Some((f64::from(x), scale((*v)?)))).collect();
            let line = LineSeries::new(points.clone(), colour.stroke_width(2));
            chart.draw_series(line)?.label(name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled())
            });
            chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled())))?;
        }
        legend(&mut chart, SeriesLabelPosition::LowerLeft)
    })
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, at: SeriesLabelPosition) -> Result<()> {
    let mut labels = chart.configure_series_labels();
    labels.position(at).border_style(TRANSPARENT).draw().map_err(|e| anyhow!("{e}"))
}

/// Bars over labels: next to each other, or on top of each other.
fn bars(titles: &Titles, labels: &[String], sets: &[Line], stacked: bool) -> Result<String> {
    let sum = |at: usize| sets.iter().filter_map(|s| s.1.get(at).copied().flatten()).sum::<f64>();
    let top = if stacked { (0..labels.len()).map(sum).fold(0.0, f64::max) } else { most(sets) };
    let label = |x: &f64| match labels.get(x.floor() as usize) {
        Some(text) if (x - x.floor() - 0.5).abs() < 0.01 => text.clone(),
        _ => String::new(),
    };
    draw(titles, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(10)
            .x_label_area_size(32)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..labels.len().max(1) as f64, 0.0..top.max(1.0) * 1.1)?;
        chart
            .configure_mesh()
            .x_labels(labels.len() * 2 + 1)
            .x_label_formatter(&label)
            .y_desc(titles.y)
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .draw()?;
        let mut floor = vec![0.0; labels.len()];
        let width = if stacked { 0.6 } else { 0.8 / sets.len().max(1) as f64 };
        for (i, (name, values)) in sets.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let left = if stacked { 0.2 } else { 0.1 + width * i as f64 };
            let mut boxes = Vec::new();
            for (at, value) in values.iter().enumerate() {
                let (Some(v), Some(low)) = (value, floor.get_mut(at)) else { continue };
                let x = at as f64 + left;
                boxes.push(Rectangle::new([(x, *low), (x + width, *low + v)], colour.filled()));
                if stacked {
                    *low += v;
                }
            }
            chart.draw_series(boxes)?.label(name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled())
            });
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
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
