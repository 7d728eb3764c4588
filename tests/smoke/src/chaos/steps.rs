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
    /// The running configuration is saved as one of two earlier ones.
    Save(u8),
    /// An earlier one is applied.
    Restore(u8, End),
}

/// End of the application of an earlier configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Applied at once.
    Kept,
    /// Applied for a while, and confirmed.
    Confirmed,
    /// Applied for a while, after which the one before it returns.
    Undone,
}

impl End {
    pub(super) const ALL: [End; 3] = [End::Kept, End::Confirmed, End::Undone];

    fn word(self) -> &'static str {
        match self {
            End::Kept => "kept",
            End::Confirmed => "confirmed",
            End::Undone => "undone",
        }
    }
}

const TRAFFIC: &str = "#traffic";
const APPLY: &str = "#apply";
const KERNEL: &str = "#kernel ";
const SAVE: &str = "#save ";
const RESTORE: &str = "#restore ";

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Command(line) => f.write_str(line),
            Step::Kernel(words) => write!(f, "{KERNEL}{words}"),
            Step::Traffic { port, worker, seed } => write!(f, "{TRAFFIC} {port} {worker} {seed}"),
            Step::Apply => f.write_str(APPLY),
            Step::Save(n) => write!(f, "{SAVE}{n}"),
            Step::Restore(n, end) => write!(f, "{RESTORE}{n} {}", end.word()),
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
        if let Some(number) = line.strip_prefix(SAVE) {
            return Ok(Step::Save(number.parse()?));
        }
        if let Some((number, end)) = line.strip_prefix(RESTORE).and_then(|w| w.split_once(' ')) {
            let end = End::ALL.into_iter().find(|e| e.word() == end);
            let end = end.ok_or_else(|| anyhow::anyhow!("`{line}': kept, confirmed or undone"))?;
            return Ok(Step::Restore(number.parse()?, end));
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

/// Commands that would end a session, wait, or change what the run itself judges. Saved documents
/// and traffic are steps of their own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_as_they_are_displayed() {
        let ends = End::ALL.map(|end| Step::Restore(1, end));
        let others = [
            Step::Command("show version".into()),
            Step::Kernel("route del default".into()),
            Step::Traffic { port: 1, worker: 0, seed: 7 },
            Step::Apply,
            Step::Save(0),
        ];
        for step in ends.into_iter().chain(others) {
            assert_eq!(step.to_string().parse::<Step>().unwrap(), step);
        }
        assert!("#restore 1 never".parse::<Step>().is_err());
    }
}
