//! `lcp default`.

use crate::options;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `lcp default netns <namespace>`, `lcp default clear netns`
pub struct LcpDefault;

/// The command.
pub static COMMAND: LcpDefault = LcpDefault;

impl Command<Control> for LcpDefault {
    fn path(&self) -> &'static str {
        "lcp default"
    }

    fn usage(&self) -> &'static str {
        "netns <namespace> | clear netns"
    }

    fn help(&self) -> &'static str {
        "Set the network namespace of twins that name none\n\
         Twins that are there stay where they are."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let namespace = match args.choice("option", &["netns", "clear"])? {
            "netns" => Some(args.word("namespace")?),
            _ => {
                args.choice("option", &["netns"])?;
                None
            }
        };
        args.end()?;
        options::set_namespace(c, namespace)?;
        out.json(json!({ "netns": namespace }));
        if let Some(namespace) = namespace {
            out.line(format_args!("lcp set default netns '{namespace}'"));
        }
        Ok(Outcome::Done)
    }
}
