//! sFlow datagrams of a capture decoded and printed: ours, sflowtool, sfacctd and goflow2, in turns.
//!
//! A rate is flow samples per second of processor time, of all processes and threads of a program:
//! what one core can decode. Output goes to /dev/null, that of goflow2 and sfacctd to files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_sflow::{Goflow2, Program, datagrams, repeat, run};

/// Flow samples in the capture that is repeated.
const SAMPLES: usize = 148;
const TIMES: usize = 2000;
/// goflow2 is sent the capture so often at once, as it loses what it cannot take, and so many times.
const SENT_TIMES: usize = 2;
const SENDS: usize = 400;

const OUTPUTS: [(&str, &str); 6] = [
    ("-l", "lines"),
    ("-j", "JSON"),
    ("", "text"),
    ("-L", "two fields"),
    ("-g", "text with context"),
    ("-t", "capture"),
];

struct Files {
    dir: tempfile::TempDir,
    big: PathBuf,
    few: Vec<Vec<u8>>,
}

fn files() -> Result<Files> {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../crates/sflow/tests/data/hsflowd_veth_flows.pcap");
    let dir = tempfile::tempdir().context("a directory for captures")?;
    let big = dir.path().join("big.pcap");
    repeat(&capture, TIMES, &big)?;
    let few = vec![datagrams(&capture)?; SENT_TIMES].concat();
    Ok(Files { dir, big, few })
}

/// Million samples per second of processor time, and of time on the wall.
fn read_with(mut command: Command) -> Result<(f64, f64)> {
    let took = run(&mut command)?;
    let rate = |time: std::time::Duration| (SAMPLES * TIMES) as f64 / time.as_secs_f64() / 1e6;
    Ok((rate(took.processor), rate(took.wall)))
}

fn options(command: &mut Command, output: &str, file: &Path) {
    if !output.is_empty() {
        command.arg(output);
    }
    if output == "-L" {
        command.arg("srcIP,dstIP");
    }
    command.arg("-r").arg(file).env("TZ", "UTC");
}

fn ours(output: &str, files: &Files) -> Result<(f64, f64)> {
    let mut command = Command::new(thalweg_smoke::thalweg()?);
    command.args(["sflow", "decode"]);
    options(&mut command, output, &files.big);
    read_with(command)
}

fn sflowtool(program: &Program, output: &str, files: &Files) -> Result<(f64, f64)> {
    let mut command = program.command();
    options(&mut command, output, &files.big);
    read_with(command)
}

fn sfacctd(program: &Program, files: &Files) -> Result<(f64, f64)> {
    let config = files.dir.path().join("sfacctd.conf");
    let text = format!(
        "daemonize: false\nsfacctd_disable_checks: true\nplugins: print\n\
         aggregate: src_host, dst_host, proto\nprint_output: csv\nprint_refresh_time: 3600\n\
         plugin_pipe_size: 104857600\nplugin_buffer_size: 102400\n\
         print_output_file: {}\npcap_savefile: {}\n",
        files.dir.path().join("sfacctd.csv").display(),
        files.big.display()
    );
    std::fs::write(&config, text)?;
    let mut command = program.command();
    command.arg("-f").arg(&config);
    read_with(command)
}

/// What it takes to start and end is measured each time, and left out. There is no time on the wall to
/// tell: it waits for what is sent.
fn goflow2(program: &Program, files: &Files) -> Result<f64> {
    let run = |sends| {
        let _ = std::fs::remove_file(files.dir.path().join("goflow2.json"));
        let mut goflow2 = Goflow2::start(program, files.dir.path())?;
        goflow2.feed(&files.few, SAMPLES * SENT_TIMES, sends)?;
        goflow2.finish()
    };
    let (idle, busy) = (run(0)?, run(SENDS)?);
    let samples = SAMPLES * SENT_TIMES * SENDS;
    Ok(samples as f64 / busy.saturating_sub(idle).as_secs_f64() / 1e6)
}

/// The rounds of one program with one kind of output.
struct Side {
    who: &'static str,
    output: &'static str,
    flag: &'static str,
    processor: Series,
    wall: Series,
    missing: Option<String>,
}

impl Side {
    fn new(who: &'static str, flag: &'static str, output: &'static str) -> Side {
        let (processor, wall) = (Series::default(), Series::default());
        Side { who, output, flag, processor, wall, missing: None }
    }

    fn push(&mut self, rates: Result<(f64, Option<f64>)>) {
        match rates {
            Ok((processor, wall)) => {
                self.processor.push(processor);
                if let Some(wall) = wall {
                    self.wall.push(wall);
                }
            }
            Err(error) => self.missing = Some(format!("{error:#}")),
        }
    }
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("decoders", "sFlow decoders");
    report.about(format!(
        "{} flow samples of 128 bytes in {} datagrams, of a real agent, decoded from a capture file \
         and printed, in turns.",
        SAMPLES * TIMES,
        32 * TIMES
    ));
    let files = files()?;
    let tools = [
        ("sflowtool", Program::find("sflowtool", "usr/local/bin/sflowtool")),
        ("sfacctd", Program::find("pmacct", "usr/sbin/sfacctd")),
        ("goflow2", Program::find("goflow2", "usr/local/bin/goflow2")),
    ];
    let tool = |name: &str| tools.iter().find(|t| t.0 == name).and_then(|t| t.1.as_ref().ok());
    let mut sides = Vec::new();
    for (flag, output) in OUTPUTS {
        sides.push(Side::new("Thalweg", flag, output));
        if flag != "-L" {
            sides.push(Side::new("sflowtool", flag, output));
        }
    }
    sides.push(Side::new("sfacctd", "", "totals by addresses"));
    sides.push(Side::new("goflow2", "", "JSON"));
    sides.retain(|side| args.wants(side.who));

    for _ in 0..if args.full { 5 } else { 3 } {
        for side in sides.iter_mut().filter(|side| side.missing.is_none()) {
            let rates = match (side.who, tool(side.who)) {
                ("Thalweg", _) => ours(side.flag, &files).map(|(p, w)| (p, Some(w))),
                (who, None) => Err(anyhow::anyhow!("{who} is not installed")),
                ("sflowtool", Some(program)) => {
                    sflowtool(program, side.flag, &files).map(|(p, w)| (p, Some(w)))
                }
                // It sleeps for some seconds when it starts and ends.
                ("sfacctd", Some(program)) => sfacctd(program, &files).map(|(p, _)| (p, None)),
                (_, Some(program)) => goflow2(program, &files).map(|p| (p, None)),
            };
            side.push(rates);
        }
    }
    report.table(table(&sides));
    report.finish(&args)
}

fn table(sides: &[Side]) -> Table {
    let mut table = Table::new(
        "Flow samples decoded on one core",
        vec![
            Column::text("who"),
            Column::text("output"),
            Column::values("rate", "M samples/s of processor time"),
            Column::values("by the clock on the wall", "M samples/s"),
            Column::values("of Thalweg's lines", ""),
        ],
    );
    let lines = sides.iter().find(|side| side.who == "Thalweg" && side.flag == "-l");
    for side in sides {
        let mut row = vec![side.who.into(), side.output.into()];
        match &side.missing {
            Some(why) => row.push(Cell::Missing(why.clone())),
            None => {
                row.push(Cell::series(&side.processor, 3));
                row.push(match side.wall.values().is_empty() {
                    true => Cell::None,
                    false => Cell::series(&side.wall, 3),
                });
                row.push(match lines {
                    Some(lines) => Cell::ratio(side.processor.over(&lines.processor)),
                    None => Cell::None,
                });
            }
        }
        table.row(row);
    }
    table.note(
        "sfacctd reads the same file and keeps totals by address pair and protocol; goflow2 has no \
         capture files and is sent the datagrams, as fast as it writes them; what its start takes is left \
         out.",
    );
    table
}
