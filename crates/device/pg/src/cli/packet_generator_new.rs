//! `packet-generator new`: defines a stream.

use crate::command_line::{failed, parameter};
use crate::stream::{self, Data, StreamChange, StreamSpec};
use crate::template::Offload;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_graph::Control;

/// `packet-generator new`
pub struct PacketGeneratorNew;

/// The command.
pub static COMMAND: PacketGeneratorNew = PacketGeneratorNew;

/// The stream as parsed so far.
#[derive(Default)]
struct Draft<'a> {
    name: Option<&'a str>,
    data: Option<Data>,
    interface: Option<String>,
    tx_interface: Option<String>,
    node: Option<String>,
    worker: usize,
    offload: Offload,
    change: StreamChange,
}

/// Flags that VPP's nodes read from a buffer, and ours find out.
const FLAGS: [&str; 6] =
    ["ip4", "ip6", "offload", "l2_hdr_offset_valid", "l3_hdr_offset_valid", "l4_hdr_offset_valid"];

const CHECKSUMS: [&str; 3] = ["offload-ip-cksum", "offload-tcp-cksum", "offload-udp-cksum"];

/// Takes one word or several.
fn some_of(
    args: &mut Args<'_>,
    what: &str,
    words: &[&'static str],
) -> Result<Vec<&'static str>, CliError> {
    let mut found: Vec<_> = args.one_of_exact(words).into_iter().collect();
    if found.is_empty() {
        return Err(args.bad(what, words.join(", ")));
    }
    while let Some(word) = args.one_of_exact(words) {
        found.push(word);
    }
    Ok(found)
}

const WORDS: &[&str] =
    &["name", "interface", "source", "tx-interface", "node", "worker", "data", "pcap"];

fn define(
    c: &mut Control,
    args: &mut Args<'_>,
    out: &mut Output,
) -> Result<Outcome<Control>, CliError> {
    let mut d = Draft::default();
    while !args.is_empty() {
        if parameter(args, &mut d.change)? {
            continue;
        }
        // Accepted for VPP's sake: buffers are never recycled with their contents, and have one
        // size.
        if args.exact("no-recycle") || args.exact("recycle") {
            continue;
        }
        if args.exact("buffer-size") {
            args.u32("buffer size")?;
            continue;
        }
        if args.exact("buffer-flags") {
            some_of(args, "buffer-flags", &FLAGS)?;
            continue;
        }
        if args.exact("buffer-offload-flags") {
            for word in some_of(args, "buffer-offload-flags", &CHECKSUMS)? {
                match word {
                    "offload-ip-cksum" => d.offload.ip = true,
                    "offload-tcp-cksum" => d.offload.tcp = true,
                    _ => d.offload.udp = true,
                }
            }
            continue;
        }
        match args.choice("parameter", WORDS)? {
            "name" => d.name = Some(args.word("name")?),
            "interface" | "source" => d.interface = Some(args.word("interface")?.into()),
            "tx-interface" => d.tx_interface = Some(args.word("interface")?.into()),
            "node" => d.node = Some(args.word("node")?.into()),
            "worker" => d.worker = args.number("worker", 0, 255)? as usize,
            "data" if d.data.is_none() => {
                d.data = Some(Data::Description(args.group("packet")?.into()))
            }
            "pcap" if d.data.is_none() => d.data = Some(Data::Pcap(args.word("file")?.into())),
            _ => return Err(args.bad_last("parameter", "`data' or `pcap', once")),
        }
    }
    let Some(name) = d.name else { return Err(args.bad("name", "`name' and the stream's name")) };
    let Some(data) = d.data else { return Err(failed(crate::PgError::NoData(name.into()))) };
    let mut spec = StreamSpec::new(name, data);
    (spec.interface, spec.tx_interface, spec.node) = (d.interface, d.tx_interface, d.node);
    (spec.worker, spec.sizes, spec.offload) = (d.worker, d.change.sizes, d.offload);
    if matches!(spec.data, Data::Pcap(_)) && spec.offload != Offload::default() {
        let text = "buffer-offload-flags: packets of a file are sent as they are";
        return Err(CliError::failed(text));
    }
    spec.limit = d.change.limit.unwrap_or(spec.limit);
    spec.rate = d.change.rate.unwrap_or(spec.rate);
    spec.max_frame = d.change.max_frame.unwrap_or(spec.max_frame);
    let Data::Pcap(path) = &spec.data else {
        stream::define_stream(c, spec).map_err(failed)?;
        out.json(serde_json::json!({ "stream": name }));
        return Ok(Outcome::Done);
    };
    stream::check_worker(c, &spec).map_err(failed)?;
    let path = path.clone();
    in_background(
        move || crate::pcap::read(&path),
        move |c, file, out: &mut Output| {
            let file = file.map_err(failed)?;
            out.json(serde_json::json!({ "stream": spec.name }));
            stream::define_with(c, spec, Some(file)).map_err(failed)?;
            Ok(None)
        },
    )
}

impl Command<Control> for PacketGeneratorNew {
    fn path(&self) -> &'static str {
        "packet-generator new"
    }

    fn usage(&self) -> &'static str {
        "{ name <name> [interface <if>] [node <node>] [limit <n>] [rate <packets/s>] \
         [size <min>-<max>] [worker <n>] [maxframe <n>] [buffer-flags <flags>] \
         [buffer-offload-flags <checksums>] data { <packet> }|pcap <file> }"
    }

    fn help(&self) -> &'static str {
        "Define a stream of packets\n\
         Example: packet-generator new { name s0 limit 100 size 64-64 interface pg0\n\
         \x20 node ethernet-input data { IP4: 2.0.1 -> 2.0.2\n\
         \x20 UDP: 10.0.0.1 - 10.0.0.9 -> 10.1.0.1 UDP: 1234 -> 4321 incrementing 22 } }\n\
         `a - b' counts through a range, `a + b' draws from it. `limit 0' (or -1) means endless,\n\
         or a pcap file once. `source pg<n>' names the port, as does `interface'. A stream of the same name is\n\
         replaced. The braces may be left out.\n\
         `buffer-offload-flags' (offload-ip-cksum, offload-tcp-cksum, offload-udp-cksum) has these\n\
         checksums computed whatever the packet says; `buffer-flags' (ip4, ip6, offload) says what\n\
         the nodes find out themselves. `gso' is refused."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        if args.at_group() {
            let inside = args.group("stream")?;
            args.end()?;
            return define(c, &mut Args::parse(inside)?, out);
        }
        define(c, args, out)
    }
}
