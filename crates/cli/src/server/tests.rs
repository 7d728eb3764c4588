//! Sessions over real sockets, with a main thread like the daemon's.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::*;
use crate::client::{Client, ClientError, Ended, one_shot};
use crate::job::{CliJob, MainCli};
use crate::lexer::MAX_COMMAND_BYTES;
use crate::telnet::{GREETING, terminal_type, window_size};
use crate::testing::{TestCx, tree_with_probe};
use thalweg_socket::LocalError;

/// No test waits so long unless it fails.
const LONG: Duration = Duration::from_secs(60);

/// A server and the main thread behind it.
struct Rig {
    dir: tempfile::TempDir,
    server: Option<Server>,
    main: Option<JoinHandle<()>>,
}

fn main_thread(jobs: mpsc::Receiver<CliJob>) {
    let (mut main, mut cx) = (MainCli::new(tree_with_probe()), TestCx::default());
    let mut deadline = None;
    loop {
        let patience = match deadline {
            Some(at) => Instant::saturating_duration_since(&at, Instant::now()),
            None => LONG,
        };
        match jobs.recv_timeout(patience) {
            Ok(job) => main.handle(&mut cx, job),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return main.cancel_all(&mut cx),
        }
        deadline = main.poll_tasks(&mut cx, Instant::now());
    }
}

impl Rig {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cli.sock");
        let mut config =
            ServerConfig { listen: vec![Listen::Unix(path)], ..ServerConfig::default() };
        config.session.banner = "Welcome\n".to_owned();
        change(&mut config);
        let (jobs, received) = mpsc::channel();
        let main = std::thread::spawn(move || main_thread(received));
        let server = Server::start(config, jobs).unwrap();
        Self { dir, server: Some(server), main: Some(main) }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("cli.sock")
    }

    fn client(&self) -> Client {
        Client::connect(self.path()).unwrap()
    }

    /// Repeats a command until the reply is `want`.
    fn await_answer(&self, command: &str, want: &str) {
        let (mut client, began) = (self.client(), Instant::now());
        loop {
            let got = client.run(command).unwrap();
            if got == want {
                return;
            }
            assert!(began.elapsed() < LONG, "{command}: {got}");
            std::thread::yield_now();
        }
    }

    /// A connection as a foreign client makes it, its greeting read.
    fn raw(&self) -> Raw {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut raw = Raw { stream, read: Vec::new() };
        // Reads as vppctl does: one read of 100 bytes must hold the whole greeting.
        let mut first = [0; 100];
        let count = raw.stream.read(&mut first).unwrap();
        assert_eq!(first[..count], GREETING);
        raw
    }

    fn vppctl(&self) -> Raw {
        let mut raw = self.raw();
        raw.send(&terminal_type("vppctl"));
        raw
    }

    fn terminal(&self, term: &str, columns: u16, rows: u16) -> Raw {
        let mut raw = self.raw();
        raw.send(&terminal_type(term));
        raw.send(&window_size(columns, rows));
        raw.until("# ");
        raw
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.server.take());
        if let Some(main) = self.main.take() {
            main.join().unwrap();
        }
    }
}

struct Raw {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Raw {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads up to and including `end`.
    fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.read.windows(end.len()).position(|w| w == end.as_bytes());
            if let Some(at) = found {
                let text = self.read.drain(..at + end.len()).collect();
                return String::from_utf8(text).unwrap();
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).unwrap_or_else(|e| {
                panic!("{e}: no {end:?} in {:?}", String::from_utf8_lossy(&self.read))
            });
            assert!(count > 0, "closed: no {end:?} in {:?}", String::from_utf8_lossy(&self.read));
            self.read.extend(&bytes[..count]);
        }
    }

    fn rest(mut self) -> String {
        self.stream.read_to_end(&mut self.read).unwrap();
        String::from_utf8(self.read).unwrap()
    }
}

#[test]
fn vppctl_gets_its_answer_and_a_nul() {
    let rig = Rig::new();
    let mut raw = rig.raw();
    let mut both = terminal_type("vppctl");
    both.extend(b"show int eth0 \n\0");
    raw.send(&both);
    assert_eq!(raw.until("\0"), "eth0 rx 1\r\neth0 tx 2\r\n\0");
    raw.send(b"quit\n");
    assert_eq!(raw.rest(), "");

    let mut raw = rig.vppctl();
    raw.send(b"comment {x}\n\0");
    assert_eq!(raw.until("\0"), "\0");
    raw.send(b"show foo\n\0");
    assert_eq!(
        raw.until("\0"),
        "show: unknown input `foo'\r\n  could be: cancelled, cli, errors, interface, text\r\n\0"
    );
    raw.send(b"q\n");
    assert_eq!(raw.rest(), "");
}

#[test]
fn bytes_may_arrive_in_any_pieces() {
    let rig = Rig::new();
    let mut raw = rig.raw();
    let mut all = terminal_type("vppctl");
    all.extend(b"echo {a\nb}\necho \xc3\xa9\n\necho \xff\xff\necho c \\\n d\nquit\n");
    for byte in all {
        raw.send(&[byte]);
    }
    assert_eq!(raw.rest(), "{a\r\nb}\r\n\0\u{e9}\r\n\0\0input is not UTF-8 text\r\n\0c   d\r\n\0");
}

#[test]
fn a_line_without_end_runs_after_a_while_or_at_the_end_of_input() {
    let rig = Rig::with(|c| c.session.patience = Duration::from_millis(50));
    let mut raw = rig.vppctl();
    raw.send(b"echo a");
    assert_eq!(raw.until("\0"), "a\r\n\0");
    raw.send(b"echo {");
    assert!(raw.until("\0").contains("an unclosed `{'"));
    let rig = Rig::new();
    let mut raw = rig.vppctl();
    raw.send(b"ticks 2\necho b");
    raw.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(raw.rest(), "tick 1\r\ntick 2\r\n\0b\r\n\0");
}

#[test]
fn an_endless_line_ends_the_session() {
    let rig = Rig::new();
    let mut raw = rig.vppctl();
    // The server stops reading when it gives up, so the rest need not fit.
    let _ = raw.stream.write_all(&vec![b'x'; 300 * 1024]);
    assert!(raw.until("\0").starts_with("input is too long"));
}

#[test]
fn a_typed_line_that_is_too_long_does_not_run() {
    let rig = Rig::new();
    let mut raw = rig.terminal("dumb", 0, 0);
    let mut line = b"echo ".to_vec();
    line.resize(MAX_COMMAND_BYTES + 1, b'x');
    line.extend(b"\recho after\r");
    raw.send(&line);
    raw.until("xx\r\ncommand is too long: at most 262144 bytes\r\n");
    raw.until("# echo after\r\nafter\r\n");
}

#[test]
fn thalctl_knows_whether_a_command_failed() {
    let rig = Rig::new();
    let mut client = rig.client();
    assert_eq!(client.run("echo a\necho b").unwrap(), "a\nb\n");
    assert_eq!(client.run("").unwrap_err().to_string().lines().next(), Some("unknown input `'"));
    let failed = client.run("echo a\nfail 3\necho b").unwrap_err();
    assert!(matches!(&failed, ClientError::Failed { output } if output == "a\nfail: as asked\n"));
    let mut text = Vec::new();
    assert_eq!(client.stream("ticks 3 | exclude 2", &mut text).unwrap(), Ended::Ok);
    assert_eq!(text, b"tick 1\ntick 3\n");
    assert_eq!(client.run("quit").unwrap(), "");
    assert_eq!(client.run("echo still here").unwrap(), "still here\n");
    assert!(matches!(client.run("qui"), Ok(text) if text.is_empty()));
    assert!(matches!(client.run("echo a"), Err(ClientError::Closed | ClientError::Io(_))));
    assert_eq!(one_shot(rig.path(), "echo a").unwrap(), "a\n");
    let error = rig.client().run(&"x".repeat(2 << 20)).unwrap_err();
    assert!(error.to_string().contains("input is too long: at most 1048576 bytes"), "{error}");
    // Many commands are sent one part after the other.
    let many: String = (0..20_000).map(|n| format!("echo {n:050}\n")).collect();
    let said = rig.client().run(&many).unwrap();
    assert_eq!(said.lines().count(), 20_000);
    let error = rig.client().run(&format!("{many}nonsense\n{many}")).unwrap_err();
    assert!(error.to_string().lines().count() < 20_010, "it ends where one fails");
}

#[test]
fn a_large_answer_arrives_whole() {
    let rig = Rig::new();
    let mib = 1 << 20;
    assert_eq!(rig.client().run(&format!("show text {mib}")).unwrap().len(), mib);
    let mut raw = rig.vppctl();
    raw.send(format!("show text {mib}\nquit\n").as_bytes());
    // One more byte a line for its carriage return, and the NUL.
    assert_eq!(raw.rest().len(), mib + mib / 64 + 1);
}

#[test]
fn a_person_edits_recalls_and_completes() {
    let rig = Rig::new();
    let mut raw = rig.raw();
    raw.send(&terminal_type("dumb"));
    assert_eq!(raw.until("# "), "Welcome\r\nthalweg# ");
    raw.send(b"echo a\r\n");
    assert_eq!(raw.until("# "), "echo a\r\na\r\nthalweg# ");
    // Left and backspace: `ac`, then `b` between, and an extra word killed.
    raw.send(b"echo acx\x7f\x1b[Db xx\x17\x7f\r");
    assert!(raw.until("# ").ends_with("\r\nabc\r\nthalweg# "));
    raw.send(b"\x1b[A\x1b[A\x1b[B\r");
    assert!(raw.until("# ").ends_with("echo abc\r\nabc\r\nthalweg# "));
    raw.send(b"\x01\x05nonsense\x15echo d\x01\x0b\x19\r");
    assert!(raw.until("# ").ends_with("\r\nd\r\nthalweg# "));
    raw.send(b"his\x15history\r");
    assert_eq!(raw.until("# ").rsplit("\r\n").nth(1), Some("   4  history"));
    raw.send(b"sh\t");
    assert_eq!(raw.until("how ").rsplit("sh").next(), Some("ow "));
    raw.send(b"in\t");
    raw.until("terface ");
    raw.send(b"\t");
    assert_eq!(raw.until("face "), "\r\naddress  eth0     eth1\r\nthalweg# show interface ");
    raw.send(b"e\t0\r");
    assert!(raw.until("# ").ends_with("eth0 rx 1\r\neth0 tx 2\r\nthalweg# "));
    raw.send(b"wait ?");
    let help = raw.until("# wait ");
    assert!(
        help.contains("\r\n  <seconds>             Wait for a number of seconds\r\nthalweg"),
        "{help}"
    );
    raw.send(b"\x03");
    assert_eq!(raw.until("# "), "\r\nthalweg# ");
    raw.send(b"echo '?'\r");
    assert!(raw.until("# ").contains("'?'\r\n'?'\r\n"));
    raw.send(b"\x04");
    assert_eq!(raw.rest(), "\r\n");
}

#[test]
fn control_c_stops_a_command() {
    let rig = Rig::new();
    let mut raw = rig.terminal("dumb", 80, 24);
    raw.send(b"ticks 100000\recho typed ahead\r");
    raw.until("tick 2\r\n");
    raw.send(b"\x03");
    assert!(raw.until("# ").ends_with("^C\r\nstopped\r\nthalweg# "));
    rig.await_answer("show cancelled", "1\n");
    // Telnet has an option of its own for it.
    raw.send(b"ticks 100000\r");
    raw.until("tick 1\r\n");
    raw.send(&[0xff, 244]);
    raw.until("stopped\r\nthalweg# ");
}

#[test]
fn long_answers_are_paged() {
    let rig = Rig::new();
    let mut raw = rig.terminal("xterm-256color", 80, 5);
    raw.send(b"show text 640\r");
    assert_eq!(raw.until("-- more --").matches("\r\n").count(), 5);
    raw.send(b"\r");
    assert_eq!(raw.until("-- more --").matches("\r\n").count(), 1);
    raw.send(b"q");
    assert_eq!(raw.until("# "), "\r\x1b[K\x1b[1;36mthalweg# ");
    raw.send(b"show text 256\r");
    assert!(!raw.until("\x1b[1;36mthalweg# ").contains("more"));
    raw.send(&window_size(80, 3));
    raw.send(b"show text 256\r");
    raw.until("-- more --");
    raw.send(b" ");
    raw.until("thalweg# ");

    let rig = Rig::with(|c| (c.session.pager, c.session.colour) = (false, false));
    let mut raw = rig.terminal("xterm", 80, 5);
    raw.send(b"show text 640\r");
    assert_eq!(raw.until("\r\nthalweg# ").matches("\r\n").count(), 11);
}

#[test]
fn a_silent_client_gets_a_prompt() {
    let rig = Rig::with(|c| c.session.patience = Duration::from_millis(50));
    assert_eq!(rig.raw().until("# "), "Welcome\r\nthalweg# ");
    // socat sends at once, closes its side, and reads on.
    let mut raw = rig.raw();
    raw.send(b"ticks 2\necho b\n");
    raw.stream.shutdown(Shutdown::Write).unwrap();
    let text = raw.rest();
    assert!(text.contains("tick 2\r\n") && text.contains("\r\nb\r\n"), "{text}");
    let mut raw = rig.raw();
    raw.send(&terminal_type("vt100"));
    raw.until("thalweg# ");
    raw.send(b"q\r");
    raw.until("\r\n");
    assert_eq!(raw.rest(), "");
}

/// Waits until no client is connected.
fn await_silence(rig: &Rig) {
    let began = Instant::now();
    while rig.server.as_ref().unwrap().sessions() > 0 {
        assert!(began.elapsed() < LONG);
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let rig = Rig::with(|c| c.session.write_timeout = Duration::from_millis(100));
    let mut raw = rig.vppctl();
    raw.send(b"flood\n");
    rig.await_answer("show cancelled", "1\n");
    await_silence(&rig);
    raw.stream.read_to_end(&mut raw.read).unwrap();
    // The session keeps only what the bounds of the socket, the session and the queue allow.
    assert!((50_000..4_000_000).contains(&raw.read.len()), "{}", raw.read.len());

    // The same for one reply that exists already.
    let mut raw = rig.vppctl();
    raw.send(format!("show text {}\n", 8 << 20).as_bytes());
    await_silence(&rig);
}

#[test]
fn a_client_that_reads_gets_everything_at_its_own_pace() {
    let rig = Rig::new();
    let mut raw = rig.vppctl();
    raw.send(b"flood\n");
    let mut bytes = vec![0; 65 * 100_000];
    raw.stream.read_exact(&mut bytes).unwrap();
    let line = b"012345678901234567890123456789012345678901234567890123456789012\r\n";
    assert!(bytes.chunks(65).all(|chunk| chunk == line));
}

#[test]
fn a_client_that_goes_away_ends_its_task() {
    let rig = Rig::new();
    let mut raw = rig.vppctl();
    raw.send(b"ticks 100000\n");
    raw.until("tick 1\r\n");
    drop(raw);
    rig.await_answer("show cancelled", "1\n");
}

#[test]
fn sessions_are_limited() {
    let rig = Rig::with(|c| (c.max_sessions, c.root_sessions) = (1, 0));
    let mut first = rig.client();
    let error = Client::connect(rig.path()).unwrap_err();
    assert_eq!(error.to_string(), "the CLI refused the session: too many CLI sessions: at most 1");
    assert_eq!(first.run("echo a").unwrap(), "a\n");
    drop(first);
    let began = Instant::now();
    while Client::connect(rig.path()).is_err() {
        assert!(began.elapsed() < LONG);
    }
}

#[test]
fn idle_sessions_make_room_and_busy_ones_do_not() {
    let rig = Rig::with(|c| {
        (c.max_sessions, c.root_sessions) = (2, 0);
        c.session.idle = Duration::ZERO;
    });
    let mut busy = rig.vppctl();
    busy.send(b"ticks 100000\n");
    busy.until("tick 1\r\n");
    let mut idle = rig.client();
    assert_eq!(idle.run("echo a").unwrap(), "a\n");
    let mut new = rig.client();
    assert_eq!(new.run("echo b").unwrap(), "b\n");
    assert!(idle.run("echo a").is_err());
    busy.until("tick 3\r\n");
}

#[test]
fn root_finds_room() {
    let rig = Rig::with(|c| (c.max_sessions, c.root_sessions) = (1, 1));
    let _first = rig.client();
    let second = Client::connect(rig.path());
    assert_eq!(second.is_ok(), rustix::process::getuid().is_root());
    assert!(Client::connect(rig.path()).is_err());
}

#[test]
fn http_requests_end_the_session() {
    let rig = Rig::new();
    for pieces in
        [&["POST / HTTP/1.1\r\nA: b\r\n\r\necho a\n"][..], &["GE", "T / HTTP/1.1\r\n\r\n"]]
    {
        let mut raw = rig.raw();
        for piece in pieces {
            raw.send(piece.as_bytes());
        }
        let text = raw.rest();
        assert!(text.contains("this is the command line, not HTTP"), "{text}");
        assert!(!text.contains("\na\r\n") && !text.contains("Welcome"), "{text}");
    }
}

/// Sends to a TCP port as a client without telnet does; returns the answer after the greeting.
fn over_tcp(bytes: &[u8]) -> String {
    let rig = Rig::with(|c| {
        c.listen.push("127.0.0.1:0".parse().unwrap());
        c.session.patience = Duration::from_millis(50);
    });
    let Listen::Tcp(address) = &rig.server.as_ref().unwrap().addresses()[1] else { panic!() };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer.split_off(GREETING.len())).unwrap()
}

#[test]
fn requests_of_any_kind_end_a_tcp_session() {
    for request in [
        "FOO / HTTP/1.1\r\n\r\necho a\r\n",
        "get / http/1.0\r\n\r\necho a\r\n",
        "\r\nGET / HTTP/1.1\r\n\r\necho a\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\necho a\r\n",
        "echo a\r\n",
        // A connection made ahead of a request.
        "",
    ] {
        let text = over_tcp(request.as_bytes());
        assert!(text.starts_with("this is the command line; it takes telnet"), "{text}");
        assert!(!text.contains("\na\r\n") && !text.contains("Welcome"), "{text}");
    }
}

#[test]
fn telnet_is_served_over_tcp_also_without_a_terminal_type() {
    let rig = Rig::with(|c| {
        c.listen.push("127.0.0.1:0".parse().unwrap());
        c.session.patience = Duration::from_millis(50);
    });
    let Listen::Tcp(address) = &rig.server.as_ref().unwrap().addresses()[1] else { panic!() };
    let mut stream = TcpStream::connect(address).unwrap();
    // A client that refuses the terminal type: IAC WONT TERMINAL-TYPE.
    stream.write_all(b"\xff\xfc\x18echo a\rquit\r").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer[GREETING.len()..]).into_owned();
    assert!(text.contains("Welcome") && text.contains("\na\r\n"), "{text}");
}

#[test]
fn text_that_deceives_is_shown_by_its_number() {
    let mut out = Vec::new();
    session::to_wire("a\u{9b}31m\u{202e}b\u{1b}[2J é\n", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "a<U+009B>31m<U+202E>b[2J é\r\n");
}

#[test]
fn sockets_are_made_and_removed_with_care() {
    let rig = Rig::new();
    let mode = std::fs::metadata(rig.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let config = |path: PathBuf| ServerConfig {
        listen: vec![Listen::Unix(path)],
        ..ServerConfig::default()
    };
    let start = |path: PathBuf| Server::start(config(path), mpsc::channel().0);
    assert!(matches!(start(rig.path()), Err(ServerError::Local(LocalError::InUse(_)))));
    let stale = rig.dir.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    drop(start(stale.clone()).unwrap());
    assert!(!stale.exists());
    std::fs::write(&stale, "text").unwrap();
    assert!(matches!(start(stale.clone()), Err(ServerError::Local(LocalError::NotASocket(_)))));
    let below = stale.join("cli.sock");
    assert!(matches!(start(below), Err(ServerError::Local(LocalError::Failed { .. }))));
    let missing = rig.dir.path().join("missing");
    assert!(matches!(Client::connect(&missing), Err(ClientError::Connect { .. })));
}

#[test]
fn tcp_is_for_the_local_host() {
    let rig = Rig::with(|c| c.listen.push("127.0.0.1:0".parse().unwrap()));
    let addresses = rig.server.as_ref().unwrap().addresses().to_vec();
    assert_eq!(addresses[0], Listen::Unix(rig.path()));
    let mut client = Client::connect_to(&addresses[1]).unwrap();
    assert_eq!(client.run("echo a").unwrap(), "a\n");
    // A client that vanishes without reading its reply resets the connection.
    let Listen::Tcp(address) = &addresses[1] else { panic!() };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&terminal_type("vppctl")).unwrap();
    stream.write_all(b"ticks 100000\n").unwrap();
    let mut greeting = [0; 36];
    stream.read_exact(&mut greeting).unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
    drop(stream);
    rig.await_answer("show cancelled", "1\n");

    let remote = ServerConfig {
        listen: vec![Listen::Tcp("0.0.0.0:0".to_owned())],
        ..ServerConfig::default()
    };
    let error = Server::start(remote, mpsc::channel().0).unwrap_err();
    assert!(matches!(error, ServerError::Remote { .. }));
    assert_eq!("localhost:5002".parse(), Ok(Listen::Tcp("localhost:5002".to_owned())));
    assert_eq!("/run/a:b".parse(), Ok(Listen::Unix("/run/a:b".into())));
}

#[test]
fn sessions_end_with_the_server_and_survive_a_lost_main_thread() {
    let mut rig = Rig::new();
    let mut raw = rig.terminal("dumb", 0, 0);
    raw.send(b"wait 1000\r");
    raw.until("wait 1000\r\n");
    drop(rig.server.take());
    assert!(!rig.path().exists());
    raw.rest();

    let (jobs, received) = mpsc::channel();
    let path = rig.dir.path().join("lone.sock");
    let config = ServerConfig { listen: vec![Listen::Unix(path.clone())], ..Default::default() };
    let _server = Server::start(config, jobs).unwrap();
    drop(received);
    let answer = Client::connect(&path).unwrap().run("echo a");
    assert!(matches!(answer, Err(ClientError::Closed)), "{answer:?}");
}

#[test]
fn groups_have_numbers() {
    assert_eq!(group_id("root"), Some(0));
    assert_eq!(group_id("12345"), Some(12345));
    assert_eq!(group_id("no such group"), None);
}
