//! Helpers shared by commands.

use crate::NatError;
use crate::restore::Restored;
use crate::state::{self, StaticMapping};
use crate::store::{self, Done, StoreError, Work};
use serde_json::json;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thalweg_cli::{Args, CliError, Output, Task, TaskPoll, counted};
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;
use thalweg_wire::ip;

/// Converts an error into a command failure.
pub(crate) fn failed(e: NatError) -> CliError {
    Refused::from(e).into()
}

impl From<NatError> for Refused {
    fn from(e: NatError) -> Refused {
        let code = match &e {
            NatError::Device(e) => e.code(),
            NatError::Memory(_) => -12,
            NatError::Exists(_) => -81,
            NatError::Missing(_) => -6,
            NatError::File(..) => -1,
            NatError::Invalid(_) => -7,
        };
        Refused::new(code, e)
    }
}

/// `<address>:<port>`
pub(crate) fn endpoint(args: &mut Args<'_>, what: &str) -> Result<SocketAddrV4, CliError> {
    args.parsed(what, "an address and a port, such as 192.0.2.1:80")
}

/// Takes an optional protocol with ports.
pub(crate) fn protocol(args: &mut Args<'_>) -> Option<u8> {
    let words =
        [("tcp", ip::protocol::TCP), ("udp", ip::protocol::UDP), ("icmp", ip::protocol::ICMP)];
    words.into_iter().find(|(word, _)| args.keyword(word)).map(|(_, number)| number)
}

/// `protocol tcp|udp external <address>:<port>`: the external endpoint of a load-balancing mapping.
pub(crate) fn service(args: &mut Args<'_>) -> Result<(SocketAddrV4, u8), CliError> {
    let _ = args.keyword("protocol");
    let protocol = if args.keyword("tcp") {
        ip::protocol::TCP
    } else if args.keyword("udp") {
        ip::protocol::UDP
    } else {
        return Err(args.bad("protocol", "`tcp' or `udp'"));
    };
    if !args.keyword("external") {
        return Err(args.bad("external address", "`external' and an address and port"));
    }
    Ok((endpoint(args, "external address and port")?, protocol))
}

/// Takes a port, if the mapping has a protocol.
pub(crate) fn mapped_port(args: &mut Args<'_>, protocol: u8) -> Result<u16, CliError> {
    match protocol {
        0 => Ok(0),
        ip::protocol::ICMP => args.u16("identifier"),
        _ => Ok(args.number("port", 1, 65_535)? as u16),
    }
}

/// Adds or deletes a mapping.
pub(crate) fn finish(c: &mut Control, m: StaticMapping, add: bool) -> Result<(), NatError> {
    if add { state::add_mapping(c, m) } else { state::del_mapping(c, &m) }
}

/// Converts an error into a command failure.
pub(crate) fn stored(e: StoreError) -> CliError {
    CliError::failed(e)
}

/// A task that saves or restores sessions.
pub(crate) struct Storing {
    work: Work,
    /// File and interval of saving once it has succeeded.
    then: Option<(PathBuf, u32)>,
}

impl Storing {
    pub(crate) fn new(work: Work) -> Storing {
        Storing { work, then: None }
    }

    /// Saves to a file every `seconds` once its sessions are restored.
    pub(crate) fn then_every(work: Work, file: PathBuf, seconds: u32) -> Storing {
        Storing { work, then: Some((file, seconds)) }
    }
}

impl Task<Control> for Storing {
    fn poll(&mut self, c: &mut Control, _: Instant, out: &mut Output) -> TaskPoll {
        match self.work.poll(c) {
            None => return TaskPoll::At(Instant::now() + Duration::from_micros(200)),
            Some(Err(e)) => return TaskPoll::Failed(stored(e)),
            Some(Ok(Done::Saved(n))) => {
                out.line(format_args!("{} saved", counted(n, "session")));
                out.json(json!({ "saved": n }));
            }
            Some(Ok(Done::NoFile)) => {
                out.line("no such file, no sessions restored");
                out.json(json!({ "restored": 0 }));
            }
            Some(Ok(Done::GivenAway)) => {
                out.line("the file is for something else now, no sessions saved");
                out.json(json!({ "saved": 0 }));
            }
            Some(Ok(Done::Restored(r))) => {
                if let Some((file, _)) = &self.then {
                    log(&r, file);
                }
                restored(&r, out);
            }
        }
        match self.then.take().map(|then| store::save_every(c, Some(then))) {
            Some(Err(e)) => TaskPoll::Failed(stored(e)),
            _ => TaskPoll::Done,
        }
    }
}

/// Logs what was restored from a file that is going to be replaced.
fn log(r: &Restored, file: &Path) {
    let (file, done) = (file.display(), counted(r.done, "session"));
    match r.lost() {
        0 => tracing::info!("nat44: {done} restored from {file}"),
        n => {
            tracing::warn!("nat44: {done} restored from {file}, {n} not; the next save drops them");
        }
    }
}

fn restored(r: &Restored, out: &mut Output) {
    out.line(format_args!("{} restored", counted(r.done, "session")));
    let others = [
        (r.expired, "expired", "expired"),
        (
            r.no_mapping,
            "no-mapping",
            "address, port or mapping is missing; they are placed when it comes",
        ),
        (r.taken, "exists", "session exists already"),
        (r.full, "full", "session table full or limit reached"),
        (r.bad, "invalid", "invalid"),
    ];
    let mut all = serde_json::Map::new();
    all.insert("restored".into(), r.done.into());
    for (n, key, text) in others {
        all.insert(key.into(), n.into());
        if n > 0 {
            out.line(format_args!("{n} not restored: {text}"));
        }
    }
    out.json(all.into());
}
