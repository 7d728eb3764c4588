//! `clear ip neighbors`: flushes dynamic neighbours.

use crate::{args, neighbors};
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_graph::Control;

/// `clear ip neighbors [<interface>]`
pub struct ClearIpNeighbors;

/// The command.
pub static COMMAND: ClearIpNeighbors = ClearIpNeighbors;

impl Command<Control> for ClearIpNeighbors {
    fn path(&self) -> &'static str {
        "clear ip neighbors"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["ip neighbor flush"]
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Flush the dynamic neighbours of an interface, or of all\nStatic neighbours stay."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = if args.is_empty() { None } else { Some(args::interface(c, args)?) };
        args.end()?;
        let total = Arc::new(OnceLock::new());
        let found = Arc::clone(&total);
        neighbors::flush_then(c, only, None, move |n| _ = found.set(n));
        match total.get().copied() {
            Some(n) => {
                out.json(json!({ "flushed": n }));
                Ok(Outcome::Done)
            }
            None => Ok(Outcome::pending(AwaitFlush(total))),
        }
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { args::interfaces(c) } else { Vec::new() }
    }
}

/// Waits until many neighbours are gone.
struct AwaitFlush(Arc<OnceLock<usize>>);

impl Task<Control> for AwaitFlush {
    fn poll(&mut self, _: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        let Some(n) = self.0.get().copied() else { return TaskPoll::At(now + POLL) };
        out.json(json!({ "flushed": n }));
        TaskPoll::Done
    }
}

/// Interval in which a command that waits for a flush looks.
const POLL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn static_neighbours_stay() {
        let mut b = Bench::new();
        b.cli("set ip neighbor test0 10.0.0.2 02:00:00:00:00:02 static");
        b.cli("set ip neighbor test0 10.0.0.3 02:00:00:00:00:03");
        assert_eq!(b.cli("clear ip neighbors local0 | json"), "{\"flushed\":0}\n");
        assert_eq!(b.cli("ip neighbor flush test0"), "");
        let text = b.cli("show ip neighbors");
        assert!(text.contains("10.0.0.2") && !text.contains("10.0.0.3"), "{text}");
        b.finish();
    }
}
