//! `thalweg load sampling`: what sFlow costs at each sampling rate on each path, as in the articles
//! about sFlow in VPP.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use thalweg_load::stream::Load;
use thalweg_load_report::{self as model, Found, Goal};

use super::device::{Device, Hosts};
use super::number::{bounded, short};
use super::output;
use super::report::{self, Files, Writer};
use super::run::ABOVE;
use super::runner::{Offered, Runner};
use super::set::Set;
use super::stop::{Interrupted, Stop};
use super::work::{Wanted, Work};

/// Sends more than a device bears, with sFlow at one rate after the other, and prints what arrives.
///
/// The device is this router, in this process and on the same worker as the tester: a packet's time
/// is both's, and what a rate adds to it is sFlow's.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Paths of packets through the device
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["l2xc", "ipv4", "mpls"])]
    paths: Vec<Way>,
    /// Sampling rates: one packet of this number, or off. The first is what others are compared
    /// with
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = rate, default_values = ["off", "1000000", "10000", "1000", "100"])]
    rates: Vec<u32>,
    /// Bytes of each packet
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = bounded(64, 9216))]
    size: u64,
    /// Length of a trial in seconds
    #[arg(short = 'd', long, value_name = "S", default_value = "1", value_parser = bounded(1, 600))]
    duration: u64,
    /// Trials of each rate, in turn with the others; the result is their median
    #[arg(long, value_name = "N", default_value = "7", value_parser = bounded(1, 1000))]
    rounds: u64,
    #[command(flatten)]
    files: Files,
    /// Write the table to this file, too
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  thalweg load sampling
  thalweg load sampling --paths ipv4 --rates off,1000,100,10 --size 1514
  thalweg load sampling --rounds 15 --markdown table.md --report sampling.html";

/// Length of the first trial of each rate, which does not count.
const WARM_UP: Duration = Duration::from_millis(200);

/// A path through the device, with the profile that is made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    /// Layer 2 cross connects
    L2xc,
    /// IPv4 routes
    Ipv4,
    /// MPLS routes that swap a label
    Mpls,
}

impl Way {
    /// The name in tables, that of the profile, and what the device does.
    fn parts(self) -> (&'static str, &'static str, Set) {
        match self {
            Way::L2xc => ("L2XC", "l2xc", Set::CrossConnect),
            Way::Ipv4 => ("IPv4", "ipv4", Set::Route),
            Way::Mpls => ("MPLS", "mpls", Set::Labels),
        }
    }
}

/// Reads a sampling rate: 0 is off.
fn rate(text: &str) -> Result<u32, String> {
    match text {
        "off" => Ok(0),
        _ => {
            text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
                format!("`{text}': a sampling rate of 1 and more, or off, is expected")
            })
        }
    }
}

fn in_words(rate: u32) -> String {
    if rate == 0 { "off".into() } else { format!("1:{rate}") }
}

/// Measurements at a rate.
#[derive(Default)]
struct Column {
    /// Packets per second, round by round.
    rates: Vec<f64>,
    sampled: u64,
    dropped: u64,
}

/// The program.
pub(super) fn main(args: &Args, stop: &Stop) -> Result<u8> {
    args.measure(stop)?;
    Ok(0)
}

impl Args {
    fn measure(&self, stop: &Stop) -> Result<()> {
        if let Some(file) = &self.markdown {
            output::check("--markdown", file)?;
        }
        let mut writer = Writer::new(model::Kind::Sweep, &self.files, None)?;
        writer.report.transport.kind = "process".into();
        writer.report.goals = vec![Goal {
            name: format!("packets of {} bytes, as many as arrive", self.size),
            trial_s: self.duration as f64,
            sum_s: (self.duration * self.rounds) as f64,
            ..Goal::default()
        }];
        let mut text = String::new();
        let done = self.table(&|| stop.is_set(), &mut writer, &mut text);
        // Measurements until an interruption are not lost.
        let table = self.markdown.as_deref().map(|file| (file, text));
        writer.end(done, table)
    }

    fn table(
        &self,
        stopped: &dyn Fn() -> bool,
        writer: &mut Writer,
        text: &mut String,
    ) -> Result<()> {
        let mut say = |line: String| {
            crate::say!("{line}");
            *text += &line;
            text.push('\n');
        };
        say("| path | sFlow | packets/s | difference | ns/packet more | sampled | samples lost |"
            .into());
        say("| --- | --- | ---: | ---: | ---: | ---: | ---: |".into());
        for way in &self.paths {
            let (name, ..) = way.parts();
            let columns = self.path(*way, stopped)?;
            let first = columns.first().map(|column| column.rates.clone()).unwrap_or_default();
            for (rate, column) in self.rates.iter().zip(&columns) {
                say(line(&format!("{name} | {}", in_words(*rate)), column, &first));
                let median = report::median(&column.rates).unwrap_or_default();
                writer.report.results.push(Found {
                    goal: format!("{name}, sFlow {}", in_words(*rate)),
                    unit: "packets/s".into(),
                    lower: Some(median),
                    conditional_throughput: median,
                    ..Found::default()
                });
            }
        }
        Ok(())
    }

    /// Measures one path at all rates.
    fn path(&self, way: Way, stopped: &dyn Fn() -> bool) -> Result<Vec<Column>> {
        let (name, profile, set) = way.parts();
        let tunables = vec![("size".to_owned(), self.size.to_string())];
        let profile = Wanted { profile: profile.into(), tunables }.read()?;
        let late = Duration::from_millis(10);
        let work = Work::plain(&profile, late)?;
        let device = Device::inside(set, "", &Hosts { work: &work, seed: 1, cores: 1 })?;
        let load = Load::Times(ABOVE / work.own_rate().max(1e-9));
        let offered = Offered { streams: load, connections: None };
        let mut runner = Runner::new(device, Duration::ZERO, stopped);
        let mut was = 0;
        let mut columns: Vec<Column> = self.rates.iter().map(|_| Column::default()).collect();
        // The first round warms up caches and rings.
        for round in 0..=self.rounds {
            for (rate, column) in self.rates.iter().zip(&mut columns) {
                runner.device.sample(was, *rate)?;
                was = *rate;
                let before = runner.device.samples();
                let time = if round == 0 { WARM_UP } else { Duration::from_secs(self.duration) };
                let ran = runner.trial(offered, time, |_, _| Ok(()))?.filter(|ran| !ran.cut);
                let ran = ran.ok_or(Interrupted)?;
                let received = ran.streams.as_ref().map_or(0, |trial| trial.sum().received);
                ensure!(received > 0, "{name}, sFlow {}: no packet arrived", in_words(*rate));
                if round > 0 {
                    let after = runner.device.samples();
                    column.rates.push(received as f64 / ran.seconds);
                    column.sampled += after.0 - before.0;
                    column.dropped += after.1 - before.1;
                }
            }
        }
        runner.device.close()?;
        Ok(columns)
    }
}

/// A row. Rates are compared round by round with those of `first`.
fn line(name: &str, column: &Column, first: &[f64]) -> String {
    let pairs = || column.rates.iter().zip(first);
    let middle = |values: Vec<f64>| report::median(&values).unwrap_or_default();
    let percent = middle(pairs().map(|(rate, first)| 100.0 * (rate / first - 1.0)).collect());
    let more = middle(pairs().map(|(rate, first)| 1e9 / rate - 1e9 / first).collect());
    let rate = short(middle(column.rates.clone()));
    format!(
        "| {name} | {rate} | {percent:+.2} % | {more:+.2} | {} | {} |",
        column.sampled, column.dropped
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn rates_are_numbers_or_off() {
        let args = Line::parse_from(["sampling"]).args;
        assert_eq!(args.rates, [0, 1_000_000, 10_000, 1000, 100]);
        for wrong in ["0", "-1", "1:10", "on", "4294967296"] {
            assert!(Line::try_parse_from(["sampling", "--rates", wrong]).is_err(), "{wrong}");
        }
        assert_eq!((in_words(0), in_words(100)), ("off".to_owned(), "1:100".to_owned()));
    }

    #[test]
    fn rows_compare_round_by_round() {
        let column = Column { rates: vec![5e6, 4e6, 8e6], sampled: 17, dropped: 2 };
        assert_eq!(
            line("L2XC | 1:100", &column, &[1e7, 1e7, 1e7]),
            "| L2XC | 1:100 | 5.0M | -50.00 % | +100.00 | 17 | 2 |"
        );
    }

    #[test]
    fn a_path_is_sampled_as_the_rate_says() {
        let words = "sampling --rates off,100 --rounds 1 --size 128";
        let args = Line::parse_from(words.split(' ')).args;
        let columns = args.path(Way::Ipv4, &|| false).unwrap();
        assert_eq!(columns[0].sampled, 0);
        assert!(columns[0].rates[0] > 0.0 && columns[1].sampled > 0);
    }
}
