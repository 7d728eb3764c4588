//! The subset of telnet (RFC 854, RFC 1073 window size, RFC 1091 terminal type) that `vppctl` uses,
//! for both ends.

/// Interpret as command.
pub(crate) const IAC: u8 = 0xff;
const SE: u8 = 240;
const BREAK: u8 = 243;
const INTERRUPT: u8 = 244;
const SB: u8 = 250;
const WILL: u8 = 251;
const WONT: u8 = 252;
const DO: u8 = 253;
const DONT: u8 = 254;

const ECHO: u8 = 1;
const SUPPRESS_GO_AHEAD: u8 = 3;
const TERMINAL_TYPE: u8 = 24;
const WINDOW_SIZE: u8 = 31;
const LINE_MODE: u8 = 34;

const IS: u8 = 0;
const SEND: u8 = 1;

/// Maximum length of a subnegotiation that is kept; the rest of a longer one is dropped.
const MAX_OPTION: usize = 128;

/// A server's greeting. `vppctl` must receive all of it in one read.
pub(crate) const GREETING: [u8; 36] = [
    IAC,
    WONT,
    LINE_MODE,
    IAC,
    DONT,
    LINE_MODE, //
    IAC,
    WILL,
    SUPPRESS_GO_AHEAD,
    IAC,
    DO,
    SUPPRESS_GO_AHEAD, //
    IAC,
    WILL,
    ECHO,
    IAC,
    DONT,
    ECHO, //
    IAC,
    DO,
    TERMINAL_TYPE,
    IAC,
    SB,
    TERMINAL_TYPE,
    SEND,
    IAC,
    SE, //
    IAC,
    DO,
    WINDOW_SIZE,
    IAC,
    SB,
    WINDOW_SIZE,
    SEND,
    IAC,
    SE,
];

/// Returns the reply to a request for the terminal type.
pub(crate) fn terminal_type(name: &str) -> Vec<u8> {
    let mut bytes = vec![IAC, SB, TERMINAL_TYPE, IS];
    // The name must not contain its terminator.
    bytes.extend(name.bytes().filter(u8::is_ascii_graphic).take(MAX_OPTION / 2));
    bytes.extend([IAC, SE]);
    bytes
}

/// Returns the window size in characters.
pub(crate) fn window_size(columns: u16, rows: u16) -> Vec<u8> {
    let mut bytes = vec![IAC, SB, WINDOW_SIZE];
    for byte in columns.to_be_bytes().into_iter().chain(rows.to_be_bytes()) {
        bytes.push(byte);
        // A byte that looks like IAC is doubled (RFC 855).
        bytes.extend((byte == IAC).then_some(IAC));
    }
    bytes.extend([IAC, SE]);
    bytes
}

/// An event in a stream of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A byte of data.
    Data(u8),
    /// The other side's terminal is of this type.
    TerminalType(String),
    /// The other side's window has this many columns and rows.
    WindowSize(u16, u16),
    /// The user interrupts the running command.
    Interrupt,
    /// The other side requests our terminal type.
    AsksTerminalType,
    /// The other side requests our window size.
    AsksWindowSize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    Command,
    Option,
    Sub,
    SubCommand,
}

/// Splits a stream into data and options, however its bytes are split into reads.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    option: Vec<u8>,
    /// The other side has answered, if only to refuse.
    speaks: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { state: State::Data, option: Vec::new(), speaks: false }
    }
}

impl Decoder {
    /// True once the other side has sent a telnet command.
    pub(crate) fn speaks_telnet(&self) -> bool {
        self.speaks
    }

    /// Processes one byte.
    pub(crate) fn feed(&mut self, byte: u8) -> Option<Event> {
        match self.state {
            State::Data if byte == IAC => self.state = State::Command,
            State::Data => return Some(Event::Data(byte)),
            State::Command => {
                self.state = State::Data;
                match byte {
                    IAC => return Some(Event::Data(IAC)),
                    INTERRUPT | BREAK => return Some(Event::Interrupt),
                    WILL | WONT | DO | DONT => {
                        self.speaks = true;
                        self.state = State::Option;
                    }
                    SB => {
                        self.speaks = true;
                        self.option.clear();
                        self.state = State::Sub;
                    }
                    _ => {}
                }
            }
            // We requested what we want once; refusals and offers change nothing.
            State::Option => self.state = State::Data,
            State::Sub if byte == IAC => self.state = State::SubCommand,
            State::Sub => self.keep(byte),
            State::SubCommand => match byte {
                IAC => {
                    self.keep(IAC);
                    self.state = State::Sub;
                }
                // Some clients omit SE; any command ends the option.
                _ => {
                    self.state = State::Data;
                    return self.subnegotiation();
                }
            },
        }
        None
    }

    fn keep(&mut self, byte: u8) {
        if self.option.len() < MAX_OPTION {
            self.option.push(byte);
        }
    }

    fn subnegotiation(&self) -> Option<Event> {
        match self.option[..] {
            [TERMINAL_TYPE, SEND] => Some(Event::AsksTerminalType),
            [WINDOW_SIZE, SEND] => Some(Event::AsksWindowSize),
            [TERMINAL_TYPE, IS, ref name @ ..] => {
                let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_lowercase();
                Some(Event::TerminalType(name))
            }
            [WINDOW_SIZE, c1, c0, r1, r0] => {
                Some(Event::WindowSize(u16::from_be_bytes([c1, c0]), u16::from_be_bytes([r1, r0])))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        bytes.iter().filter_map(|b| decoder.feed(*b)).collect()
    }

    #[test]
    fn the_greeting_is_what_vppctl_expects() {
        let hex: String = GREETING.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "fffc22fffe22fffb03fffd03fffb01fffe01fffd18fffa1801fff0fffd1ffffa1f01fff0");
        assert_eq!(decode(&GREETING), [Event::AsksTerminalType, Event::AsksWindowSize]);
    }

    #[test]
    fn options_and_data_are_distinguished() {
        let mut bytes = b"ab".to_vec();
        bytes.extend(terminal_type("XTERM"));
        bytes.extend(window_size(80, 255));
        bytes.extend([IAC, IAC, IAC, INTERRUPT, IAC, WILL, ECHO, b'c']);
        assert_eq!(
            decode(&bytes),
            [
                Event::Data(b'a'),
                Event::Data(b'b'),
                Event::TerminalType("xterm".to_owned()),
                Event::WindowSize(80, 255),
                Event::Data(IAC),
                Event::Interrupt,
                Event::Data(b'c'),
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic_and_memory_is_bounded(bytes: Vec<u8>) {
            let mut decoder = Decoder::default();
            for byte in [IAC, SB].into_iter().chain(bytes) {
                decoder.feed(byte);
                proptest::prop_assert!(decoder.option.len() <= MAX_OPTION);
            }
        }
    }
}
