//! `set ip neighbor-advertise`: announces an interface's addresses.

use crate::{args, neighbors};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set ip neighbor-advertise <interface>`
pub struct SetIpNeighborAdvertise;

/// The command.
pub static COMMAND: SetIpNeighborAdvertise = SetIpNeighborAdvertise;

impl Command<Control> for SetIpNeighborAdvertise {
    fn path(&self) -> &'static str {
        "set ip neighbor-advertise"
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        "Announce each of an interface's addresses to its link, by gratuitous ARP for IPv4\n\
         Useful after taking addresses over from another router. The router does not do this by itself."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = args::interface(c, args)?;
        args.end()?;
        let sent = neighbors::announce(c, sw_if).map_err(CliError::failed)?;
        out.json(json!({ "sent": sent }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { args::interfaces(c) } else { Vec::new() }
    }
}
