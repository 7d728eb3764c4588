//! `sflow collector`.

use crate::cli_support::refused;
use crate::{exporting, state};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow_agent::agent::CollectorConfig;

/// The command.
pub static COMMAND: SFlowCollector = SFlowCollector;

/// The command's type.
pub struct SFlowCollector;

/// Help for a collector's name.
const HOST: &str = "an IP address such as 192.0.2.1, or a host's name";

impl Command<Control> for SFlowCollector {
    fn path(&self) -> &'static str {
        "sflow collector"
    }
    fn usage(&self) -> &'static str {
        "add|del <ip or name> [port <port>] [namespace <name>] [dev <device>]"
    }
    fn help(&self) -> &'static str {
        "Add or delete a collector of sFlow datagrams\n\
         Several collectors may be added; one that is unreachable does not affect the others.\n\
         The default port is 6343. A name is resolved again every minute. With `namespace',\n\
         datagrams are sent from that network namespace (/var/run/netns); with `dev', through\n\
         that device regardless of routing. Without a collector, samples are counted and\n\
         discarded."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let add = args.choice("action", &["add", "del"])? == "add";
        let host = CollectorConfig::parse_host(args.with("collector", HOST, Some)?);
        let host = host.map_err(|e| CliError::failed(format_args!("collector {e}")))?;
        let mut collector = CollectorConfig::new(host, SFLOW_PORT);
        while !args.is_empty() {
            match args.choice("option", &["port", "namespace", "dev"])? {
                "port" => collector.port = args.number("port", 1, u16::MAX.into())? as u16,
                "namespace" => collector.namespace = Some(args.word("namespace")?.to_owned()),
                _ => collector.device = Some(args.word("device")?.to_owned()),
            }
        }
        if add {
            exporting::add_collector(cx, collector).map_err(refused)?;
        } else {
            exporting::remove_collector(cx, &collector).map_err(refused)?;
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let options = ["port", "namespace", "dev"];
        match before {
            [] => vec!["add".into(), "del".into()],
            ["del"] => {
                let state = cx.state::<state::SFlow>();
                let state = state.borrow();
                state.settings().export.collectors.iter().map(|c| c.host.to_string()).collect()
            }
            [_] => Vec::new(),
            [_, _, .., last] if options.contains(last) && before.len() > 2 => match *last {
                "namespace" => names_in("/var/run/netns"),
                "dev" => names_in("/sys/class/net"),
                _ => Vec::new(),
            },
            _ => options.iter().filter(|o| !before.contains(o)).map(ToString::to_string).collect(),
        }
    }
}

fn names_in(directory: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
}
