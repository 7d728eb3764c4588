//! Connection events as lines of JSON, sent to the clients of a local socket.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use thalweg_conntrack::connection::Progress;
use thalweg_conntrack::tracker::{EVENTS, EndReason, Event, EventKind};
use thalweg_conntrack::{Connection, Tuple};
use thalweg_graph::Control;
use thalweg_socket::{LocalConfig, LocalError, LocalSocket};

use crate::nodes::flow_rules::Engine;
use crate::tracking;

/// Interval of polls of workers with listeners, and of checks for new listeners without.
const BUSY: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_millis(200);
/// Maximum number of bytes queued for a listener that does not read; further events are lost to it.
const WAITING: usize = 4 << 20;

/// The event socket and its listeners.
#[derive(Default)]
pub(crate) struct Events {
    socket: Option<LocalSocket>,
    listeners: Vec<Listener>,
    /// True if workers record events.
    kept: bool,
    /// Number of events lost in workers, as reported to listeners so far.
    lost: u64,
    /// Emptied event queues, for reuse by workers.
    spare: Vec<VecDeque<Event>>,
}

struct Listener {
    stream: UnixStream,
    waiting: Vec<u8>,
    lost: u64,
}

/// Starts listening at a path, or stops. A stale socket is replaced.
///
/// # Errors
/// Fails if the socket cannot be created, is in use, or the path is not a socket.
pub(crate) fn listen(c: &mut Control, path: Option<&str>) -> Result<(), LocalError> {
    let state = c.state::<Events>();
    let mut state = state.borrow_mut();
    let path = path.map(Path::new);
    if state.socket.as_ref().map(LocalSocket::path) == path {
        return Ok(());
    }
    state.socket = path.map(|path| LocalSocket::listen(path, LocalConfig::OWN)).transpose()?;
    state.listeners.clear();
    Ok(())
}

/// Serves listeners from now on.
pub(crate) fn run(c: &mut Control) {
    let (listens, kept) = accept(c);
    if listens || kept {
        collect(c, listens);
    } else {
        c.after(IDLE, run);
    }
}

/// Accepts listeners. Returns whether there are any, and whether workers keep events.
fn accept(c: &Control) -> (bool, bool) {
    let state = c.state::<Events>();
    let mut state = state.borrow_mut();
    let Events { socket, listeners, kept, .. } = &mut *state;
    if let Some(socket) = socket {
        while let Ok(stream) = socket.accept().map(UnixStream::from) {
            if stream.set_nonblocking(true).is_ok() {
                listeners.push(Listener { stream, waiting: Vec::new(), lost: 0 });
            }
        }
    }
    (!listeners.is_empty(), *kept)
}

/// Collects the workers' events and sends them to the listeners, then goes on.
fn collect(c: &mut Control, listens: bool) {
    let state = c.state::<Events>();
    // Workers neither allocate nor copy events: queues are passed back and forth.
    let spare = RefCell::new(std::mem::take(&mut state.borrow_mut().spare));
    let room = || match spare.borrow_mut().pop() {
        Some(used) => used,
        None => VecDeque::with_capacity(if listens { EVENTS } else { 0 }),
    };
    let take = move |engine: &mut Engine, room| {
        let Some(tracker) = engine.tracker.as_deref_mut() else { return (room, 0) };
        tracker.set_events(listens);
        (tracker.take_events(room), tracker.events_lost())
    };
    tracking::ask_with_then(c, room, take, move |c, answers| {
        send(c, listens, answers);
        c.after(if listens { BUSY } else { IDLE }, run);
    });
}

/// Sends the workers' events to all listeners.
fn send(c: &Control, listens: bool, answers: Vec<(VecDeque<Event>, u64)>) {
    let state = c.state::<Events>();
    let lost = answers.iter().map(|(_, lost)| lost).sum();
    let mut state = state.borrow_mut();
    state.kept = listens;
    let new = u64::saturating_sub(lost, std::mem::replace(&mut state.lost, lost));
    let mut text = Vec::new();
    for event in answers.iter().flat_map(|(events, _)| events) {
        let _ = writeln!(text, "{}", line(event));
    }
    state.listeners.retain_mut(|listener| listener.send(&text, new));
    if listens {
        let used = answers.into_iter().map(|(mut events, _)| {
            events.clear();
            events
        });
        state.spare.extend(used);
    }
}

impl Listener {
    /// Sends events. Returns false if the listener has gone.
    fn send(&mut self, text: &[u8], lost: u64) -> bool {
        self.lost += lost;
        if self.lost > 0 && self.waiting.len() < WAITING {
            let _ = writeln!(self.waiting, "{}", json!({ "event": "lost", "count": self.lost }));
            self.lost = 0;
        }
        if self.waiting.len() + text.len() <= WAITING {
            self.waiting.extend_from_slice(text);
        } else {
            self.lost += text.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(n) => drop(self.waiting.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

fn line(event: &Event) -> Value {
    let c = &event.connection;
    let what = match event.kind {
        EventKind::New => "new",
        EventKind::Established => "established",
        EventKind::Ended(EndReason::Expired) => "expired",
        EventKind::Ended(EndReason::Recycled) => "recycled",
        EventKind::Ended(EndReason::Flushed) => "flushed",
        EventKind::Ended(EndReason::Replaced) => "replaced",
    };
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut line = described(c);
    line["event"] = what.into();
    line["time"] = ((at.as_secs_f64() * 1e3).round() / 1e3).into();
    line
}

/// A connection as JSON, in events and lists.
pub(crate) fn described(c: &Connection) -> Value {
    let ends =
        |t: &Tuple| json!({ "src": t.src, "dst": t.dst, "sport": t.sport, "dport": t.dport });
    let mut json = json!({
        "zone": c.zone, "protocol": c.original.protocol, "orig": ends(&c.original),
        "reply": ends(&c.reply), "mark": c.mark, "packets": c.packets, "bytes": c.bytes,
        "age_ms": c.age,
    });
    if c.label != 0 {
        json["label"] = format!("{:#x}", c.label).into();
    }
    if let Progress::Tcp(pair) = &c.progress {
        json["state"] = pair.shown().name().into();
    }
    json
}
