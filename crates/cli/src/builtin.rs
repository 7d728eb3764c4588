//! The commands that every tree has.

use std::time::{Duration, Instant};

use crate::args::Args;
use crate::command::{Command, Outcome, Question, Task, TaskPoll};
use crate::error::CliError;
use crate::output::Output;
use crate::script::Script;

/// Maximum duration of `wait`, in seconds.
const MAX_WAIT_S: f64 = 86_400.0;

pub(crate) fn commands<C: 'static>() -> [&'static dyn Command<C>; 8] {
    [&Help, &Comment, &Exec, &Echo, &Wait, &Quit, &History, &ShowCli]
}

type Ran<C> = Result<Outcome<C>, CliError>;

struct Help;

impl<C> Command<C> for Help {
    fn path(&self) -> &'static str {
        "help"
    }
    fn aliases(&self) -> &'static [&'static str] {
        &["?"]
    }
    fn usage(&self) -> &'static str {
        "[<command>]"
    }
    fn help(&self) -> &'static str {
        "Explain a command, or list all\nWords may be abbreviated: `help sh int'."
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        Ok(Outcome::Ask(Question::Help(args.rest().to_owned())))
    }
}

struct Comment;

impl<C> Command<C> for Comment {
    fn path(&self) -> &'static str {
        "comment"
    }
    fn usage(&self) -> &'static str {
        "{ <anything> }"
    }
    fn help(&self) -> &'static str {
        "Do nothing"
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        args.rest();
        Ok(Outcome::Done)
    }
}

struct Echo;

impl<C> Command<C> for Echo {
    fn path(&self) -> &'static str {
        "echo"
    }
    fn usage(&self) -> &'static str {
        "<text>"
    }
    fn help(&self) -> &'static str {
        "Print a text"
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, out: &mut Output) -> Ran<C> {
        out.line(args.rest());
        Ok(Outcome::Done)
    }
}

struct Exec;

impl<C> Command<C> for Exec {
    fn path(&self) -> &'static str {
        "exec"
    }
    fn usage(&self) -> &'static str {
        "<file>"
    }
    fn help(&self) -> &'static str {
        "Run the commands of a file\n\
         One command per line; a backslash at the end joins the next line to it, `#' starts a\n\
         comment. Stops at the first command that fails; those before it stay applied."
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        let file = args.word("file")?;
        args.end()?;
        Ok(Outcome::Script(Script::open(file)?))
    }
}

struct Wait;

struct Waiting {
    seconds: f64,
    until: Option<Instant>,
}

impl<C> Command<C> for Wait {
    fn path(&self) -> &'static str {
        "wait"
    }
    fn usage(&self) -> &'static str {
        "<seconds>"
    }
    fn help(&self) -> &'static str {
        "Wait for a number of seconds\nFractions are allowed. Only this session waits."
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        let expected = "seconds from 0 to 86400, such as 1 or 0.5";
        let seconds = args.with("time", expected, |w| {
            w.parse().ok().filter(|s| (0.0..=MAX_WAIT_S).contains(s))
        })?;
        args.end()?;
        Ok(Outcome::pending(Waiting { seconds, until: None }))
    }
}

impl<C> Task<C> for Waiting {
    fn poll(&mut self, _: &mut C, now: Instant, _: &mut Output) -> TaskPoll {
        let until = *self.until.get_or_insert(now + Duration::from_secs_f64(self.seconds));
        if now >= until { TaskPoll::Done } else { TaskPoll::At(until) }
    }
}

struct Quit;

impl<C> Command<C> for Quit {
    fn path(&self) -> &'static str {
        "quit"
    }
    fn aliases(&self) -> &'static [&'static str] {
        &["q", "exit"]
    }
    fn help(&self) -> &'static str {
        "End the session"
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        args.end()?;
        Ok(Outcome::Quit)
    }
}

struct History;

impl<C> Command<C> for History {
    fn path(&self) -> &'static str {
        "history"
    }
    fn help(&self) -> &'static str {
        "Show the commands typed in this session"
    }
    fn run(&self, _: &mut C, _: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        // An interactive session handles this itself if it is typed in full.
        Err(CliError::failed("only an interactive session keeps a history"))
    }
}

struct ShowCli;

impl<C> Command<C> for ShowCli {
    fn path(&self) -> &'static str {
        "show cli"
    }
    fn usage(&self) -> &'static str {
        "[<text>]"
    }
    fn help(&self) -> &'static str {
        "List all commands with their arguments\nIf a text is given, only commands that contain it."
    }
    fn run(&self, _: &mut C, args: &mut Args<'_>, _: &mut Output) -> Ran<C> {
        Ok(Outcome::Ask(Question::Commands(args.rest().to_owned())))
    }
}
