//! A terminal connected to the CLI: keys go to the server, which does the editing.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::low_level::{pipe, unregister};

use super::ClientError;
use crate::server::{Listen, Stream};
use crate::telnet::{self, Decoder, Event};

/// Ctrl-\ ends the session from this side, in case the server no longer responds.
const HANG_UP: u8 = 0x1c;

/// Connects the terminal on standard input and output to a Unix socket until the user quits.
///
/// # Errors
/// If there is no terminal, no server listens, the connection breaks or a signal ends it. The
/// terminal is restored in each case.
pub fn interactive(path: impl AsRef<Path>) -> Result<(), ClientError> {
    interactive_at(&Listen::Unix(path.as_ref().to_owned()))
}

/// Like [`interactive`], for a Unix socket or TCP address.
///
/// # Errors
/// See [`interactive`].
pub fn interactive_at(at: &Listen) -> Result<(), ClientError> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(ClientError::NotATerminal);
    }
    let stream =
        Stream::connect(at).map_err(|source| ClientError::Connect { at: at.clone(), source })?;
    let term = std::env::var("TERM").unwrap_or_default();
    session(stdin.as_fd(), &mut io::stdout(), stream, &term)
}

/// A terminal in raw mode; restored when dropped.
struct Raw<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Raw<'a> {
    fn enter(terminal: BorrowedFd<'a>) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Now, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Signals that write to a socket; restored when dropped.
struct Signals {
    ids: Vec<SigId>,
    socket: UnixStream,
}

impl Signals {
    fn catch(signals: &[i32]) -> io::Result<Self> {
        let (socket, far) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let mut caught = Self { ids: Vec::new(), socket };
        for signal in signals {
            caught.ids.push(pipe::register(*signal, far.try_clone()?)?);
        }
        Ok(caught)
    }

    fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.socket).read(&mut bytes), Ok(n) if n > 0) {}
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in &self.ids {
            unregister(*id);
        }
    }
}

fn session(
    terminal: BorrowedFd<'_>,
    output: &mut dyn Write,
    mut stream: Stream,
    term: &str,
) -> Result<(), ClientError> {
    // The names of programs would select another form of the protocol.
    let term = if matches!(term, "" | "vppctl" | "thalctl") { "dumb" } else { term };
    let resized = Signals::catch(&[SIGWINCH])?;
    let ended = Signals::catch(&[SIGTERM, SIGHUP, SIGINT])?;
    let _raw = Raw::enter(terminal)?;
    let mut decoder = Decoder::default();
    let mut typing = true;
    loop {
        let keys = if typing { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(&stream, PollFlags::IN),
            PollFd::new(&resized.socket, PollFlags::IN),
            PollFd::new(&ended.socket, PollFlags::IN),
            PollFd::new(&terminal, keys),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let [from_server, size, end, key] = fds.map(|fd| !fd.revents().is_empty());
        if end {
            return Err(ClientError::Signal);
        }
        if size {
            resized.clear();
            stream.write_all(&window(terminal))?;
        }
        if from_server && !receive(&mut stream, &mut decoder, output, terminal, term)? {
            return Ok(());
        }
        if typing && key {
            let mut bytes = [0; 1024];
            let count = rustix::io::read(terminal, &mut bytes).map_err(io::Error::from)?;
            let typed = &bytes[..count];
            if typed.contains(&HANG_UP) {
                return Ok(());
            }
            if count == 0 {
                typing = false;
                stream.end_writing();
            }
            stream.write_all(typed)?;
        }
    }
}

fn window(terminal: BorrowedFd<'_>) -> Vec<u8> {
    match tcgetwinsize(terminal) {
        Ok(size) => telnet::window_size(size.ws_col, size.ws_row),
        Err(_) => Vec::new(),
    }
}

/// Shows the server's output and replies to its telnet options; returns false once it hung up.
fn receive(
    stream: &mut Stream,
    decoder: &mut Decoder,
    output: &mut dyn Write,
    terminal: BorrowedFd<'_>,
    term: &str,
) -> Result<bool, ClientError> {
    let mut bytes = [0; 16 * 1024];
    let count = match stream.read(&mut bytes) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => 0,
        other => other?,
    };
    let mut shown = Vec::with_capacity(count);
    for byte in &bytes[..count] {
        match decoder.feed(*byte) {
            Some(Event::Data(byte)) => shown.push(byte),
            Some(Event::AsksTerminalType) => stream.write_all(&telnet::terminal_type(term))?,
            Some(Event::AsksWindowSize) => stream.write_all(&window(terminal))?,
            _ => {}
        }
    }
    output.write_all(&shown)?;
    output.flush()?;
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, Winsize, tcsetwinsize};

    use super::*;
    use crate::job::{CliJob, MainCli};
    use crate::server::{Server, ServerConfig};
    use crate::testing::{TestCx, tree};

    /// Limit of a wait, however busy the processors are.
    const LIMIT: Duration = Duration::from_secs(60);

    fn terminal() -> (OwnedFd, OwnedFd) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        (master, slave)
    }

    fn serve(dir: &Path) -> (Server, Listen) {
        let at = Listen::Unix(dir.join("cli.sock"));
        let (jobs, received) = mpsc::channel::<CliJob>();
        let config = ServerConfig { listen: vec![at.clone()], ..ServerConfig::default() };
        let server = Server::start(config, jobs).unwrap();
        std::thread::spawn(move || {
            let (mut main, mut cx) = (MainCli::new(tree()), TestCx::default());
            while let Ok(job) = received.recv() {
                main.handle(&mut cx, job);
                main.poll_tasks(&mut cx, Instant::now());
            }
        });
        (server, at)
    }

    /// Everything the client shows goes through the terminal, as for a user.
    fn until(master: &mut File, end: &str) -> String {
        let (mut text, began) = (String::new(), Instant::now());
        while !text.ends_with(end) {
            let left = LIMIT.saturating_sub(began.elapsed());
            let timeout = Timespec::try_from(left).unwrap();
            let ready = poll(&mut [PollFd::new(&*master, PollFlags::IN)], Some(&timeout)).unwrap();
            assert!(ready > 0, "no {end:?} in {text:?}");
            let mut bytes = [0; 1024];
            let count = master.read(&mut bytes).unwrap();
            text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        text
    }

    /// The end of a client, which comes soon.
    fn joined<T>(client: std::thread::JoinHandle<Result<T, ClientError>>) {
        let began = Instant::now();
        while !client.is_finished() {
            assert!(began.elapsed() < LIMIT, "the client does not end");
            std::thread::yield_now();
        }
        client.join().unwrap().unwrap();
    }

    #[test]
    fn a_terminal_is_passed_through_and_restored() {
        let dir = tempfile::tempdir().unwrap();
        let (server, at) = serve(dir.path());
        let (master, slave) = terminal();
        let size = Winsize { ws_row: 5, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let before = tcgetattr(&slave).unwrap().local_modes;
        assert!(before.contains(LocalModes::ECHO));
        let (copy, server_at) = (slave.try_clone().unwrap(), at.clone());
        let client = std::thread::spawn(move || {
            let mut output = File::from(copy.try_clone().unwrap());
            let stream = Stream::connect(&server_at).unwrap();
            session(copy.as_fd(), &mut output, stream, "vppctl")
        });
        let mut master = File::from(master);
        until(&mut master, "thalweg# ");
        assert!(!tcgetattr(&slave).unwrap().local_modes.contains(LocalModes::ECHO));
        master.write_all(b"echo a\r").unwrap();
        assert_eq!(until(&mut master, "# "), "echo a\r\na\r\nthalweg# ");
        // The window size was sent along: a long output stops after a page.
        master.write_all(b"show text 1024\r").unwrap();
        until(&mut master, "-- more --");
        master.write_all(b"qquit\r").unwrap();
        until(&mut master, "quit\r\n");
        joined(client);
        assert_eq!(tcgetattr(&slave).unwrap().local_modes, before);

        // Ctrl-\ leaves, whatever the server does; so does the end of the server.
        for hang_up in [true, false] {
            let (copy, server_at) = (slave.try_clone().unwrap(), at.clone());
            let client = std::thread::spawn(move || {
                let mut output = File::from(copy.try_clone().unwrap());
                let stream = Stream::connect(&server_at).unwrap();
                session(copy.as_fd(), &mut output, stream, "xterm")
            });
            until(&mut master, "thalweg# \x1b[0m");
            if hang_up {
                master.write_all(&[HANG_UP]).unwrap();
                joined(client);
            } else {
                drop(server);
                joined(client);
                break;
            }
        }
        assert_eq!(tcgetattr(&slave).unwrap().local_modes, before);
    }
}
