//! `lcp resync`.

use crate::routes;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `lcp resync [fpm] [netns <namespace>]`
pub struct LcpResync;

/// The command.
pub static COMMAND: LcpResync = LcpResync;

impl Command<Control> for LcpResync {
    fn path(&self) -> &'static str {
        "lcp resync"
    }

    fn usage(&self) -> &'static str {
        "[fpm] [netns <namespace>]"
    }

    fn help(&self) -> &'static str {
        "List the kernel's routes again, and take those that differ; with `fpm', close zebra's \
         connection instead, after which it sends all again"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let fpm = args.exact("fpm");
        let name = match args.is_empty() {
            true => None,
            false => {
                args.choice("option", &["netns"])?;
                Some(args.word("namespace")?.to_owned())
            }
        };
        args.end()?;
        let (count, closed) = routes::resync(c, name.as_deref(), fpm);
        let of = || name.as_ref().map_or(String::new(), |name| format!(" `{name}'"));
        if count == 0 {
            return Err(CliError::failed(format!("no namespace{} has twins", of())));
        }
        if fpm && closed == 0 {
            let why = match name {
                Some(_) => format!("no zebra is connected in namespace{}", of()),
                None => "no zebra is connected".to_owned(),
            };
            return Err(CliError::failed(format!("{why}: `show lcp routes' has the address")));
        }
        out.json(serde_json::json!({ "namespaces": count, "connections": closed }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => vec!["fpm".into(), "netns".into()],
            ["fpm"] => vec!["netns".into()],
            ["netns"] | ["fpm", "netns"] => {
                let mut names: Vec<String> =
                    routes::namespaces(c).into_iter().map(|n| n.name).collect();
                names.dedup();
                names
            }
            _ => Vec::new(),
        }
    }
}
