//! `thalweg sflow decode`: prints sFlow datagrams as sflowtool does. `thalweg sflow monitor` is in
//! [`monitor`].

mod monitor;

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow::listen::{ListenOn, Listener};
use thalweg_sflow::pcapfile::{CaptureError, PcapReader};
use thalweg_sflow::text::{Arrival, Format, Printer};

/// Work with sFlow datagrams.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print datagrams from the network or a capture file, in the formats of sflowtool
    Decode(Decode),
    /// Print what a router, or the kernel, tells over netlink (PSAMPLE, USERSOCK, NET_DM)
    Monitor(monitor::Args),
}

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Decode {
    /// UDP port: the one to listen on, or that of the datagrams in the file
    #[arg(short, long, default_value_t = SFLOW_PORT)]
    port: u16,
    /// Capture file (pcap or pcapng) to read instead; - is standard input
    #[arg(short = 'r', long = "read", value_name = "FILE")]
    file: Option<PathBuf>,
    /// A comma-separated line per sample
    #[arg(short = 'l', long, group = "format")]
    line: bool,
    /// Every field with its context in front, for grep
    #[arg(short = 'g', long, group = "format")]
    grep: bool,
    /// A JSON object per datagram and line
    #[arg(short = 'j', long, group = "format")]
    json: bool,
    /// Indented JSON
    #[arg(short = 'J', long, group = "format")]
    json_indented: bool,
    /// Only these fields of each sample, comma-separated
    #[arg(short = 'L', long, value_name = "FIELDS", value_delimiter = ',', group = "format")]
    fields: Option<Vec<String>>,
    /// Listen on IPv4 only
    #[arg(short = '4', long, conflicts_with = "v6")]
    v4: bool,
    /// Listen on IPv6 only
    #[arg(short = '6', long)]
    v6: bool,
}

const EXAMPLES: &str = "\
Examples:
  thalweg sflow decode                     what arrives at UDP port 6343, field by field
  thalweg sflow decode -p 6344 -l          another port, a line per sample
  thalweg sflow decode -r capture.pcap -J  a capture file, as indented JSON
  tcpdump -w - udp port 6343 | thalweg sflow decode -r - -j

What cannot be decoded is reported on standard error. The status is 1 if a file is cut or no
capture, else 0.";

impl Decode {
    fn format(&self) -> Format {
        match &self.fields {
            Some(fields) => Format::Fields(fields.clone()),
            None if self.line => Format::Line,
            None if self.grep => Format::Grep,
            None if self.json => Format::Json,
            None if self.json_indented => Format::JsonIndented,
            None => Format::Text,
        }
    }
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    let args = match &args.command {
        Command::Decode(args) => args,
        Command::Monitor(args) => return monitor::main(args),
    };
    let done = match &args.file {
        Some(path) => read(path, args),
        None => listen(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => crate::fail(crate::FAILED, &format!("{error:#}")),
    }
}

/// `| head` has seen enough: no reason to complain.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

fn print(
    printer: &mut Printer,
    arrival: &Arrival,
    payload: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    for error in printer.print(arrival, payload, out)? {
        let from = arrival.source.map(|ip| format!(" from {ip}")).unwrap_or_default();
        eprintln!("thalweg: datagram{from}: {error}");
    }
    Ok(())
}

fn read(path: &PathBuf, args: &Decode) -> anyhow::Result<()> {
    let mut reader = match path.as_os_str() == "-" {
        true => PcapReader::new(io::stdin(), args.port)?,
        false => PcapReader::open(path, args.port)?,
    };
    let mut printer = Printer::new(args.format());
    let mut out = BufWriter::new(io::stdout().lock());
    let end = loop {
        match reader.next_datagram() {
            Ok(Some(d)) => print(&mut printer, &Arrival::captured(d.time), d.payload, &mut out)?,
            Ok(None) => break Ok(()),
            Err(error) => break Err::<(), CaptureError>(error),
        }
    };
    out.flush()?;
    let stats = reader.stats();
    if stats.datagrams == 0 && end.is_ok() {
        eprintln!(
            "thalweg: no sFlow datagram to UDP port {} among {} packets; another port: -p PORT",
            args.port, stats.packets
        );
    }
    for (count, what) in [(stats.fragments, "IP fragments"), (stats.cut, "truncated datagrams")] {
        if count > 0 {
            eprintln!("thalweg: {count} {what} passed over");
        }
    }
    Ok(end?)
}

fn listen(args: &Decode) -> anyhow::Result<()> {
    let on = match (args.v4, args.v6) {
        (true, _) => ListenOn::V4,
        (_, true) => ListenOn::V6,
        _ => ListenOn::Any,
    };
    let listener = Listener::bind(on, args.port)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let mut printer = Printer::new(args.format());
    let mut out = io::stdout().lock();
    let mut failure = None;
    listener.run(&stop, |received| {
        let arrival = Arrival::live(received.source.ip(), received.time);
        match print(&mut printer, &arrival, received.payload, &mut out).and_then(|()| out.flush()) {
            Ok(()) if stop.load(Ordering::Acquire) => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(()), |error| Err(error.into()))
}
