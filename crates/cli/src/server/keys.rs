//! Decoding of a terminal's bytes to keys.

/// A key, by its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageDown,
    WordLeft,
    WordRight,
    KillToEnd,
    KillToStart,
    KillWord,
    Yank,
    Interrupt,
    /// Ctrl-D: delete, or quit on an empty line.
    Eof,
    Redraw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// State after a carriage return, which may bring a line feed or a NUL.
    Return,
    Escape,
    /// State within `ESC [`, with the first parameter and whether another followed.
    Sequence(u16, bool),
    /// State after `ESC O`.
    Shift3,
}

/// Recognises keys in a stream of bytes, however it is split.
#[derive(Debug)]
pub(crate) struct Keys {
    state: State,
    /// The beginning of a character of several bytes.
    partial: Vec<u8>,
}

impl Default for Keys {
    fn default() -> Self {
        Self { state: State::Ground, partial: Vec::new() }
    }
}

impl Keys {
    pub(crate) fn feed(&mut self, byte: u8) -> Option<Key> {
        match std::mem::replace(&mut self.state, State::Ground) {
            State::Return if matches!(byte, b'\n' | 0) => None,
            State::Ground | State::Return => self.ground(byte),
            State::Escape => match byte {
                b'[' => {
                    self.state = State::Sequence(0, false);
                    None
                }
                b'O' => {
                    self.state = State::Shift3;
                    None
                }
                b'b' => Some(Key::WordLeft),
                b'f' => Some(Key::WordRight),
                8 | 127 => Some(Key::KillWord),
                // Escape was a key of its own, this is another.
                3 | 13 | 10 => self.ground(byte),
                _ => None,
            },
            State::Sequence(first, more) => self.sequence(byte, first, more),
            State::Shift3 => letter(byte, false),
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        if byte >= 0x80 {
            return self.multibyte(byte);
        }
        self.partial.clear();
        Some(match byte {
            1 => Key::Home,
            2 => Key::Left,
            3 => Key::Interrupt,
            4 => Key::Eof,
            5 => Key::End,
            6 => Key::Right,
            8 | 127 => Key::Backspace,
            b'\t' => Key::Tab,
            b'\n' => Key::Enter,
            b'\r' => {
                self.state = State::Return;
                Key::Enter
            }
            11 => Key::KillToEnd,
            12 => Key::Redraw,
            14 => Key::Down,
            16 => Key::Up,
            21 => Key::KillToStart,
            23 => Key::KillWord,
            25 => Key::Yank,
            27 => {
                self.state = State::Escape;
                return None;
            }
            0..=31 => return None,
            _ => Key::Char(byte.into()),
        })
    }

    fn multibyte(&mut self, byte: u8) -> Option<Key> {
        self.partial.push(byte);
        match std::str::from_utf8(&self.partial) {
            Ok(text) => {
                let key = text.chars().next().filter(|c| !c.is_control()).map(Key::Char);
                self.partial.clear();
                key
            }
            Err(e) if e.error_len().is_some() => {
                self.partial.clear();
                None
            }
            Err(_) => None,
        }
    }

    fn sequence(&mut self, byte: u8, first: u16, more: bool) -> Option<Key> {
        match byte {
            b'0'..=b'9' if more => self.state = State::Sequence(first, true),
            b'0'..=b'9' => {
                let digit = u16::from(byte - b'0');
                self.state = State::Sequence(first.saturating_mul(10).saturating_add(digit), false);
            }
            b';' => self.state = State::Sequence(first, true),
            b'~' => {
                return match first {
                    1 | 7 => Some(Key::Home),
                    3 => Some(Key::Delete),
                    4 | 8 => Some(Key::End),
                    6 => Some(Key::PageDown),
                    _ => None,
                };
            }
            _ => return letter(byte, more),
        }
        None
    }
}

/// Returns the key of an arrow's letter; with a modifier, left and right move by words.
fn letter(byte: u8, modified: bool) -> Option<Key> {
    Some(match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if modified => Key::WordRight,
        b'C' => Key::Right,
        b'D' if modified => Key::WordLeft,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_keys() {
        let mut keys = Keys::default();
        let bytes =
            "a\u{e9}\x1b[A\x1bOB\x1b[1;5D\x1b[3~\x1b[4~\r\n\n\r\0b\x1bf\x03\x1b[200~".bytes();
        let got: Vec<Key> = bytes.filter_map(|b| keys.feed(b)).collect();
        use Key::*;
        let want = [
            Char('a'),
            Char('\u{e9}'),
            Up,
            Down,
            WordLeft,
            Delete,
            End,
            Enter,
            Enter,
            Enter,
            Char('b'),
            WordRight,
            Interrupt,
        ];
        assert_eq!(got, want);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let mut keys = Keys::default();
            for byte in bytes {
                keys.feed(byte);
                proptest::prop_assert!(keys.partial.len() < 4);
            }
        }
    }
}
