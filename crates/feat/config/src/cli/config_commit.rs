//! `config commit`: saves and confirms the running configuration.

use crate::apply::Back;
use crate::cli_support::{revision, seconds};
use crate::manager::{self, ConfigError, Manager, failed};
use crate::work::{self, Loaded, Must, View};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::{Document, Part, WHOLE};
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
        "Save the running configuration and confirm a pending change\n\
         `confirm <seconds>' saves nothing yet: unless `config commit' follows in time, the router rolls\n\
         back to the last saved configuration. May be given before or after a risky change."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let confirm = seconds(args)?;
        args.end()?;
        manager::check_settled(c).map_err(failed)?;
        if let Some(after) = confirm {
            let back = (revision(c, 0)?, Must::BeReadable);
            let job = |_: &_, _, back: Loaded| Ok(back);
            return work::answer(c, View::InForce, Some(back), out, job, move |c, back, out| {
                manager::arm(c, Back { to: back, only: None }, after);
                let s = after.as_secs();
                out.json(serde_json::json!({ "confirm_within_s": s }));
                out.line(format_args!(
                    "run `config commit' within {s} s; otherwise the last saved configuration returns"
                ));
                Ok(())
            });
        }
        // Saved first: if that fails, the rollback is still the safer outcome.
        let store = match (manager::store(c), c.state::<Manager>().borrow().pending.is_some()) {
            // Without a file to save to, the command only confirms.
            (Err(ConfigError::NoFile), true) => None,
            (store, _) => Some(store.map_err(failed)?),
        };
        let known = manager::unresolved(c);
        let job = move |_: &_, running: Document, _| {
            let unread: Vec<_> =
                Part::outside(running.unread(), &known).into_iter().cloned().collect();
            match store {
                Some(store) => Ok((Some(store.save(&running.to_yaml()?)?), unread)),
                None => Ok((None, unread)),
            }
        };
        work::answer(c, View::Whole, None, out, job, |c, (saved, unread), out| {
            let confirmed = manager::disarm(c).map(work::drop_in_background).is_some();
            out.json(serde_json::json!({ "confirmed": confirmed, "saved": saved }));
            if confirmed {
                out.line("confirmed");
            }
            out.line(match saved {
                Some(true) => "saved",
                Some(false) => "already saved",
                None => "not saved: the router has no configuration file",
            });
            for part in unread.iter().take(WHOLE) {
                out.line(format_args!("not read back: {part}"));
            }
            Ok(())
        })
    }
}
