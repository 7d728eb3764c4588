//! `flow add`.

use crate::FlowError;
use std::path::PathBuf;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: FlowAdd = FlowAdd;

/// The command's type.
pub struct FlowAdd;

/// Maximum size of a file of rules in bytes: 65,536 rules of a kilobyte.
const MAX_FILE: u64 = 64 << 20;

impl Command<Control> for FlowAdd {
    fn path(&self) -> &'static str {
        "flow add"
    }
    fn usage(&self) -> &'static str {
        "<set> <rule> | <set> file <path>"
    }
    fn help(&self) -> &'static str {
        "Add a rule in Open vSwitch's syntax to a set, or the rules of a file, one per line:\n\
         flow add 1 'priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal'\n\
         A set applies to the ports of the bridge domain with its number, and to interfaces after\n\
         `set interface flow <interface> <set>`."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let set = args.u32("set of rules")?;
        if args.exact("file") {
            let path = PathBuf::from(args.word("path")?);
            args.end()?;
            let read = move || thalweg_files::client::read(&path, MAX_FILE);
            return in_background(read, move |cx, file, _| {
                let file = file.map_err(CliError::failed)?;
                let text = file.text().map_err(CliError::failed)?;
                let rules = crate::sets::parse_lines(cx, text).map_err(|e| match &e {
                    FlowError::Line { line, .. } => {
                        CliError::failed(file.explain(&format!("line {line}"), &e))
                    }
                    _ => CliError::failed(file.explain("rules", &e)),
                })?;
                crate::add(cx, set, rules).map_err(CliError::failed)?;
                Ok(None)
            });
        }
        if args.is_empty() {
            args.word("rule")?;
        }
        let rule = crate::sets::parse(cx, args.rest()).map_err(CliError::failed)?;
        crate::add(cx, set, vec![rule]).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
}
