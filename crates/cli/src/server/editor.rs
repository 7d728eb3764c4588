//! Line editing for a remote terminal: the effect of keys on a line, and the output that makes the
//! terminal show it.

use std::collections::VecDeque;

use super::keys::Key;
use crate::lexer::MAX_COMMAND_BYTES;

/// Maximum of all lines of the history, in bytes.
const MAX_HISTORY_BYTES: usize = 1024 * 1024;

/// Result of a key, beyond a change of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    Nothing,
    /// Enter: run this line.
    Line(String),
    /// Enter after more than a command may have: the line lost something, and must not run.
    TooLong,
    /// Tab, or `?`.
    Complete {
        help: bool,
    },
    /// Ctrl-D on an empty line.
    Quit,
}

/// The line being typed, and its history.
#[derive(Debug)]
pub(crate) struct Editor {
    line: Vec<char>,
    cursor: usize,
    /// True once something did not fit: no key but Enter and Ctrl-C makes the line whole again.
    overlong: bool,
    history: VecDeque<String>,
    max_history: usize,
    /// The history line that is shown, and what was typed before it.
    recalled: Option<(usize, Vec<char>)>,
    killed: Vec<char>,
    screen: Screen,
}

/// The state of the terminal's screen.
#[derive(Debug)]
struct Screen {
    /// The prompt without colours, for its width.
    prompt: String,
    /// The prompt as written.
    painted: String,
    /// True if the terminal supports cursor control.
    ansi: bool,
    columns: usize,
    /// Number of characters of the line that are shown, and the cursor among them.
    shown: usize,
    cursor: usize,
}

impl Editor {
    pub(crate) fn new(prompt: &str, max_history: usize) -> Self {
        let screen = Screen {
            prompt: prompt.to_owned(),
            painted: prompt.to_owned(),
            ansi: false,
            columns: 0,
            shown: 0,
            cursor: 0,
        };
        Self {
            line: Vec::new(),
            cursor: 0,
            overlong: false,
            history: VecDeque::new(),
            max_history,
            recalled: None,
            killed: Vec::new(),
            screen,
        }
    }

    /// Enables cursor control, and colours if `colour` is set.
    pub(crate) fn set_ansi(&mut self, colour: bool) {
        self.screen.ansi = true;
        if colour {
            self.screen.painted = format!("\x1b[1;36m{}\x1b[0m", self.screen.prompt);
        }
    }

    /// Sets the width of the terminal; 0 if unknown.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.screen.columns = columns;
    }

    pub(crate) fn history(&self) -> impl Iterator<Item = &str> {
        self.history.iter().map(String::as_str)
    }

    /// Returns the line, and the cursor as a byte offset into it.
    pub(crate) fn line(&self) -> (String, usize) {
        let before: String = self.line[..self.cursor].iter().collect();
        (self.line.iter().collect(), before.len())
    }

    /// Writes prompt and line where the cursor is: at the start of an empty row.
    pub(crate) fn prompt(&mut self, out: &mut Vec<u8>) {
        self.screen.shown = 0;
        self.screen.cursor = 0;
        // A refresh on a terminal with cursor control writes the prompt, too.
        if self.line.is_empty() || !self.screen.ansi {
            out.extend(self.screen.painted.as_bytes());
        }
        if !self.line.is_empty() {
            self.refresh(out);
        }
    }

    /// Leaves the line on the screen and goes to a new row.
    pub(crate) fn leave(&mut self, out: &mut Vec<u8>) {
        if self.cursor < self.line.len() {
            let cursor = std::mem::replace(&mut self.cursor, self.line.len());
            self.refresh(out);
            self.cursor = cursor;
        }
        let end = self.screen.width() + self.line.len();
        // At the edge of the terminal the refresh went to a new row already.
        if !(self.screen.ansi && end > 0 && end.is_multiple_of(self.screen.row())) {
            out.extend(b"\r\n");
        }
    }

    /// Processes a key.
    pub(crate) fn key(&mut self, key: Key, out: &mut Vec<u8>) -> Edit {
        match key {
            Key::Enter => return self.enter(out),
            Key::Tab => return Edit::Complete { help: false },
            Key::Char('?') => return Edit::Complete { help: true },
            Key::Eof if self.line.is_empty() => return Edit::Quit,
            Key::Char(c) => {
                self.insert(&[c], out);
                return Edit::Nothing;
            }
            Key::Interrupt => {
                self.leave(out);
                self.set(Vec::new());
                self.overlong = false;
                self.prompt(out);
                return Edit::Nothing;
            }
            Key::Redraw => {
                out.extend(if self.screen.ansi { &b"\x1b[2J\x1b[H"[..] } else { b"\r\n" });
                self.prompt(out);
                return Edit::Nothing;
            }
            _ => self.edit(key),
        }
        self.refresh(out);
        Edit::Nothing
    }

    fn edit(&mut self, key: Key) {
        let (cursor, len) = (self.cursor, self.line.len());
        match key {
            Key::Left => self.cursor = cursor.saturating_sub(1),
            Key::Right => self.cursor = (cursor + 1).min(len),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = len,
            Key::WordLeft => self.cursor = self.word_start(),
            Key::WordRight => self.cursor = self.word_end(),
            Key::Backspace if cursor > 0 => {
                self.line.remove(cursor - 1);
                self.cursor -= 1;
            }
            Key::Delete | Key::Eof if cursor < len => {
                self.line.remove(cursor);
            }
            Key::KillToEnd => self.kill(cursor, len),
            Key::KillToStart => self.kill(0, cursor),
            Key::KillWord => self.kill(self.word_start(), cursor),
            Key::Yank => {
                let killed = self.killed.clone();
                self.splice(&killed);
            }
            Key::Up | Key::Down if self.overlong => {}
            Key::Up => self.recall(true),
            Key::Down => self.recall(false),
            _ => {}
        }
    }

    fn kill(&mut self, from: usize, to: usize) {
        if from < to {
            self.killed = self.line.drain(from..to).collect();
            self.cursor = from;
        }
    }

    fn word_start(&self) -> usize {
        let before = &self.line[..self.cursor];
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |i| i + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |i| i + 1)
    }

    fn word_end(&self) -> usize {
        let at = |from: usize, blank: bool| {
            let found = self.line[from..].iter().position(|c| c.is_whitespace() == blank);
            found.map_or(self.line.len(), |i| from + i)
        };
        at(at(self.cursor, false), true)
    }

    fn set(&mut self, line: Vec<char>) {
        self.cursor = line.len();
        self.line = line;
    }

    fn recall(&mut self, older: bool) {
        let at = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let to = if older { at.checked_sub(1) } else { at.checked_add(1) };
        match to {
            Some(to) if to < self.history.len() => {
                let typed = match self.recalled.take() {
                    Some((_, typed)) => typed,
                    None => std::mem::take(&mut self.line),
                };
                self.recalled = Some((to, typed));
                self.set(self.history[to].chars().collect());
            }
            Some(_) => {
                if let Some((_, typed)) = self.recalled.take() {
                    self.set(typed);
                }
            }
            None => {}
        }
    }

    fn enter(&mut self, out: &mut Vec<u8>) -> Edit {
        self.leave(out);
        let line: String = std::mem::take(&mut self.line).into_iter().collect();
        self.cursor = 0;
        self.recalled = None;
        if std::mem::take(&mut self.overlong) || line.len() > MAX_COMMAND_BYTES {
            return Edit::TooLong;
        }
        let repeated = self.history.back().is_some_and(|last| *last == line);
        if !line.trim().is_empty() && !repeated {
            self.history.push_back(line.clone());
            while self.history.len() > self.max_history || self.history_bytes() > MAX_HISTORY_BYTES
            {
                self.history.pop_front();
            }
        }
        Edit::Line(line)
    }

    fn history_bytes(&self) -> usize {
        self.history().map(str::len).sum()
    }

    fn splice(&mut self, chars: &[char]) {
        self.overlong |= self.line.len() + chars.len() > MAX_COMMAND_BYTES;
        if !self.overlong {
            self.line.splice(self.cursor..self.cursor, chars.iter().copied());
            self.cursor += chars.len();
        }
    }

    /// Inserts characters at the cursor.
    pub(crate) fn insert(&mut self, chars: &[char], out: &mut Vec<u8>) {
        let at_end = self.cursor == self.line.len();
        let before = self.line.len();
        self.splice(chars);
        if at_end {
            // The common case: typed characters only need to be echoed.
            self.screen.append(&self.line[before..], out);
        } else {
            self.refresh(out);
        }
    }

    /// Applies the completions of the word at the cursor. Returns what to list if that changed
    /// nothing.
    pub(crate) fn complete<'a>(
        &mut self,
        words: &[&'a str],
        out: &mut Vec<u8>,
    ) -> Option<Vec<&'a str>> {
        let (line, at) = self.line();
        let partial = line[..at].rsplit(|c: char| c.is_whitespace() || c == '|').next()?.to_owned();
        let fit: Vec<&str> = words.iter().copied().filter(|w| w.starts_with(&partial)).collect();
        let first = fit.first()?;
        let mut common = first.len();
        for word in &fit {
            let same = first.char_indices().zip(word.chars()).find(|((_, a), b)| a != b);
            common = common.min(same.map_or(word.len().min(first.len()), |((i, _), _)| i));
        }
        let mut rest: Vec<char> = first[partial.len()..common].chars().collect();
        if fit.len() == 1 {
            let blank_follows = self.line.get(self.cursor).is_some_and(|c| c.is_whitespace());
            rest.extend((!blank_follows).then_some(' '));
        }
        if rest.is_empty() && fit.len() > 1 {
            return Some(fit);
        }
        self.insert(&rest, out);
        None
    }

    fn refresh(&mut self, out: &mut Vec<u8>) {
        self.screen.refresh(&self.line, self.cursor, out);
    }
}

impl Screen {
    fn width(&self) -> usize {
        self.prompt.chars().count()
    }

    /// Characters per row; one endless row if the width is unknown.
    fn row(&self) -> usize {
        if self.columns == 0 { usize::MAX } else { self.columns }
    }

    fn append(&mut self, chars: &[char], out: &mut Vec<u8>) {
        for c in chars {
            push(*c, out);
            self.shown += 1;
            self.cursor += 1;
            if self.ansi && (self.width() + self.shown).is_multiple_of(self.row()) {
                // Terminals stay in the last column until more comes: move to the next row.
                out.extend(b"\r\n");
            }
        }
    }

    fn refresh(&mut self, line: &[char], cursor: usize, out: &mut Vec<u8>) {
        if self.ansi {
            self.refresh_ansi(line, cursor, out);
        } else {
            self.refresh_plain(line, cursor, out);
        }
        self.shown = line.len();
        self.cursor = cursor;
    }

    fn refresh_ansi(&self, line: &[char], cursor: usize, out: &mut Vec<u8>) {
        let (width, row) = (self.width(), self.row());
        self.up((width + self.cursor) / row, out);
        out.push(b'\r');
        out.extend(self.painted.as_bytes());
        line.iter().for_each(|c| push(*c, out));
        out.extend(b"\x1b[J");
        let end = width + line.len();
        if end > 0 && end.is_multiple_of(row) {
            out.extend(b"\r\n");
        }
        if cursor < line.len() {
            self.place(end, width + cursor, out);
        }
    }

    /// Moves the cursor from cell `end` (after the output) back to cell `to`.
    fn place(&self, end: usize, to: usize, out: &mut Vec<u8>) {
        let row = self.row();
        self.up(end / row - to / row, out);
        out.push(b'\r');
        if !to.is_multiple_of(row) {
            out.extend(format!("\x1b[{}C", to % row).as_bytes());
        }
    }

    fn up(&self, rows: usize, out: &mut Vec<u8>) {
        if rows > 0 {
            out.extend(format!("\x1b[{rows}A").as_bytes());
        }
    }

    /// Redraws the line without cursor control: backspaces, the line, blanks over a longer old one,
    /// backspaces.
    fn refresh_plain(&self, line: &[char], cursor: usize, out: &mut Vec<u8>) {
        let longest = self.shown.max(line.len());
        out.extend(std::iter::repeat_n(8, self.cursor));
        line.iter().for_each(|c| push(*c, out));
        out.extend(std::iter::repeat_n(b' ', longest - line.len()));
        out.extend(std::iter::repeat_n(8, longest - cursor));
    }
}

fn push(c: char, out: &mut Vec<u8>) {
    out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::*;

    /// A model of a terminal of the given width that understands what the editor writes.
    struct Glass {
        cells: Vec<Vec<char>>,
        at: (usize, usize),
        columns: usize,
        /// True if the last column was filled, and nothing followed yet.
        edge: bool,
        escape: Option<String>,
    }

    impl Glass {
        fn new(columns: usize) -> Self {
            Self { cells: vec![vec![]], at: (0, 0), columns, edge: false, escape: None }
        }

        fn put(&mut self, c: char) {
            if self.edge {
                self.at = (self.at.0 + 1, 0);
                self.edge = false;
            }
            let (row, column) = self.at;
            self.cells.resize(self.cells.len().max(row + 1), vec![]);
            let cells = &mut self.cells[row];
            cells.resize(cells.len().max(column + 1), ' ');
            cells[column] = c;
            self.edge = column + 1 == self.columns;
            self.at.1 += usize::from(!self.edge);
        }

        fn feed(&mut self, text: &str) {
            for c in text.chars() {
                if let Some(escape) = &mut self.escape {
                    escape.push(c);
                    if c.is_ascii_alphabetic() {
                        self.control();
                    }
                    continue;
                }
                match c {
                    '\x1b' => self.escape = Some(String::new()),
                    '\r' => (self.at.1, self.edge) = (0, false),
                    '\n' => (self.at.0, self.edge) = (self.at.0 + 1, false),
                    '\x08' => self.at.1 = self.at.1.checked_sub(1).expect("left of the screen"),
                    c => self.put(c),
                }
            }
        }

        fn control(&mut self) {
            let escape = self.escape.take().unwrap();
            let count = escape[1..escape.len() - 1].parse().unwrap_or(1);
            match escape.chars().next_back().unwrap() {
                'A' => self.at.0 = self.at.0.checked_sub(count).expect("above the screen"),
                'C' => self.at.1 += count,
                'J' => {
                    self.cells.truncate(self.at.0 + 1);
                    // At the edge the cursor is on the last cell, which stays.
                    let keep = self.at.1 + usize::from(self.edge);
                    if let Some(row) = self.cells.get_mut(self.at.0) {
                        row.truncate(keep);
                    }
                }
                other => panic!("unknown control {other}"),
            }
            self.edge = false;
        }

        fn text(&self) -> String {
            let rows = self.cells.iter().enumerate().map(|(row, cells)| {
                let mut text: String = cells.iter().collect();
                // Full rows continue in the next, others are not padded.
                if row + 1 < self.cells.len() && cells.len() < self.columns {
                    text.push('\n');
                }
                text
            });
            rows.collect()
        }
    }

    fn type_in(bytes: &str, ansi: bool, columns: usize) -> (Editor, Glass) {
        let mut editor = Editor::new("> ", 10);
        if ansi {
            editor.set_ansi(false);
            editor.set_columns(columns);
        }
        let (mut glass, mut keys, mut out) = (Glass::new(columns), Keys::default(), Vec::new());
        editor.prompt(&mut out);
        for key in bytes.bytes().filter_map(|b| keys.feed(b)).collect::<Vec<_>>() {
            editor.key(key, &mut out);
            glass.feed(std::str::from_utf8(&out).unwrap());
            out.clear();
        }
        (editor, glass)
    }

    #[test]
    fn keys_edit_the_line() {
        for (typed, want, cursor) in [
            ("abc", "abc", 3),
            ("abc\x02\x02x", "axbc", 2),
            ("abc\x01\x04", "bc", 0),
            ("one two\x17", "one ", 4),
            ("one two  \x17", "one ", 4),
            ("one two\x1bb\x1bbx", "xone two", 1),
            ("one two\x01\x1bf!", "one! two", 4),
            ("abc\x02\x0b\x01\x19", "cab", 1),
            ("abc\x15d", "d", 1),
            ("abc\x7f\x7f\x7f\x7fx", "x", 1),
            ("\u{e9}\u{e8}\x7fa", "\u{e9}a", 3),
            ("a\rb\r\x10\x10", "a", 1),
            ("a\rb\rtyped\x10\x10\x0e\x0e\x0e", "typed", 5),
            ("a\ra\rb\r\x10\x10\x10\x10", "a", 1),
        ] {
            let (editor, _) = type_in(typed, true, 80);
            assert_eq!(editor.line(), (want.to_owned(), cursor), "{typed:?}");
        }
    }

    #[test]
    fn the_history_is_bounded() {
        let typed: String = (0..20).map(|n| format!("line {n}\r")).collect();
        let (editor, _) = type_in(&typed, false, 80);
        assert_eq!(editor.history().count(), 10);
        assert_eq!(editor.history().next(), Some("line 10"));
    }

    #[test]
    fn a_line_that_does_not_fit_is_refused_as_a_whole() {
        let enter = |typed: &str| {
            let mut editor = Editor::new("> ", 10);
            let (mut keys, mut last) = (Keys::default(), Edit::Nothing);
            for key in typed.bytes().filter_map(|b| keys.feed(b)) {
                last = editor.key(key, &mut Vec::new());
            }
            (last, editor.history().count())
        };
        let longest = "x".repeat(MAX_COMMAND_BYTES);
        assert_eq!(enter(&format!("{longest}\r")), (Edit::Line(longest.clone()), 1));
        assert_eq!(enter(&format!("{longest}y\r")), (Edit::TooLong, 0));
        // A character may have several bytes.
        let wide = "\u{e9}".repeat(MAX_COMMAND_BYTES / 2);
        assert_eq!(enter(&format!("{wide}\r")).0, Edit::Line(wide.clone()));
        assert_eq!(enter(&format!("{wide}\u{e9}\r")).0, Edit::TooLong);
        // The rest of such a line is not what was typed, whatever is deleted.
        assert_eq!(enter(&format!("a\r{longest}y\x15b\x10\r")), (Edit::TooLong, 1));
        assert_eq!(enter(&format!("{longest}y\x03b\r")), (Edit::Line("b".to_owned()), 1));
        assert_eq!(enter(&format!("{longest}y\rb\r")), (Edit::Line("b".to_owned()), 1));
    }

    #[test]
    fn the_history_has_room_for_few_long_lines() {
        let typed: String = (0..8).map(|n| format!("{n}{}\r", "x".repeat(200_000))).collect();
        let (editor, _) = type_in(&typed, false, 80);
        assert_eq!(editor.history().count(), 5);
    }

    #[test]
    fn completion_goes_as_far_as_the_words_agree() {
        let complete = |typed: &str, words: &[&str]| {
            let (mut editor, _) = type_in(typed, true, 80);
            let listed = editor.complete(words, &mut Vec::new()).map(|l| l.len());
            (editor.line().0, listed)
        };
        assert_eq!(complete("sh", &["show"]), ("show ".to_owned(), None));
        assert_eq!(complete("show e", &["eth0", "eth1"]), ("show eth".to_owned(), None));
        assert_eq!(complete("show eth", &["eth0", "eth1"]), ("show eth".to_owned(), Some(2)));
        assert_eq!(complete("a |g", &["grep"]), ("a |grep ".to_owned(), None));
        assert_eq!(complete("x", &[]), ("x".to_owned(), None));
        assert_eq!(complete("", &["\u{e9}a", "\u{e9}b"]), ("\u{e9}".to_owned(), None));
        assert_eq!(complete("", &["ea", "\u{e9}b"]), (String::new(), Some(2)));
    }

    proptest::proptest! {
        /// The terminal shows the line with its cursor where ours is, whatever was typed.
        #[test]
        fn the_screen_shows_the_line(
            keys in proptest::collection::vec(
                proptest::sample::select(vec![
                    "a", "b ", "cd", "\x01", "\x05", "\x02", "\x06", "\x7f", "\x04", "\x0b",
                    "\x15", "\x17", "\x19", "\x1bb", "\x1bf",
                ]),
                0..60,
            ),
            columns in 3usize..12,
            ansi: bool,
        ) {
            let columns = if ansi { columns } else { 1000 };
            // An empty line would quit at Ctrl-D, a first letter avoids that.
            let (editor, glass) = type_in(&format!("z{}", keys.concat()), ansi, columns);
            let (line, cursor) = editor.line();
            let want = format!("> {line}");
            let shown = glass.text();
            proptest::prop_assert_eq!(shown.trim_end(), want.trim_end());
            let at = glass.at.0 * columns + glass.at.1;
            proptest::prop_assert_eq!(at, 2 + cursor);
        }
    }
}
