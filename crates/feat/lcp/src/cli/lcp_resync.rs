//! `lcp resync`.

use crate::routes;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `lcp resync [netns <namespace>]`
pub struct LcpResync;

/// The command.
pub static COMMAND: LcpResync = LcpResync;

impl Command<Control> for LcpResync {
    fn path(&self) -> &'static str {
        "lcp resync"
    }

    fn usage(&self) -> &'static str {
        "[netns <namespace>]"
    }

    fn help(&self) -> &'static str {
        "List the kernel's routes again, and take those that differ"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = match args.is_empty() {
            true => None,
            false => {
                args.choice("option", &["netns"])?;
                Some(args.word("namespace")?.to_owned())
            }
        };
        args.end()?;
        let count = routes::resync(c, name.as_deref());
        if count == 0 {
            let of = name.map_or(String::new(), |name| format!(" `{name}'"));
            return Err(CliError::failed(format!("no namespace{of} has twins")));
        }
        out.json(serde_json::json!({ "namespaces": count }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => vec!["netns".into()],
            ["netns"] => {
                let mut names: Vec<String> =
                    routes::namespaces(c).into_iter().map(|n| n.name).collect();
                names.dedup();
                names
            }
            _ => Vec::new(),
        }
    }
}
