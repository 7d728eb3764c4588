//! A session: a loop over the client's socket and the replies of the main thread.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::SessionConfig;
use super::listen::Stream;
use super::queue::Answers;
use super::terminal::{Action, Terminal};
use crate::job::{Cancel, CliJob, Dispatch, Reply, Request, Status};
use crate::lexer::{MAX_COMMAND_BYTES, Scanner};
use crate::telnet;

/// Maximum request of a `thalctl` session, in bytes.
const MAX_REQUEST_BYTES: usize = 1024 * 1024;
/// Maximum of input that waits while a command runs, in bytes.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// Output waiting for the client at which nothing more is fetched or run, in bytes.
const HIGH_WATER_BYTES: usize = 256 * 1024;

/// Answer to clients of a TCP port that say something before they have answered the greeting.
const NO_TERMINAL: &[u8] =
    b"this is the command line; it takes telnet, vppctl and `thalctl -s HOST:PORT' here\r\n";

/// Terminal types that have colours and cursor control.
const ANSI_TERMINALS: [&str; 6] =
    ["xterm", "xterm-color", "xterm-256color", "screen", "screen-256color", "ansi"];

/// Kind of client.
enum Mode {
    /// Unknown; wait for the terminal type until then.
    Unknown(Instant),
    /// A program that sends lines, or (framed) requests ended by NUL.
    Program { framed: bool, scanner: Scanner, line: Vec<u8> },
    /// An interactive user.
    Person(Box<Terminal>),
}

/// A pending request to the main thread.
struct Waiting {
    cancel: Cancel,
    /// True if output has been shown already.
    streamed: bool,
    help: bool,
}

/// Idle time of a session, for the acceptor.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Milliseconds after `begun` of the last input or output; `u64::MAX` while a command runs.
    last: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), last: AtomicU64::new(0) }
    }

    fn note(&self, at: Instant, busy: bool) {
        let last = at.saturating_duration_since(self.begun).as_millis() as u64;
        self.last.store(if busy { u64::MAX } else { last }, Relaxed);
    }

    /// Returns how long nothing has happened; zero while a command runs.
    pub(super) fn idle(&self) -> Duration {
        match self.last.load(Relaxed) {
            u64::MAX => Duration::ZERO,
            last => self.begun.elapsed().saturating_sub(Duration::from_millis(last)),
        }
    }
}

pub(super) struct Session<D> {
    stream: Stream,
    config: Arc<SessionConfig>,
    dispatch: D,
    answers: Answers,
    decoder: telnet::Decoder,
    mode: Mode,
    input: VecDeque<u8>,
    /// Time when input last arrived.
    last_input: Instant,
    activity: Arc<Activity>,
    /// True if the client sends nothing more.
    ended: bool,
    waiting: Option<Waiting>,
    out: Vec<u8>,
    sent: usize,
    /// Time at which the client last took output, or had none to take.
    last_output: Instant,
    closing: bool,
    window: (u16, u16),
}

impl<D: Dispatch> Session<D> {
    pub(super) fn new(
        stream: Stream,
        config: Arc<SessionConfig>,
        activity: Arc<Activity>,
        dispatch: D,
    ) -> io::Result<Self> {
        stream.set_nonblocking()?;
        let now = Instant::now();
        Ok(Self {
            stream,
            mode: Mode::Unknown(now + config.patience),
            config,
            dispatch,
            answers: Answers::new()?,
            decoder: telnet::Decoder::default(),
            input: VecDeque::new(),
            last_input: now,
            activity,
            ended: false,
            waiting: None,
            out: telnet::GREETING.to_vec(),
            sent: 0,
            last_output: now,
            closing: false,
            window: (0, 0),
        })
    }

    /// Serves the client until it or the server ends.
    pub(super) fn run(mut self) {
        if let Err(error) = self.serve() {
            tracing::debug!(%error, "CLI session ended");
        }
        self.cancel();
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.flush()?;
            if self.finished() {
                return Ok(());
            }
            let (client, woken) = self.wait()?;
            if client.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.receive()?;
            }
            // Both directions are closed, and everything was read.
            if self.ended && client.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Ok(());
            }
            if woken {
                self.answers.clear_wake();
            }
            if self.answers.overflowed() {
                let text = "a CLI client does not read its output: session dropped";
                tracing::warn!("{text}");
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            if self.pending() > 0 && self.last_output.elapsed() >= self.config.write_timeout {
                tracing::warn!("a CLI client has stopped reading: session dropped");
                return Err(ErrorKind::TimedOut.into());
            }
            self.recognise();
            self.work();
            self.activity.note(self.last_input.max(self.last_output), self.busy());
        }
    }

    fn finished(&self) -> bool {
        let idle = self.waiting.is_none() && self.pending() == 0;
        let started = !matches!(self.mode, Mode::Unknown(_));
        idle && (self.closing || (self.ended && started && self.input.is_empty()))
    }

    /// Output that the socket has not taken yet, in bytes.
    fn pending(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Sleeps until there is something to do.
    fn wait(&self) -> io::Result<(PollFlags, bool)> {
        let mut wanted = PollFlags::empty();
        if !self.ended && self.input.len() < MAX_INPUT_BYTES {
            wanted |= PollFlags::IN;
        }
        if self.pending() > 0 {
            wanted |= PollFlags::OUT;
        }
        let timeout = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.map(|t| Timespec {
            tv_sec: t.as_secs() as i64,
            tv_nsec: i64::from(t.subsec_nanos()) as _,
        });
        let mut fds =
            [PollFd::new(&self.stream, wanted), PollFd::new(&self.answers, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => Ok((fds[0].revents(), !fds[1].revents().is_empty())),
            Err(rustix::io::Errno::INTR) => Ok((PollFlags::empty(), false)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the time to wake up at though nothing happens.
    fn deadline(&self) -> Option<Instant> {
        let stalled = (self.pending() > 0).then(|| self.last_output + self.config.write_timeout);
        let patience = match &self.mode {
            Mode::Unknown(until) => Some(*until),
            Mode::Program { line, framed: false, .. } if !line.is_empty() && !self.busy() => {
                Some(self.last_input + self.config.patience)
            }
            _ => None,
        };
        let now = self.ready().then(Instant::now);
        [stalled, patience, now].into_iter().flatten().min()
    }

    /// Returns true if there is work that need not wait.
    fn ready(&self) -> bool {
        let something = if self.busy() { self.answers.is_ready() } else { !self.input.is_empty() };
        something && self.pending() < HIGH_WATER_BYTES && !self.closing
    }

    fn busy(&self) -> bool {
        self.waiting.is_some()
    }

    /// Reads what the client sent.
    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => {
                self.ended = true;
                return Ok(());
            }
            Ok(count) => count,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        self.last_input = Instant::now();
        for byte in &buffer[..count] {
            match self.decoder.feed(*byte) {
                Some(telnet::Event::Data(byte)) => self.data(byte),
                Some(telnet::Event::TerminalType(name)) => self.terminal_type(&name),
                Some(telnet::Event::WindowSize(columns, rows)) => {
                    self.window = (columns, rows);
                    if let Mode::Person(terminal) = &mut self.mode {
                        terminal.set_window(self.window);
                    }
                }
                Some(telnet::Event::Interrupt) => self.data(3),
                _ => {}
            }
        }
        Ok(())
    }

    fn data(&mut self, byte: u8) {
        if byte == 3 && self.busy() && matches!(self.mode, Mode::Person(_)) {
            self.input.clear();
            self.out.extend(b"^C\r\n");
            self.cancel();
        } else {
            self.input.push_back(byte);
        }
    }

    fn cancel(&mut self) {
        if let Some(waiting) = &self.waiting {
            waiting.cancel.cancel();
            let _ = self.dispatch.submit(CliJob::new(Request::Wake, |_| Ok(())));
        }
    }

    fn terminal_type(&mut self, name: &str) {
        if !matches!(self.mode, Mode::Unknown(_)) {
            return;
        }
        match name {
            "vppctl" | "thalctl" => {
                let framed = name == "thalctl";
                self.mode = Mode::Program { framed, scanner: Scanner::default(), line: Vec::new() };
            }
            name => self.greet(ANSI_TERMINALS.contains(&name)),
        }
    }

    /// Chooses the mode if the client sends no terminal type: input does not wait.
    fn recognise(&mut self) {
        let Mode::Unknown(until) = self.mode else { return };
        let late = Instant::now() >= until || self.ended;
        let waits = !late && self.input.is_empty();
        // A page in a browser of this machine can open a connection to any port, and send what it
        // likes once it has sent a line of its own. No page answers as a terminal does.
        if self.stream.is_tcp() && !self.decoder.speaks_telnet() && !waits {
            tracing::warn!("a client of the CLI's port that is no terminal: session ended");
            self.out.extend(NO_TERMINAL);
            self.input.clear();
            self.closing = true;
            return;
        }
        match http(&self.input) {
            // A tunnel may lead here.
            Http::Yes => {
                tracing::warn!("an HTTP request on the CLI's socket: session ended");
                self.out.extend(b"this is the command line, not HTTP\r\n");
                self.input.clear();
                self.closing = true;
            }
            Http::Maybe if !late => {}
            Http::Maybe | Http::No if late || !self.input.is_empty() => self.greet(false),
            Http::Maybe | Http::No => {}
        }
    }

    fn greet(&mut self, ansi: bool) {
        let mut terminal = Terminal::new(&self.config, ansi, self.window);
        terminal.greet(&self.config.banner, &mut self.out);
        self.mode = Mode::Person(Box::new(terminal));
    }

    /// Processes replies and input as far as possible without waiting.
    fn work(&mut self) {
        while self.pending() < HIGH_WATER_BYTES && !self.closing {
            if self.busy() {
                match self.answers.take() {
                    Some(reply) => self.answer(reply),
                    None => return,
                }
                continue;
            }
            let Some(byte) = self.input.pop_front() else { break };
            match &mut self.mode {
                Mode::Unknown(_) => return self.input.push_front(byte),
                Mode::Program { .. } => self.program(byte),
                Mode::Person(terminal) => {
                    let action = terminal.byte(byte, &mut self.out);
                    self.act(action);
                }
            }
        }
        // A line without an end is complete once nothing follows.
        let lonely = self.ended || self.last_input.elapsed() >= self.config.patience;
        if !self.closing && !self.busy() && self.input.is_empty() && lonely {
            self.end_line();
        }
    }

    /// Processes a byte from a program.
    fn program(&mut self, byte: u8) {
        let Mode::Program { framed, scanner, line } = &mut self.mode else { return };
        let framed = *framed;
        // Only ASCII matters to the scanner.
        let c = if byte.is_ascii() { char::from(byte) } else { 'x' };
        let max = if framed { MAX_REQUEST_BYTES } else { MAX_COMMAND_BYTES };
        if byte == 0 {
            if framed { self.submit_line() } else { self.end_line() }
        } else if !framed && scanner.ends_at(c) {
            self.submit_line();
        } else if line.len() >= max {
            let text = format!("input is too long: at most {max} bytes\n");
            self.finish_program(&text, Status::Failed(-1));
            self.closing = true;
        } else {
            line.push(byte);
        }
    }

    /// Completes an unfinished line of an unframed program.
    fn end_line(&mut self) {
        if let Mode::Program { framed: false, line, .. } = &mut self.mode {
            if line.iter().all(u8::is_ascii_whitespace) {
                line.clear();
            } else {
                self.submit_line();
            }
        }
    }

    fn submit_line(&mut self) {
        let Mode::Program { scanner, line, framed } = &mut self.mode else { return };
        *scanner = Scanner::default();
        let framed = *framed;
        let line = match String::from_utf8(std::mem::take(line)) {
            Ok(line) => line,
            Err(_) => {
                return self.finish_program("input is not UTF-8 text\n", Status::Failed(-1));
            }
        };
        match line.trim() {
            "quit" | "q" | "exit" => self.closing = true,
            "" if !framed => self.finish_program("", Status::Ok),
            _ => self.submit(Request::Run { line }),
        }
    }

    fn finish_program(&mut self, text: &str, status: Status) {
        let Mode::Program { framed, .. } = self.mode else { return };
        to_wire(text, &mut self.out);
        self.out.push(0);
        if framed {
            self.out.push(match status {
                Status::Ok | Status::Quit => b'0',
                Status::Failed(_) => b'1',
                Status::Cancelled => b'2',
            });
        }
    }

    fn submit(&mut self, request: Request) {
        let help = matches!(request, Request::Complete { help: true, .. });
        let job = CliJob::new(request, self.answers.sink());
        self.waiting = Some(Waiting { cancel: job.cancel.clone(), streamed: false, help });
        if self.dispatch.submit(job).is_err() {
            self.out.extend(b"the router is shutting down\r\n");
            self.waiting = None;
            self.closing = true;
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::None => {}
            Action::Quit => self.closing = true,
            Action::Submit(request) => self.submit(request),
        }
    }

    /// Processes a piece of a reply of the main thread.
    fn answer(&mut self, reply: Reply) {
        let Some(waiting) = &mut self.waiting else { return };
        let (streamed, help) = (waiting.streamed, waiting.help);
        match reply {
            Reply::Text(text) => {
                waiting.streamed = true;
                to_wire(&text, &mut self.out);
            }
            Reply::Done { text, status } => {
                self.waiting = None;
                self.closing |= status == Status::Quit;
                match &mut self.mode {
                    Mode::Person(terminal) if self.closing || streamed => {
                        to_wire(&text, &mut self.out);
                        if !self.closing {
                            terminal.prompt(&mut self.out);
                        }
                    }
                    Mode::Person(terminal) => terminal.show(&text, &mut self.out),
                    _ => self.finish_program(&text, status),
                }
            }
            Reply::Completions(words) => {
                self.waiting = None;
                if let Mode::Person(terminal) = &mut self.mode {
                    terminal.completions(&words, help, &mut self.out);
                }
            }
        }
    }

    /// Writes as much as the socket takes.
    fn flush(&mut self) -> io::Result<()> {
        while self.pending() > 0 {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.last_output = Instant::now();
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.out.clear();
        self.out.shrink_to(HIGH_WATER_BYTES);
        self.sent = 0;
        self.last_output = Instant::now();
        Ok(())
    }
}

/// Result of a check whether input begins like an HTTP request.
enum Http {
    Yes,
    /// Input too short to tell.
    Maybe,
    No,
}

fn http(input: &VecDeque<u8>) -> Http {
    const METHODS: [&str; 9] =
        ["GET ", "POST ", "HEAD ", "PUT ", "OPTIONS ", "DELETE ", "CONNECT ", "PATCH ", "TRACE "];
    let begins = |method: &&str| input.iter().zip(method.bytes()).all(|(a, b)| *a == b);
    match METHODS.iter().find(|method| begins(method)) {
        Some(method) if input.len() >= method.len() => Http::Yes,
        Some(_) => Http::Maybe,
        None => Http::No,
    }
}

/// Converts text for terminals: CR LF line ends, and no control characters but tabs. A NUL would
/// end the reply, an escape could do anything; what makes text look other than it is (C1 controls,
/// marks of direction) is shown by its number.
pub(super) fn to_wire(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + text.len() / 32);
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'\n' => out.extend(b"\r\n"),
            b'\t' | 0x20..=0x7e => out.push(byte),
            0x80.. => {
                let at = text.len() - rest.len();
                // The bytes before were whole characters.
                let Some(c) = text.get(at..).and_then(|t| t.chars().next()) else { return };
                if is_deceptive(c) {
                    out.extend(format!("<U+{:04X}>", u32::from(c)).bytes());
                } else {
                    out.extend(&rest[..c.len_utf8()]);
                }
                rest = &rest[c.len_utf8()..];
                continue;
            }
            _ => {}
        }
        rest = after;
    }
}

/// True if a character acts on a terminal, or makes text look other than it is: controls, line and
/// paragraph separators, marks of direction (UTR #36 and UAX #9), and characters without width.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        )
}
