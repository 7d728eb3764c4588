//! sFlow datagrams of a capture decoded and printed: ours, sflowtool, sfacctd and goflow2, in
//! turns.
//!
//! A rate is flow samples per second of processor time, of all processes and threads of a program:
//! what one core can decode. Output goes to /dev/null, that of sfacctd to a file. Receivers that
//! can listen then get the same datagrams, faster and faster.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_sflow::{Program, Receiver, datagrams, repeat, run};

/// Flow samples in the capture that is repeated.
const SAMPLES: usize = 148;
const TIMES: usize = 2000;

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
    /// Datagrams of the capture.
    datagrams: Vec<Vec<u8>>,
}

fn files() -> Result<Files> {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../crates/sflow/tests/data/hsflowd_veth_flows.pcap");
    let dir = tempfile::tempdir().context("a directory for captures")?;
    let big = dir.path().join("big.pcap");
    repeat(&capture, TIMES, &big)?;
    let datagrams = datagrams(&capture)?;
    Ok(Files { dir, big, datagrams })
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

/// Programs that listen, each with its output to a file.
fn receiver(who: &str, program: Option<&Program>, files: &Files) -> Result<Receiver> {
    let dir = files.dir.path();
    let missing = || anyhow::anyhow!("{who} is not installed");
    match who {
        "goflow2" => {
            let program = program.ok_or_else(missing)?;
            let out = dir.join("goflow2.json");
            let _ = std::fs::remove_file(&out);
            let command = |port| {
                let mut command = program.command();
                command
                    .arg("-listen")
                    .arg(format!("sflow://127.0.0.1:{port}?queue_size=1000000"))
                    .args(["-transport", "file", "-format", "json", "-addr", ""])
                    .arg("-transport.file")
                    .arg(dir.join("goflow2.json"))
                    .stdout(Stdio::null());
                Ok(command)
            };
            Receiver::start(command, Some(out))
        }
        "sfacctd" => {
            let program = program.ok_or_else(missing)?;
            let command = |port: u16| {
                let config = dir.join("sfacctd-udp.conf");
                let text = format!(
                    "daemonize: false\nsfacctd_disable_checks: true\nsfacctd_ip: 127.0.0.1\n\
                     sfacctd_port: {port}\nplugins: print\naggregate: src_host, dst_host, proto\n\
                     print_output: csv\nprint_refresh_time: 3600\nplugin_pipe_size: 104857600\n\
                     plugin_buffer_size: 102400\nprint_output_file: {}\n",
                    dir.join("sfacctd-udp.csv").display()
                );
                std::fs::write(&config, text)?;
                let mut command = program.command();
                command.arg("-f").arg(config).stdout(Stdio::null());
                Ok(command)
            };
            Receiver::start(command, None)
        }
        _ => {
            let command = |port: u16| {
                let mut command = Command::new(thalweg_smoke::thalweg()?);
                let out = File::create(dir.join("thalweg.json"))?;
                command.args(["sflow", "decode", "-j", "-b", "127.0.0.1", "-p"]);
                command.arg(port.to_string()).stdout(out);
                Ok(command)
            };
            Receiver::start(command, None)
        }
    }
}

/// Listeners, and the form of their output.
const LISTENERS: [(&str, &str); 3] =
    [("Thalweg", "JSON"), ("goflow2", "JSON"), ("sfacctd", "totals by addresses")];

/// The greatest rates without loss, in turns.
fn listening(
    args: &Args,
    files: &Files,
    program: impl Fn(&str) -> Option<Program>,
) -> Result<Table> {
    let mut table = Table::new(
        "Flow samples taken from a UDP socket without loss",
        vec![
            Column::text("who"),
            Column::text("output"),
            Column::values("greatest rate", "M samples/s"),
            Column::values("at that rate", "M samples/s of processor time"),
        ],
    );
    let who: Vec<_> = LISTENERS.into_iter().filter(|(who, _)| args.wants(who)).collect();
    let mut found: Vec<(Series, Series, Option<String>, bool)> = Vec::new();
    found.resize_with(who.len(), Default::default);
    for _ in 0..if args.full { 5 } else { 3 } {
        for ((who, _), (rates, processor, missing, senders)) in who.iter().zip(&mut found) {
            if missing.is_some() {
                continue;
            }
            let best = receiver(who, program(who).as_ref(), files)
                .and_then(|mut receiver| receiver.search(&files.datagrams, SAMPLES));
            match best {
                Ok(best) => {
                    rates.push(best.rate / 1e6);
                    processor.push(best.per_processor / 1e6);
                    *senders |= best.senders;
                }
                Err(error) => *missing = Some(format!("{error:#}")),
            }
        }
    }
    for ((who, output), (rates, processor, missing, senders)) in who.into_iter().zip(found) {
        let output =
            if senders { format!("{output}, as fast as can be sent") } else { output.into() };
        table.row(match missing {
            Some(why) => vec![who.into(), output.into(), Cell::Missing(why)],
            None => {
                vec![
                    who.into(),
                    output.into(),
                    Cell::series(&rates, 3),
                    Cell::series(&processor, 3),
                ]
            }
        });
    }
    table.note(
        "The same datagrams, sent evenly for half a second at each of some rates, until a rate is found that \
         is taken and one 10 % above that is not: a socket has overflown, or work was left that took longer \
         than 0.1 s. Output goes to files. The sender has the other core.",
    );
    Ok(table)
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
    let find = |name: &str| {
        let (package, path) = match name {
            "sflowtool" => ("sflowtool", "usr/local/bin/sflowtool"),
            "sfacctd" => ("pmacct", "usr/sbin/sfacctd"),
            "goflow2" => ("goflow2", "usr/local/bin/goflow2"),
            _ => return None,
        };
        Program::find(package, path).ok()
    };
    let tools = ["sflowtool", "sfacctd"].map(|name| (name, find(name)));
    let tool = |name: &str| tools.iter().find(|t| t.0 == name).and_then(|t| t.1.as_ref());
    let mut sides = Vec::new();
    for (flag, output) in OUTPUTS {
        sides.push(Side::new("Thalweg", flag, output));
        if flag != "-L" {
            sides.push(Side::new("sflowtool", flag, output));
        }
    }
    sides.push(Side::new("sfacctd", "", "totals by addresses"));
    sides.retain(|side| args.wants(side.who));

    for _ in 0..if args.full { 5 } else { 3 } {
        for side in sides.iter_mut().filter(|side| side.missing.is_none()) {
            let rates = match (side.who, tool(side.who)) {
                ("Thalweg", _) => ours(side.flag, &files).map(|(p, w)| (p, Some(w))),
                (who, None) => Err(anyhow::anyhow!("{who} is not installed")),
                ("sflowtool", Some(program)) => {
                    sflowtool(program, side.flag, &files).map(|(p, w)| (p, Some(w)))
                }
                // sfacctd sleeps for some seconds when it starts and ends.
                (_, Some(program)) => sfacctd(program, &files).map(|(p, _)| (p, None)),
            };
            side.push(rates);
        }
    }
    report.table(table(&sides));
    report.table(listening(&args, &files, find)?);
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
         capture files, see the next table.",
    );
    table
}
