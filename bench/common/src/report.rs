//! A benchmark's report.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::args::Args;
use crate::machine::{Machine, Processors};
use crate::pair::Pair;
use crate::table::Table;

/// A report, from the moment when a benchmark starts.
#[derive(Debug)]
pub struct Report {
    bench: String,
    title: String,
    about: Vec<String>,
    machine: Machine,
    started: String,
    processors: Processors,
    at_first: Pair,
    tables: Vec<Table>,
}

impl Report {
    /// Starts the report of the benchmark that Cargo knows as `bench`.
    pub fn start(bench: &str, title: &str) -> Report {
        let (machine, at_first) = (Machine::here(), Pair::measure());
        Report {
            bench: bench.to_owned(),
            title: title.to_owned(),
            about: Vec::new(),
            machine,
            started: utc_now(),
            processors: Processors::start(),
            at_first,
            tables: Vec::new(),
        }
    }

    /// Adds a paragraph ahead of the tables.
    pub fn about(&mut self, text: impl Into<String>) {
        self.about.push(text.into());
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.tables.push(table);
    }

    /// True if it has a noisy measurement.
    pub fn is_noisy(&self) -> bool {
        self.tables.iter().any(Table::is_noisy)
    }

    /// Prints it as Markdown, and writes it as JSON if that was asked for.
    ///
    /// # Errors
    /// If the file cannot be written; it has been printed then.
    pub fn finish(self, args: &Args) -> Result<()> {
        let (ended, steal) = (utc_now(), self.processors.stolen_percent());
        let pairs = [self.at_first, Pair::measure()];
        println!("{}", self.markdown(&ended, steal, pairs));
        match &args.json {
            Some(file) => save(file, &self.json(&ended, steal, pairs)),
            None => Ok(()),
        }
    }

    fn markdown(&self, ended: &str, steal: f64, pairs: Pairs) -> String {
        let mut text = format!("\n## {}\n", self.title);
        for paragraph in &self.about {
            text += &format!("\n{paragraph}\n");
        }
        text += &format!(
            "\n{}; from {} to {ended}; {steal:.1} % of the time stolen by other machines{}{}.\n",
            self.machine,
            self.started,
            said(pairs),
            if self.is_noisy() { "; noisy" } else { "" }
        );
        for table in &self.tables {
            text += &format!("\n### {}\n\n{}", table.title, table.markdown());
        }
        text
    }

    fn json(&self, ended: &str, steal: f64, pairs: Pairs) -> Value {
        json!({
            "bench": self.bench,
            "title": self.title,
            "about": self.about,
            "machine": self.machine,
            "started": self.started,
            "ended": ended,
            "steal_percent": steal,
            "noisy": self.is_noisy(),
            "one_processor": pairs.map(|p| p.one.map(f64::round)),
            "two_processors": pairs.map(|p| p.factor),
            "line_ns": pairs.map(|p| p.line.map(f64::round)),
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
        })
    }
}

/// Rates of processors at the beginning and at the end.
type Pairs = [Pair; 2];

fn said(pairs: Pairs) -> String {
    let mut text = String::new();
    if let [Some(first), Some(end)] = pairs.map(|p| p.one) {
        text += &format!(
            "; one processor did {first:.0} million bare steps/s at first, {end:.0} in the end"
        );
    }
    if let [Some(first), Some(end)] = pairs.map(|p| p.factor) {
        text += &format!("; two did {first:.2} times as much at first, {end:.2} in the end");
    }
    if let [Some(first), Some(end)] = pairs.map(|p| p.line) {
        text += &format!("; a line took {first:.0} ns from one to the other, {end:.0} in the end");
    }
    text
}

fn save(file: &Path, value: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    }
    std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
}

/// Returns the time in the format of RFC 3339, in whole seconds.
fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(since).unwrap_or(i64::MAX);
    let Ok(time) = tz::UtcDateTime::from_timespec(seconds, 0) else { return "unknown".into() };
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(whole, _)| format!("{whole}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Spread;
    use crate::table::{Cell, Column};

    #[test]
    fn a_report_has_the_promised_fields() {
        let mut report = Report::start("x", "X and Y");
        report.about("In turns.");
        let mut table = Table::new("T", vec![Column::values("v", "s")]);
        table.row(vec![Cell::Spread(Spread::of(&[1.0, 2.0]), 0)]);
        report.table(table);
        let pair = |one, factor, line| Pair { one: Some(one), factor: Some(factor), line };
        let pairs = [pair(740.4, 1.25, Some(206.1)), pair(945.0, 2.0, Some(50.0))];
        let json = report.json("later", 0.5, pairs);
        for field in ["bench", "machine", "started", "ended", "noisy", "tables", "steal_percent"] {
            assert!(!json[field].is_null(), "{field}: {json}");
        }
        assert_eq!(json["noisy"], true);
        assert_eq!(json["machine"]["cores"], Machine::here().cores);
        let started = json["started"].as_str().unwrap();
        assert!(started.len() == 20 && started.ends_with('Z'), "{started}");
        assert_eq!(json["two_processors"], json!([1.25, 2.0]));
        assert_eq!(json["one_processor"], json!([740.0, 945.0]));
        assert_eq!(json["line_ns"], json!([206.0, 50.0]));
        let text = report.markdown("later", 0.5, pairs);
        assert!(text.contains("## X and Y\n\nIn turns.\n"), "{text}");
        assert!(
            text.contains("stolen by other machines; one processor did 740 million")
                && text.contains("945 in the end; two did 1.25 times as much at first, 2.00 in")
                && text.contains("a line took 206 ns from one to the other, 50 in the end"),
            "{text}"
        );
        assert!(text.contains("### T\n\n| v, s |"), "{text}");
    }
}
