//! `show features`: the feature arcs and their features.

use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::decl::{ArcId, ArcKey};

/// `show features [<arc>]`
pub struct ShowFeatures;

/// The command.
pub static COMMAND: ShowFeatures = ShowFeatures;

impl Command<Control> for ShowFeatures {
    fn path(&self) -> &'static str {
        "show features"
    }

    fn usage(&self) -> &'static str {
        "[<arc>]"
    }

    fn help(&self) -> &'static str {
        "Show the feature arcs and, in order, the features available on them\n\
         `show interface features' shows which are enabled."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = match args.is_empty() {
            true => None,
            false => {
                let names: Vec<_> = c.arc_decls().iter().map(|a| a.name).collect();
                let expected = format!("a feature arc: {}", names.join(", "));
                Some(args.with("arc", &expected, |w| c.arc(w))?)
            }
        };
        args.end()?;
        out.line("Available feature paths");
        let mut values = Vec::new();
        for (i, arc) in c.arc_decls().iter().enumerate() {
            let id = ArcId(i as u8);
            if only.is_some_and(|o| o != id) {
                continue;
            }
            let features = c.arc_features(id);
            let key = match arc.key {
                ArcKey::Rx => "rx",
                ArcKey::Tx => "tx",
            };
            out.line(format_args!("\n{}:", arc.name));
            for f in features.iter().chain([&arc.end]) {
                out.line(format_args!("  {f}"));
            }
            values.push(json!({
                "arc": arc.name, "interface": key, "features": features, "end": arc.end,
            }));
        }
        out.json(values.into());
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() {
            c.arc_decls().iter().map(|a| a.name.to_owned()).collect()
        } else {
            Vec::new()
        }
    }
}
