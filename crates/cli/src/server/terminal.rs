//! The interactive side of a session: editor, pager, completion lists.

use super::SessionConfig;
use super::editor::{Edit, Editor};
use super::keys::Keys;
use super::pager::Pager;
use super::session::to_wire;
use crate::complete::{Completion, listing};
use crate::job::Request;
use crate::lexer::too_long;

/// Result of a key.
#[derive(Debug)]
pub(super) enum Action {
    None,
    Quit,
    Submit(Request),
}

/// An interactive user's terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    keys: Keys,
    editor: Editor,
    pager: Option<Pager>,
    paging: bool,
    ansi: bool,
    window: (u16, u16),
}

impl Terminal {
    pub(super) fn new(config: &SessionConfig, ansi: bool, window: (u16, u16)) -> Self {
        let mut editor = Editor::new(&config.prompt, config.history);
        if ansi {
            editor.set_ansi(config.colour);
        }
        let mut terminal =
            Self { keys: Keys::default(), editor, pager: None, paging: config.pager, ansi, window };
        terminal.set_window(window);
        terminal
    }

    pub(super) fn set_window(&mut self, window: (u16, u16)) {
        self.window = window;
        self.editor.set_columns(window.0.into());
    }

    pub(super) fn greet(&mut self, banner: &str, out: &mut Vec<u8>) {
        to_wire(banner, out);
        if !banner.is_empty() && !banner.ends_with('\n') {
            out.extend(b"\r\n");
        }
        self.prompt(out);
    }

    pub(super) fn prompt(&mut self, out: &mut Vec<u8>) {
        self.editor.prompt(out);
    }

    /// Shows output, a page at a time if it is long, and then the prompt.
    pub(super) fn show(&mut self, text: &str, out: &mut Vec<u8>) {
        let window = if self.paging { self.window } else { (0, 0) };
        let mut page = String::new();
        self.pager = Pager::show(text, window, self.ansi, &mut page);
        to_wire(&page, out);
        if self.pager.is_none() {
            self.prompt(out);
        }
    }

    /// Processes a byte of input.
    pub(super) fn byte(&mut self, byte: u8, out: &mut Vec<u8>) -> Action {
        let Some(key) = self.keys.feed(byte) else { return Action::None };
        if let Some(pager) = &mut self.pager {
            let mut page = String::new();
            let finished = pager.key(key, &mut page);
            control_to_wire(&page, out);
            if finished {
                self.pager = None;
                self.prompt(out);
            }
            return Action::None;
        }
        match self.editor.key(key, out) {
            Edit::Nothing => Action::None,
            Edit::Complete { help } => {
                let (line, cursor) = self.editor.line();
                Action::Submit(Request::Complete { line, cursor, help })
            }
            Edit::Quit => {
                out.extend(b"\r\n");
                Action::Quit
            }
            Edit::Line(line) => self.line(line, out),
            Edit::TooLong => {
                self.show(&format!("{}\n", too_long()), out);
                Action::None
            }
        }
    }

    fn line(&mut self, line: String, out: &mut Vec<u8>) -> Action {
        match line.trim() {
            "quit" | "q" | "exit" => return Action::Quit,
            "" => self.prompt(out),
            "history" => {
                let lines = self.editor.history().enumerate();
                let text: String =
                    lines.map(|(n, line)| format!("{:>4}  {line}\n", n + 1)).collect();
                self.show(&text, out);
            }
            _ => return Action::Submit(Request::Run { line }),
        }
        Action::None
    }

    /// Shows the completions for the cursor.
    pub(super) fn completions(&mut self, words: &[Completion], help: bool, out: &mut Vec<u8>) {
        let text = if help {
            if words.is_empty() {
                // No help here, e.g. in a quoted text: a plain character.
                return self.editor.insert(&['?'], out);
            }
            listing(words)
        } else {
            let names: Vec<&str> = words.iter().map(|c| c.word.as_str()).collect();
            match self.editor.complete(&names, out) {
                Some(list) => columns(&list, self.window.0.into()),
                None => return,
            }
        };
        self.editor.leave(out);
        self.show(&text, out);
    }
}

/// Formats words in columns, as many as fit a row.
fn columns(words: &[&str], width: usize) -> String {
    let width = if width == 0 { 80 } else { width };
    let cell = words.iter().map(|w| w.chars().count()).max().unwrap_or(0) + 2;
    let rows = words.chunks((width / cell).max(1)).map(|row| {
        let line: String = row.iter().map(|w| format!("{w:cell$}")).collect();
        line.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

/// The pager's own output, which erases its question with control characters.
fn control_to_wire(text: &str, out: &mut Vec<u8>) {
    // The erase sequence comes first, up to the last carriage return and erase control.
    let end = text.rfind("\r\x1b[K").map(|i| i + 4).or_else(|| text.rfind('\r').map(|i| i + 1));
    let (control, rest) = text.split_at(end.unwrap_or(0));
    out.extend(control.as_bytes());
    to_wire(rest, out);
}
