//! `thalweg sflow monitor`: prints netlink messages of a dataplane or the kernel.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thalweg_sflow::header::{HeaderProtocol, Network, SampledHeader, Transport};
use thalweg_sflow::value::Text;
use thalweg_sflow_agent::netlink::psample::{RX_GROUP, TX_GROUP};
use thalweg_sflow_agent::netlink::{
    Channel, Event, Gaps, Message, PacketDrop, PacketSample, PortCounters, Receiver,
    ReceiverConfig, StartDrops, Status,
};

use crate::report;

/// A stop that no message precedes is seen this late.
const STOP_LATENCY: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Sampled packets only (PSAMPLE)
    #[arg(long)]
    psample: bool,
    /// Status and interface counters only (USERSOCK)
    #[arg(long)]
    counters: bool,
    /// Dropped packets only (NET_DM)
    #[arg(long)]
    drops: bool,
    /// A JSON object per message and line
    #[arg(short = 'j', long)]
    json: bool,
    /// The packets' bytes, too
    #[arg(short = 'x', long, conflicts_with = "json")]
    hex: bool,
    /// Exit after N messages
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<u64>,
    /// Start the kernel's own drop monitor, and stop it at the end
    #[arg(long)]
    kernel_drops: bool,
}

const EXAMPLES: &str = "\
Examples:
  thalweg sflow monitor                      every message, one line each
  thalweg sflow monitor --psample -n 100 -x  a hundred sampled packets with their bytes
  thalweg sflow monitor --drops --kernel-drops  packets dropped by the kernel, with reasons

Channel options can be combined; the default is all three. Run it in the network namespace of the
router, with CAP_NET_ADMIN. Notices and totals go to standard error.";

impl Args {
    fn channels(&self) -> Vec<Channel> {
        let wanted = [self.psample, self.counters, self.drops || self.kernel_drops];
        let all = !wanted.contains(&true);
        let some = Channel::ALL.into_iter().zip(wanted);
        some.filter(|(_, wanted)| all || *wanted).map(|(channel, _)| channel).collect()
    }
}

/// Totals of received messages.
#[derive(Default)]
struct Totals {
    samples: u64,
    lost: u64,
    counters: u64,
    status: u64,
    drops: u64,
}

struct Monitor<'a, W: Write> {
    args: &'a Args,
    out: W,
    gaps: Gaps,
    totals: Totals,
    line: String,
}

/// The program.
pub(super) fn main(args: &Args) -> ExitCode {
    match listen(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => crate::fail(crate::FAILED, &error.to_string()),
    }
}

fn listen(args: &Args) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let mut receiver = Receiver::new(ReceiverConfig {
        channels: args.channels(),
        start_drops: args.kernel_drops.then(StartDrops::default),
        ..ReceiverConfig::default()
    });
    let mut monitor = Monitor {
        args,
        out: BufWriter::new(io::stdout().lock()),
        gaps: Gaps::default(),
        totals: Totals::default(),
        line: String::new(),
    };
    let mut failure = None;
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 && !stop.load(Ordering::Acquire) {
        let went = receiver.poll(STOP_LATENCY, |event| {
            match event {
                Event::Notice(notice) => {
                    report!("{notice}");
                }
                Event::Message(message) => {
                    if let Err(error) = monitor.print(&message) {
                        failure = Some(error);
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                }
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        monitor.out.flush()?;
        if went.is_break() {
            break;
        }
    }
    drop(receiver);
    let t = &monitor.totals;
    report!(
        "{} samples ({} lost), {} interface counters, {} status, {} drops",
        t.samples,
        t.lost,
        t.counters,
        t.status,
        t.drops
    );
    failure.map_or(Ok(()), Err)
}

impl<W: Write> Monitor<'_, W> {
    fn print(&mut self, message: &Message<'_>) -> io::Result<()> {
        let lost = match message {
            Message::Sample(sample) => self.gaps.lost(sample.group, sample.group_sequence),
            _ => 0,
        };
        self.totals.lost += u64::from(lost);
        *match message {
            Message::Sample(_) => &mut self.totals.samples,
            Message::Counters(_) => &mut self.totals.counters,
            Message::Status(_) => &mut self.totals.status,
            Message::Drop(_) => &mut self.totals.drops,
        } += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.line.clear();
        if self.args.json {
            let mut value = to_json(message, lost);
            value.insert("time".into(), json!(now.as_secs_f64()));
            return writeln!(self.out, "{}", Value::Object(value));
        }
        to_text(message, lost, &mut self.line);
        writeln!(self.out, "{}.{:06} {}", now.as_secs(), now.subsec_micros(), self.line)?;
        match message {
            Message::Sample(PacketSample { data, .. }) | Message::Drop(PacketDrop { data, .. })
                if self.args.hex =>
            {
                dump(data, &mut self.out)
            }
            _ => Ok(()),
        }
    }
}

/// Sixteen bytes to a line.
fn dump(data: &[u8], out: &mut impl Write) -> io::Result<()> {
    for (i, bytes) in data.chunks(16).enumerate() {
        write!(out, "    {:04x} ", i * 16)?;
        for byte in bytes {
            write!(out, " {byte:02x}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A name for a sampler's group, if it is one of a software router.
fn direction(group: u32) -> Option<&'static str> {
    match group {
        RX_GROUP => Some("rx"),
        TX_GROUP => Some("tx"),
        _ => None,
    }
}

/// Strings come from other programs and must not forge lines.
fn clean(text: Text<'_>) -> String {
    text.to_str().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Appends ` NAME VALUE` for what is known.
fn optional(line: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    if let Some(value) = value {
        let _ = write!(line, " {name} {value}");
    }
}

/// A message as a line. Writing to a string does not fail.
fn to_text(message: &Message<'_>, lost: u32, line: &mut String) {
    match message {
        Message::Sample(sample) => sample_text(sample, lost, line),
        Message::Counters(port) => counters_text(port, line),
        Message::Status(Status { uptime_s, drops, sequence, unknown }) => {
            let _ = write!(line, "status uptime {uptime_s} s, drops {drops}");
            optional(line, "sequence", *sequence);
            optional(line, "unknown", Some(unknown).filter(|n| **n > 0));
        }
        Message::Drop(drop) => drop_text(drop, line),
    }
}

fn sample_text(s: &PacketSample<'_>, lost: u32, line: &mut String) {
    let _ = write!(line, "sample group {}", s.group);
    if let Some(word) = direction(s.group) {
        let _ = write!(line, " ({word})");
    }
    let _ = write!(line, " number {}", s.group_sequence);
    optional(line, "lost", Some(lost).filter(|n| *n > 0));
    let _ = write!(line, " rate {} in {} out {}", s.one_in(), s.input, s.output);
    let _ = write!(line, " length {} header {}", s.original_length, s.data.len());
    optional(line, "protocol", s.protocol.map(|p| format!("{p:#x}")));
    optional(line, "queue", s.queue);
    optional(line, "queue-bytes", s.queue_bytes);
    optional(line, "latency-ns", s.latency_ns);
    optional(line, "timestamp-ns", s.timestamp_ns);
    optional(line, "cookie", s.cookie.map(hex));
    optional(line, "unknown", Some(s.unknown).filter(|n| *n > 0));
    let _ = write!(line, ": {}", packet(s.data));
}

fn drop_text(d: &PacketDrop<'_>, line: &mut String) {
    let _ = write!(line, "drop in {}", d.input);
    if let Some(name) = d.input_name {
        let _ = write!(line, " ({})", clean(name));
    }
    optional(line, "where", d.trap_group.map(clean));
    optional(line, "why", d.trap.map(clean));
    optional(line, "reason", d.reason.map(clean));
    optional(line, "symbol", d.symbol.map(clean));
    optional(line, "pc", d.pc.map(|pc| format!("{pc:#x}")));
    let _ = write!(line, " length {} header {}", d.length(), d.data.len());
    let _ = write!(line, " protocol {:#x}", d.protocol);
    optional(line, "origin", d.origin.map(|o| if o == 0 { "software" } else { "hardware" }));
    optional(line, "timestamp-ns", d.timestamp_ns);
    optional(line, "unknown", Some(d.unknown).filter(|n| *n > 0));
    let _ = write!(line, ": {}", packet(d.data));
}

fn counters_text(p: &PortCounters<'_>, line: &mut String) {
    let state = |up: bool| if up { "up" } else { "down" };
    let _ = write!(line, "counters {} index {}", clean(p.name), p.index);
    optional(line, "os-index", p.os_index);
    optional(line, "mac", p.hw_address.map(mac));
    let _ = write!(line, " type {} speed {} direction {}", p.if_type, p.speed, p.direction);
    let _ = write!(line, " admin {} oper {}", state(p.admin_up), state(p.oper_up));
    for (name, rx, tx) in pairs(p) {
        let _ = write!(line, " {name} {rx}/{tx}");
    }
    optional(line, "sequence", p.sequence);
    optional(line, "unknown", Some(p.unknown).filter(|n| *n > 0));
}

/// Returns the counters of both directions: received, sent.
fn pairs(p: &PortCounters<'_>) -> [(&'static str, u64, u64); 6] {
    [
        ("octets", p.rx_octets, p.tx_octets),
        ("packets", p.rx_packets, p.tx_packets),
        ("broadcasts", p.rx_broadcasts, p.tx_broadcasts),
        ("multicasts", p.rx_multicasts, p.tx_multicasts),
        ("discards", p.rx_discards, p.tx_discards),
        ("errors", p.rx_errors, p.tx_errors),
    ]
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|b| format!("{b:02x}")).join(":")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Summary of a packet from its first bytes.
fn packet(data: &[u8]) -> String {
    let header = SampledHeader::parse(HeaderProtocol::ETHERNET, data);
    let Some((source, destination, protocol)) = header.addresses() else {
        return match (header.macs, header.ether_type) {
            (Some((destination, source)), Some(kind)) => {
                format!("{} > {} type {kind:#06x}", mac(source), mac(destination))
            }
            _ => "no Ethernet".into(),
        };
    };
    let ttl = match header.network {
        Network::V4(ip) => ip.ttl,
        Network::V6(ip) => ip.hop_limit,
        Network::None => 0,
    };
    let vlans = header.vlans.as_slice().iter().map(|tci| format!("vlan {} ", tci & 0xfff));
    let vlans: String = vlans.collect();
    match header.transport() {
        Transport::Tcp { source: from, destination: to, .. } => {
            format!("{vlans}{source} port {from} > {destination} port {to} tcp ttl {ttl}")
        }
        Transport::Udp { source: from, destination: to, .. } => {
            format!("{vlans}{source} port {from} > {destination} port {to} udp ttl {ttl}")
        }
        Transport::Icmp { kind, code } => {
            format!("{vlans}{source} > {destination} icmp type {kind} code {code} ttl {ttl}")
        }
        Transport::None => {
            format!("{vlans}{source} > {destination} protocol {protocol} ttl {ttl}")
        }
    }
}

/// A message as an object: what is not known is left out.
fn to_json(message: &Message<'_>, lost: u32) -> Map<String, Value> {
    let text = |t: Option<Text<'_>>| t.map(|t| t.to_str().into_owned());
    let value = match message {
        Message::Sample(s) => json!({
            "type": "sample", "group": s.group, "direction": direction(s.group),
            "group_sequence": s.group_sequence, "lost": lost, "rate": s.one_in(),
            "input": s.input, "output": s.output, "original_length": s.original_length,
            "protocol": s.protocol, "queue": s.queue, "queue_bytes": s.queue_bytes,
            "latency_ns": s.latency_ns, "timestamp_ns": s.timestamp_ns,
            "cookie": s.cookie.map(hex), "unknown_attributes": s.unknown,
            "header": hex(s.data), "packet": packet(s.data),
        }),
        Message::Drop(d) => json!({
            "type": "drop", "input": d.input, "input_name": text(d.input_name),
            "trap_group": text(d.trap_group), "trap": text(d.trap), "reason": text(d.reason),
            "symbol": text(d.symbol), "pc": d.pc, "protocol": d.protocol,
            "original_length": d.original_length, "truncated_length": d.truncated_length,
            "origin": d.origin, "timestamp_ns": d.timestamp_ns, "unknown_attributes": d.unknown,
            "header": hex(d.data), "packet": packet(d.data),
        }),
        Message::Status(s) => json!({
            "type": "status", "uptime_s": s.uptime_s, "drops": s.drops, "sequence": s.sequence,
            "unknown_attributes": s.unknown,
        }),
        Message::Counters(p) => {
            let mut value = json!({
                "type": "counters", "name": text(Some(p.name)), "index": p.index,
                "os_index": p.os_index, "mac": p.hw_address.map(mac), "if_type": p.if_type,
                "speed": p.speed, "direction": p.direction, "admin_up": p.admin_up,
                "oper_up": p.oper_up, "sequence": p.sequence, "unknown_attributes": p.unknown,
            });
            for (name, rx, tx) in pairs(p) {
                (value[format!("rx_{name}")], value[format!("tx_{name}")]) = (rx.into(), tx.into());
            }
            value
        }
    };
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, v)| !v.is_null()).collect(),
        _ => Map::new(),
    }
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

    fn args(line: &[&str]) -> Args {
        Line::parse_from([&["monitor"], line].concat()).args
    }

    fn printed(line: &[&str], messages: &[Message<'_>]) -> String {
        let args = args(line);
        let mut monitor = Monitor {
            args: &args,
            out: Vec::new(),
            gaps: Gaps::default(),
            totals: Totals::default(),
            line: String::new(),
        };
        messages.iter().for_each(|message| monitor.print(message).unwrap());
        String::from_utf8(monitor.out).unwrap()
    }

    const UDP: &[u8] = &[
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0,
        0, 1, 10, 0, 1, 2, 0x30, 0x39, 0, 53, 0, 8, 0, 0,
    ];

    fn sample(group_sequence: u32) -> PacketSample<'static> {
        PacketSample {
            input: 1,
            output: 2,
            original_length: 1042,
            group: RX_GROUP,
            group_sequence,
            rate: 100,
            data: UDP,
            protocol: Some(1),
            ..PacketSample::default()
        }
    }

    #[test]
    fn channels_are_chosen() {
        assert_eq!(args(&[]).channels(), Channel::ALL);
        assert_eq!(args(&["--drops"]).channels(), [Channel::Dropmon]);
        assert_eq!(args(&["--kernel-drops"]).channels(), [Channel::Dropmon]);
        let two = args(&["--psample", "--counters"]).channels();
        assert_eq!(two, [Channel::Psample, Channel::Usersock]);
    }

    #[test]
    fn a_message_is_a_line() {
        let drop = PacketDrop {
            input: 1,
            trap_group: Some(Text(b"vpp_ip4-input")),
            trap: Some(Text(b"a\nb")),
            protocol: 0x800,
            data: &UDP[..20],
            original_length: Some(98),
            ..PacketDrop::default()
        };
        let port = PortCounters {
            name: Text(b"host-a"),
            index: 1,
            speed: 10_000_000_000,
            if_type: 6,
            direction: 1,
            admin_up: true,
            rx_packets: 7,
            hw_address: Some([2, 0, 0, 0, 0, 1]),
            sequence: Some(3),
            ..PortCounters::default()
        };
        let status = Status { uptime_s: 5, ..Status::default() };
        let all = [
            Message::Sample(sample(7)),
            Message::Sample(sample(10)),
            Message::Drop(drop),
            Message::Counters(port),
            Message::Status(status),
        ];
        let text = printed(&[], &all);
        let lines: Vec<&str> = text.lines().map(|l| l.split_once(' ').unwrap().1).collect();
        assert_eq!(
            lines,
            [
                "sample group 3 (rx) number 7 rate 100 in 1 out 2 length 1042 header 42 protocol 0x1: \
                 10.0.0.1 port 12345 > 10.0.1.2 port 53 udp ttl 64",
                "sample group 3 (rx) number 10 lost 2 rate 100 in 1 out 2 length 1042 header 42 \
                 protocol 0x1: 10.0.0.1 port 12345 > 10.0.1.2 port 53 udp ttl 64",
                "drop in 1 where vpp_ip4-input why a?b length 98 header 20 protocol 0x800: \
                 02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x0800",
                "counters host-a index 1 mac 02:00:00:00:00:01 type 6 speed 10000000000 direction 1 \
                 admin up oper down octets 0/0 packets 7/0 broadcasts 0/0 multicasts 0/0 \
                 discards 0/0 errors 0/0 sequence 3",
                "status uptime 5 s, drops 0",
            ]
        );
        let dumped = printed(&["-x"], &all[..1]);
        assert!(dumped.contains("\n    0010  00 1c 00 00"), "{dumped}");
    }

    #[test]
    fn json_has_every_field_that_is_known() {
        let text = printed(&["--json"], &[Message::Sample(sample(7))]);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["type"], &value["rate"]), (&json!("sample"), &json!(100)));
        assert_eq!(value["header"], json!(hex(UDP)));
        assert!(value["time"].as_f64().unwrap() > 1e9);
        assert!(value.get("queue").is_none());
        let port = PortCounters { index: 1, tx_errors: 9, ..PortCounters::default() };
        let value = to_json(&Message::Counters(port), 0);
        assert_eq!((&value["tx_errors"], &value["rx_octets"]), (&json!(9), &json!(0)));
    }

    #[test]
    fn any_bytes_make_some_words() {
        assert_eq!(packet(&[]), "no Ethernet");
        for cut in 0..UDP.len() {
            assert!(!packet(&UDP[..cut]).is_empty());
        }
    }
}
