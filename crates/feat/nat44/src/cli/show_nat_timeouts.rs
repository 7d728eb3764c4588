//! `show nat timeouts`.

use crate::Nat44;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat timeouts`
pub struct ShowNatTimeouts;

/// The command.
pub static COMMAND: ShowNatTimeouts = ShowNatTimeouts;

impl Command<Control> for ShowNatTimeouts {
    fn path(&self) -> &'static str {
        "show nat timeouts"
    }

    fn help(&self) -> &'static str {
        "Show session timeouts"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let t = c.state::<Nat44>().borrow().timeouts();
        out.line(format_args!("udp timeout: {}sec", t.udp));
        out.line(format_args!("tcp-established timeout: {}sec", t.tcp_established));
        out.line(format_args!("tcp-transitory timeout: {}sec", t.tcp_transitory));
        out.line(format_args!("icmp timeout: {}sec", t.icmp));
        out.json(json!({
            "udp": t.udp, "tcp-established": t.tcp_established,
            "tcp-transitory": t.tcp_transitory, "icmp": t.icmp,
        }));
        Ok(Outcome::Done)
    }
}
