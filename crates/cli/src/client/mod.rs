//! The client side of the CLI socket, for `thalctl` and for tests.
//!
//! [`Client`] runs commands and reports whether they succeeded, by the `thalctl` form of the
//! protocol (see [`server`](crate::server)); [`interactive`] connects a terminal.

mod interactive;

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

pub use interactive::{interactive, interactive_at};

use crate::lexer::Scanner;
use crate::server::{Listen, Stream};
use crate::telnet::{self, Decoder, Event};

/// Bytes of commands that are sent at once: half of what the server takes.
const PIECE: usize = 512 * 1024;

/// Maximum time until the server's greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time without a word from the server while a command runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Error of connecting to the CLI or running a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server listens, or access is denied.
    #[error("cannot connect to the CLI at {at}: {source}{}", hint(source))]
    Connect {
        /// The socket.
        at: Listen,
        /// The system's error.
        source: io::Error,
    },
    /// The server refuses the session; the text is its own.
    #[error("the CLI refused the session: {0}")]
    Refused(String),
    /// The server sent nothing, or nothing that a CLI server sends.
    #[error("no CLI server at {at}: {what}")]
    Protocol {
        /// The socket.
        at: Listen,
        /// Its behaviour.
        what: &'static str,
    },
    /// The connection broke.
    #[error("lost the connection to the CLI: {0}")]
    Io(#[from] io::Error),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The server ended the session before the reply was complete.
    #[error("the CLI closed the session before the reply was complete")]
    Closed,
    /// The server sent nothing for too long.
    #[error("no answer for {} s: the router is busy or has stopped", .0.as_secs())]
    Silent(Duration),
    /// The command failed; its output, including the error, is here.
    #[error("{}", .output.trim_end())]
    Failed {
        /// Output and error text.
        output: String,
    },
    /// An interactive session needs a terminal.
    #[error("standard input is not a terminal; give a command, or pipe commands in")]
    NotATerminal,
    /// A signal ended the interactive session.
    #[error("ended by a signal")]
    Signal,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => " (is the router running?)",
        io::ErrorKind::PermissionDenied => " (are you in the group that owns the socket?)",
        _ => "",
    }
}

/// Result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Success.
    Ok,
    /// Failure; the output contains the error.
    Failed,
    /// Cancelled.
    Cancelled,
}

/// A connection that runs commands one after the other.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    decoder: Decoder,
    buffer: Vec<u8>,
    at: usize,
    patience: Duration,
}

impl Client {
    /// Connects to a Unix socket.
    ///
    /// # Errors
    /// If no CLI server listens there.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        Self::connect_to(&Listen::Unix(path.as_ref().to_owned()))
    }

    /// Connects to a Unix socket or TCP address.
    ///
    /// # Errors
    /// If no CLI server listens there.
    pub fn connect_to(at: &Listen) -> Result<Self, ClientError> {
        let connect = |source| ClientError::Connect { at: at.clone(), source };
        let stream = Stream::connect(at).map_err(connect)?;
        stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
        let (decoder, buffer, patience) = (Decoder::default(), Vec::new(), GREETING_TIMEOUT);
        let mut client = Self { stream, decoder, buffer, at: 0, patience };
        let mut said = Vec::new();
        loop {
            let event = match client.next() {
                Ok(event) => event,
                Err(ClientError::Closed) if !said.is_empty() => {
                    let text = String::from_utf8_lossy(&said).trim().to_owned();
                    return Err(ClientError::Refused(text));
                }
                Err(ClientError::Closed) => {
                    return Err(ClientError::Protocol {
                        at: at.clone(),
                        what: "it closed the connection",
                    });
                }
                Err(ClientError::Io(e)) if is_timeout(&e) => {
                    return Err(ClientError::Protocol {
                        at: at.clone(),
                        what: "it sent no greeting",
                    });
                }
                Err(other) => return Err(other),
            };
            match event {
                Event::AsksTerminalType => break,
                Event::Data(byte) if said.len() < 1000 => said.push(byte),
                _ => {}
            }
        }
        client.set_patience(ANSWER_TIMEOUT)?;
        client.stream.write_all(&telnet::terminal_type("thalctl"))?;
        Ok(client)
    }

    /// Sets how long the server may say nothing while a command runs; ten minutes by default.
    ///
    /// # Errors
    /// If the system refuses it: for zero.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), ClientError> {
        self.stream.set_read_timeout(Some(patience))?;
        self.patience = patience;
        Ok(())
    }

    /// Runs one or more commands and returns their output.
    ///
    /// # Errors
    /// [`ClientError::Failed`], with all output, if a command failed; others if the connection
    /// failed.
    pub fn run(&mut self, command: &str) -> Result<String, ClientError> {
        let mut output = Vec::new();
        let ended = self.stream(command, &mut output)?;
        let output = String::from_utf8_lossy(&output).into_owned();
        match ended {
            Ended::Ok => Ok(output),
            Ended::Failed | Ended::Cancelled => Err(ClientError::Failed { output }),
        }
    }

    /// Runs one or more commands, of any length in all, and passes on their output as it comes.
    /// Ends at the first that fails.
    ///
    /// # Errors
    /// If the connection breaks, or [`ClientError::Output`] if `out` cannot be written. A command
    /// that fails is no error here.
    pub fn stream(&mut self, commands: &str, out: &mut dyn Write) -> Result<Ended, ClientError> {
        // The server takes a limited number of bytes at once.
        for piece in whole_commands(commands, PIECE) {
            let ended = self.stream_piece(piece, out)?;
            if ended != Ended::Ok {
                return Ok(ended);
            }
        }
        Ok(Ended::Ok)
    }

    fn stream_piece(&mut self, command: &str, out: &mut dyn Write) -> Result<Ended, ClientError> {
        // The server would close the session without output.
        if matches!(command.trim(), "quit" | "q" | "exit") {
            return Ok(Ended::Ok);
        }
        let mut request: Vec<u8> = command.bytes().filter(|b| *b != 0).collect();
        request.push(0);
        match self.stream.write_all(&request) {
            // The server does not read on, and may have sent the reason.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
        let mut write = |text: &mut Vec<u8>| -> Result<(), ClientError> {
            out.write_all(text).and_then(|()| out.flush()).map_err(ClientError::Output)?;
            text.clear();
            Ok(())
        };
        let mut text = Vec::new();
        loop {
            // Output that is there already is written before waiting for more.
            if self.at >= self.buffer.len() && !text.is_empty() {
                write(&mut text)?;
            }
            match self.heard()? {
                Event::Data(0) => break,
                // Line ends are CR LF on the wire.
                Event::Data(b'\r') => {}
                Event::Data(byte) => text.push(byte),
                _ => {}
            }
        }
        write(&mut text)?;
        loop {
            if let Event::Data(status) = self.heard()? {
                return Ok(match status {
                    b'0' => Ended::Ok,
                    b'2' => Ended::Cancelled,
                    _ => Ended::Failed,
                });
            }
        }
    }

    /// Reads the server's next event.
    fn heard(&mut self) -> Result<Event, ClientError> {
        self.next().map_err(|e| match e {
            ClientError::Io(e) if is_timeout(&e) => ClientError::Silent(self.patience),
            other => other,
        })
    }

    fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            while let Some(byte) = self.buffer.get(self.at) {
                self.at += 1;
                if let Some(event) = self.decoder.feed(*byte) {
                    return Ok(event);
                }
            }
            self.at = 0;
            self.buffer.resize(16 * 1024, 0);
            let count = loop {
                match self.stream.read(&mut self.buffer) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            self.buffer.truncate(*count.as_ref().unwrap_or(&0));
            if count? == 0 {
                return Err(ClientError::Closed);
            }
        }
    }
}

/// Parts a text of commands into pieces of about `most` bytes or less, each of whole commands. A
/// command that is longer is a piece of its own.
fn whole_commands(text: &str, most: usize) -> Vec<&str> {
    let (mut pieces, mut from, mut end) = (Vec::new(), 0, 0);
    let mut scanner = Scanner::default();
    for (at, c) in text.char_indices() {
        if !scanner.ends_at(c) {
            continue;
        }
        let next = at + c.len_utf8();
        if next - from > most && end > from {
            pieces.push(&text[from..end]);
            from = end;
        }
        end = next;
    }
    if text.len() - from > most && (from + 1..text.len()).contains(&end) {
        pieces.push(&text[from..end]);
        from = end;
    }
    pieces.push(&text[from..]);
    pieces
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Connects, runs one command, and returns its output.
///
/// # Errors
/// See [`Client::connect`] and [`Client::run`].
pub fn one_shot(path: impl AsRef<Path>, command: &str) -> Result<String, ClientError> {
    Client::connect(path)?.run(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parted_between_commands() {
        let parts = |text, most| whole_commands(text, most);
        assert_eq!(parts("", 10), [""]);
        assert_eq!(parts("show a\nshow b", 100), ["show a\nshow b"]);
        assert_eq!(parts("aa\nbb\ncc\n", 7), ["aa\nbb\n", "cc\n"]);
        assert_eq!(parts("aa\nbb\ncc", 3), ["aa\n", "bb\n", "cc"]);
        assert_eq!(parts("a long command\nb\nc\n", 4), ["a long command\n", "b\nc\n"]);
        // A line end within braces or after a backslash ends no command.
        assert_eq!(parts("a {\n b\n}\nc \\\n d\n", 2), ["a {\n b\n}\n", "c \\\n d\n"]);
    }
}
