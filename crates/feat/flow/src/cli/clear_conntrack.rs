//! `clear conntrack`.

use std::time::Instant;

use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll, counted};
use thalweg_conntrack::Filter;
use thalweg_graph::Control;

use crate::tracking::{Next, REST, Visit};

/// The command.
pub static COMMAND: ClearConntrack = ClearConntrack;

/// The command's type.
pub struct ClearConntrack;

impl Command<Control> for ClearConntrack {
    fn path(&self) -> &'static str {
        "clear conntrack"
    }
    fn usage(&self) -> &'static str {
        "[zone=N] [mark=X[/M]] [labels=X[/M]] [<tuple> [<reply tuple>]]"
    }
    fn help(&self) -> &'static str {
        "Flush connections: all, or those selected as by Open vSwitch's flush-conntrack, such as \
         zone=5 ct_nw_src=10.0.0.1,ct_nw_proto=6,ct_tp_dst=80."
    }
    fn run(
        &self,
        _cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut words = Vec::new();
        while !args.is_empty() {
            words.push(args.word("filter")?);
        }
        let filter = Filter::parse(words).map_err(CliError::failed)?;
        Ok(Outcome::pending(Flusher { visit: Visit::new(filter), gone: 0 }))
    }
}

struct Flusher {
    visit: Visit<usize>,
    gone: usize,
}

/// Number of requests to workers per poll.
const QUESTIONS: usize = 8;

impl Task<Control> for Flusher {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        for _ in 0..QUESTIONS {
            if self.visit.is_over(c) {
                out.line(format_args!("{} flushed", counted(self.gone as u64, "connection")));
                return TaskPoll::Done;
            }
            let Next::Some(gone) = self.visit.flush(c) else { return TaskPoll::At(now + REST) };
            self.gone += gone;
        }
        TaskPoll::At(now)
    }
}
