//! The steps of a run as lines of text: commands and traffic.

use super::grammar::Part;
use super::values;
use fastrand::Rng;
use std::fmt;
use std::str::FromStr;

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A command, as it is typed.
    Command(String),
    /// Words for `ip` in the namespace of the twins, which is the router's own.
    Kernel(String),
    /// Frames from a seed come in by a port of the packet generator, on a worker.
    Traffic { port: u8, worker: u8, seed: u64 },
    /// The running configuration is saved and applied: nothing changes.
    Apply,
}

const TRAFFIC: &str = "#traffic";
const APPLY: &str = "#apply";
const KERNEL: &str = "#kernel ";

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Command(line) => f.write_str(line),
            Step::Kernel(words) => write!(f, "{KERNEL}{words}"),
            Step::Traffic { port, worker, seed } => write!(f, "{TRAFFIC} {port} {worker} {seed}"),
            Step::Apply => f.write_str(APPLY),
        }
    }
}

impl FromStr for Step {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Step> {
        let line = line.trim();
        if line == APPLY {
            return Ok(Step::Apply);
        }
        if let Some(words) = line.strip_prefix(KERNEL) {
            return Ok(Step::Kernel(words.into()));
        }
        let Some(words) = line.strip_prefix(TRAFFIC) else {
            return Ok(Step::Command(line.into()));
        };
        match words.split_whitespace().collect::<Vec<_>>()[..] {
            [port, worker, seed] => Ok(Step::Traffic {
                port: port.parse()?,
                worker: worker.parse()?,
                seed: seed.parse()?,
            }),
            _ => anyhow::bail!("`{line}': a port, a worker and a seed expected"),
        }
    }
}

/// Commands that would end a session, wait, or change what the run itself judges.
const LEFT_OUT: &[&str] = &[
    "comment",
    "config apply",
    "config commit",
    "config rollback",
    "exec",
    "history",
    "quit",
    "save",
    "test ",
    "wait",
    "set clock",
    "api trace replay",
    "ping ip",
    "show tech-support",
    "clear configuration",
    "packet-generator",
];

/// Commands that wait, when they are not given a limit.
const ENDLESS: &[&str] = &["ping", "arping"];

/// The grammars of all commands.
pub(super) struct Grammars {
    templates: Vec<Part>,
    all: Vec<Part>,
    kernel: Vec<Part>,
}

impl Grammars {
    /// Reads what `show cli` says of each command: its path and the grammar of its arguments.
    pub(super) fn new<'c>(commands: impl Iterator<Item = (&'c str, &'c str)>) -> Grammars {
        let read = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(Part::parse).collect()
        };
        let templates = read(include_str!("templates.txt"));
        let kernel = read(include_str!("kernel.txt"));
        let wanted = |path: &str| {
            !LEFT_OUT.iter().any(|start| path.starts_with(start)) && !ENDLESS.contains(&path)
        };
        let all = commands
            .filter(|(path, _)| wanted(path))
            .map(|(path, usage)| Part::Sequence(vec![Part::Word(path.into()), Part::parse(usage)]))
            .collect();
        Grammars { templates, all, kernel }
    }

    /// Random words for `ip`.
    pub(super) fn kernel(&self, rng: &mut Rng) -> String {
        let mut words = String::new();
        if let Some(part) = rng.choice(&self.kernel) {
            part.say(rng, &mut words, &mut |_, kind| kind.to_owned());
        }
        words
    }

    /// A random command about these interfaces. Files are below `dir`.
    pub(super) fn command(&self, rng: &mut Rng, interfaces: &[String], dir: &str) -> String {
        let from = if rng.u8(..100) < 75 { &self.templates } else { &self.all };
        let mut line = String::new();
        if let Some(part) = rng.choice(from) {
            let value =
                &mut |rng: &mut Rng, kind: &str| values::of_kind(rng, kind, interfaces, dir);
            part.say(rng, &mut line, value);
        }
        line
    }
}
