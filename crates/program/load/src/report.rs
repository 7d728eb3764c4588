//! Reports of all commands, in one form; and `thalweg load report`, which shows and compares them.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;
use thalweg_load_report::{
    Device, FirstLost, Goal, Grade, Kind, LimitedBy, Machine, Port, Profile, Report, Transport,
    compare,
};

use super::far::{DEVICE, TESTER};
use super::output;
use super::stolen::{self, Ticks};
use super::stop::Interrupted;
use super::under::{MAX_COMMANDS, Under};

/// Files for a report.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Files {
    /// Write a report to this file, also if it ends by Ctrl-C: JSON, Markdown or a page with plots,
    /// as its name ends: .json, .md, .html. May be given several times
    #[arg(long = "report", value_name = "FILE", value_parser = file)]
    pub(super) files: Vec<PathBuf>,
}

/// A form of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Markdown,
    Html,
}

impl Form {
    fn of(file: &Path) -> Option<Form> {
        match file.extension()?.to_str()? {
            "json" => Some(Form::Json),
            "md" => Some(Form::Markdown),
            "html" | "htm" => Some(Form::Html),
            _ => None,
        }
    }

    fn text(self, report: &Report) -> Result<String> {
        Ok(match self {
            Form::Json => report.json(),
            Form::Markdown => report.markdown(),
            Form::Html => report.html()?,
        })
    }
}

fn file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match Form::of(&file) {
        Some(_) => Ok(file),
        None => Err(format!("`{text}': a name that ends with .json, .md or .html is expected")),
    }
}

/// A report that is being written.
pub(super) struct Writer {
    pub(super) report: Report,
    files: Vec<PathBuf>,
    begun: Instant,
    ticks: Ticks,
}

impl Writer {
    /// Begins a report of now.
    pub(super) fn new(kind: Kind, files: &Files, under: Option<&Under>) -> Result<Writer> {
        for file in &files.files {
            output::check("--report", file)?;
        }
        let mut report = Report {
            tool_version: env!("CARGO_PKG_VERSION").into(),
            started: now(),
            command: std::env::args().collect(),
            machine: machine(),
            ..Report::new(kind)
        };
        if let Some(under) = under {
            report.seed = under.seed;
            report.transport = transport(under);
            report.device = device(under);
            if let Some(warning) = under.warning() {
                crate::report!("{warning}");
                report.notes.push(warning);
            }
        }
        Ok(Writer {
            report,
            files: files.files.clone(),
            begun: Instant::now(),
            ticks: Ticks::now(),
        })
    }

    /// Sets the traffic.
    pub(super) fn profile(&mut self, name: &str, canonical: Value) {
        let fingerprint = thalweg_load_profile::fingerprint(&canonical);
        self.report.profile = Profile { name: name.to_owned(), fingerprint, canonical };
    }

    /// Time since its beginning, in nanoseconds.
    pub(super) fn at(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Writes all files, whatever became of the measuring; an error of that is noted.
    ///
    /// # Errors
    /// The error of measuring; if there is none, the files that could not be written.
    pub(super) fn end<T>(&mut self, done: Result<T>, other: Option<(&Path, String)>) -> Result<T> {
        match &done {
            Err(error) if error.is::<Interrupted>() => {
                self.report.notes.push("Ended by the user before its time.".into());
            }
            Err(error) => self.report.notes.push(format!("Ended by an error: {error:#}")),
            Ok(_) => {}
        }
        output::both(done, self.write_with(other))
    }

    /// Writes all files, and another one that is no report.
    fn write_with(&mut self, other: Option<(&Path, String)>) -> Result<()> {
        self.report.ended = now();
        self.report.machine.steal_percent = self.ticks.stolen_percent();
        self.report.machine.noisy |= self.report.machine.steal_percent >= stolen::MUCH;
        let text =
            |file: &Path| Form::of(file).context("its name says no form")?.text(&self.report);
        let reports = self.files.iter().map(|file| (file.as_path(), text(file)));
        output::write(reports.chain(other.map(|(file, text)| (file, Ok(text)))))
    }
}

/// Returns the time in the format of RFC 3339, in whole seconds.
fn now() -> String {
    let text = thalweg_cli::utc(SystemTime::now());
    let whole = text.split('.').next().unwrap_or_default();
    format!("{}Z", whole.replace(' ', "T"))
}

fn machine() -> Machine {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let value = |key: &str| {
        let line = info.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    Machine {
        cpu: value("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        hypervisor: value("flags").is_some_and(|all| all.split(' ').any(|f| f == "hypervisor")),
        ..Machine::default()
    }
}

/// The kind of a transport, with the tester's processors if there are several.
pub(super) fn kind_with(kind: &str, cores: u64) -> String {
    match cores {
        1 => kind.to_owned(),
        cores => format!("{kind}, {cores} cores of the tester"),
    }
}

fn transport(under: &Under) -> Transport {
    let port = |name: &str, peer: &str| Port {
        name: name.to_owned(),
        peer: peer.to_owned(),
        ..Port::default()
    };
    let (kind, ports) = match (&under.ports, under.is_lab()) {
        (Some(ports), _) => {
            ("af_packet", ports.names().map(|name| port(name, "")).collect::<Vec<_>>())
        }
        (None, true) => {
            let pairs = TESTER.iter().zip(DEVICE);
            ("af_packet on veth", pairs.map(|(ours, theirs)| port(ours, theirs)).collect())
        }
        (None, false) => ("process", ["load0", "load1"].map(|name| port(name, name)).to_vec()),
    };
    Transport { kind: kind_with(kind, under.cores), ports }
}

fn device(under: &Under) -> Device {
    let mut configuration = under.about();
    if let Some(file) = &under.commands {
        // The file is read again at the start, where a mistake is reported.
        configuration += "\n";
        configuration += &thalweg_files::read_text(file, MAX_COMMANDS).unwrap_or_default();
    }
    let counters_from = match (&under.ports, under.is_lab()) {
        (Some(_), _) => "the interfaces of this machine",
        (None, true) => "the device, the links of the lab, and the kernel's backlog",
        (None, false) => "the graph of this process, with its drop tap",
    };
    Device { configuration, counters_from: counters_from.into(), ..Device::default() }
}

pub(super) fn goals(goals: &[thalweg_load::search::Goal]) -> Vec<Goal> {
    let goal = |goal: &thalweg_load::search::Goal| Goal {
        name: goal.name.clone(),
        loss_ratio: goal.loss_ratio,
        trial_s: goal.trial,
        sum_s: goal.sum,
        exceed: goal.exceed_ratio,
        width: goal.width,
    };
    goals.iter().map(goal).collect()
}

/// Values that half of all searches exceed with 95 % certainty, by the sign test: from one of the
/// least to the same of the greatest. The test takes six searches.
pub(super) fn interval95(values: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // Probability that at most k of n values are on one side of the median: sums of a row of
    // Pascal's triangle.
    let (mut term, mut sum, mut found) = (0.5f64.powi(n as i32), 0.0, None);
    for k in 0..n / 2 {
        sum += term;
        if 2.0 * sum > 0.05 {
            break;
        }
        found = Some([sorted[k], sorted[n - 1 - k]]);
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    found
}

/// The middle one of values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted[sorted.len() / 2]);
    Some((low + high) / 2.0)
}

/// The limit of a device, as part of a sentence.
pub(super) fn in_words(by: &LimitedBy) -> String {
    let parts = [&by.row, &by.node, &by.reason];
    let parts: Vec<&str> =
        parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// First packet lost, as a sentence.
pub(super) fn first_in_words(first: &FirstLost) -> String {
    let stream = &first.stream;
    let what = match (first.scheduled_ns, first.sequence) {
        (Some(_), Some(number)) => format!("packet {number} of {stream}"),
        (None, Some(_)) => stream.clone(),
        (_, None) => format!("one of {stream}"),
    };
    let grade = match first.grade {
        Grade::Seen => "seen",
        Grade::Counted => "counted",
        Grade::Inferred => "inferred",
        Grade::Unexplained => return format!("{what}; where is not known"),
    };
    format!("{what}, {grade} at {}: {}", first.node, first.reason)
}

/// Prints a report, or compares two.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A report in JSON, as --report FILE.json writes it
    #[arg(value_name = "A")]
    a: PathBuf,
    /// A second one to compare it with
    #[arg(value_name = "B")]
    b: Option<PathBuf>,
    /// Print a page of HTML in place of Markdown
    #[arg(long)]
    html: bool,
    /// Write it to this file, as its name ends, in place of printing it
    #[arg(short = 'o', long, value_name = "FILE", value_parser = file)]
    output: Option<PathBuf>,
    /// Compare even what differs in profile, machine, transport, goals or kind
    #[arg(long, requires = "b")]
    anyway: bool,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load report ndr.json
  thalweg load report ndr.json -o ndr.html
  thalweg load report before.json after.json

The status is 0, or 1 if two reports cannot be compared: then it says what differs.";

/// Longest report that is read.
const MAX_TEXT: u64 = 256 << 20;

fn read(file: &Path) -> Result<Report> {
    let text =
        thalweg_files::read_text(file, MAX_TEXT).map_err(|error| anyhow::anyhow!("{error}"))?;
    // Both texts have those of their causes.
    Report::read(&text).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

impl Args {
    fn text(&self) -> Result<String> {
        let form = match &self.output {
            Some(file) => Form::of(file).context("a report's name")?,
            None if self.html => Form::Html,
            None => Form::Markdown,
        };
        let a = read(&self.a)?;
        let Some(b) = &self.b else { return form.text(&a) };
        let b = read(b)?;
        let compared = compare(&a, &b, self.anyway).map_err(|differs| {
            let facts: Vec<String> = differs.iter().map(|fact| format!("  {fact}")).collect();
            anyhow::anyhow!(
                "these reports are not of the same thing, so that their numbers say nothing about \
                 each other (--anyway compares them still):\n{}",
                facts.join("\n")
            )
        })?;
        Ok(match form {
            Form::Html => compared.html(),
            Form::Markdown => compared.markdown(),
            Form::Json => anyhow::bail!("-o: a comparison is Markdown or HTML"),
        })
    }
}

/// `thalweg load report`.
pub(super) fn main(args: &Args) -> Result<u8> {
    let text = args.text()?;
    match &args.output {
        Some(file) => output::write([(file.as_path(), Ok(text))])?,
        None => crate::put!("{text}"),
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_form() {
        for (name, form) in [
            ("a.json", Some(Form::Json)),
            ("x/a.md", Some(Form::Markdown)),
            ("a.html", Some(Form::Html)),
            ("a", None),
            (".json", None),
            ("a.txt", None),
        ] {
            assert_eq!(Form::of(Path::new(name)), form, "{name}");
        }
        assert!(file("a.txt").unwrap_err().contains("ends with .json, .md or .html"));
    }

    #[test]
    fn intervals_need_six_values() {
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0])), (None, Some(2.0)));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(interval95(&values[..5]), None);
        assert_eq!(interval95(&values[..6]), Some([1.0, 6.0]));
        // Probability of at most one of ten: 11/1024 on each side.
        assert_eq!(interval95(&values), Some([2.0, 9.0]));
    }

    #[test]
    fn times_and_machine_are_those_of_here() {
        let now = now();
        assert!(now.len() == 20 && now.ends_with('Z') && now.as_bytes()[10] == b'T', "{now}");
        let machine = machine();
        assert!(machine.cores > 0 && !machine.cpu.is_empty() && !machine.kernel.is_empty());
    }
}
