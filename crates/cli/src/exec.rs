//! Running commands: one after the other, each to its end, until one fails.

use std::time::{Duration, Instant};

use crate::args::Args;
use crate::command::{Outcome, Question, Task, TaskPoll};
use crate::complete::listing;
use crate::error::{CliError, shorten};
use crate::filter::Pipeline;
use crate::lexer::{Statement, TokenKind, tokenize};
use crate::output::Output;
use crate::script::Script;
use crate::tree::CommandTree;

/// Maximum nesting of `exec`.
const MAX_DEPTH: usize = 16;
/// Time between looks at work that a command began.
const REST: Duration = Duration::from_millis(1);
/// Time to wait for such work: workers that do not answer are given up before.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of an execution after a step.
#[derive(Debug)]
pub enum Progress {
    /// Call [`Execution::step`] again at this time, or earlier.
    Running(Instant),
    /// All commands have run, or one failed.
    Finished(Result<End, CliError>),
}

/// Outcome of a successful execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every command was run.
    Done,
    /// `quit` was executed.
    Quit,
}

/// Execution of a text of commands, which can pause for a command that continues over time.
pub struct Execution<C: 'static> {
    frames: Vec<Frame>,
    active: Option<Active<C>>,
    ready: String,
    /// True if the last character of the output so far ended a line.
    line_ended: bool,
    any: bool,
    /// Count of work begun before the last command, and the end of the wait for its own.
    began: Option<(u64, Instant)>,
}

/// A text being run; the first is what was typed, the others are `exec`ed files.
struct Frame {
    script: Script,
    pipeline: Pipeline,
    statement: String,
    line: usize,
}

/// A command that continues over time.
struct Active<C> {
    task: Box<dyn Task<C>>,
    out: Output,
    pipeline: Pipeline,
    path: &'static str,
}

impl Frame {
    fn new(script: Script, pipeline: Pipeline) -> Self {
        Self { script, pipeline, statement: String::new(), line: 0 }
    }
}

impl<C: 'static> Execution<C> {
    /// Prepares the execution of `script`.
    pub fn new(script: Script) -> Self {
        let frames = vec![Frame::new(script, Pipeline::default())];
        Self {
            frames,
            active: None,
            ready: String::new(),
            line_ended: true,
            any: false,
            began: None,
        }
    }

    /// Takes the output so far.
    pub fn take_output(&mut self) -> String {
        std::mem::take(&mut self.ready)
    }

    /// Continues until all commands have run, one must wait, or about `budget` of time is used.
    pub fn step(
        &mut self,
        tree: &CommandTree<C>,
        cx: &mut C,
        now: Instant,
        budget: Duration,
    ) -> Progress {
        let began = Instant::now();
        loop {
            let went = match self.active.is_some() {
                true => self.poll(cx, now),
                false if self.is_unfinished(tree, cx) => Ok(Advance::Waits(Instant::now() + REST)),
                false => self.next(tree, cx),
            };
            match went {
                Ok(Advance::On) => {}
                Ok(Advance::Waits(at)) => return Progress::Running(at),
                Ok(Advance::Ended(end)) => {
                    // An empty file is fine, an empty request is not.
                    let typed = self.frames.first().is_some_and(|f| f.script.name().is_none());
                    self.unwind();
                    return Progress::Finished(match self.any || !typed {
                        true => Ok(end),
                        false => Err(CliError::unknown("", "", tree.root.words())),
                    });
                }
                Err(error) => return Progress::Finished(Err(self.fail(error))),
            }
            if self.active.is_none() && began.elapsed() >= budget {
                return Progress::Running(now);
            }
        }
    }

    /// Returns whether work of the last command goes on: what it set may not be in force yet.
    fn is_unfinished(&mut self, tree: &CommandTree<C>, cx: &mut C) -> bool {
        let (Some(work), Some((before, until))) = (&tree.unfinished, self.began) else {
            return false;
        };
        let goes_on = (work.begun)(cx) != before && !(work.go_on)(cx) && Instant::now() < until;
        if !goes_on {
            self.began = None;
        }
        goes_on
    }

    /// Cancels the pending command, if any; no step may follow.
    pub fn cancel(&mut self, cx: &mut C) {
        if let Some(mut active) = self.active.take() {
            active.task.cancel(cx, &mut active.out);
            self.emit(&mut active.out, &mut active.pipeline);
            self.close(&mut active.pipeline);
        }
        self.unwind();
    }

    fn next(&mut self, tree: &CommandTree<C>, cx: &mut C) -> Result<Advance, CliError> {
        let Some(frame) = self.frames.last_mut() else { return Ok(Advance::Ended(End::Done)) };
        if frame.script.is_read_in() {
            if let Err(error) = frame.script.read_on() {
                // Nothing of it was run: the failure is that of `exec`.
                self.pop();
                return Err(located("exec", None, error));
            }
            return Ok(Advance::On);
        }
        let statement = match frame.script.next_statement() {
            Some(Ok(statement)) => statement,
            Some(Err((line, error))) => {
                frame.line = line;
                frame.statement.clear();
                return Err(error);
            }
            None if self.frames.len() == 1 => return Ok(Advance::Ended(End::Done)),
            None => {
                self.pop();
                return Ok(Advance::On);
            }
        };
        let Statement { text, line } = statement;
        if text.trim().is_empty() {
            return Ok(Advance::On);
        }
        frame.line = line;
        frame.statement = text.trim().to_owned();
        self.any = true;
        self.run(tree, cx, text.trim())
    }

    fn run(&mut self, tree: &CommandTree<C>, cx: &mut C, text: &str) -> Result<Advance, CliError> {
        // A comment may contain anything, even what would not split into words.
        if text.split(|c: char| c.is_whitespace() || c == '{').next() == Some("comment") {
            return Ok(Advance::On);
        }
        let tokens = tokenize(text)?;
        let bar = tokens.iter().position(|t| t.kind == TokenKind::Pipe);
        let (words, filters) = tokens.split_at(bar.unwrap_or(tokens.len()));
        let mut pipeline = Pipeline::parse(text, filters)?;
        if let [before @ .., last] = words
            && (last.kind, &text[last.start..last.end]) == (TokenKind::Word, "?")
            && !before.is_empty()
        {
            let mut out = Output::new();
            let typed = &text[..last.start];
            write!(out, "{}", listing(&tree.help_at(cx, typed, typed.len())));
            self.emit(&mut out, &mut pipeline);
            self.close(&mut pipeline);
            return Ok(Advance::On);
        }
        let found = tree.resolve(words)?;
        let path = found.command.path();
        let mut args = Args::new(text, path, words[found.used..].to_vec());
        let mut out = Output::with_format(pipeline.format);
        self.began =
            tree.unfinished.as_ref().map(|work| ((work.begun)(cx), Instant::now() + PATIENCE));
        let outcome = found.command.run(cx, &mut args, &mut out);
        let outcome = outcome.and_then(|outcome| match outcome {
            Outcome::Ask(Question::Help(topic)) => {
                tree.help(&topic, &mut out).map(|()| Outcome::Done)
            }
            Outcome::Ask(Question::Commands(filter)) => {
                tree.list(&filter, &mut out);
                Ok(Outcome::Done)
            }
            other => Ok(other),
        });
        self.outcome(outcome, path, found.command.usage(), out, pipeline)
    }

    fn outcome(
        &mut self,
        outcome: Result<Outcome<C>, CliError>,
        path: &'static str,
        usage: &str,
        mut out: Output,
        mut pipeline: Pipeline,
    ) -> Result<Advance, CliError> {
        match outcome {
            Ok(Outcome::Pending(task)) => {
                self.active = Some(Active { task, out, pipeline, path });
                Ok(Advance::On)
            }
            Ok(Outcome::Script(script)) => {
                if self.frames.len() >= MAX_DEPTH {
                    let error = format!("scripts are nested more than {MAX_DEPTH} deep");
                    return Err(located(path, None, CliError::failed(error)));
                }
                if out.wants_json() {
                    return Err(no_json(path));
                }
                self.frames.push(Frame::new(script, pipeline));
                Ok(Advance::On)
            }
            Ok(end) => {
                self.finish(&mut out, &mut pipeline, path)?;
                let quit = matches!(end, Outcome::Quit);
                Ok(if quit { Advance::Ended(End::Quit) } else { Advance::On })
            }
            Err(error) => {
                self.emit(&mut out, &mut pipeline);
                self.close(&mut pipeline);
                let usage = error.is_syntax().then(|| usage.to_owned());
                Err(located(path, usage, error))
            }
        }
    }

    fn poll(&mut self, cx: &mut C, now: Instant) -> Result<Advance, CliError> {
        let Some(mut active) = self.active.take() else { return Ok(Advance::On) };
        let poll = active.task.poll(cx, now, &mut active.out);
        match poll {
            TaskPoll::At(at) => {
                self.emit(&mut active.out, &mut active.pipeline);
                self.active = Some(active);
                Ok(Advance::Waits(at))
            }
            TaskPoll::Done => {
                self.finish(&mut active.out, &mut active.pipeline, active.path)?;
                Ok(Advance::On)
            }
            TaskPoll::Failed(error) => {
                self.emit(&mut active.out, &mut active.pipeline);
                self.close(&mut active.pipeline);
                Err(located(active.path, None, error))
            }
        }
    }

    /// Delivers the remaining output of a command that did not fail.
    fn finish(
        &mut self,
        out: &mut Output,
        pipeline: &mut Pipeline,
        path: &str,
    ) -> Result<(), CliError> {
        if out.lacks_json() {
            return Err(no_json(path));
        }
        self.emit(out, pipeline);
        self.close(pipeline);
        if out.overflowed() {
            let error =
                CliError::failed("the output is too long and was truncated; narrow the request");
            return Err(located(path, None, error));
        }
        Ok(())
    }

    /// Sends new output through the filters of the command and of the scripts around it.
    fn emit(&mut self, out: &mut Output, pipeline: &mut Pipeline) {
        let passed = pipeline.pass_on(out.take());
        self.deliver(passed, self.frames.len());
    }

    /// Flushes the filters of a command that ended, and ends its line.
    fn close(&mut self, pipeline: &mut Pipeline) {
        let mut passed = String::new();
        pipeline.finish(&mut passed);
        self.deliver(passed, self.frames.len());
        if !self.line_ended {
            self.deliver("\n".to_owned(), self.frames.len());
        }
    }

    /// Sends text through the filters of the innermost `depth` frames.
    fn deliver(&mut self, mut text: String, depth: usize) {
        if let Some(last) = text.chars().next_back() {
            self.line_ended = last == '\n';
        }
        for frame in self.frames[..depth].iter_mut().rev() {
            text = frame.pipeline.pass_on(text);
        }
        if self.ready.is_empty() { self.ready = text } else { self.ready.push_str(&text) }
    }

    /// Leaves the innermost script.
    fn pop(&mut self) -> Option<Frame> {
        let mut frame = self.frames.pop()?;
        let mut passed = String::new();
        frame.pipeline.finish(&mut passed);
        self.deliver(passed, self.frames.len());
        Some(frame)
    }

    fn unwind(&mut self) {
        while self.pop().is_some() {}
    }

    /// Leaves all scripts, noting each one's line in the error.
    fn fail(&mut self, mut error: CliError) -> CliError {
        while let Some(frame) = self.pop() {
            if let Some(name) = frame.script.name() {
                let (file, line) = (name.to_owned(), frame.line);
                error = match frame.script.is_private() {
                    true => CliError::PrivateScript { file, line },
                    false => CliError::Script {
                        file,
                        line,
                        statement: shorten(&frame.statement),
                        source: Box::new(error),
                    },
                };
            }
        }
        error
    }
}

/// Result of one iteration of the loop.
enum Advance {
    On,
    Waits(Instant),
    Ended(End),
}

fn no_json(path: &str) -> CliError {
    located(path, None, CliError::failed("this command has no JSON output; omit `| json'"))
}

fn located(path: &str, usage: Option<String>, source: CliError) -> CliError {
    match source {
        // The error contains its place.
        CliError::In { .. } | CliError::Script { .. } | CliError::PrivateScript { .. } => source,
        CliError::UnknownInput { path: ref p, .. } | CliError::Ambiguous { path: ref p, .. }
            if !p.is_empty() =>
        {
            source
        }
        source => CliError::In { path: path.to_owned(), usage, source: Box::new(source) },
    }
}

impl<C: 'static> CommandTree<C> {
    /// Runs a text to its end, sleeping while a command waits. For start-up and tests: the main
    /// loop uses [`MainCli`](crate::MainCli), which never sleeps.
    ///
    /// Returns the output and how it ended; the error is not part of the output.
    pub fn run_to_end(&self, cx: &mut C, script: Script) -> (String, Result<End, CliError>) {
        let mut execution = Execution::new(script);
        loop {
            match execution.step(self, cx, Instant::now(), Duration::MAX) {
                Progress::Finished(result) => return (execution.take_output(), result),
                Progress::Running(at) => {
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                }
            }
        }
    }

    /// Runs one typed text to its end; see [`run_to_end`](Self::run_to_end).
    pub fn run_line(&self, cx: &mut C, line: &str) -> (String, Result<End, CliError>) {
        match Script::typed(line) {
            Ok(script) => self.run_to_end(cx, script),
            Err(error) => (String::new(), Err(error)),
        }
    }

    /// Runs the commands of a file to their end, as `exec` does; for start-up.
    pub fn run_file(&self, cx: &mut C, path: &str) -> (String, Result<End, CliError>) {
        let script = match Script::open(path).map(Script::quoted) {
            Ok(script) => script,
            Err(error) => return (String::new(), Err(located("exec", None, error))),
        };
        self.run_to_end(cx, script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestCx, tree};

    /// Work that a command began is done before the next one runs, and before the text ends.
    #[test]
    fn work_that_goes_on_is_waited_for() {
        #[derive(Default)]
        struct Cx {
            begun: u64,
            left: u32,
            seen: Vec<u32>,
        }
        struct Begin;
        impl crate::Command<Cx> for Begin {
            fn path(&self) -> &'static str {
                "begin"
            }
            fn help(&self) -> &'static str {
                "Begin work that takes three looks"
            }
            fn run(
                &self,
                cx: &mut Cx,
                _: &mut Args<'_>,
                _: &mut Output,
            ) -> Result<Outcome<Cx>, CliError> {
                cx.seen.push(cx.left);
                (cx.begun, cx.left) = (cx.begun + 1, 3);
                Ok(Outcome::Done)
            }
        }
        let go_on = |cx: &mut Cx| {
            cx.left = cx.left.saturating_sub(1);
            cx.left == 0
        };
        let unfinished = crate::Unfinished { begun: |cx: &Cx| cx.begun, go_on };
        let tree = CommandTree::new(vec![&Begin as &'static dyn crate::Command<Cx>]);
        let tree = tree.unwrap().finishing(unfinished);
        let mut cx = Cx::default();
        assert_eq!(tree.run_line(&mut cx, "begin\nbegin").1, Ok(End::Done));
        assert_eq!((cx.seen, cx.left), (vec![0, 0], 0));
    }

    /// Returns output and error as a user sees them.
    fn run(line: &str) -> String {
        let (mut text, result) = tree().run_line(&mut TestCx::default(), line);
        match result {
            Ok(End::Done) => {}
            Ok(End::Quit) => text.push_str("(quit)"),
            Err(error) => text.push_str(&format!("error {}: {error}", error.code())),
        }
        text
    }

    #[test]
    fn commands_run_until_the_first_error() {
        assert_eq!(run("set int state eth0 up"), "eth0 is up\n");
        assert_eq!(run("echo a\nfail -81\necho b"), "a\nerror -81: fail: as asked");
        assert_eq!(run("comment { don't | \"care } \n"), "");
        assert_eq!(run("comment\necho { a  { b } }  'c d'"), "{ a  { b } }  'c d'\n");
        assert_eq!(run("echo a\nq\necho b"), "a\n(quit)");
        assert!(run("").starts_with("error -1: unknown input `'\n  could be: "));
        assert_eq!(run("ticks 2\necho b"), "tick 1\ntick 2\nb\n");
    }

    #[test]
    fn syntax_errors_show_the_usage() {
        assert_eq!(
            run("set int st eth0 sideways"),
            "error -1: set interface state: bad state `sideways' (argument 2): expected `up' or \
             `down'\n  usage: set interface state <interface> up|down"
        );
        assert_eq!(
            run("show err all"),
            "error -1: show errors: unexpected `all' after `show errors'\n  usage: show errors"
        );
        assert_eq!(run("wait -1").lines().count(), 2);
        assert_eq!(run("wait 0"), "");
    }

    #[test]
    fn filters_apply_to_one_command() {
        assert_eq!(
            run("show int | grep rx\nshow int | count"),
            "eth0 rx 1\neth1 rx 3\nCount: 3 lines\n"
        );
        assert_eq!(run("show int eth1 | json"), "[\"eth0\",\"eth1\"]\n");
        assert_eq!(run("sh int |json-pretty| head 2"), "[\n  \"eth0\",\n");
        assert_eq!(
            run("echo a | json"),
            "error -1: echo: this command has no JSON output; omit `| json'"
        );
        assert_eq!(run("ticks 3 | grep 2"), "tick 2\n");
        assert!(run("show int | sort").starts_with("error -1: |: unknown input `sort'"));
        assert_eq!(run("echo 'a | b'"), "'a | b'\n");
    }

    #[test]
    fn help_lists_and_explains() {
        assert_eq!(
            run("show ?"),
            "  cli                   List all commands with their arguments\n\
             \x20 errors                Show error counters\n\
             \x20 interface             Show interfaces and their counters\n\
             \x20 text                  Write lines of 64 bytes\n"
        );
        assert_eq!(
            run("help sh int"),
            "show interface [<interface>]\n  Show interfaces and their counters\n\n\
             \x20 address               Show addresses of interfaces\n"
        );
        assert_eq!(
            run("? sh int eth0"),
            "show interface [<interface>]\n  Show interfaces and their counters\n"
        );
        assert_eq!(run("help quit"), "quit\n  End the session\n  also: q, exit\n");
        assert!(run("help").contains("\n  show                  cli, errors, interface, text\n"));
        assert!(run("help nonsense").starts_with("error -1: help: unknown input `nonsense'"));
        assert_eq!(
            run("show cli interface st"),
            "set interface state <interface> up|down   Bring an interface up or down\n"
        );
        assert!(run("show cli | json").starts_with("[{\"help\":"));
        assert!(run("help show | json").contains("\"words\":["));
    }

    #[test]
    fn scripts_stop_at_the_first_failing_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let good = file("good", "# nothing\n\necho a \\\n b # c\nticks 1\n");
        assert_eq!(run(&format!("exec {good}\necho z")), "a   b\ntick 1\nz\n");
        assert_eq!(run(&format!("exec {good} | grep tick")), "tick 1\n");
        assert!(run(&format!("exec {good} | json")).contains("no JSON output"));
        let bad = file("bad", "echo a\n\nshow foo\necho b\n");
        assert_eq!(
            run(&format!("exec {bad}")),
            format!(
                "a\nerror -1: exec: CLI line error: {bad}:3: `show foo'\nshow: unknown input `foo'\n  \
                 could be: cli, errors, interface, text"
            )
        );
        let outer = file("outer", &format!("exec {bad}\n"));
        assert!(
            run(&format!("exec {outer}"))
                .contains(&format!("{outer}:1: `exec {bad}'\nexec: CLI line error: {bad}:3: "))
        );
        let own = dir.path().join("self");
        std::fs::write(&own, format!("exec {}", own.display())).unwrap();
        assert!(run(&format!("exec {}", own.display())).contains("more than 16 deep"));
        let open = file("open", "echo a\necho {\n");
        assert!(run(&format!("exec {open}")).contains(":2: `'\n"));
        let empty = file("empty", "");
        let (_, result) = tree().run_file(&mut TestCx::default(), &empty);
        assert_eq!(result, Ok(End::Done));
        assert_eq!(run(&format!("exec {empty}")), "");
    }

    #[test]
    fn files_that_are_no_scripts_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let binary = dir.path().join("binary");
        std::fs::write(&binary, b"echo a\n\xff\n").unwrap();
        assert!(run(&format!("exec {}", binary.display())).contains("line 2 is not UTF-8 text"));
        assert!(run(&format!("exec {}", dir.path().display())).contains("not a regular file"));
        assert!(run("exec /dev/zero").contains("not a regular file"));
        assert!(run("exec /nonexistent").contains("cannot read `/nonexistent'"));
        assert!(run("exec").contains("missing file"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "(show|int|echo|help|\\?|comment|set|[a-z{}'|\\\\#\n\u{e9} ]){0,12}") {
            let _ = run(&line);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            crate::fuzz_line(&bytes);
        }
    }
}
