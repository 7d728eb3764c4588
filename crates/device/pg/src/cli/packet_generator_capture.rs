//! `packet-generator capture`: captures a port's transmitted packets in a pcap file.

use crate::command_line::{failed, port_names};
use crate::stream;
use std::path::Path;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_device::command_line::{interface_arg, interface_maybe};
use thalweg_graph::Control;

/// `packet-generator capture`
pub struct PacketGeneratorCapture;

/// The command.
pub static COMMAND: PacketGeneratorCapture = PacketGeneratorCapture;

impl Command<Control> for PacketGeneratorCapture {
    fn path(&self) -> &'static str {
        "packet-generator capture"
    }

    fn usage(&self) -> &'static str {
        "<interface> pcap <file> [count <n>] | <interface> disable"
    }

    fn help(&self) -> &'static str {
        "Capture a port's transmitted packets in a new pcap file\n\
         The file is created with the first packet. `disable' ends the capture; a file name\n\
         may be given as well."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut sw_if, mut file, mut count, mut disable) = (None, None, u64::MAX, false);
        while !args.is_empty() {
            // An interface takes precedence over a keyword that its name abbreviates.
            if sw_if.is_none()
                && let Some(found) = interface_maybe(c, args)
            {
                sw_if = Some(found);
                continue;
            }
            match args.one_of(&["pcap", "count", "disable"])? {
                Some("pcap") => file = Some(args.word("file")?),
                Some("count") => count = args.u64("count")?,
                Some(_) => disable = true,
                None if sw_if.is_none() => sw_if = Some(interface_arg(c, args)?),
                None => args.end()?,
            }
        }
        let Some(sw_if) = sw_if else { return Err(args.bad("interface", "a port such as pg0")) };
        let to = match (disable, file) {
            (true, _) => None,
            (false, Some(file)) => Some((Path::new(file), count)),
            (false, None) => return Err(args.bad("file", "`pcap' and a file name, or `disable'")),
        };
        let settling = stream::set_capture(c, sw_if, to).map_err(failed)?;
        let said = serde_json::json!({ "index": sw_if.get(), "capturing": to.is_some() });
        in_background(
            || settling.wait(),
            move |_, (), out: &mut Output| {
                out.json(said);
                Ok(None)
            },
        )
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => port_names(c),
            _ => ["pcap", "count", "disable"].map(String::from).into(),
        }
    }
}
