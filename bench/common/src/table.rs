//! Tables, as Markdown and as JSON.

use serde_json::{Value, json};

use crate::series::{Apart, Series, Spread};

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number, printed with this number of digits after the point.
    Number(f64, usize),
    /// The rounds of a measurement, printed as `median (least–most)`.
    Spread(Spread, usize),
    /// The rounds of a difference, small compared with what it is the difference of: a wide spread
    /// is no noise.
    Added(Spread, usize),
    /// A value to be met, and whether it was.
    Guide(String, bool),
    /// Reason why there is no value, printed as it is.
    Missing(String),
    /// No value belongs here; printed as a dash.
    None,
}

impl Cell {
    /// The rounds of a series.
    pub fn series(series: &Series, digits: usize) -> Cell {
        Cell::Spread(series.spread(), digits)
    }

    /// A ratio, or why there is none.
    pub fn ratio(ratio: Result<Spread, Apart>) -> Cell {
        match ratio {
            Ok(spread) => Cell::Spread(spread, 2),
            Err(apart) => Cell::Missing(apart.to_string()),
        }
    }

    fn markdown(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Missing(text) => text.replace('|', "\\|"),
            Cell::Number(value, digits) => format!("{value:.digits$}"),
            Cell::Spread(spread, digits) | Cell::Added(spread, digits) => {
                format!("{spread:.digits$}")
            }
            Cell::Guide(text, holds) => format!("{text} {}", if *holds { "✔" } else { "✘" }),
            Cell::None => "–".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Number(value, digits) => {
                let scale = 10f64.powi(*digits as i32);
                json!((value * scale).round() / scale)
            }
            Cell::Spread(s, digits) | Cell::Added(s, digits) => json!({
                "median": s.median,
                "least": s.least,
                "most": s.most,
                "rounds": s.rounds,
                "digits": digits,
                "noisy": self.is_noisy(),
            }),
            Cell::Guide(text, holds) => json!({ "guide": text, "holds": holds }),
            Cell::Missing(why) => json!({ "missing": why }),
            Cell::None => Value::Null,
        }
    }

    fn is_noisy(&self) -> bool {
        matches!(self, Cell::Spread(spread, _) if spread.is_noisy())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// The unit of its values, empty if each row has its own or there is none.
    pub unit: String,
    /// True if it holds values, which are set to the right.
    pub values: bool,
}

impl Column {
    /// A column of words.
    pub fn text(name: &str) -> Column {
        Column { name: name.to_owned(), unit: String::new(), values: false }
    }

    /// A column of values in this unit.
    pub fn values(name: &str, unit: &str) -> Column {
        Column { name: name.to_owned(), unit: unit.to_owned(), values: true }
    }

    fn heading(&self) -> String {
        if self.unit.is_empty() || self.unit == self.name {
            return self.name.clone();
        }
        format!("{}, {}", self.name, self.unit)
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Remarks that its reader needs.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty one.
    pub fn new(title: &str, columns: Vec<Column>) -> Table {
        Table { title: title.to_owned(), columns, ..Table::default() }
    }

    /// Adds a row; cells that are missing at its end are [`Cell::None`].
    pub fn row(&mut self, mut cells: Vec<Cell>) {
        cells.resize(self.columns.len(), Cell::None);
        self.rows.push(cells);
    }

    /// Adds a note.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// True if it has a noisy measurement.
    pub fn is_noisy(&self) -> bool {
        self.rows.iter().flatten().any(Cell::is_noisy)
    }

    /// Renders it as Markdown, without the title.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(Column::heading).collect());
        let rule = |column: &Column| if column.values { "---:" } else { "---" }.to_owned();
        text += &line(self.columns.iter().map(rule).collect());
        for row in &self.rows {
            text += &line(row.iter().map(Cell::markdown).collect());
        }
        let noisy = self.rows.iter().flatten().filter(|cell| cell.is_noisy()).count();
        let noise = (noisy > 0).then(|| {
            let of = self.rows.iter().flatten().filter(|c| matches!(c, Cell::Spread(..))).count();
            format!("Noisy: in {noisy} of {of} cells the rounds spread by more than 10 %.")
        });
        for note in self.notes.iter().chain(&noise) {
            text += &format!("\n{note}\n");
        }
        text
    }

    /// Renders it as JSON.
    pub fn json(&self) -> Value {
        let columns = self.columns.iter().map(|c| json!({ "name": c.name, "unit": c.unit }));
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::json).collect::<Vec<_>>());
        json!({
            "title": self.title,
            "columns": columns.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new("Speed", vec![Column::text("path"), Column::values("rate", "Mpps")]);
        table.row(vec!["a|b".into(), Cell::Spread(Spread::of(&[1.0, 1.5]), 1)]);
        table.row(vec!["c".into()]);
        table.note("A note.");
        table
    }

    #[test]
    fn markdown_has_a_rule_and_tells_of_noise() {
        let expected = "| path | rate, Mpps |\n| --- | ---: |\n| a\\|b | 1.2 (1.0–1.5) |\n\
            | c | – |\n\nA note.\n\nNoisy: in 1 of 1 cells the rounds spread by more than 10 %.\n";
        assert_eq!(table().markdown(), expected);
    }

    #[test]
    fn json_keeps_the_values() {
        let json = table().json();
        assert_eq!(json["columns"][1]["unit"], "Mpps");
        assert_eq!(json["rows"][0][1]["median"], 1.25);
        assert_eq!(json["rows"][0][1]["noisy"], true);
        assert_eq!(json["rows"][1][1], Value::Null);
        assert_eq!(json["notes"][0], "A note.");
        assert_eq!(Cell::Missing("why".into()).json()["missing"], "why");
        assert_eq!(Cell::Guide("< 1".into(), true).json()["holds"], true);
    }

    #[test]
    fn a_refused_ratio_says_why() {
        let cell = Cell::ratio(Err(Apart::Rounds(5, 4)));
        assert_eq!(cell.markdown(), "no ratio: 5 rounds against 4");
    }
}
