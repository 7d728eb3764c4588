//! `show conntrack`.

use std::time::Instant;

use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_conntrack::{Connection, Detail, Filter};
use thalweg_graph::Control;

use crate::events::described;
use crate::tracking::{Next, REST, Visit};

/// The command.
pub static COMMAND: ShowConntrack = ShowConntrack;

/// The command's type.
pub struct ShowConntrack;

impl Command<Control> for ShowConntrack {
    fn path(&self) -> &'static str {
        "show conntrack"
    }
    fn usage(&self) -> &'static str {
        "[-m] [-s] [zone=N] [mark=X[/M]] [labels=X[/M]] [<tuple> [<reply tuple>]]"
    }
    fn help(&self) -> &'static str {
        "List connections, as Open vSwitch's dump-conntrack does. -m adds ids and both TCP \
         states, -s timeouts, packets, bytes and age."
    }
    fn run(
        &self,
        _cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut detail = Detail::default();
        let mut words = Vec::new();
        while !args.is_empty() {
            match args.word("filter")? {
                "-m" => detail.more = true,
                "-s" => detail.statistics = true,
                "-ms" | "-sm" => detail = Detail { more: true, statistics: true },
                word => words.push(word),
            }
        }
        let filter = Filter::parse(words).map_err(CliError::failed)?;
        Ok(Outcome::pending(Lister { detail, visit: Visit::new(filter) }))
    }
}

/// A listing in slices, so that workers are not held up.
struct Lister {
    detail: Detail,
    visit: Visit<Vec<Connection>>,
}

/// Number of requests to workers per poll.
const QUESTIONS: usize = 8;

impl Task<Control> for Lister {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        // JSON is several times as long as text.
        let questions = if out.wants_json() { QUESTIONS / 4 } else { QUESTIONS };
        for _ in 0..questions {
            if self.visit.is_over(c) {
                out.end_elements();
                return TaskPoll::Done;
            }
            let Next::Some(found) = self.visit.list(c) else { return TaskPoll::At(now + REST) };
            for connection in found {
                if out.wants_json() {
                    out.element(to_json(&connection));
                } else {
                    out.line(connection.line(self.detail));
                }
            }
        }
        TaskPoll::At(now)
    }
}

/// A connection as JSON, with all details.
fn to_json(connection: &Connection) -> serde_json::Value {
    let mut all = described(connection);
    all["left_ms"] = connection.left.into();
    all["id"] = connection.id.into();
    all
}
