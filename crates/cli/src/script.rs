//! Texts of commands, typed or from files.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;

use crate::error::{CliError, shorten};
use crate::lexer::{MAX_COMMAND_BYTES, MAX_SCRIPT_BYTES, Scanner, Statement, Step, too_long};

/// Bytes of a file that are read at once, with other work in between.
const PIECE: usize = 256 * 1024;

/// Characters that are scanned at once, with other work in between.
const SCANNED: usize = 64 * 1024;

/// A text of commands, taken one at a time.
#[derive(Debug)]
pub struct Script {
    /// Name in errors; `None` for typed text.
    name: Option<String>,
    /// Errors do not quote a file that not everyone may read.
    private: bool,
    text: String,
    at: usize,
    line: usize,
    /// Command that ends in a later piece.
    begun: Option<Begun>,
    /// Text that follows `text`.
    more: VecDeque<String>,
    reading: Option<Reading>,
}

/// The first part of a command.
#[derive(Debug, Default)]
struct Begun {
    scanner: Scanner,
    text: String,
    /// True while there are only blanks.
    blank: bool,
    /// Line on which it begins.
    line: usize,
}

/// A file that is being read. Its first command runs after the last line is read: a file that is
/// not text is refused as a whole.
#[derive(Debug)]
struct Reading {
    file: File,
    bytes: usize,
    /// Number of line ends so far.
    lines: usize,
    /// Bytes of an incomplete character.
    begun: Vec<u8>,
}

impl Script {
    /// Creates a script of commands typed or sent by a client.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_SCRIPT_BYTES`].
    pub fn typed(text: impl Into<String>) -> Result<Self, CliError> {
        let text = text.into();
        if text.len() > MAX_SCRIPT_BYTES {
            return Err(CliError::failed(format_args!(
                "input of {} bytes is too long: at most {MAX_SCRIPT_BYTES} bytes are taken at once",
                text.len()
            )));
        }
        Ok(Script {
            name: None,
            private: false,
            text,
            at: 0,
            line: 1,
            begun: None,
            more: VecDeque::new(),
            reading: None,
        })
    }

    /// Opens a file of commands, which is read while it is executed.
    ///
    /// # Errors
    /// If it is not a regular file or cannot be opened.
    pub fn open(path: &str) -> Result<Self, CliError> {
        let fail = |what: String| unreadable(path, what);
        let file = thalweg_files::open(path.as_ref()).map_err(|e| fail(e.source.to_string()))?;
        let private = thalweg_files::is_private(&file).map_err(|e| fail(e.to_string()))?;
        let reading = Reading { file, bytes: 0, lines: 0, begun: Vec::new() };
        let script = Script::typed(String::new())?;
        Ok(Script { name: Some(path.to_owned()), private, reading: Some(reading), ..script })
    }

    /// Returns the name in errors.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Lets errors quote it, as only those who may read it see them.
    #[must_use]
    pub fn quoted(self) -> Self {
        Script { private: false, ..self }
    }

    /// Returns true if errors must not quote it. The router may read more than those who may use
    /// its socket.
    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    /// Returns true if it must be [read](Self::read_on) further before there are commands.
    pub(crate) fn is_read_in(&self) -> bool {
        self.reading.is_some()
    }

    /// Reads a piece of its file.
    ///
    /// # Errors
    /// If it cannot be read, is not UTF-8 or exceeds [`MAX_SCRIPT_BYTES`].
    pub(crate) fn read_on(&mut self) -> Result<(), CliError> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        match reading.piece() {
            Ok(Some(piece)) => self.more.push_back(piece),
            Ok(None) => self.reading = None,
            Err(what) => {
                self.reading = None;
                return Err(unreadable(self.name.as_deref().unwrap_or_default(), what));
            }
        }
        Ok(())
    }

    /// Returns the next command. The command is blank after a piece of text without one, so that
    /// the caller can do other work in between.
    pub(crate) fn next_statement(&mut self) -> Option<Result<Statement, (usize, CliError)>> {
        let mut left = SCANNED;
        loop {
            if self.at >= self.text.len() {
                match self.more.pop_front() {
                    Some(piece) => (self.text, self.at) = (piece, 0),
                    None if self.begun.is_none() => return None,
                    None => {}
                }
            }
            match self.scan(&mut left) {
                Some(Ok(s)) if s.text.trim().is_empty() && left > 0 => {}
                Some(statement) => return Some(statement),
                None if left == 0 => {
                    return Some(Ok(Statement { text: String::new(), line: self.line }));
                }
                None => {}
            }
        }
    }

    /// Returns the command that begins here or has begun; `None` if its end is not in this piece or
    /// not among the next `left` characters.
    fn scan(&mut self, left: &mut usize) -> Option<Result<Statement, (usize, CliError)>> {
        let new = Begun { blank: true, line: self.line, ..Begun::default() };
        let mut begun = self.begun.take().unwrap_or(new);
        let start = self.at;
        for (i, c) in self.text[start..].char_indices() {
            if *left == 0 {
                self.at = start + i;
                self.begun = Some(begun);
                return None;
            }
            *left -= 1;
            let step = begun.scanner.step(c);
            if begun.blank {
                begun.line = self.line;
            }
            self.line += usize::from(c == '\n');
            match step {
                Step::Keep if begun.blank && c.is_whitespace() => {}
                Step::Keep => {
                    begun.text.push(c);
                    begun.blank = false;
                }
                Step::Join if !begun.blank => begun.text.push(' '),
                Step::Drop | Step::Join => {}
                Step::Backslash => {
                    begun.text.extend(['\\', c]);
                    begun.blank = false;
                }
                Step::End => {
                    self.at = start + i + c.len_utf8();
                    return Some(Ok(Statement { text: begun.text, line: begun.line }));
                }
            }
            if begun.text.len() > MAX_COMMAND_BYTES {
                self.more.clear();
                self.at = self.text.len();
                return Some(Err((begun.line, too_long())));
            }
        }
        self.at = self.text.len();
        if !self.more.is_empty() {
            self.begun = Some(begun);
            return None;
        }
        if begun.scanner.balanced() {
            return Some(Ok(Statement { text: begun.text, line: begun.line }));
        }
        let error = format!("`{}' has an unclosed `{{'", shorten(begun.text.trim()));
        Some(Err((begun.line, CliError::failed(error))))
    }
}

fn unreadable(path: &str, what: String) -> CliError {
    CliError::failed(format!("cannot read `{path}': {what}"))
}

impl Reading {
    /// Returns the next piece; `None` at the end.
    fn piece(&mut self) -> Result<Option<String>, String> {
        let mut bytes = std::mem::take(&mut self.begun);
        let before = bytes.len();
        bytes.reserve_exact(PIECE);
        let piece = (&self.file).take(PIECE as u64).read_to_end(&mut bytes);
        self.bytes += piece.map_err(|e| e.to_string())?;
        if self.bytes > MAX_SCRIPT_BYTES {
            return Err(format!("longer than {MAX_SCRIPT_BYTES} bytes"));
        }
        let at_end = bytes.len() == before;
        if at_end && before == 0 {
            return Ok(None);
        }
        match std::str::from_utf8(&bytes) {
            Ok(_) => {}
            Err(e) if e.error_len().is_none() && !at_end => {
                self.begun = bytes.split_off(e.valid_up_to());
            }
            Err(e) => {
                let line = self.lines + ends(&bytes[..e.valid_up_to()]) + 1;
                return Err(format!("line {line} is not UTF-8 text"));
            }
        }
        self.lines += ends(&bytes);
        String::from_utf8(bytes).map(Some).map_err(|e| e.to_string())
    }
}

/// Counts line ends.
fn ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn statements(mut script: Script) -> Result<Vec<(usize, String)>, CliError> {
        while script.is_read_in() {
            script.read_on()?;
        }
        let all = std::iter::from_fn(|| script.next_statement());
        let all = all.filter(|s| !matches!(s, Ok(s) if s.text.trim().is_empty()));
        all.map(|s| s.map(|s| (s.line, s.text)).map_err(|(_, e)| e)).collect()
    }

    #[test]
    fn only_files_for_everyone_are_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(&file, "root:x:0").unwrap();
        for (mode, private) in [(0o600, true), (0o640, true), (0o644, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let script = Script::open(file.to_str().unwrap()).unwrap();
            assert_eq!(script.is_private(), private, "{mode:o}");
            assert!(!script.quoted().is_private());
        }
    }

    fn from_file(bytes: &[u8]) -> Result<Vec<(usize, String)>, CliError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(&file, bytes).unwrap();
        statements(Script::open(file.to_str().unwrap())?)
    }

    /// Lines, groups over lines, comments and characters of several bytes, wherever pieces end.
    #[test]
    fn a_long_file_is_the_same_as_its_text() {
        let mut text = String::new();
        for i in 0..60_000 {
            text += &match i % 5 {
                0 => format!("echo {i} \u{e9}\u{20ac}\u{1d11e}\n"),
                1 => format!("set {i} {{\n a {{ b }}\n}}\n"),
                2 => format!("# note {i}\n\n"),
                3 => format!("go \\\n on {i}\n"),
                _ => format!("last {i} # tail\n"),
            };
        }
        assert!(text.len() > 4 * PIECE);
        let typed = statements(Script::typed(text.clone()).unwrap()).unwrap();
        assert_eq!(typed.len(), 48_000);
        for shift in 0..5 {
            let moved = "#".repeat(shift) + if shift > 0 { "\n" } else { "" } + &text;
            let lines = usize::from(shift > 0);
            let read = from_file(moved.as_bytes()).unwrap();
            assert!(
                read.iter().map(|(n, s)| (n - lines, s)).eq(typed.iter().map(|(n, s)| (*n, s)))
            );
        }
    }

    #[test]
    fn invalid_text_is_reported_by_line() {
        let mut long: Vec<u8> = "echo a\n".repeat(100_000).into_bytes();
        let fails = |bytes: &[u8], what: &str| {
            let error = from_file(bytes).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        long.extend(b"echo \xe2\x82");
        fails(&long, "line 100001 is not UTF-8 text");
        long.extend(b"\nmore\n");
        fails(&long, "line 100001 is not UTF-8 text");
        fails(&vec![b'\n'; MAX_SCRIPT_BYTES + 1], "longer than");
        fails(b"a {\n b", "an unclosed");
        let endless = vec![b'a'; 3 * PIECE];
        fails(&endless, "command is too long");
    }

    #[test]
    fn blanks_and_comments_take_linear_time_with_other_work_in_between() {
        for filler in [" ", "\n", "#", "\\\n", "\u{2003}"] {
            let text = filler.repeat((4 << 20) / filler.len());
            let text = if filler == "#" { text + "\nlast" } else { text + " last" };
            let mut script = Script::typed(text).unwrap();
            let (mut pieces, mut last) = (0, String::new());
            while let Some(statement) = script.next_statement() {
                pieces += 1;
                last = statement.unwrap().text;
            }
            assert_eq!(last.trim(), "last");
            assert!(pieces > 20, "{filler:?}: {pieces}");
        }
    }

    #[test]
    fn commands_across_pieces_are_whole() {
        let (before, word) = ("#".repeat(PIECE - 100), "x".repeat(PIECE / 4));
        let text = format!("{before}\na {word} {{ b\n{word} }} c\nd\n");
        let all = from_file(text.as_bytes()).unwrap();
        let line = text.lines().skip(1).take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(all, [(2, line), (4, "d".to_owned())]);
    }
}
