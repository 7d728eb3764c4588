//! An HTTP connection.

use super::{Answer, Counts, Patience, Request};
use rustix::event::PollFlags;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Maximum size of a request in bytes, headers included.
const MAX_REQUEST: usize = 8192;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// State of a connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Stays,
    Ends,
}

/// A connection: it reads a request, or writes a response.
#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// True if it closes after the response.
    closes: bool,
    /// All is written; further input is read and discarded, since closing with unread bytes would
    /// reset the connection and discard the response.
    ending: bool,
    deadline: Instant,
    since: Instant,
}

/// Result of parsing a request.
enum Parsed {
    /// An incomplete request.
    Partial,
    /// A response, and whether it ends the connection.
    Whole { bytes: usize, head: bool, closes: bool, answer: Answer },
}

impl Connection {
    pub(super) fn new(socket: TcpStream, patience: &Patience) -> io::Result<Connection> {
        socket.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Connection {
            socket,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            closes: false,
            ending: false,
            deadline: now + patience.request,
            since: now,
        })
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn interest(&self) -> PollFlags {
        if self.output.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Rank for eviction: connections without a request first, then the oldest.
    pub(super) fn rank(&self) -> (bool, Instant) {
        (!self.output.is_empty() && !self.ending, self.since)
    }

    /// Reads, responds and writes as far as possible without waiting.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        patience: &Patience,
        counts: &Counts,
        page: &mut impl FnMut(Request<'_>) -> Answer,
    ) -> Turn {
        if self.output.is_empty() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return Turn::Ends,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Stays,
                Err(_) => return Turn::Ends,
            }
        } else if let Some(turn) = self.write(now, patience) {
            return turn;
        }
        while !self.ending && !self.input.is_empty() {
            if let Some(turn) = self.answer(now, patience, counts, page) {
                return turn;
            }
        }
        Turn::Stays
    }

    /// Returns `None` once the response is written.
    fn answer(
        &mut self,
        now: Instant,
        patience: &Patience,
        counts: &Counts,
        page: &mut impl FnMut(Request<'_>) -> Answer,
    ) -> Option<Turn> {
        match parse(&self.input, page) {
            Parsed::Partial => {
                // The limit of a request starts at its first byte.
                self.deadline = self.deadline.min(now + patience.request);
                Some(Turn::Stays)
            }
            Parsed::Whole { bytes, head, closes, answer } => {
                counts.requests.fetch_add(1, Relaxed);
                counts.bytes.fetch_add(answer.body.len() as u64, Relaxed);
                self.input.drain(..bytes);
                self.closes = closes;
                self.output = write_down(&answer, head, closes);
                self.written = 0;
                self.since = now;
                self.deadline = now + patience.answer;
                self.write(now, patience)
            }
        }
    }

    /// Returns false if the client has closed the connection.
    fn read(&mut self) -> io::Result<bool> {
        let mut space = [0; 2048];
        let n = self.socket.read(&mut space)?;
        if !self.ending {
            self.input.extend_from_slice(&space[..n]);
        }
        Ok(n > 0)
    }

    /// Returns `None` once all is written.
    fn write(&mut self, now: Instant, patience: &Patience) -> Option<Turn> {
        while self.written < self.output.len() {
            match self.socket.write(&self.output[self.written..]) {
                Ok(0) => return Some(Turn::Ends),
                Ok(n) => self.written += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(Turn::Stays),
                Err(_) => return Some(Turn::Ends),
            }
        }
        self.output = Vec::new();
        self.deadline = now + patience.idle;
        if self.closes {
            self.ending = true;
            self.input.clear();
            self.deadline = now + patience.request;
            if self.socket.shutdown(Shutdown::Write).is_err() {
                return Some(Turn::Ends);
            }
        }
        None
    }
}

fn parse(input: &[u8], page: &mut impl FnMut(Request<'_>) -> Answer) -> Parsed {
    let ends = |answer| Parsed::Whole { bytes: input.len(), head: false, closes: true, answer };
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let bytes = match request.parse(input) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) if input.len() < MAX_REQUEST => return Parsed::Partial,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return ends(Answer::text(431, "the request is too long"));
        }
        Err(error) => return ends(Answer::text(400, &format!("not HTTP: {error}"))),
    };
    let header = |name: &str| {
        let found = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
        found.and_then(|h| std::str::from_utf8(h.value).ok()).unwrap_or("")
    };
    let has = |name: &str, word: &str| {
        header(name).split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    // A body is not read: where the next request begins would be unclear.
    let body =
        !matches!(header("content-length"), "" | "0") || !header("transfer-encoding").is_empty();
    let closes = body
        || has("connection", "close")
        || (request.version == Some(0) && !has("connection", "keep-alive"));
    let head = request.method == Some("HEAD");
    let answer = match request.method {
        Some("GET" | "HEAD") => {
            let path = request.path.unwrap_or("");
            let path = path.split_once('?').map_or(path, |(path, _)| path);
            page(Request { path, accept: header("accept") })
        }
        _ => Answer::text(405, "only GET and HEAD are allowed"),
    };
    Parsed::Whole { bytes, head, closes, answer }
}

fn write_down(answer: &Answer, head: bool, closes: bool) -> Vec<u8> {
    let reason = match answer.status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "",
    };
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", answer.status);
    // Writing to memory does not fail.
    let _ = write!(
        text,
        "Content-Type: {}\r\nContent-Length: {}\r\n",
        answer.media_type,
        answer.body.len()
    );
    if answer.status == 405 {
        text += "Allow: GET, HEAD\r\n";
    }
    if closes {
        text += "Connection: close\r\n";
    }
    text += "\r\n";
    if !head {
        text += &answer.body;
    }
    text.into_bytes()
}

/// Parses arbitrary bytes, for fuzzing; returns the number of bytes used.
pub fn fuzz_http(input: &[u8]) -> usize {
    match parse(input, &mut |request| Answer::text(200, request.path)) {
        Parsed::Partial => 0,
        Parsed::Whole { bytes, head, closes, answer } => {
            write_down(&answer, head, closes);
            bytes
        }
    }
}
