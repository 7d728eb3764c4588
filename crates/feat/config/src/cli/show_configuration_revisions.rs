//! `show configuration revisions`: saved revisions and their age.

use crate::manager::{self, Manager, failed};
use std::time::SystemTime;
use thalweg_cli::{Align, Table};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::{Control, clock};

/// `show configuration revisions`
pub struct ShowConfigurationRevisions;

/// The command.
pub static COMMAND: ShowConfigurationRevisions = ShowConfigurationRevisions;

impl Command<Control> for ShowConfigurationRevisions {
    fn path(&self) -> &'static str {
        "show configuration revisions"
    }

    fn help(&self) -> &'static str {
        "Show saved revisions, latest first, and a change waiting for confirmation\n\
         The first column is the number for `config rollback'. A file that was edited by hand is 0."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let store = manager::store(c).map_err(failed)?;
        let revisions = store.history().map_err(|e| failed(e.into()))?;
        let pending = c.state::<Manager>().borrow().pending.as_ref().map(|p| p.until);
        let left = pending.map(|at| at.saturating_duration_since(clock::now()).as_secs());
        let now = SystemTime::now();
        let age = |at: Option<SystemTime>| Some(now.duration_since(at?).ok()?.as_secs());
        if out.wants_json() {
            let rows = revisions.iter().enumerate().map(|(back, r)| {
                let edited = r.number.is_none();
                serde_json::json!({
                    "rollback": back, "file": r.path, "age_s": age(r.saved), "edited": edited,
                })
            });
            let rows: Vec<_> = rows.collect();
            out.json(serde_json::json!({
                "file": store.file(), "revisions": rows, "confirm_within_s": left,
            }));
        }
        out.line(format_args!("{}", store.file().display()));
        let table = Table::new().column("Rollback", Align::Right, 8);
        let mut table = table.column("Saved", Align::Left, 14).column("File", Align::Left, 0);
        for (back, r) in revisions.iter().enumerate() {
            let saved = age(r.saved).map_or_else(String::new, ago);
            let file = match r.number {
                Some(_) => r.path.display().to_string(),
                None => "the file itself, edited by hand".into(),
            };
            table.row([back.to_string(), saved, file]);
        }
        write!(out, "{table}");
        if let Some(left) = left {
            out.line(format_args!("waiting for `config commit'; rollback in {left} s"));
        }
        Ok(Outcome::Done)
    }
}

/// Age as text: `5 s ago`, `2 h ago`.
fn ago(seconds: u64) -> String {
    let (n, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7200 => (seconds / 60, "min"),
        7200..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{n} {unit} ago")
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_are_short() {
        let ages = [5, 125, 7300, 200_000].map(super::ago);
        assert_eq!(ages, ["5 s ago", "2 min ago", "2 h ago", "2 days ago"]);
    }
}
