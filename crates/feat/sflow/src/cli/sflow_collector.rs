//! `sflow collector`.

use crate::cli_support::{refused, required};
use crate::state;
use std::net::SocketAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_sflow::SFLOW_PORT;

/// The command.
pub static COMMAND: SFlowCollector = SFlowCollector;

/// The command's type.
pub struct SFlowCollector;

impl Command<Control> for SFlowCollector {
    fn path(&self) -> &'static str {
        "sflow collector"
    }
    fn usage(&self) -> &'static str {
        "add|del <ip> [port <port>]"
    }
    fn help(&self) -> &'static str {
        "Send sFlow datagrams to a collector, or no longer\n\
         To several, if added one after the other; one that is away disturbs none of the others.\n\
         The port is 6343 unless given. Without a collector, samples are counted and not kept."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "add or del, and a collector")?;
        let add = args.choice("action", &["add", "del"])? == "add";
        let ip = args.ip("collector")?;
        let port = match args.keyword("port") {
            true => args.number("port", 1, u16::MAX.into())? as u16,
            false => SFLOW_PORT,
        };
        args.end()?;
        let collector = SocketAddr::new(ip, port);
        if add {
            state::add_collector(cx, collector).map_err(refused)?;
        } else {
            state::remove_collector(cx, collector).map_err(refused)?;
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["add".into(), "del".into()],
            ["del"] => {
                let state = cx.state::<state::SFlow>();
                let state = state.borrow();
                state.settings().collectors.iter().map(|c| c.ip().to_string()).collect()
            }
            [_, _] => vec!["port".into()],
            _ => Vec::new(),
        }
    }
}
