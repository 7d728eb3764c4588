//! A screen as a picture: the terminal's cells, drawn as one SVG file without outside references.
//!
//! Line-drawing characters and full blocks become shapes, so that frames close in every font. Text
//! is placed run by run with its exact length, so that columns stay aligned where the font's
//! advance differs from a cell's width.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use ratatui::text::Span;
use std::fmt::Write;

/// Width and height of a cell, height of the baseline in it, and the font's size, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const BASELINE: f64 = 13.5;
const FONT_SIZE: f64 = 14.0;
/// Margin around the cells, in pixels.
const MARGIN: f64 = 12.0;

/// Colours of a terminal that has not been asked for any.
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#14191f";

/// The 16 colours that terminals number, in that order.
const PALETTE: [&str; 16] = [
    "#2e3440", "#e06c75", "#98c379", "#e5c07b", "#4f8fd0", "#c678dd", "#56b6c2", "#c8ccd4",
    "#5c6370", "#ff7b86", "#b5e08f", "#ffd58a", "#74b2f0", "#e29cf2", "#7fd6e0", "#ffffff",
];

/// Draws the cells of a screen.
pub fn svg(screen: &Buffer) -> String {
    let (columns, rows) = (screen.area.width, screen.area.height);
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"'DejaVu Sans Mono', Menlo, \
         Consolas, 'Liberation Mono', monospace\" font-size=\"{FONT_SIZE}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..rows {
        let cells = cells(screen, y);
        for part in cells.chunk_by(|a, b| a.look.background == b.look.background) {
            background(&mut text, part, y);
        }
        for run in runs(cells) {
            foreground(&mut text, &run, y);
        }
    }
    text + "</svg>\n"
}

/// How cells look.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    fill: String,
    /// `None` for the screen's own.
    background: Option<String>,
    modifier: Modifier,
}

impl Look {
    fn of(cell: &Cell) -> Look {
        let (fill, background) = (colour(cell.fg), colour(cell.bg));
        let (fill, background) = if cell.modifier.contains(Modifier::REVERSED) {
            (background.unwrap_or(BACKGROUND.into()), Some(fill.unwrap_or(FOREGROUND.into())))
        } else {
            (fill.unwrap_or(FOREGROUND.into()), background)
        };
        Look { fill, background, modifier: cell.modifier - Modifier::REVERSED }
    }
}

/// One or more adjacent cells of a row that look alike.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    column: u16,
    /// Columns that it takes.
    width: u16,
    text: String,
    look: Look,
}

fn left(column: u16) -> f64 {
    MARGIN + f64::from(column) * CELL.0
}

fn top(row: u16) -> f64 {
    MARGIN + f64::from(row) * CELL.1
}

/// The cells of a row. A wide character takes the cells after it, too.
fn cells(screen: &Buffer, y: u16) -> Vec<Run> {
    let mut all = Vec::new();
    let mut x = 0;
    while x < screen.area.width {
        let cell = &screen[(screen.area.x + x, screen.area.y + y)];
        let left = screen.area.width - x;
        let width = u16::try_from(Span::raw(cell.symbol()).width()).unwrap_or(1).clamp(1, left);
        all.push(Run { column: x, width, text: cell.symbol().to_owned(), look: Look::of(cell) });
        x += width;
    }
    all
}

/// Joins cells to runs: text without blanks at either end, bars, and lines from left to right.
/// Other shapes and wide characters stay alone.
fn runs(cells: Vec<Run>) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    // The shape of the last run; `None` is text that may go on, and nothing if it may not.
    let mut last: Option<Option<Shape>> = None;
    for cell in cells {
        let shape = shape(&cell.text);
        let goes_on = match shape {
            None => cell.width == 1,
            Some(Shape::Block) => true,
            Some(Shape::Lines(sides)) => sides == [true, true, false, false],
        };
        match all.last_mut() {
            // Two blanks divide columns, each of which has its own place.
            Some(run)
                if last == Some(shape)
                    && goes_on
                    && run.look == cell.look
                    && !(run.text.ends_with(' ') && cell.text == " ") =>
            {
                run.width += cell.width;
                if shape.is_none() {
                    run.text += &cell.text;
                }
            }
            _ => all.push(cell),
        }
        last = goes_on.then_some(shape);
    }
    for run in all.iter_mut().filter(|run| shape(&run.text).is_none()) {
        let blanks = run.text.len() - run.text.trim_start_matches(' ').len();
        run.column += blanks as u16;
        run.text = run.text.trim_matches(' ').to_owned();
        run.width = u16::try_from(Span::raw(run.text.as_str()).width()).unwrap_or(0);
    }
    all.retain(|run| !run.text.is_empty() && !run.look.modifier.contains(Modifier::HIDDEN));
    all
}

/// The background of adjacent cells.
fn background(text: &mut String, cells: &[Run], row: u16) {
    let Some(first) = cells.first() else { return };
    let Some(colour) = &first.look.background else { return };
    let width = cells.iter().map(|cell| cell.width).sum();
    rectangle(text, (first.column, width), row, colour);
}

/// Fills cells of a row, from a column on over a width. Crisp edges leave no seam between two.
fn rectangle(text: &mut String, (column, width): (u16, u16), row: u16, colour: &str) {
    let (x, y) = (left(column), top(row));
    let (width, height) = (f64::from(width) * CELL.0, CELL.1);
    let _ = writeln!(
        text,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         fill=\"{colour}\" shape-rendering=\"crispEdges\"/>"
    );
}

fn foreground(text: &mut String, run: &Run, row: u16) {
    match shape(&run.text) {
        Some(Shape::Block) => {
            return rectangle(text, (run.column, run.width), row, &run.look.fill);
        }
        Some(Shape::Lines(sides)) => return lines(text, run, row, sides),
        None => {}
    }
    let (x, y) = (left(run.column), top(row) + BASELINE);
    let length = f64::from(run.width) * CELL.0;
    let look = &run.look;
    let _ = write!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" \
         lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"{}\"",
        look.fill
    );
    let attributes = [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ];
    for (modifier, attribute) in attributes {
        if look.modifier.contains(modifier) {
            *text += attribute;
        }
    }
    let _ = writeln!(text, ">{}</text>", escaped(&run.text));
}

/// Lines from the middle of a cell to some of its sides, or through cells from left to right.
fn lines(text: &mut String, run: &Run, row: u16, sides: [bool; 4]) {
    let (x, y) = (left(run.column) + CELL.0 / 2.0, top(row) + CELL.1 / 2.0);
    let right = x + f64::from(run.width - 1) * CELL.0;
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
    let opacity = if run.look.modifier.contains(Modifier::DIM) { " opacity=\"0.6\"" } else { "" };
    let colour = &run.look.fill;
    let _ = writeln!(text, "<path d=\"{path}\" stroke=\"{colour}\"{opacity}/>");
}

/// Characters that are drawn and not written.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// A full cell.
    Block,
    /// Lines to the left, right, upper and lower side.
    Lines([bool; 4]),
}

fn shape(symbol: &str) -> Option<Shape> {
    let sides = match symbol {
        "█" => return Some(Shape::Block),
        "─" => "lr",
        "│" => "ud",
        "┌" => "rd",
        "┐" => "ld",
        "└" => "ru",
        "┘" => "lu",
        "├" => "rud",
        "┤" => "lud",
        "┬" => "lrd",
        "┴" => "lru",
        "┼" => "lrud",
        _ => return None,
    };
    Some(Shape::Lines(['l', 'r', 'u', 'd'].map(|side| sides.contains(side))))
}

/// A colour as SVG writes it; `None` is the terminal's own.
fn colour(colour: Color) -> Option<String> {
    let numbered = |n: u8| match n {
        0..16 => PALETTE[usize::from(n)].to_owned(),
        // A cube of 6 × 6 × 6 colours, then 24 greys.
        16..232 => {
            let part = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let n = n - 16;
            let [r, g, b] = [n / 36, n / 6 % 6, n % 6].map(part);
            format!("#{r:02x}{g:02x}{b:02x}")
        }
        _ => {
            let grey = 8 + 10 * (n - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    };
    Some(match colour {
        Color::Reset => return None,
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Indexed(n) => numbered(n),
        Color::Black => numbered(0),
        Color::Red => numbered(1),
        Color::Green => numbered(2),
        Color::Yellow => numbered(3),
        Color::Blue => numbered(4),
        Color::Magenta => numbered(5),
        Color::Cyan => numbered(6),
        Color::Gray => numbered(7),
        Color::DarkGray => numbered(8),
        Color::LightRed => numbered(9),
        Color::LightGreen => numbered(10),
        Color::LightYellow => numbered(11),
        Color::LightBlue => numbered(12),
        Color::LightMagenta => numbered(13),
        Color::LightCyan => numbered(14),
        Color::White => numbered(15),
    })
}

/// Text as XML has it. Control characters have no place in XML; a replacement stands for each.
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
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    fn screen(lines: &[(&str, Style)]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, lines.len() as u16));
        for (y, (text, style)) in lines.iter().enumerate() {
            buffer.set_string(0, y as u16, text, *style);
        }
        buffer
    }

    fn picture(text: &str, style: Style) -> String {
        svg(&screen(&[(text, style)]))
    }

    /// Attributes of the only text of a picture, and what it says.
    fn only_text(picture: &str) -> (&str, &str) {
        assert_eq!(picture.matches("<text ").count(), 1, "{picture}");
        let text = picture.split_once("<text ").unwrap().1.split_once("</text>").unwrap().0;
        text.split_once('>').unwrap()
    }

    #[test]
    fn markup_is_escaped() {
        let drawn = picture("a<b>&\"c'", Style::new());
        assert_eq!(only_text(&drawn).1, "a&lt;b&gt;&amp;\"c'");
        assert_eq!(escaped("\u{1b}[1m\u{7}"), "\u{fffd}[1m\u{fffd}");
    }

    #[test]
    fn text_has_its_place_and_length() {
        let drawn = picture("  ab cd", Style::new());
        let (attributes, text) = only_text(&drawn);
        assert_eq!(text, "ab cd");
        assert!(attributes.contains("x=\"28.8\" y=\"25.5\" textLength=\"42.0\""), "{attributes}");
        // Columns are placed one by one: two blanks divide runs.
        assert_eq!(picture("ab   cd", Style::new()).matches("<text ").count(), 2);
    }

    #[test]
    fn wide_characters_take_two_cells() {
        let drawn = picture("a漢b", Style::new());
        let starts = ["x=\"12.0\"", "x=\"20.4\"", "x=\"37.2\""];
        for (text, start) in ["a", "漢", "b"].iter().zip(starts) {
            let line = drawn.lines().find(|l| l.contains(&format!(">{text}<"))).unwrap();
            assert!(line.contains(start), "{line}");
        }
        assert!(drawn.contains("textLength=\"16.8\""), "{drawn}");
        // One that does not fit at the edge does no harm.
        let mut edge = Buffer::empty(Rect::new(0, 0, 1, 1));
        edge[(0, 0)].set_symbol("漢");
        assert!(svg(&edge).contains("textLength"));
    }

    #[test]
    fn a_letter_with_a_mark_takes_one_cell() {
        let drawn = picture("xe\u{301}y", Style::new());
        let (attributes, text) = only_text(&drawn);
        assert_eq!(text, "xe\u{301}y");
        assert!(attributes.contains("textLength=\"25.2\""), "{attributes}");
    }

    #[test]
    fn colours_and_modifiers_are_kept() {
        let drawn = picture("x", Style::new().fg(Color::Rgb(1, 2, 255)).bold().dim());
        let (attributes, _) = only_text(&drawn);
        for part in ["fill=\"#0102ff\"", "font-weight=\"bold\"", "opacity=\"0.6\""] {
            assert!(attributes.contains(part), "{attributes}");
        }
        let drawn = picture("x", Style::new().red().on_blue());
        assert!(drawn.contains("height=\"18.0\" fill=\"#4f8fd0\" shape"), "{drawn}");
        let drawn = picture("x", Style::new().reversed());
        assert!(only_text(&drawn).0.contains(&format!("fill=\"{BACKGROUND}\"")), "{drawn}");
        assert!(!picture("x", Style::new().hidden()).contains("<text"));
        let indexed = [(0, "#2e3440"), (16, "#000000"), (196, "#ff0000"), (255, "#eeeeee")];
        for (n, expected) in indexed {
            assert_eq!(colour(Color::Indexed(n)).as_deref(), Some(expected));
        }
    }

    #[test]
    fn frames_and_bars_are_shapes() {
        let drawn = picture("┌──┐██", Style::new().blue());
        assert!(!drawn.contains("<text"), "{drawn}");
        assert!(drawn.contains("d=\"M16.2 21.0H20.4M16.2 21.0V30.0\""), "{drawn}");
        assert!(drawn.contains("d=\"M20.4 21.0H37.2\""), "one line through two cells: {drawn}");
        assert_eq!(drawn.matches("<path").count(), 3);
        assert!(drawn.contains("x=\"45.6\" y=\"12.0\" width=\"16.8\""), "one bar: {drawn}");
        assert_eq!(drawn.matches("<rect").count(), 2);
    }

    #[test]
    fn a_screen_without_cells_is_a_picture() {
        assert!(svg(&Buffer::empty(Rect::new(0, 0, 0, 0))).ends_with("</svg>\n"));
    }
}
