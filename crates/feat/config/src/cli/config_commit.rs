//! `config commit`: what runs shall stay.

use crate::cli_support::seconds;
use crate::manager::{self, ConfigError, Manager, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `config commit`
pub struct ConfigCommit;

/// The command.
pub static COMMAND: ConfigCommit = ConfigCommit;

impl Command<Control> for ConfigCommit {
    fn path(&self) -> &'static str {
        "config commit"
    }

    fn usage(&self) -> &'static str {
        "[confirm <seconds>]"
    }

    fn help(&self) -> &'static str {
        "Save the running configuration, and confirm what waits for that\n\
         `confirm <seconds>' saves nothing yet: unless `config commit' follows in time, the router goes\n\
         back to what was saved last, by itself. To be given before or after a risky change."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let confirm = seconds(args)?;
        args.end()?;
        if let Some(after) = confirm {
            let back = manager::revision(c, 0).map_err(failed)?;
            manager::arm(c, back, after);
            out.json(serde_json::json!({ "confirm_within_s": after.as_secs() }));
            let s = after.as_secs();
            out.line(format_args!("`config commit' within {s} s, or what was saved last returns"));
            return Ok(Outcome::Done);
        }
        // Saved first: if that fails, going back is still the safer end.
        let saved = match (manager::save(c), c.state::<Manager>().borrow().pending.is_some()) {
            // Nowhere to save; confirming is meant.
            (Err(ConfigError::NoFile), true) => None,
            (saved, _) => Some(saved.map_err(failed)?),
        };
        let confirmed = manager::disarm(c).is_some();
        out.json(serde_json::json!({ "confirmed": confirmed, "saved": saved }));
        if confirmed {
            out.line("confirmed");
        }
        out.line(match saved {
            Some(true) => "saved",
            Some(false) => "saved already",
            None => "not saved: the router keeps no file",
        });
        Ok(Outcome::Done)
    }
}
