//! Reads files that benchmarks have written: see `thalweg_bench_common` for the format.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thalweg_bench_common::Spread;

/// Rate of the bare loop on one processor of the machine that the targets are judged on, in its
/// best hours, in millions of steps a second.
const FAST: (&str, f64) = ("AMD EPYC", 945.0);
/// The share of it below which an hour is slow.
const SLOW: f64 = 0.85;

/// A benchmark's report.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Bench {
    pub bench: String,
    pub title: String,
    pub about: Vec<String>,
    pub machine: Value,
    pub started: String,
    pub ended: String,
    pub steal_percent: f64,
    pub noisy: bool,
    /// Rate of a bare loop on one processor, in millions of steps a second, at the beginning and at
    /// the end.
    #[serde(default)]
    pub one_processor: [Option<f64>; 2],
    /// Ratio of two processors to one, at first and in the end.
    #[serde(default)]
    pub two_processors: [Option<f64>; 2],
    /// Nanoseconds that a line took from one processor to the other, at first and in the end.
    #[serde(default)]
    pub line_ns: [Option<f64>; 2],
    pub tables: Vec<Table>,
}

/// One of its tables.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
    pub notes: Vec<String>,
}

/// A column's heading.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Column {
    pub name: String,
    pub unit: String,
}

/// Outcome of running a benchmark.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Ran {
    pub name: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// Last output, if it failed.
    pub failed: Option<String>,
}

impl Bench {
    /// Reads one.
    pub fn read(file: &Path) -> Result<Bench> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("read the results in {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("results in {}", file.display()))
    }

    /// A table by its title.
    pub fn table(&self, title: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.title == title)
    }

    /// Returns the ratio of two processors to one while it ran.
    pub fn two(&self) -> Option<String> {
        let [Some(first), Some(end)] = self.two_processors else { return None };
        Some(format!("{first:.2}, {end:.2}"))
    }

    /// Time of a line from one processor to the other, in ns.
    pub fn line(&self) -> Option<String> {
        let [Some(first), Some(end)] = self.line_ns else { return None };
        Some(format!("{first:.0}, {end:.0}"))
    }

    /// Rate of one processor, while it ran.
    pub fn one(&self) -> Option<String> {
        let [Some(first), Some(end)] = self.one_processor else { return None };
        Some(format!("{first:.0}, {end:.0}"))
    }

    /// True if it ran in a slow hour of the machine that the targets were judged on.
    pub fn slow(&self) -> bool {
        let [Some(first), Some(end)] = self.one_processor else { return false };
        let (cpu, best) = FAST;
        let is_it = self.machine["cpu"].as_str().is_some_and(|name| name.starts_with(cpu));
        is_it && (first + end) / 2.0 < SLOW * best
    }

    /// Returns the number of its noisy measurements, and of all.
    pub fn noise(&self) -> (usize, usize) {
        let cells = self.tables.iter().flat_map(|t| t.rows.iter().flatten());
        let measured: Vec<&Value> = cells.filter(|c| c.get("median").is_some()).collect();
        (measured.iter().filter(|c| c["noisy"] == true).count(), measured.len())
    }
}

impl Table {
    /// The cells of a column in the rows whose first cells are these texts.
    pub fn find(&self, texts: &[&str], column: &str) -> Option<&Value> {
        let at = self.column(column)?;
        let same = |row: &&Vec<Value>| texts.iter().zip(*row).all(|(t, cell)| cell == *t);
        self.rows.iter().find(same)?.get(at)
    }

    /// A column's place.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }
}

/// A cell's value: a number's, or the median of a spread.
pub fn value(cell: &Value) -> Option<f64> {
    cell.as_f64().or_else(|| cell.get("median")?.as_f64())
}

/// A cell's rounds.
pub fn spread(cell: &Value) -> Option<Spread> {
    let field = |name: &str| cell.get(name)?.as_f64();
    Some(Spread {
        median: field("median")?,
        least: field("least")?,
        most: field("most")?,
        rounds: cell.get("rounds")?.as_u64()? as usize,
    })
}

/// A number with blanks between its thousands.
pub fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |w| ("−", w));
    let mut grouped = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && whole.len() > 4 {
            grouped.push('\u{202f}');
        }
        grouped.push(c);
    }
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{part}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_found_and_read() {
        let table: Table = serde_json::from_value(json!({
            "title": "T", "columns": [{"name": "path", "unit": ""}, {"name": "v", "unit": "s"}],
            "rows": [["a", 1.5], ["b", {"median": 2.0, "least": 1.0, "most": 3.0, "rounds": 5}]],
            "notes": []
        }))
        .unwrap();
        assert_eq!(table.find(&["b"], "v").and_then(value), Some(2.0));
        assert_eq!(table.find(&["b"], "v").and_then(spread).unwrap().most, 3.0);
        assert_eq!(table.find(&["a"], "v").and_then(value), Some(1.5));
        assert!(table.find(&["c"], "v").is_none() && table.find(&["a"], "w").is_none());
    }

    #[test]
    fn slow_hours_show() {
        let bench = |cpu: &str, rates| Bench {
            machine: json!({"cpu": cpu}),
            one_processor: rates,
            ..Bench::default()
        };
        assert!(bench("AMD EPYC", [Some(740.0), Some(760.0)]).slow());
        assert!(bench("AMD EPYC, family 25 model 17", [Some(740.0), Some(760.0)]).slow());
        assert!(!bench("AMD EPYC", [Some(740.0), Some(945.0)]).slow());
        assert!(!bench("another", [Some(10.0), Some(10.0)]).slow());
        assert!(!bench("AMD EPYC", [None, Some(10.0)]).slow());
        let said = bench("AMD EPYC", [Some(740.0), Some(945.0)]).one();
        assert_eq!(said.as_deref(), Some("740, 945"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(1234567.25, 1), "1\u{202f}234\u{202f}567.2");
        assert_eq!(number(-1234.0, 0), "−1234");
        assert_eq!(number(0.5, 2), "0.50");
    }
}
