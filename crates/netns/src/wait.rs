//! Waiting for things to happen, with a limit and a message worth reading when they do not.
//!
//! These helpers block on an event if the kernel reports the change (a link comes up, a file
//! appears, a child ends). If it does not (a port gets bound, a counter moves), they look again
//! after a pause that grows from 0.2 ms to 10 ms.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use thalweg_netlink::{Link, LinkMonitor};

use crate::netns::Netns;
use crate::waiting::Note;

/// Limit of a wait for what must happen: long enough for a machine whose processors are busy with
/// other things. A test that passes ends its waits long before.
pub const WAIT_LIMIT: Duration = Duration::from_secs(60);

const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Calls `probe` until it gives a value, for at most `budget`.
///
/// `what` completes the sentence "waited … for …" in the error.
pub fn wait_until<T>(
    budget: Duration,
    what: &str,
    mut probe: impl FnMut() -> Option<T>,
) -> Result<T> {
    wait_until_seen(budget, what, || probe().ok_or(Unseen))
}

/// Nothing to report about the last look.
struct Unseen;

impl Debug for Unseen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing of it")
    }
}

/// Like [`wait_until`], but a failing probe says what it saw, and the error repeats the last of it.
///
/// # Errors
/// When `budget` has passed; the probe is called once more at its very end.
pub fn wait_until_seen<T, S: Debug>(
    budget: Duration,
    what: &str,
    mut probe: impl FnMut() -> Result<T, S>,
) -> Result<T> {
    let _note = Note::new(what);
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let late = start.elapsed() >= budget;
        match probe() {
            Ok(value) => return Ok(value),
            Err(seen) if late => {
                bail!("waited {budget:?} for {what}; last seen: {seen:?}")
            }
            Err(_) => {}
        }
        // No event announces what a probe looks at, so look again soon.
        thread::park_timeout(pause.min(budget.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Blocks until `fd` is readable or `deadline` has passed; true if it is readable.
pub(crate) fn readable(fd: impl AsFd, deadline: Instant) -> Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().min(1 << 30) as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error).context("poll"),
        }
    }
}

/// Waits until `fd` is readable.
///
/// # Errors
/// When `budget` has passed; `what` completes the sentence "waited … for …".
pub fn wait_for_readable(fd: impl AsFd, budget: Duration, what: &str) -> Result<()> {
    if !readable(fd, Instant::now() + budget)? {
        bail!("waited {budget:?} for {what}; nothing came");
    }
    Ok(())
}

/// Accepts a TCP connection that comes within [`WAIT_LIMIT`]. The same limit holds for each read
/// from and write to it.
///
/// # Errors
/// If none comes.
pub fn accept(listener: &TcpListener) -> Result<(TcpStream, SocketAddr)> {
    let at = listener.local_addr()?;
    wait_for_readable(listener, WAIT_LIMIT, &format!("a connection to {at}"))?;
    let (stream, peer) = listener.accept().with_context(|| format!("accept at {at}"))?;
    limit_stream(&stream)?;
    Ok((stream, peer))
}

/// Connects to a TCP port within [`WAIT_LIMIT`]. The same limit holds for each read from and write
/// to the connection.
///
/// # Errors
/// If the connection is refused or not answered.
pub fn connect(to: impl Into<SocketAddr>) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to.into(), WAIT_LIMIT)?;
    limit_stream(&stream)?;
    Ok(stream)
}

fn limit_stream(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(WAIT_LIMIT))?;
    stream.set_write_timeout(Some(WAIT_LIMIT))
}

/// Waits for the end of a thread and returns its result. A panic goes on in the caller.
///
/// # Errors
/// If the thread runs longer than `budget`; it is left running then.
pub fn join<T>(thread: JoinHandle<T>, budget: Duration, what: &str) -> Result<T> {
    wait_until_seen(budget, &format!("{what} to end"), || {
        if thread.is_finished() { Ok(()) } else { Err("it runs") }
    })?;
    thread.join().or_else(|panic| resume_unwind(panic))
}

/// Waits until interface `dev` of `ns` is up and has carrier.
pub fn wait_for_link_up(ns: &Netns, dev: &str, budget: Duration) -> Result<()> {
    let _note = Note::new(&format!("link {dev} of namespace {} to come up", ns.label()));
    let deadline = Instant::now() + budget;
    ns.run(|| -> Result<()> {
        // Listen first and look afterwards, so that no change falls between the two.
        let mut monitor = LinkMonitor::open().context("watch the interfaces")?;
        loop {
            let state = link_state(dev)?;
            if state == LinkState::Running {
                return Ok(());
            }
            if !readable(&monitor, deadline)? {
                bail!(
                    "waited {budget:?} for link {dev} of namespace {} to come up; last seen: \
                     {state:?}",
                    ns.label()
                );
            }
            monitor.changes().for_each(drop);
        }
    })?
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Absent,
    Down,
    NoCarrier,
    Running,
}

/// State of an interface in the calling thread's namespace.
fn link_state(dev: &str) -> Result<LinkState> {
    let link = Link::named(dev).with_context(|| format!("look up interface {dev}"))?;
    Ok(match link {
        None => LinkState::Absent,
        Some(link) if !link.is_up() => LinkState::Down,
        Some(link) if !link.is_running() => LinkState::NoCarrier,
        Some(_) => LinkState::Running,
    })
}

/// Waits until some UDP socket in `ns` is bound to `port`.
pub fn wait_for_udp_port(ns: &Netns, port: u16, budget: Duration) -> Result<()> {
    let what = format!("UDP port {port} to be bound in namespace {}", ns.label());
    ns.run(|| {
        wait_until_seen(budget, &what, || {
            let bound = local_ports("udp", None);
            if bound.contains(&port) { Ok(()) } else { Err(Bound(bound)) }
        })
    })?
}

/// True if a UDP socket in `ns` is bound to `port` at this moment.
pub fn udp_port_is_bound(ns: &Netns, port: u16) -> Result<bool> {
    ns.run(|| local_ports("udp", None).contains(&port))
}

/// Waits until some TCP socket in `ns` listens on `port`.
pub fn wait_for_tcp_listener(ns: &Netns, port: u16, budget: Duration) -> Result<()> {
    let what = format!("a TCP listener on port {port} in namespace {}", ns.label());
    ns.run(|| {
        wait_until_seen(budget, &what, || {
            let bound = local_ports("tcp", Some(TCP_LISTEN));
            if bound.contains(&port) { Ok(()) } else { Err(Bound(bound)) }
        })
    })?
}

/// Waits until the program that listens on a UDP port of `ns` has read all that has come.
pub fn wait_for_udp_reader(ns: &Netns, port: u16, budget: Duration) -> Result<()> {
    let what = format!("UDP port {port} in namespace {} to be read", ns.label());
    ns.run(|| {
        wait_until_seen(budget, &what, || match udp_waiting(port) {
            Some(0) => Ok(()),
            seen => Err(format!("{seen:?} bytes")),
        })
    })?
}

/// Bytes that wait in the sockets of a UDP port, in either address family. None if nobody listens.
fn udp_waiting(port: u16) -> Option<u64> {
    let tables = ["udp", "udp6"]
        .iter()
        .filter_map(|name| fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok());
    let rows: Vec<u64> = tables.flat_map(|table| parse_waiting(&table, port)).collect();
    (!rows.is_empty()).then(|| rows.iter().sum())
}

/// Reads the fifth column (`SEND:RECEIVE` in hexadecimal) of a port's rows.
fn parse_waiting(table: &str, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let mut columns = line.split_whitespace();
        let (_, own) = columns.nth(1)?.rsplit_once(':')?;
        let (_, waiting) = columns.nth(2)?.rsplit_once(':')?;
        let waiting = u64::from_str_radix(waiting, 16).ok()?;
        (u16::from_str_radix(own, 16) == Ok(port)).then_some(waiting)
    };
    table.lines().skip(1).filter_map(row).collect()
}

struct Bound(HashSet<u16>);

impl Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut ports: Vec<_> = self.0.iter().collect();
        ports.sort_unstable();
        write!(f, "bound ports {ports:?}")
    }
}

/// State number of a listening socket in `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";

/// Local ports of the calling thread's namespace for `udp` or `tcp`, in either address family.
fn local_ports(protocol: &str, state: Option<&str>) -> HashSet<u16> {
    ["", "6"]
        .iter()
        // A kernel without IPv6 lacks the second file.
        .filter_map(|family| {
            fs::read_to_string(format!("/proc/thread-self/net/{protocol}{family}")).ok()
        })
        .flat_map(|table| parse_local_ports(&table, state))
        .collect()
}

/// Reads the second column (`ADDRESS:PORT` in hexadecimal) of the rows in the given state.
fn parse_local_ports(table: &str, state: Option<&str>) -> Vec<u16> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let local = columns.nth(1)?;
            let row_state = columns.nth(1)?;
            let (_, port) = local.rsplit_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            state.is_none_or(|wanted| wanted == row_state).then_some(port)
        })
        .collect()
}

/// Waits until `path` exists. Its directory has to exist already.
pub fn wait_for_file(path: &Path, budget: Duration) -> Result<()> {
    let deadline = Instant::now() + budget;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
        .context("inotify_init")?;
    inotify::add_watch(&watch, dir, inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO)
        .with_context(|| format!("watch {} for {}", dir.display(), path.display()))?;
    let mut events = [0u8; 4096];
    loop {
        if path.exists() {
            return Ok(());
        }
        if !readable(&watch, deadline)? {
            bail!("waited {budget:?} for {} to appear", path.display());
        }
        while rustix::io::read(&watch, &mut events).is_ok_and(|n| n > 0) {}
    }
}

/// Waits until a Unix stream socket at `path` accepts connections, and returns one.
pub fn wait_for_unix_socket(path: &Path, budget: Duration) -> Result<UnixStream> {
    let start = Instant::now();
    wait_for_file(path, budget)?;
    // bind(2) makes the file, listen(2) follows unannounced.
    let what = format!("{} to accept connections", path.display());
    wait_until_seen(budget.saturating_sub(start.elapsed()), &what, || UnixStream::connect(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const LIMIT: Duration = WAIT_LIMIT;

    #[test]
    fn what_waits_is_read() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
             1: 0100007F:18C8 00000000:0000 07 00000000:00000A00 00:00000000 00000000     0\n\
             2: 0100007F:18C7 00000000:0000 07 00000000:00000001 00:00000000 00000000     0\n";
        assert_eq!(parse_waiting(table, 6344), [0xa00]);
        assert!(parse_waiting(table, 1).is_empty());
    }

    #[test]
    fn a_value_ends_the_wait() {
        let mut looks = 0;
        let value = wait_until(LIMIT, "the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn a_timeout_says_what_was_seen_last() {
        let error =
            wait_until_seen::<(), _>(Duration::from_millis(3), "four neighbours", || Err("three"))
                .unwrap_err()
                .to_string();
        assert_eq!(error, r#"waited 3ms for four neighbours; last seen: "three""#);
    }

    #[test]
    fn a_zero_budget_still_looks_once() {
        assert_eq!(wait_until(Duration::ZERO, "now", || Some(1)).unwrap(), 1);
    }

    #[test]
    fn a_file_is_seen_when_it_appears() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let writer = path.clone();
        let thread = thread::spawn(move || fs::write(writer, "1").unwrap());
        wait_for_file(&path, LIMIT).unwrap();
        thread.join().unwrap();
        let missing = wait_for_file(&dir.path().join("other"), Duration::from_millis(2));
        assert!(missing.unwrap_err().to_string().contains("other to appear"));
    }

    #[test]
    fn a_socket_is_seen_when_it_listens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cli.sock");
        let bound = path.clone();
        let thread = thread::spawn(move || UnixListener::bind(bound).unwrap().accept().unwrap());
        wait_for_unix_socket(&path, LIMIT).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn connections_come_or_are_missed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let missed = wait_for_readable(&listener, Duration::from_millis(2), "a guest").unwrap_err();
        assert_eq!(missed.to_string(), "waited 2ms for a guest; nothing came");
        let near = connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(accept(&listener).unwrap().1, near.local_addr().unwrap());
        assert_eq!(near.write_timeout().unwrap(), Some(WAIT_LIMIT));
    }

    #[test]
    fn threads_are_joined_or_named() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let waiting = thread::spawn(move || ended.recv().is_err());
        let error = join(waiting, Duration::from_millis(2), "the echo").unwrap_err();
        assert_eq!(error.to_string(), "waited 2ms for the echo to end; last seen: \"it runs\"");
        drop(end);
        assert_eq!(join(thread::spawn(|| 7), LIMIT, "the sum").unwrap(), 7);
    }

    #[test]
    fn port_tables_are_read_by_state() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n   \
             1: 0100007F:0016 0100007F:A0A0 01 00000000:00000000\n   \
             2: broken\n";
        assert_eq!(parse_local_ports(table, Some(TCP_LISTEN)), [8080]);
        assert_eq!(parse_local_ports(table, None), [8080, 22]);
    }
}
