//! Output of a command: lines of text, or JSON on request.

use std::fmt;

use crate::server::is_deceptive;
use serde_json::Value;

/// Maximum size of the text that one command may write between two deliveries, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 256 * 1024 * 1024;

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text.
    #[default]
    Text,
    /// One JSON document per line (`| json`).
    Json,
    /// JSON with indentation (`| json-pretty`).
    JsonPretty,
}

impl Format {
    /// Formats a single JSON document, as a line; `None` for text.
    pub fn write(self, value: &Value) -> Option<String> {
        match self {
            Format::Text => None,
            Format::Json => Some(plain(format!("{value}\n"))),
            Format::JsonPretty => Some(plain(format!("{value:#}\n"))),
        }
    }
}

/// Escapes what would act on a terminal or deceive its reader (`\u202e`). Outside of strings JSON
/// has no such characters.
fn plain(json: String) -> String {
    let odd = |c: char| !matches!(c, '\n' | ' '..='~') && is_deceptive(c);
    if !json.contains(odd) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        // All of these are in the first plane, so that one escape is enough.
        match odd(c) {
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    out
}

/// Collects a command's output.
///
/// `write!` and `writeln!` work on it and cannot fail. If JSON was requested, text is discarded and
/// only [`json`](Self::json) counts; and the other way round.
#[derive(Debug, Default)]
pub struct Output {
    text: String,
    format: Format,
    has_json: bool,
    /// Number of elements of an unfinished list.
    elements: usize,
    /// True if the list is a member of an object.
    within: bool,
    overflow: bool,
}

impl Output {
    /// Creates an empty text output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty output of the given format.
    pub fn with_format(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// Returns true if JSON was requested: the command need not format text then.
    pub fn wants_json(&self) -> bool {
        self.format != Format::Text
    }

    /// Returns the requested format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Writes JSON; ignored unless JSON was requested.
    pub fn json(&mut self, value: Value) {
        if let Some(text) = self.format.write(&value) {
            self.written(text);
        }
    }

    /// Writes a large output that was already formatted in the requested format: without a copy, if
    /// it is the first.
    pub fn written(&mut self, text: String) {
        self.has_json = true;
        match self.text.is_empty() && text.len() <= MAX_OUTPUT_BYTES {
            true => self.text = text,
            false => self.push(&text),
        }
    }

    /// Writes one element of a list; [`end_elements`](Self::end_elements) must follow. Ignored
    /// unless JSON was requested.
    pub fn element(&mut self, value: Value) {
        let text = match self.format {
            Format::Text => return,
            Format::Json => plain(value.to_string()),
            Format::JsonPretty => {
                let indent = if self.within { "\n    " } else { "\n  " };
                plain(format!("\n{value:#}").replace('\n', indent))
            }
        };
        self.push(if self.elements == 0 { "[" } else { "," });
        self.push(&text);
        self.elements += 1;
    }

    /// Begins `object` with one more member, `key`, which is the list of the elements that follow.
    pub fn begin_elements(&mut self, object: &serde_json::Map<String, Value>, key: &str) {
        let (text, end, comma) = match self.format {
            Format::Text => return,
            Format::Json => (Value::from(object.clone()).to_string(), "}", ","),
            Format::JsonPretty => (format!("{:#}", Value::from(object.clone())), "\n}", ",\n  "),
        };
        let head = text.strip_suffix(end).unwrap_or("{");
        let space = if self.format == Format::Json { "" } else { " " };
        let comma = if object.is_empty() { comma.trim_start_matches(',') } else { comma };
        self.push(&plain(format!("{head}{comma}{}:{space}", Value::from(key))));
        self.within = true;
    }

    /// Ends the list of elements.
    pub fn end_elements(&mut self) {
        if !self.wants_json() {
            return;
        }
        self.has_json = true;
        let pretty = self.format == Format::JsonPretty;
        let (elements, within) = (std::mem::take(&mut self.elements), self.within);
        self.within = false;
        self.push(match (elements, within) {
            (0, _) => "[]",
            (_, true) if pretty => "\n  ]",
            (_, false) if pretty => "\n]",
            _ => "]",
        });
        self.push(match within {
            true if pretty => "\n}\n",
            true => "}\n",
            false => "\n",
        });
    }

    /// Writes a line, and an element of JSON's list, for each of `all`.
    pub fn list<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        each: impl Fn(T) -> (String, Value),
    ) {
        let (lines, rows): (Vec<String>, Vec<Value>) = all.into_iter().map(each).unzip();
        lines.iter().for_each(|line| self.line(line));
        self.json(rows.into());
    }

    /// Writes one line.
    pub fn line(&mut self, line: impl fmt::Display) {
        self.write_fmt(format_args!("{line}\n"));
    }

    /// Writes text as it is.
    pub fn text(&mut self, text: &str) {
        if self.format == Format::Text {
            self.push(text);
        }
    }

    /// Called by `write!`.
    pub fn write_fmt(&mut self, args: fmt::Arguments<'_>) {
        if self.format == Format::Text {
            let _ = fmt::Write::write_fmt(&mut Sink(self), args);
        }
    }

    fn push(&mut self, text: &str) {
        if self.overflow || self.text.len() + text.len() > MAX_OUTPUT_BYTES {
            self.overflow = true;
            return;
        }
        self.text.push_str(text);
    }

    /// Returns the output that was not taken yet.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Takes the output, leaving nothing.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Returns true if text was dropped because it exceeded [`MAX_OUTPUT_BYTES`].
    pub fn overflowed(&self) -> bool {
        self.overflow
    }

    /// Returns true if JSON was requested and none was written.
    pub(crate) fn lacks_json(&self) -> bool {
        self.wants_json() && !self.has_json
    }
}

/// The infallible writer behind `write!`.
struct Sink<'a>(&'a mut Output);

impl fmt::Write for Sink<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0.push(s);
        Ok(())
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.text(s);
        Ok(())
    }
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned.
    Left,
    /// Right-aligned.
    Right,
    /// Centred; an odd blank goes to the left.
    Center,
}

/// A table of aligned columns with a heading line.
///
/// A column is as wide as it was declared, or as its widest cell. Lines have no trailing blanks, so
/// that output compares and greps well.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align, usize)>,
    rows: Vec<Vec<String>>,
    gap: usize,
    headless: bool,
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// Creates a table without columns; the default gap is two blanks, see [`gap`](Self::gap).
    pub fn new() -> Self {
        Self { columns: Vec::new(), rows: Vec::new(), gap: 2, headless: false }
    }

    /// Adds a column at least `width` characters wide.
    #[must_use]
    pub fn column(mut self, title: &str, align: Align, width: usize) -> Self {
        self.columns.push((title.to_owned(), align, width));
        self
    }

    /// Omits the heading line, for rows that follow others.
    #[must_use]
    pub fn without_heading(mut self) -> Self {
        self.headless = true;
        self
    }

    /// Sets the number of blanks between columns.
    #[must_use]
    pub fn gap(mut self, blanks: usize) -> Self {
        self.gap = blanks;
        self
    }

    /// Adds a row; cells beyond the columns are ignored, missing ones are empty.
    pub fn row<I>(&mut self, cells: I)
    where
        I: IntoIterator,
        I::Item: fmt::Display,
    {
        let cells = cells.into_iter().take(self.columns.len());
        self.rows.push(cells.map(|c| c.to_string()).collect());
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |i: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count());
            cells.max().unwrap_or(0)
        };
        let column = |(i, (title, _, width)): (usize, &(String, Align, usize))| {
            widest(i).max(*width).max(title.chars().count())
        };
        self.columns.iter().enumerate().map(column).collect()
    }

    fn write_row<'a>(
        &'a self,
        f: &mut fmt::Formatter<'_>,
        widths: &[usize],
        cells: impl Iterator<Item = &'a str>,
    ) -> fmt::Result {
        // Blanks are counted, not written, until a character follows them.
        let mut owed = 0;
        for (((_, align, _), width), cell) in self.columns.iter().zip(widths).zip(cells) {
            let spare = width - cell.chars().count();
            let left = match align {
                Align::Left => 0,
                Align::Right => spare,
                Align::Center => spare.div_ceil(2),
            };
            let trimmed = cell.trim_end();
            if !trimmed.is_empty() {
                write!(f, "{:1$}{trimmed}", "", owed + left)?;
                owed = (cell.chars().count() - trimmed.chars().count()) + spare - left;
            } else {
                owed += width;
            }
            owed += self.gap;
        }
        f.write_str("\n")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        if !self.headless && self.columns.iter().any(|(title, ..)| !title.is_empty()) {
            self.write_row(f, &widths, self.columns.iter().map(|(t, ..)| t.as_str()))?;
        }
        for row in &self.rows {
            self.write_row(f, &widths, row.iter().map(String::as_str))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_what_deceives_and_stays_the_same() {
        let value = serde_json::json!({ "a\u{9b}": "x\u{202e}y\u{7f} é\n" });
        for format in [Format::Json, Format::JsonPretty] {
            let text = format.write(&value).unwrap();
            assert!(text.contains("x\\u202ey\\u007f é") && text.contains("a\\u009b"), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn text_and_json_exclude_each_other() {
        let mut out = Output::new();
        out.line("one");
        write!(out, "two {}", 2);
        out.json(serde_json::json!({"a": 1}));
        out.written("\n".to_owned());
        assert_eq!((out.as_str(), out.lacks_json()), ("one\ntwo 2\n", false));
        assert_eq!(out.take(), "one\ntwo 2\n");
        assert_eq!(out.take(), "");
        out.written("three\n".to_owned());
        assert_eq!(out.take(), "three\n");

        let mut out = Output::with_format(Format::Json);
        out.line("one");
        assert!(out.lacks_json() && out.wants_json());
        out.json(serde_json::json!({"a": 1}));
        assert_eq!((out.take().as_str(), out.lacks_json()), ("{\"a\":1}\n", false));
        let mut out = Output::with_format(Format::JsonPretty);
        out.json(serde_json::json!({"a": 1}));
        assert_eq!(out.take(), "{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn a_list_within_an_object_is_one_document() {
        let mut object = serde_json::Map::new();
        object.insert("above".into(), serde_json::json!({"a": [1]}));
        for n in 0..4 {
            if n == 3 {
                object.clear();
            }
            let mut whole = object.clone();
            whole.insert("list".into(), Value::from_iter(0..n));
            for format in [Format::Json, Format::JsonPretty] {
                let mut out = Output::with_format(format);
                out.begin_elements(&object, "list");
                (0..n).for_each(|i| out.element(i.into()));
                out.end_elements();
                let mut expected = Output::with_format(format);
                expected.json(whole.clone().into());
                assert_eq!(out.as_str(), expected.as_str());
            }
        }
    }

    #[test]
    fn headings_stand_where_vpp_puts_them() {
        let mut table = Table::new()
            .gap(0)
            .column("Name", Align::Center, 32)
            .column("Idx", Align::Center, 5)
            .column("State", Align::Center, 10)
            .column("MTU (L3/IP4/IP6/MPLS)", Align::Center, 21)
            .column("Counter", Align::Center, 16)
            .column("Count", Align::Center, 16);
        assert_eq!(
            table.to_string(),
            "              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          \
             Count\n"
        );
        table.row(["local0", "0"]);
        assert_eq!(table.len(), 1);
        assert!(table.to_string().ends_with("\n             local0               0\n"));
    }

    #[test]
    fn columns_grow_and_lines_end_without_blanks() {
        let mut table =
            Table::new().column("Count", Align::Right, 8).column("Node", Align::Left, 6);
        table.row(["1", "ip4-lookup"]);
        table.row(["123456789", ""]);
        table.row(["7"]);
        assert_eq!(
            table.to_string(),
            "    Count  Node\n        1  ip4-lookup\n123456789\n        7\n"
        );
        let mut bare = Table::new().column("", Align::Left, 3).column("", Align::Left, 0);
        bare.row(["a", "b"]);
        assert_eq!(bare.to_string(), "a    b\n");
    }
}
