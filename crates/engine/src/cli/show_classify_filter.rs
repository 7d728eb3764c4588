//! `show classify filter`: the patterns that choose packets for traces and captures.

use crate::classify::Filters;
use std::fmt::Write;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show classify filter`
pub struct ShowClassifyFilter;

/// The command.
pub static COMMAND: ShowClassifyFilter = ShowClassifyFilter;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Memory does not refuse.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Command<Control> for ShowClassifyFilter {
    fn path(&self) -> &'static str {
        "show classify filter"
    }

    fn help(&self) -> &'static str {
        "Show the patterns of `classify filter', as bytes from the Ethernet header on"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let state = c.state::<Filters>();
        let state = state.borrow();
        let mut json = Vec::new();
        for (word, filter) in [("trace", &state.trace), ("pcap", &state.pcap)] {
            if filter.0.is_empty() {
                out.line(format_args!("{word}: no patterns, so all packets"));
            }
            for pattern in &filter.0 {
                let (mask, value) = (hex(pattern.mask()), hex(pattern.value()));
                out.line(format_args!("{word}: mask {mask} match {value}"));
                json.push(serde_json::json!({ "use": word, "mask": mask, "match": value }));
            }
        }
        out.json(json.into());
        Ok(Outcome::Done)
    }
}
