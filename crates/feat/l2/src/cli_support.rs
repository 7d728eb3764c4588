//! Helpers shared by layer 2 commands.

use crate::{Flush, L2, L2Error, MAX_BRIDGE_ID, PortFlags};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// Takes a bridge domain id, which need not exist.
pub(crate) fn bridge_arg(args: &mut Args<'_>) -> Result<u32, CliError> {
    args.number("bridge domain", 1, MAX_BRIDGE_ID.into()).map(|id| id as u32)
}

/// Ids of all bridge domains.
pub(crate) fn bridge_ids(c: &Control) -> Vec<String> {
    c.state::<L2>().borrow().bridges().list().map(|(id, _)| id.to_string()).collect()
}

pub(crate) fn failed(e: L2Error) -> CliError {
    CliError::failed(e)
}

/// `on` or `off`.
pub(crate) fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Flushes MAC addresses; the command completes when done.
pub(crate) fn flush(
    c: &mut Control,
    what: Flush,
    out: &mut Output,
) -> Result<Outcome<Control>, CliError> {
    let gone = Arc::new(OnceLock::new());
    let done = gone.clone();
    let done = move |gone| {
        let _ = done.set(gone);
    };
    crate::flush(c, what, done).map_err(failed)?;
    let mut flushing = Flushing(gone);
    match flushing.poll(c, Instant::now(), out) {
        TaskPoll::Done => Ok(Outcome::Done),
        _ => Ok(Outcome::pending(flushing)),
    }
}

/// Waits for a flush to complete.
struct Flushing(Arc<OnceLock<u32>>);

impl Task<Control> for Flushing {
    fn poll(&mut self, _c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        match self.0.get() {
            Some(gone) => {
                out.json(serde_json::json!({ "deleted": gone }));
                TaskPoll::Done
            }
            None => TaskPoll::At(now + Duration::from_millis(1)),
        }
    }
}

/// A command that switches what a port does with frames that it receives.
pub struct PortSwitch {
    /// Its path.
    pub(crate) path: &'static str,
    /// The flag that it switches.
    pub(crate) flag: PortFlags,
    /// Its first line of help.
    pub(crate) help: &'static str,
}

impl Command<Control> for PortSwitch {
    fn path(&self) -> &'static str {
        self.path
    }
    fn usage(&self) -> &'static str {
        "<interface> [enable|disable]"
    }
    fn help(&self) -> &'static str {
        self.help
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let on = args.is_empty() || args.enable_disable("setting")?;
        args.end()?;
        crate::set_port_flags(c, sw_if, self.flag, on).map_err(failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => ["enable", "disable"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}
