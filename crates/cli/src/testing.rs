//! A small set of commands for this crate's tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use crate::args::Args;
use crate::command::{Command, Outcome, Task, TaskPoll};
use crate::error::CliError;
use crate::output::Output;
use crate::tree::CommandTree;

#[derive(Default)]
pub(crate) struct TestCx {
    pub cancelled: u32,
}

type Ran = Result<Outcome<TestCx>, CliError>;
type Run = fn(&mut TestCx, &mut Args<'_>, &mut Output) -> Ran;

/// A command made of its parts.
pub(crate) struct Made {
    path: &'static str,
    aliases: &'static [&'static str],
    usage: &'static str,
    help: &'static str,
    run: Run,
    complete: &'static [&'static str],
}

impl Command<TestCx> for Made {
    fn path(&self) -> &'static str {
        self.path
    }
    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
    fn usage(&self) -> &'static str {
        self.usage
    }
    fn help(&self) -> &'static str {
        self.help
    }
    fn run(&self, cx: &mut TestCx, args: &mut Args<'_>, out: &mut Output) -> Ran {
        (self.run)(cx, args, out)
    }
    fn complete(&self, _: &TestCx, before: &[&str], _: &str) -> Vec<String> {
        if !before.is_empty() {
            return Vec::new();
        }
        self.complete.iter().map(|w| (*w).to_owned()).collect()
    }
}

const PLAIN: Made = Made {
    path: "",
    aliases: &[],
    usage: "",
    help: "",
    run: |_, args, _| args.end().map(|()| Outcome::Done),
    complete: &[],
};

/// A command that does nothing. Tests may leak a few bytes.
pub(crate) fn named(
    path: &'static str,
    aliases: &'static [&'static str],
) -> &'static dyn Command<TestCx> {
    Box::leak(Box::new(Made { path, aliases, ..PLAIN }))
}

/// Ticks every 20 ms.
struct Ticks {
    left: u64,
    count: u64,
    due: Option<Instant>,
}

impl Task<TestCx> for Ticks {
    fn poll(&mut self, _: &mut TestCx, now: Instant, out: &mut Output) -> TaskPoll {
        if self.due.is_none_or(|due| now >= due) {
            self.count += 1;
            self.left -= 1;
            self.due = Some(now + Duration::from_millis(20));
            out.line(format_args!("tick {}", self.count));
        }
        match self.due {
            Some(due) if self.left > 0 => TaskPoll::At(due),
            _ => TaskPoll::Done,
        }
    }
    fn cancel(&mut self, cx: &mut TestCx, out: &mut Output) {
        cx.cancelled += 1;
        out.line("stopped");
    }
}

static SHOW_INTERFACE: Made = Made {
    path: "show interface",
    usage: "[<interface>]",
    help: "Show interfaces and their counters",
    run: |_, args, out| {
        let name = args.maybe(|a| a.word("interface"));
        args.end()?;
        out.json(serde_json::json!(["eth0", "eth1"]));
        for line in ["eth0 rx 1", "eth0 tx 2", "eth1 rx 3"] {
            if name.is_none_or(|name| line.starts_with(name)) {
                out.line(line);
            }
        }
        Ok(Outcome::Done)
    },
    complete: &["eth0", "eth1"],
    ..PLAIN
};

static TEXT: Made = Made {
    path: "show text",
    usage: "<bytes>",
    help: "Write lines of 64 bytes",
    run: |_, args, out| {
        for n in 0..args.u32("size")? / 64 {
            out.line(format_args!("{n:063}"));
        }
        Ok(Outcome::Done)
    },
    ..PLAIN
};

static FAIL: Made = Made {
    path: "fail",
    usage: "<code>",
    help: "Fail",
    run: |_, args, _| Err(CliError::with_code("as asked", args.i64("code")? as i32)),
    ..PLAIN
};

static TICKS: Made = Made {
    path: "ticks",
    usage: "<count>",
    help: "Tick\nTwenty milliseconds apart.",
    run: |_, args, _| {
        let left = args.number("count", 1, u64::MAX)?;
        Ok(Outcome::pending(Ticks { left, count: 0, due: None }))
    },
    ..PLAIN
};

/// Keeps the thread for a millisecond.
static SPIN: Made = Made {
    path: "spin",
    help: "Keep the thread busy",
    run: |_, _, _| {
        let until = Instant::now() + Duration::from_millis(1);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        Ok(Outcome::Done)
    },
    ..PLAIN
};

/// Streams 16 KiB per poll, without end.
struct Flood;

impl Task<TestCx> for Flood {
    fn poll(&mut self, _: &mut TestCx, now: Instant, out: &mut Output) -> TaskPoll {
        for _ in 0..256 {
            out.line("012345678901234567890123456789012345678901234567890123456789012");
        }
        TaskPoll::At(now)
    }
    fn cancel(&mut self, cx: &mut TestCx, _: &mut Output) {
        cx.cancelled += 1;
    }
}

static FLOOD: Made = Made {
    path: "flood",
    help: "Write without end",
    run: |_, _, _| Ok(Outcome::pending(Flood)),
    ..PLAIN
};

static ERRORS: Made = Made { path: "show errors", help: "Show error counters", ..PLAIN };
static ADDRESS: Made =
    Made { path: "show interface address", help: "Show addresses of interfaces", ..PLAIN };
static STATE: Made = Made {
    path: "set interface state",
    usage: "<interface> up|down",
    help: "Bring an interface up or down",
    run: |_, args, out| {
        let name = args.word("interface")?;
        let state = args.choice("state", &["up", "down"])?;
        args.end()?;
        write!(out, "{name} is {state}");
        Ok(Outcome::Done)
    },
    ..PLAIN
};

static CANCELLED: Made = Made {
    path: "show cancelled",
    aliases: &[],
    run: |cx, _, out| {
        out.line(cx.cancelled);
        Ok(Outcome::Done)
    },
    ..PLAIN
};

pub(crate) fn tree() -> CommandTree<TestCx> {
    let commands: [&'static dyn Command<TestCx>; 9] =
        [&SHOW_INTERFACE, &TEXT, &FAIL, &TICKS, &SPIN, &FLOOD, &ERRORS, &ADDRESS, &STATE];
    CommandTree::new(commands.into()).unwrap()
}

/// Like `tree`, plus a command that shows the number of cancelled tasks.
pub(crate) fn tree_with_probe() -> CommandTree<TestCx> {
    let mut commands = tree().commands().to_vec();
    commands.retain(|c| !crate::builtin::commands::<TestCx>().iter().any(|b| b.path() == c.path()));
    commands.push(&CANCELLED);
    CommandTree::new(commands).unwrap()
}
