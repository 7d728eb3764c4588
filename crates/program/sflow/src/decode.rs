//! `thalweg sflow decode`: prints sFlow datagrams as sflowtool does, or passes them on.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow::forward::Forwarder;
use thalweg_sflow::listen::{ListenOn, Listener, Received};
use thalweg_sflow::pcapfile::{CaptureError, PcapReader};
use thalweg_sflow::pcapout::{Packets, PcapOut};
use thalweg_sflow::sniff::Sniffer;
use thalweg_sflow::text::{Arrival, Format, Printer};
use thalweg_sflow::xdr::DecodeError;

use crate::report;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// UDP port: the one to listen on, or that of the datagrams in the file or on the interface
    #[arg(short, long, default_value_t = SFLOW_PORT)]
    port: u16,
    /// Capture file (pcap or pcapng) to read instead; - is standard input
    #[arg(short = 'r', long = "read", alias = "read-pcap", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Capture datagrams on this interface, whatever their destination (needs CAP_NET_RAW)
    #[arg(short = 'i', long, value_name = "IF", conflicts_with = "file")]
    interface: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
    /// With -t and -T: omit what follows the last known header
    #[arg(short = 'x', long)]
    redact_payload: bool,
    /// Forward datagrams unchanged; may be repeated. Nothing is printed then unless a format is
    /// chosen
    #[arg(short = 'f', long = "forward", alias = "forwarding-target", value_name = "HOST/PORT")]
    forward: Vec<String>,
    /// Listen on IPv4 only
    #[arg(short = '4', long, alias = "listen-v4-only", conflicts_with_all = ["v6", "address"])]
    v4: bool,
    /// Listen on IPv6 only
    #[arg(short = '6', long, alias = "listen-v6-only", conflicts_with = "address")]
    v6: bool,
    /// Listen on one address
    #[arg(short = 'b', long, alias = "listen-address", value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Accepted for compatibility with sflowtool: decoding errors never end the program
    #[arg(short = 'k', long = "keep-going", hide = true)]
    _keep_going: bool,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct FormatArgs {
    /// A comma-separated line per sample
    #[arg(short = 'l', long)]
    line: bool,
    /// Every field with its context in front, for grep
    #[arg(short = 'g', long)]
    grep: bool,
    /// A JSON object per datagram and line
    #[arg(short = 'j', long)]
    json: bool,
    /// Indented JSON
    #[arg(short = 'J', long)]
    json_indented: bool,
    /// Only these fields of each sample, comma-separated
    #[arg(short = 'L', long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Option<Vec<String>>,
    /// A capture file of the sampled headers, on standard output
    #[arg(short = 't', long)]
    write_pcap: bool,
    /// A capture file of the headers of discarded packets
    #[arg(short = 'T', long)]
    write_pcap_discards: bool,
    /// A capture file of the datagrams themselves
    #[arg(short = 'M', long)]
    write_pcap_datagrams: bool,
}

const EXAMPLES: &str = "\
Examples:
  thalweg sflow decode                     datagrams at UDP port 6343, field by field
  thalweg sflow decode -p 6344 -l          another port, one line per sample
  thalweg sflow decode -i eth0             capture on eth0 next to a running collector
  thalweg sflow decode -r capture.pcap -J  a capture file, as indented JSON
  thalweg sflow decode -t | tshark -r -    the sampled packets
  thalweg sflow decode -f 192.0.2.50/6343 -f 2001:db8::50/6343
  tcpdump -w - udp port 6343 | thalweg sflow decode -r - -j

Decoding errors are reported on standard error with their offset. The exit status is 1 if the file
is truncated or not a capture file, else 0.";

impl FormatArgs {
    fn text(&self) -> Option<Format> {
        match &self.fields {
            Some(fields) => Some(Format::Fields(fields.clone())),
            None if self.line => Some(Format::Line),
            None if self.grep => Some(Format::Grep),
            None if self.json => Some(Format::Json),
            None if self.json_indented => Some(Format::JsonIndented),
            None => None,
        }
    }

    fn packets(&self) -> Option<Packets> {
        match self {
            FormatArgs { write_pcap: true, .. } => Some(Packets::Sampled),
            FormatArgs { write_pcap_discards: true, .. } => Some(Packets::Discarded),
            FormatArgs { write_pcap_datagrams: true, .. } => Some(Packets::Datagrams),
            _ => None,
        }
    }
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    let run = || {
        let mut outlet = Outlet::new(args)?;
        match (&args.file, &args.interface) {
            (Some(path), _) => read(path, args, &mut outlet),
            (None, Some(interface)) => sniff(interface, args, &mut outlet),
            (None, None) => listen(args, &mut outlet),
        }
    };
    match run() {
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

/// Output for each datagram.
enum Show {
    Text(Box<Printer>),
    Packets(PcapOut),
    Nothing,
}

/// Destination of datagrams.
struct Outlet {
    show: Show,
    forwarder: Option<Forwarder>,
    out: io::StdoutLock<'static>,
}

/// Bytes that are written at once.
const BATCH: usize = 1 << 18;

impl Outlet {
    fn new(args: &Args) -> anyhow::Result<Outlet> {
        let forwarder = match args.forward.as_slice() {
            [] => None,
            targets => Some(Forwarder::new(targets.iter().map(String::as_str))?),
        };
        let show = match (args.format.packets(), args.format.text()) {
            (Some(packets), _) => {
                Show::Packets(PcapOut::new(packets, args.port).with_redaction(args.redact_payload))
            }
            (None, Some(format)) => Show::Text(Box::new(Printer::new(format))),
            (None, None) if forwarder.is_some() => Show::Nothing,
            (None, None) => Show::Text(Box::new(Printer::new(Format::Text))),
        };
        Ok(Outlet { show, forwarder, out: io::stdout().lock() })
    }

    fn datagram(
        &mut self,
        arrival: &Arrival,
        source: SocketAddr,
        payload: &[u8],
    ) -> io::Result<()> {
        if let Some(forwarder) = &mut self.forwarder
            && let Some((target, error)) = forwarder.send(payload)
        {
            report!("cannot forward to {target}: {error} (reported once)");
        }
        let gathered = match &mut self.show {
            Show::Text(printer) => {
                complain(source, payload, printer.append(arrival, payload));
                printer.text().len()
            }
            Show::Packets(file) => {
                let time = arrival.captured.unwrap_or(arrival.received);
                complain(source, payload, file.add(time, Some(source), payload));
                file.bytes().len()
            }
            Show::Nothing => 0,
        };
        if gathered >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.show {
            Show::Text(printer) => {
                self.out.write_all(printer.text())?;
                printer.clear();
            }
            Show::Packets(file) => {
                self.out.write_all(file.bytes())?;
                file.clear();
            }
            Show::Nothing => {}
        }
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Show::Packets(file) = &self.show
            && file.skipped() > 0
        {
            let skipped = file.skipped();
            report!("skipped {skipped} samples with a link layer other than Ethernet");
        }
        for target in self.forwarder.iter().flat_map(Forwarder::targets) {
            if target.failed > 0 {
                let (to, sent, failed) = (target.address, target.sent, target.failed);
                report!("{failed} of {} datagrams not sent to {to}", sent + failed);
            }
        }
        Ok(())
    }
}

/// More than fits into a frame that is not a jumbo.
const LONG: usize = 1472;

fn complain(source: SocketAddr, payload: &[u8], errors: Vec<DecodeError>) {
    if errors.is_empty() {
        return;
    }
    for error in errors {
        report!("datagram from {}: {error}", source.ip());
    }
    static HINT: Once = Once::new();
    if payload.len() > LONG {
        HINT.call_once(|| {
            report!(
                "segmentation offload may have merged several datagrams, which cannot be \
                 separated: capture with GRO and GSO off (ethtool -K IF gro off gso off)"
            );
        });
    }
}

fn read(path: &Path, args: &Args, outlet: &mut Outlet) -> anyhow::Result<()> {
    let mut reader = match path.as_os_str() == "-" {
        true => PcapReader::new(io::stdin(), args.port)?,
        false => PcapReader::open(path, args.port)?,
    };
    let end = loop {
        match reader.next_datagram() {
            Ok(Some(d)) => outlet.datagram(&Arrival::captured(d.time), d.source, d.payload)?,
            Ok(None) => break Ok(()),
            Err(error) => break Err::<(), CaptureError>(error),
        }
    };
    outlet.finish()?;
    let stats = reader.stats();
    if stats.datagrams > 0
        && let Show::Text(printer) = &outlet.show
    {
        printer.never_found().for_each(|name| report!("no datagram has a field {name}"));
    }
    if stats.unknown_links > 0 {
        let (packets, kind) = (stats.unknown_links, stats.unknown_link);
        report!(
            "skipped {packets} packets of link type {kind}, which is not read; \
             tcpdump.org/linktypes.html says what it is"
        );
    }
    if stats.datagrams == 0 && stats.unknown_links < stats.packets.max(1) && end.is_ok() {
        report!(
            "no sFlow datagram to UDP port {} in {} packets; -p PORT selects another port",
            args.port,
            stats.packets
        );
    }
    if stats.merged > 0 {
        let merged = stats.merged;
        report!(
            "split {merged} packets in which segmentation offload had merged several datagrams"
        );
    }
    for (count, what) in [(stats.fragments, "IP fragments"), (stats.cut, "truncated datagrams")] {
        if count > 0 {
            report!("skipped {count} {what}");
        }
    }
    Ok(end?)
}

/// A flag that SIGINT and SIGTERM set.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Hands datagrams on as they come, and what is printed of them when no more are waiting.
fn live<'a>(
    outlet: &'a mut Outlet,
    stop: &'a AtomicBool,
    failure: &'a mut Option<io::Error>,
) -> impl FnMut(Received<'_>) -> ControlFlow<()> + 'a {
    move |received| {
        let arrival = Arrival::live(received.source.ip(), received.time);
        let done = outlet.datagram(&arrival, received.source, received.payload);
        match done.and_then(|()| if received.more { Ok(()) } else { outlet.flush() }) {
            Ok(()) if stop.load(Ordering::Acquire) => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                *failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

fn listen(args: &Args, outlet: &mut Outlet) -> anyhow::Result<()> {
    let on = match (args.address, args.v4, args.v6) {
        (Some(address), ..) => ListenOn::Address(address),
        (None, true, _) => ListenOn::V4,
        (None, _, true) => ListenOn::V6,
        _ => ListenOn::Any,
    };
    let listener = Listener::bind(on, args.port)?;
    let (stop, mut failure) = (stop_flag()?, None);
    outlet.flush()?;
    listener.run(&stop, live(outlet, &stop, &mut failure))?;
    failure.map_or(Ok(()), Err)?;
    Ok(outlet.finish()?)
}

fn sniff(interface: &str, args: &Args, outlet: &mut Outlet) -> anyhow::Result<()> {
    let mut sniffer = Sniffer::open(interface, args.port)?;
    let (stop, mut failure) = (stop_flag()?, None);
    outlet.flush()?;
    sniffer.run(&stop, live(outlet, &stop, &mut failure))?;
    failure.map_or(Ok(()), Err)?;
    outlet.finish()?;
    let stats = sniffer.stats();
    if stats.fragments > 0 {
        report!("skipped {} IP fragments", stats.fragments);
    }
    Ok(())
}
