//! The report as Markdown.

use std::fmt::Write;

use thalweg_terminal::harmless;

use crate::model::Report;
use crate::tables::{self, Table};

impl Report {
    /// The report as Markdown, without plots.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", plain(&title(self)));
        for line in tables::headlines(self) {
            let _ = write!(out, "\n**{}**\n", plain(&line));
        }
        out.push('\n');
        for line in tables::about(self) {
            let _ = writeln!(out, "- {}", plain(&line));
        }
        for note in &self.notes {
            let _ = writeln!(out, "- Note: {}", plain(note));
        }
        for table in tables::all(self) {
            write_table(&mut out, &table);
        }
        if !self.command.is_empty() {
            let _ = write!(out, "\n## To repeat\n\n    {}\n", harmless(&command(self)));
        }
        out
    }
}

pub(crate) fn title(report: &Report) -> String {
    let device = if report.device.name.is_empty() { "a device" } else { &report.device.name };
    format!("Load test of {device}")
}

/// The command, with arguments quoted that need it.
pub(crate) fn command(report: &Report) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%@+".contains(c);
    let quoted =
        report.command.iter().map(|word| match word.chars().all(safe) && !word.is_empty() {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''").replace(['\n', '\r'], " ")),
        });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A text of one line, with nothing that Markdown takes for a form, nor a terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in harmless(&text.replace(['\n', '\r', '\t'], " ")).chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '&' | '~' | '[' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn cells(row: &[String]) -> String {
    row.iter().map(|cell| plain(cell)).collect::<Vec<_>>().join(" | ")
}

pub(crate) fn write_table(out: &mut String, table: &Table) {
    let _ = write!(out, "\n## {}\n\n", plain(&table.title));
    if !table.note.is_empty() {
        let _ = write!(out, "{}\n\n", plain(&table.note));
    }
    let _ = writeln!(out, "| {} |", cells(&table.columns));
    let lines: Vec<&str> =
        (0..table.columns.len()).map(|n| if n == 0 { "---" } else { "--:" }).collect();
    let _ = writeln!(out, "| {} |", lines.join(" | "));
    for row in &table.rows {
        let _ = writeln!(out, "| {} |", cells(row));
    }
}
