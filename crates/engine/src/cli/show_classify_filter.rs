//! `show classify filter`: the tables and patterns that choose packets for traces and captures.

use crate::classify::{Classifier, User};
use std::fmt::Write;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show classify filter [verbose]`
pub struct ShowClassifyFilter;

/// The command.
pub static COMMAND: ShowClassifyFilter = ShowClassifyFilter;

pub(super) fn hex(bytes: &[u8]) -> String {
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

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the tables that traces and captures are filtered by\n\
         Their patterns are bytes from the one on where the table begins to look (`skips' vectors of\n\
         16 bytes). With `verbose' all tables of each filter stand in its line."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verbose = args.exact("verbose");
        args.end()?;
        let state = c.state::<Classifier>();
        let state = state.borrow();
        let mut json = Vec::new();
        out.line(format_args!("{:<30} Table(s)", "Filter Used By"));
        out.line(format_args!("{:<30} --------", "--------------"));
        let own = state.users().filter(|(user, _)| matches!(user, User::PcapOf(_)));
        let own: Vec<User> = own.map(|(user, _)| user).collect();
        for user in [User::Trace, User::Pcap].into_iter().chain(own) {
            let (name, word) = match user {
                User::Trace => ("packet tracer:".to_owned(), "trace".to_owned()),
                User::Pcap => ("pcap rx/tx/drop:".to_owned(), "pcap".to_owned()),
                User::PcapOf(sw_if) => {
                    let name = c.interface_name(sw_if);
                    (format!("{name}:"), name)
                }
            };
            let chain = state.of(user);
            let numbers = match (verbose, chain.first()) {
                (_, None) if verbose => " none".to_owned(),
                (_, None) => " first table none".to_owned(),
                (true, _) => chain.iter().map(|index| format!(" {index}")).collect(),
                (false, Some(first)) => format!(" first table {first}"),
            };
            out.line(format_args!("{name:<30}{numbers}"));
            for index in chain {
                let Some(table) = state.table(index) else { continue };
                let (mask, skips) = (hex(&table.mask), table.skip);
                for key in table.sessions.keys() {
                    let value = hex(key);
                    out.line(format_args!("  {index}: skips {skips} mask {mask} match {value}"));
                    json.push(serde_json::json!({
                        "use": word, "table": index, "skips": skips, "mask": mask, "match": value,
                    }));
                }
            }
        }
        out.json(json.into());
        Ok(Outcome::Done)
    }
}
