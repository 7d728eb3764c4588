//! A screen as a picture: the terminal's cells, drawn as one SVG file without outside references.
//!
//! Line-drawing characters become shapes, so that frames close in every font. Text is placed run by
//! run with its exact length, so that columns stay aligned where the font's advance differs from a
//! cell's width.

use super::grid::{Cell, Grid, Look};
use std::fmt::Write;

/// Width and height of a cell, height of the baseline in it, and the font's size, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const BASELINE: f64 = 13.5;
const FONT_SIZE: f64 = 14.0;
/// Margin around the cells, in pixels.
const MARGIN: f64 = 12.0;

/// Colours: a terminal's default, and its blue.
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#14191f";
const BLUE: &str = "#4f8fd0";

/// Lines of a cell: to its left, right, upper and lower side.
type Sides = [bool; 4];
const LEFT_TO_RIGHT: Sides = [true, true, false, false];

/// Draws a screen.
pub fn svg(screen: &Grid) -> String {
    let width = screen.width as f64 * CELL.0 + 2.0 * MARGIN;
    let height = screen.rows.len() as f64 * CELL.1 + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"'DejaVu Sans Mono', Menlo, \
         Consolas, 'Liberation Mono', monospace\" font-size=\"{FONT_SIZE}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (y, row) in screen.rows.iter().enumerate() {
        for (column, cells) in chunks(row, |a, b| a.1 == b.1) {
            if cells[0].1 == Look::OnBlue {
                background(&mut text, (column, cells.len()), y);
            }
        }
        for (column, cells) in chunks(row, go_on) {
            foreground(&mut text, column, cells, y);
        }
    }
    text + "</svg>\n"
}

/// Groups of adjacent cells, each with its first column.
fn chunks(
    row: &[Cell],
    alike: impl Fn(&Cell, &Cell) -> bool,
) -> impl Iterator<Item = (usize, &[Cell])> {
    row.chunk_by(alike).scan(0, |next, cells| {
        let column = *next;
        *next += cells.len();
        Some((column, cells))
    })
}

/// Returns whether two adjacent cells are drawn as one: text, and lines from left to right.
fn go_on(a: &Cell, b: &Cell) -> bool {
    let drawn = match (sides(a.0), sides(b.0)) {
        // Two blanks divide columns, each of which has its own place.
        (None, None) => (a.0, b.0) != (' ', ' '),
        (a, b) => a == b && a == Some(LEFT_TO_RIGHT),
    };
    drawn && a.1 == b.1
}

fn left(column: usize) -> f64 {
    MARGIN + column as f64 * CELL.0
}

fn top(row: usize) -> f64 {
    MARGIN + row as f64 * CELL.1
}

/// Fills cells of a row, from a column on over a width. Crisp edges leave no seam between two.
fn background(text: &mut String, (column, width): (usize, usize), row: usize) {
    let (x, y) = (left(column), top(row));
    let (width, height) = (width as f64 * CELL.0, CELL.1);
    let _ = writeln!(
        text,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         fill=\"{BLUE}\" shape-rendering=\"crispEdges\"/>"
    );
}

/// Draws adjacent cells: text without blanks at either end, or lines.
fn foreground(text: &mut String, column: usize, cells: &[Cell], row: usize) {
    let (first, look) = cells[0];
    let fill = if look == Look::Blue { BLUE } else { FOREGROUND };
    if let Some(sides) = sides(first) {
        return lines(text, (column, cells.len()), row, sides, fill);
    }
    let is_blank = |cell: &&Cell| cell.0 == ' ';
    let blanks = cells.iter().take_while(is_blank).count();
    let words: String = cells.iter().map(|cell| cell.0).collect();
    let words = words.trim_matches(' ');
    if words.is_empty() {
        return;
    }
    let (x, y) = (left(column + blanks), top(row) + BASELINE);
    let length = words.chars().count() as f64 * CELL.0;
    let attribute = match look {
        Look::Bold => " font-weight=\"bold\"",
        Look::Dim => " opacity=\"0.6\"",
        Look::Plain | Look::Blue | Look::OnBlue => "",
    };
    let _ = writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" \
         lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"{fill}\"{attribute}>\
         {}</text>",
        escaped(words)
    );
}

/// Lines from the middle of a cell to some of its sides, or through cells from left to right.
fn lines(text: &mut String, (column, width): (usize, usize), row: usize, sides: Sides, fill: &str) {
    let (x, y) = (left(column) + CELL.0 / 2.0, top(row) + CELL.1 / 2.0);
    let right = x + (width - 1) as f64 * CELL.0;
    let reach = |there: bool, length: f64| if there { length / 2.0 } else { 0.0 };
    let (west, east) = (x - reach(sides[0], CELL.0), right + reach(sides[1], CELL.0));
    let (north, south) = (y - reach(sides[2], CELL.1), y + reach(sides[3], CELL.1));
    let mut path = String::new();
    if west < east {
        let _ = write!(path, "M{west:.1} {y:.1}H{east:.1}");
    }
    if north < south {
        let _ = write!(path, "M{x:.1} {north:.1}V{south:.1}");
    }
    let _ = writeln!(text, "<path d=\"{path}\" stroke=\"{fill}\"/>");
}

/// Lines of a character that is drawn and not written.
fn sides(character: char) -> Option<Sides> {
    let sides = match character {
        '─' => return Some(LEFT_TO_RIGHT),
        '│' => "ud",
        '┌' => "rd",
        '┐' => "ld",
        '└' => "ru",
        '┘' => "lu",
        _ => return None,
    };
    Some(['l', 'r', 'u', 'd'].map(|side| sides.contains(side)))
}

/// Text for XML. Control characters have no place in XML; a replacement stands for each.
fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => all += "&lt;",
            '>' => all += "&gt;",
            '&' => all += "&amp;",
            c if c.is_control() => all.push('\u{fffd}'),
            c => all.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::cells;

    fn picture(text: &str, look: Look) -> String {
        let mut screen = Grid::new(20);
        screen.push(cells(text, look));
        svg(&screen)
    }

    /// Attributes of the only text of a picture, and what it says.
    fn only_text(picture: &str) -> (&str, &str) {
        assert_eq!(picture.matches("<text ").count(), 1, "{picture}");
        let text = picture.split_once("<text ").unwrap().1.split_once("</text>").unwrap().0;
        text.split_once('>').unwrap()
    }

    #[test]
    fn markup_is_escaped() {
        let drawn = picture("a<b>&\"c'", Look::Plain);
        assert_eq!(only_text(&drawn).1, "a&lt;b&gt;&amp;\"c'");
        assert_eq!(escaped("\u{1b}[1m\u{7}"), "\u{fffd}[1m\u{fffd}");
    }

    #[test]
    fn text_has_its_place_and_length() {
        let drawn = picture("  ab cd", Look::Plain);
        let (attributes, text) = only_text(&drawn);
        assert_eq!(text, "ab cd");
        assert!(attributes.contains("x=\"28.8\" y=\"25.5\" textLength=\"42.0\""), "{attributes}");
        // Columns are placed one by one: two blanks divide runs.
        assert_eq!(picture("ab   cd", Look::Plain).matches("<text ").count(), 2);
    }

    #[test]
    fn looks_are_kept() {
        let looks = [(Look::Bold, " font-weight=\"bold\""), (Look::Dim, " opacity=\"0.6\"")];
        for (look, attribute) in looks {
            let drawn = picture("x", look);
            let fill = format!("fill=\"{FOREGROUND}\"{attribute}");
            assert!(only_text(&drawn).0.ends_with(&fill), "{drawn}");
        }
        let drawn = picture("x", Look::Blue);
        assert!(only_text(&drawn).0.ends_with("fill=\"#4f8fd0\""), "{drawn}");
        let drawn = picture("x yz", Look::OnBlue);
        let bar = "width=\"33.6\" height=\"18.0\" fill=\"#4f8fd0\" shape";
        assert!(drawn.contains(bar), "{drawn}");
        assert!(only_text(&drawn).0.ends_with(&format!("fill=\"{FOREGROUND}\"")), "{drawn}");
    }

    #[test]
    fn frames_are_shapes() {
        let drawn = picture("┌──┐", Look::Blue);
        assert!(!drawn.contains("<text"), "{drawn}");
        assert!(drawn.contains("d=\"M16.2 21.0H20.4M16.2 21.0V30.0\""), "{drawn}");
        assert!(drawn.contains("d=\"M20.4 21.0H37.2\""), "one line through two cells: {drawn}");
        assert_eq!(drawn.matches("<path").count(), 3);
    }

    #[test]
    fn a_screen_without_cells_is_a_picture() {
        assert!(svg(&Grid::default()).ends_with("</svg>\n"));
    }
}
