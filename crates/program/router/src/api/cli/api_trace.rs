//! `api trace`: keeps what clients of the binary API ask for, and does it again.

use serde_json::json;
use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use thalweg_api::trace::{self, MAX_FILE, Record, Trace};
use thalweg_api::{Hub, Replayed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll, in_background};
use thalweg_files::client::{self, Kind};
use thalweg_graph::Control;

/// The command's type.
pub struct ApiTrace;

/// The command.
pub static COMMAND: ApiTrace = ApiTrace;

/// Directory of files that are named without one.
const DIRECTORY: &str = client::FOR_ALL;
/// Recorded requests: what others have sent.
const TRACES: Kind = Kind { name: "an API trace", magic: &[], is_foreign: true };
/// Requests that can be kept at most.
const MAX_ITEMS: u64 = 1 << 20;
/// Time to replay requests before other work gets its turn.
const SLICE: Duration = Duration::from_millis(2);
/// Interval in which the command looks whether they are done.
const LOOK: Duration = Duration::from_millis(5);

const WORDS: [&str; 11] = [
    "on",
    "off",
    "free",
    "status",
    "save",
    "save-json",
    "dump",
    "replay",
    "replay-json",
    "tx",
    "rx",
];

impl Command<Control> for ApiTrace {
    fn path(&self) -> &'static str {
        "api trace"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show api trace-status"]
    }

    fn usage(&self) -> &'static str {
        "[rx] on [nitems <n>] | off | free | status | save <file> | save-json <file> | dump [<file>] | \
         replay <file> | replay-json <file> | tx on|off"
    }

    fn help(&self) -> &'static str {
        "Record requests of the binary API and replay them\n\
         Keeps the latest 16384 requests, or `nitems', and 32 MiB at most. Files without a\n\
         directory are in /tmp; `save' only creates new files there. `replay' executes the\n\
         requests of a file as if a client had sent them and discards the replies. `save-json' and\n\
         `replay-json' do the same with a JSON list, as `dump' shows it. `tx' is about replies, which\n\
         are not kept."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let trace = c.state::<Trace>().borrow().clone();
        // `show api trace-status' has no argument, and `rx' are the requests.
        let mut action = if args.is_empty() { "status" } else { action(args)? };
        if action == "rx" {
            action = args.choice("action", &["on", "off"])?;
        }
        if action == "tx" {
            args.choice("action", &["on", "off"])?;
            args.end()?;
            out.json(json!({ "nothing": NO_REPLIES }));
            out.line(NO_REPLIES);
            return Ok(Outcome::Done);
        }
        let items = match action == "on" && args.keyword("nitems") {
            true => Some(args.number("requests", 1, MAX_ITEMS)? as usize),
            false => None,
        };
        let file = match action {
            "save" | "replay" | "save-json" | "replay-json" => Some(args.word("file")?),
            "dump" if !args.is_empty() => Some(args.word("file")?),
            _ => None,
        };
        args.end()?;
        match (action, file) {
            ("on" | "off", _) => trace.switch(action == "on", items),
            ("free", _) => trace.clear(),
            ("save", Some(name)) => return save(&trace, name, trace::write),
            ("save-json", Some(name)) => return save(&trace, name, in_json),
            ("dump", Some(name)) => {
                let path = path(name);
                return in_background(
                    move || load(&path),
                    |_, records, out| {
                        dump(&records?, out);
                        Ok(None)
                    },
                );
            }
            ("dump", None) => dump(&trace.records(), out),
            ("replay" | "replay-json", Some(name)) => {
                let (path, json) = (path(name), action == "replay-json");
                let replaying = |c: &mut Control, records: Result<_, _>, _: &mut Output| {
                    let task: Box<dyn Task<Control>> = Box::new(replay(c, records?));
                    Ok(Some(task))
                };
                let load = move || if json { load_json(&path) } else { load(&path) };
                return in_background(load, replaying);
            }
            _ => status(&trace, out),
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { WORDS.map(String::from).into() } else { Vec::new() }
    }
}

const NO_REPLIES: &str = "nothing changed: only requests are kept; replies follow from them";

fn action(args: &mut Args<'_>) -> Result<&'static str, CliError> {
    match args.one_of_exact(&WORDS) {
        Some(word) => Ok(word),
        None => args.choice("action", &WORDS),
    }
}

fn status(trace: &Trace, out: &mut Output) {
    let s = trace.status();
    out.json(json!({
        "on": s.on, "items": s.items, "requests": s.records, "bytes": s.bytes,
        "overwritten": s.overwritten,
    }));
    let word = if s.on { "enabled" } else { "disabled" };
    out.line(format_args!("API trace: {word}, {} of {} requests", s.records, s.items));
    out.line(format_args!("  bytes: {}, older requests overwritten: {}", s.bytes, s.overwritten));
}

fn path(name: &str) -> PathBuf {
    if name.contains('/') { name.into() } else { Path::new(DIRECTORY).join(name) }
}

/// VPP does the same: a user of the command line writes with the router's rights.
fn save(
    trace: &Trace,
    name: &str,
    encode: fn(&[Record]) -> Vec<u8>,
) -> Result<Outcome<Control>, CliError> {
    if name.contains('/') || name.starts_with('.') {
        let text = format!(
            "expected a file name without directory, not `{name}': files are saved in {DIRECTORY}"
        );
        return Err(CliError::failed(text));
    }
    let path = path(name);
    let records = trace.records();
    let write = move || {
        let written = client::write_new(&path, &TRACES, &encode(&records));
        written.map(drop).map_err(|e| {
            CliError::failed(format_args!("cannot save {}: {}", path.display(), e.source))
        })
    };
    in_background(write, |_, done, _| done.map(|()| None))
}

fn load(path: &Path) -> Result<Vec<Record>, CliError> {
    let file = client::read(path, MAX_FILE).map_err(CliError::failed)?;
    trace::read(file.bytes()).map_err(|e| unreadable(path, &file, &e))
}

fn unreadable(path: &Path, file: &client::Text, e: &dyn Display) -> CliError {
    CliError::failed(format_args!("cannot read {}: {}", path.display(), file.explain("content", e)))
}

/// The requests as a JSON list, one to a line.
fn in_json(records: &[Record]) -> Vec<u8> {
    let lines: Vec<String> = records.iter().map(|record| to_json(record).to_string()).collect();
    format!("[{}]\n", lines.join(",\n")).into_bytes()
}

fn load_json(path: &Path) -> Result<Vec<Record>, CliError> {
    let file = client::read(path, MAX_FILE).map_err(CliError::failed)?;
    let fail = |e: &dyn Display| unreadable(path, &file, e);
    let values = serde_json::from_slice(file.bytes()).map_err(|e| fail(&e))?;
    let values: Vec<serde_json::Value> = values;
    let read = |(i, value): (usize, &serde_json::Value)| {
        let expected = "`at_us', `client', `name' and `fields' in hexadecimal digits expected";
        from_json(value).ok_or_else(|| fail(&format_args!("request {}: {expected}", i + 1)))
    };
    values.iter().enumerate().map(read).collect()
}

fn to_json(r: &Record) -> serde_json::Value {
    json!({ "at_us": r.at, "client": r.client, "name": r.name, "fields": hex(&r.body) })
}

fn from_json(value: &serde_json::Value) -> Option<Record> {
    let name = value["name"].as_str().filter(|name| name.len() < 64)?.to_owned();
    let digits = value["fields"].as_str().filter(|text| text.is_ascii())?;
    let byte = |i: usize| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok();
    let body: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let client = u32::try_from(value["client"].as_u64()?).ok()?;
    Some(Record { at: value["at_us"].as_u64()?, client, name, body: body? })
}

fn hex(body: &[u8]) -> String {
    body.iter().fold(String::new(), |mut text, byte| {
        // Memory does not refuse.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn dump(records: &[Record], out: &mut Output) {
    for record in records {
        let seconds = record.at as f64 / 1e6;
        out.line(format_args!(
            "{seconds:.6} client {:#x} {} {}",
            record.client,
            record.name,
            hex(&record.body)
        ));
    }
    out.json(records.iter().map(to_json).collect());
}

/// Progress of a replay, as the command sees it.
#[derive(Debug, Default)]
struct Progress {
    done: AtomicUsize,
    unknown: AtomicUsize,
    truncated: AtomicUsize,
    ended: AtomicBool,
    cancelled: AtomicBool,
}

/// Requests are carried out outside of the command line, which they may use.
fn replay(c: &Control, records: Vec<Record>) -> Replay {
    let progress = Arc::new(Progress::default());
    let shared = progress.clone();
    c.remote().submit(move |c| slice(c, Rc::new(records), 0, shared));
    Replay(progress)
}

fn slice(c: &mut Control, records: Rc<Vec<Record>>, from: usize, progress: Arc<Progress>) {
    let end = Instant::now() + SLICE;
    let hub = c.state::<Hub<Control>>();
    let mut at = from;
    while at < records.len() && Instant::now() < end && !progress.cancelled.load(Relaxed) {
        let counter = match hub.borrow_mut().replay(c, &records[at]) {
            Replayed::Done => &progress.done,
            Replayed::Unknown => &progress.unknown,
            Replayed::Truncated => &progress.truncated,
        };
        counter.fetch_add(1, Relaxed);
        at += 1;
    }
    if at == records.len() || progress.cancelled.load(Relaxed) {
        return progress.ended.store(true, Relaxed);
    }
    c.after(Duration::ZERO, move |c| slice(c, records, at, progress));
}

struct Replay(Arc<Progress>);

impl Task<Control> for Replay {
    fn poll(&mut self, _: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        if !self.0.ended.load(Relaxed) {
            return TaskPoll::At(now + LOOK);
        }
        let [done, unknown, truncated] =
            [&self.0.done, &self.0.unknown, &self.0.truncated].map(|n| n.load(Relaxed));
        out.json(json!({ "done": done, "unknown": unknown, "truncated": truncated }));
        out.line(format_args!(
            "{done} requests replayed, {unknown} unknown, {truncated} truncated"
        ));
        TaskPoll::Done
    }

    fn cancel(&mut self, _: &mut Control, _: &mut Output) {
        self.0.cancelled.store(true, Relaxed);
    }
}
