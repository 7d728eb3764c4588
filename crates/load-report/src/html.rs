//! The report as one page that needs nothing else.

use std::fmt::Write;

use thalweg_plot::{PlotError, STYLE, escape};

use crate::markdown::{command, title};
use crate::model::Report;
use crate::tables::{self, Table};
use crate::{Comparison, plots};

impl Report {
    /// The report as one page of HTML with plots, and without scripts.
    ///
    /// # Errors
    /// [`PlotError`].
    pub fn html(&self) -> Result<String, PlotError> {
        let mut body = String::new();
        for line in tables::headlines(self) {
            let _ = writeln!(body, "<p><b>{}</b></p>", escape(&line));
        }
        body += "<ul>\n";
        for line in tables::about(self) {
            let _ = writeln!(body, "<li>{}</li>", escape(&line));
        }
        for note in &self.notes {
            let _ = writeln!(body, "<li>Note: {}</li>", escape(note));
        }
        body += "</ul>\n";
        let drawn = plots::all(self)?;
        for table in tables::all(self) {
            write_table(&mut body, &table);
            for (_, svg) in drawn.iter().filter(|(key, _)| *key == table.key) {
                let _ = writeln!(body, "<figure>{svg}</figure>");
            }
        }
        for svg in plots::series(self)? {
            let _ = writeln!(body, "<figure>{svg}</figure>");
        }
        if !self.command.is_empty() {
            let _ = writeln!(body, "<h2>To repeat</h2>\n<pre>{}</pre>", escape(&command(self)));
        }
        if !self.profile.canonical.is_null() {
            let text = serde_json::to_string_pretty(&self.profile.canonical).unwrap_or_default();
            let _ = writeln!(
                body,
                "<details><summary>The profile</summary><pre>{}</pre></details>",
                escape(&text)
            );
        }
        if !self.device.configuration.is_empty() {
            let _ = writeln!(
                body,
                "<details><summary>The device's configuration</summary><pre>{}</pre></details>",
                escape(&self.device.configuration)
            );
        }
        Ok(page(&title(self), &body))
    }
}

impl Comparison {
    /// The comparison as one page of HTML.
    pub fn html(&self) -> String {
        let mut body = String::new();
        for note in &self.notes {
            let _ = writeln!(body, "<p class=bad>{}</p>", escape(note));
        }
        write_table(&mut body, &self.table());
        page("Comparison of load tests", &body)
    }
}

fn write_table(body: &mut String, table: &Table) {
    let _ = writeln!(body, "<section id=\"{}\"><h2>{}</h2>", table.key, escape(&table.title));
    if !table.note.is_empty() {
        let _ = writeln!(body, "<p>{}</p>", escape(&table.note));
    }
    *body += "<div class=wide><table><thead><tr>";
    for (n, column) in table.columns.iter().enumerate() {
        let class = if n == 0 { "" } else { " class=n" };
        let _ = write!(body, "<th{class}>{}</th>", escape(column));
    }
    *body += "</tr></thead><tbody>\n";
    for row in &table.rows {
        *body += "<tr>";
        for (n, cell) in row.iter().enumerate() {
            let class = if n == 0 { "" } else { " class=n" };
            let _ = write!(body, "<td{class}>{}</td>", escape(cell));
        }
        *body += "</tr>\n";
    }
    *body += "</tbody></table></div></section>\n";
}

fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title>\n<style>\n{STYLE}</style></head>\n\
         <body><main><h1>{title}</h1>\n{body}</main></body></html>\n"
    )
}
