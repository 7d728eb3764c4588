//! `thalweg load sweep`: the rows of article 4's tables, for what the machine has.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use thalweg_load::MAX_PARTS;
use thalweg_load_report::{self as model, Found, Goal};

use super::cps_ndr::{self, Quiet};
use super::far::Kind;
use super::number::{bounded, short};
use super::output;
use super::report::{Files, Writer, kind_with};
use super::stop::{Interrupted, Stop};

/// Searches for the rates of short and of long connections that devices bear with more and more
/// processors and queues, and prints them as a table.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Devices, the one to compare with first
    #[arg(long = "lab", value_name = "DEVICE", value_enum, value_delimiter = ',', default_values = ["ovs", "thalweg"])]
    labs: Vec<Kind>,
    /// Processors and queues of each row
    #[arg(long, value_name = "CPUSxQUEUES", value_delimiter = ',', value_parser = size, default_values = ["1x1", "2x1", "2x2", "4x2", "4x4", "8x4", "8x8"])]
    rows: Vec<(u64, u64)>,
    /// Length of a deciding sample of short connections in seconds; of long ones it is four times
    /// that
    #[arg(short = 'T', long, value_name = "S", default_value = "30", value_parser = bounded(1, 150))]
    sample_time: u64,
    /// Iterations of each search
    #[arg(short = 'i', long, value_name = "N", default_value = "8", value_parser = bounded(1, 30))]
    max_iterations: u64,
    /// Lower bounds of the rates of short and of long connections
    #[arg(short = 'm', long, value_name = "SHORT,LONG", default_value = "1k,500", value_parser = bounds)]
    min_cps: (u64, u64),
    /// Upper bounds
    #[arg(short = 'M', long, value_name = "SHORT,LONG", default_value = "100k,2k", value_parser = bounds)]
    max_cps: (u64, u64),
    /// Processors of the tester in each row
    #[arg(long, value_name = "N", default_value = "1", value_parser = bounded(1, MAX_PARTS.into()))]
    cores: u64,
    /// Leave out long connections: a search for them takes half an hour and more
    #[arg(long)]
    short: bool,
    /// Time by which the tester may open connections late, in milliseconds
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    late: u64,
    #[command(flatten)]
    files: Files,
    /// Write the table to this file, too
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load sweep --short -T 5
  thalweg load sweep --lab ovs,thalweg --rows 1x1,2x2 --markdown table.md --report sweep.json

Rows that the machine or a device cannot have are named with the reason.";

fn size(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("`{text}': processors and queues are expected, such as 2x1");
    let (cpus, queues) = text.split_once('x').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().ok().filter(|n| (1..=64).contains(n)).ok_or_else(wrong);
    Ok((number(cpus)?, number(queues)?))
}

fn bounds(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("`{text}': two rates are expected, such as 100k,2k");
    let (short, long) = text.split_once(',').ok_or_else(wrong)?;
    let rate = bounded(100, 2_000_000);
    Ok((rate(short)?, rate(long)?))
}

/// A search as `cps-ndr` has it.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: cps_ndr::Args,
}

/// A kind of connections.
struct Talks {
    name: &'static str,
    options: String,
}

/// The program.
pub(super) fn main(args: &Args, stop: &Stop) -> Result<u8> {
    args.sweep(stop)?;
    Ok(0)
}

impl Args {
    fn talks(&self) -> Vec<Talks> {
        let (time, steps) = (self.sample_time, self.max_iterations);
        let late = self.late;
        let cores = match self.cores {
            1 => String::new(),
            cores => format!(" --cores {cores}"),
        };
        let common = format!("-i {steps} -e 0.02 -u 1 -s 20 --late {late}{cores}");
        let ((least, least_long), (short, long)) = (self.min_cps, self.max_cps);
        let mut all = vec![Talks {
            name: "short-lived",
            options: format!("{common} -T {time} -n 1 -w 0 -m {least} -M {short}"),
        }];
        if !self.short {
            let time = (4 * time).min(600);
            let options = format!("{common} -T {time} -n 500 -w 50 -m {least_long} -M {long}");
            all.push(Talks { name: "long-lived", options });
        }
        all
    }

    fn sweep(&self, stop: &Stop) -> Result<()> {
        for (least, most, what) in
            [(self.min_cps.0, self.max_cps.0, "short"), (self.min_cps.1, self.max_cps.1, "long")]
        {
            ensure!(
                least < most || what == "long" && self.short,
                "-m, -M: the lower bound of {what} connections, {least}, must be less than the \
                 upper one, {most}"
            );
        }
        if let Some(file) = &self.markdown {
            output::check("--markdown", file)?;
        }
        let mut writer = Writer::new(model::Kind::Sweep, &self.files, None)?;
        writer.report.transport.kind = kind_with("af_packet on veth", self.cores);
        let mut text = String::new();
        let done = self.table(stop, &mut writer, &mut text);
        // Measurements until an interruption are not lost.
        let table = self.markdown.as_deref().map(|file| (file, text));
        writer.end(done, table)
    }

    fn table(&self, stop: &Stop, writer: &mut Writer, text: &mut String) -> Result<()> {
        let mut say = |line: String| {
            crate::say!("{line}");
            *text += &line;
            text.push('\n');
        };
        for talks in self.talks() {
            let goal = Goal {
                name: talks.options.clone(),
                trial_s: self.sample_time as f64,
                ..Goal::default()
            };
            writer.report.goals.push(goal);
            say(format!(
                "| {} connections | per second | active flows | bandwidth | packet rate | difference |",
                talks.name
            ));
            say("| --- | ---: | ---: | ---: | ---: | ---: |".to_owned());
            for (cpus, queues) in &self.rows {
                let mut first = None;
                for lab in &self.labs {
                    let row = format!("{cpus} CPU, {queues} q");
                    match search(&talks.options, *lab, (*cpus, *queues), stop) {
                        Ok(quiet) => {
                            let name = format!("{}, {row}", quiet.name);
                            say(line(&name, &quiet, first));
                            first = first.or(quiet.best.map(|best| best.rate));
                            let goal = format!("{} connections, {name}", talks.name);
                            writer.report.results.push(Found { goal, ..quiet.found });
                        }
                        // The user does not want the next one, whatever has failed.
                        Err(_) if stop.is_set() => return Err(Interrupted.into()),
                        Err(error) => {
                            let name = format!("{lab:?}").to_lowercase();
                            say(format!("| {name}, {row} | not run: {error:#} | | | | |"));
                            let note = format!("{name}, {row}: not run: {error:#}");
                            writer.report.notes.push(note);
                        }
                    }
                }
            }
            say(String::new());
        }
        Ok(())
    }
}

/// Makes one search.
fn search(options: &str, lab: Kind, (cpus, queues): (u64, u64), stop: &Stop) -> Result<Quiet> {
    let name = clap::ValueEnum::to_possible_value(&lab).context("no such device")?;
    let line = format!(
        "cps-ndr {options} --lab {} --device tracker --cpus {cpus} --queues {queues}",
        name.get_name()
    );
    let args = Line::try_parse_from(line.split(' ')).context("options of a search")?.args;
    cps_ndr::quietly(&args, stop)
}

/// A row of the table. `first` is the rate to compare with. A rate that the tester limited, or none
/// above the upper bound, is the device's or less. If the device bore none, the row has the lowest
/// that was tried.
fn line(name: &str, quiet: &Quiet, first: Option<f64>) -> String {
    let by = quiet.limited_by.as_ref();
    let Some(best) = &quiet.best else {
        let tried = quiet.found.upper.filter(|_| by.is_some_and(|(_, tester)| !tester));
        let below = tried.map_or_else(|| "none".to_owned(), |rate| format!("< {}", short(rate)));
        let by = by.map_or("nothing", |(by, _)| by.as_str());
        return format!("| {name} | {below}: limited by {by} | | | | |");
    };
    let sign = if by.is_none_or(|(_, tester)| *tester) { "≥ " } else { "" };
    let (packets, bits) = best.sent();
    let difference = first.map_or(String::new(), |first| {
        format!("{:+.2} %", 100.0 * (best.rate / first.max(1e-9) - 1.0))
    });
    format!(
        "| {name} | {sign}{} | {} | {}b/s | {}p/s | {difference} |",
        short(best.rate),
        short(best.active as f64),
        short(best.per_second(bits)),
        short(best.per_second(packets)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn rows_are_processors_and_queues() {
        assert_eq!(size("2x1"), Ok((2, 1)));
        for text in ["", "2", "2x", "0x1", "1x65", "axb", "2x1x1"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(bounds("100k,2k"), Ok((100_000, 2000)));
        assert!(bounds("100k").is_err());
    }

    #[test]
    fn a_row_has_the_difference() {
        let best = Sample { rate: 12_000.0, seconds: 1.0, active: 6000, ..Sample::default() };
        let by = |tester| Some(("ct, full".to_owned(), tester));
        let found = Found { upper: Some(107.0), ..Found::default() };
        let quiet = |best, limited_by| {
            let (name, found) = (String::new(), found.clone());
            Quiet { name, best, limited_by, found }
        };
        let name = "Thalweg, 1 CPU, 1 q";
        assert_eq!(
            line(name, &quiet(Some(best), by(false)), Some(10_000.0)),
            "| Thalweg, 1 CPU, 1 q | 12.0K | 6.0K | 0b/s | 0p/s | +20.00 % |"
        );
        for limited_by in [by(true), None] {
            let row = line("x", &quiet(Some(best), limited_by), None);
            assert!(row.starts_with("| x | ≥ 12.0K |") && row.ends_with("|  |"), "{row}");
        }
        assert_eq!(
            line("x", &quiet(None, by(false)), None),
            "| x | < 107: limited by ct, full | | | | |"
        );
        assert_eq!(
            line("x", &quiet(None, by(true)), None),
            "| x | none: limited by ct, full | | | | |"
        );
    }

    #[test]
    fn searches_have_the_options_of_the_article() {
        #[derive(Parser)]
        struct Sweep {
            #[command(flatten)]
            args: Args,
        }
        let args = Sweep::parse_from(["sweep"]).args;
        for talks in args.talks() {
            let words = format!("cps-ndr {} --lab ovs --cpus 1 --queues 1", talks.options);
            assert!(Line::try_parse_from(words.split(' ')).is_ok(), "{words}");
        }
    }
}
