//! `show settings`: settings with one value, and their defaults.

use crate::setting::Shown;
use crate::{Feature, features};
use serde_json::Value;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show settings [<feature>|<interface>]`
pub struct ShowSettings;

/// The command.
pub static COMMAND: ShowSettings = ShowSettings;

impl Command<Control> for ShowSettings {
    fn path(&self) -> &'static str {
        "show settings"
    }

    fn usage(&self) -> &'static str {
        "[<feature>|<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show settings with one value: what is in force, the default, and what they take\n\
         `*' marks values other than the default. Of interfaces, those values alone are listed\n\
         unless an interface is named. `show configuration' shows lists and tables, too."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let word = if args.is_empty() { None } else { Some(args.word("feature or interface")?) };
        args.end()?;
        let rows = match word {
            None => shown(c, |_| true, None),
            Some(name) if declaring(c).any(|f| f.name == name) => {
                shown(c, |f| f.name == name, None)
            }
            Some(name) => shown(c, |_| true, Some(name)),
        };
        if let Some(name) = word.filter(|_| rows.is_empty()) {
            let all: Vec<&str> = declaring(c).map(|f| f.name).collect();
            let text = format!(
                "no interface `{name}', and no feature of this name with settings: there are {}",
                all.join(", ")
            );
            return Err(CliError::with_code(text, -6));
        }
        out.json(rows.iter().map(|(feature, row)| row.json(feature)).collect::<Value>());
        table(&rows, out);
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => declaring(c).map(|f| f.name.to_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the features with declared settings.
fn declaring(c: &Control) -> impl Iterator<Item = &'static Feature> {
    features(c).into_iter().filter(|feature| !feature.declared.is_empty())
}

/// Returns settings with the names of their features.
fn shown(
    c: &Control,
    is_wanted: impl Fn(&Feature) -> bool,
    interface: Option<&str>,
) -> Vec<(&'static str, Shown)> {
    let of = |feature: &'static Feature| {
        let rows = feature.declared.iter().flat_map(move |setting| setting.shown(c, interface));
        rows.map(|row| (feature.name, row))
    };
    declaring(c).filter(|feature| is_wanted(feature)).flat_map(of).collect()
}

fn table(rows: &[(&str, Shown)], out: &mut Output) {
    let value = |row: &Shown| {
        let words = row.value.as_ref().map_or("-", |(words, _)| words);
        format!("{words}{}", if row.differs() { " *" } else { "" })
    };
    let cells: Vec<[String; 4]> = rows
        .iter()
        .map(|(_, row)| {
            [row.command.clone(), value(row), row.default.0.clone(), row.takes.to_owned()]
        })
        .collect();
    let head = ["Setting", "Value", "Default", "Takes"].map(str::to_owned);
    let width = |column: usize| {
        let all = cells.iter().chain([&head]).map(|row| row[column].chars().count());
        all.max().unwrap_or_default()
    };
    let widths = [0, 1, 2].map(width);
    for [setting, value, default, takes] in [&head].into_iter().chain(&cells) {
        let [a, b, c] = widths;
        out.line(format!("{setting:<a$}  {value:<b$}  {default:<c$}  {takes}").trim_end());
    }
}
