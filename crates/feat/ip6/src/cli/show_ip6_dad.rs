//! `show ip6 dad`: how addresses are tested, and which are.

use crate::dad;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::{Control, clock};

/// `show ip6 dad`
pub struct ShowIp6Dad;

/// The command.
pub static COMMAND: ShowIp6Dad = ShowIp6Dad;

impl Command<Control> for ShowIp6Dad {
    fn path(&self) -> &'static str {
        "show ip6 dad"
    }

    fn help(&self) -> &'static str {
        "Show how IPv6 addresses are tested, those being tested, and those that others have"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let set = dad::config(c);
        let config = set.unwrap_or_default();
        let delay = config.delay.as_secs_f64();
        out.line("DAD Configuration:");
        out.line(format_args!("  Enabled: {}", if set.is_some() { "yes" } else { "no" }));
        out.line(format_args!("  Transmits: {}", config.transmits));
        out.line(format_args!("  Delay: {delay:.1} seconds\n"));
        let (all, now) = (dad::list(c), clock::now());
        out.line(format_args!("Active DAD entries: {}", all.len()));
        let mut rows = Vec::new();
        for ((sw_if, ip), entry) in all {
            let (state, sent, of) = (entry.state.word(), entry.sent, config.transmits);
            let left = entry.next.saturating_duration_since(now).as_secs_f64();
            let name = c.interface_name(sw_if);
            let next = match entry.state {
                dad::State::Tentative => format!(", next in {left:.3}s"),
                _ => String::new(),
            };
            out.line(format_args!(
                "  {ip} on sw_if_index {sw_if} ({name}): state={state}, count={sent}/{of}{next}"
            ));
            rows.push(json!({ "address": ip, "interface": name, "state": state, "sent": sent }));
        }
        out.json(json!({
            "enabled": set.is_some(), "transmits": config.transmits, "delay": delay,
            "entries": rows,
        }));
        Ok(Outcome::Done)
    }
}
