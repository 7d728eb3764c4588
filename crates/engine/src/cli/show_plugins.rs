//! `show plugins`: lists the built-in features.

use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show plugins`
pub struct ShowPlugins;

/// The command.
pub static COMMAND: ShowPlugins = ShowPlugins;

impl Command<Control> for ShowPlugins {
    fn path(&self) -> &'static str {
        "show plugins"
    }

    fn help(&self) -> &'static str {
        "Show the built-in features"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let rows: Vec<_> = crate::features(c).iter().map(|f| (f.name, f.about)).collect();
        let version = env!("CARGO_PKG_VERSION");
        let value = |(name, about): &(&str, &str)| json!({ "name": name, "version": version, "description": about });
        out.json(rows.iter().map(value).collect::<Vec<Value>>().into());
        out.text(&format(&rows, version));
        Ok(Outcome::Done)
    }
}

fn format(rows: &[(&str, &str)], version: &str) -> String {
    let mut text = format!(
        " Plugin path is: built in\n\n     {:<41}{:<33}{}\n",
        "Plugin", "Version", "Description"
    );
    for (i, (name, about)) in rows.iter().enumerate() {
        text += &format!("{:>3}. {name:<40} {version:<32} {about}\n", i + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_as_vpp_prints_it() {
        let rows = [("engine", "graph, workers, trace and counters"), ("sflow", "sampling")];
        thalweg_testkit::golden!("tests/golden/plugins.txt", format(&rows, "0.1.0"));
    }
}
