//! `clear configuration unresolved`: forgets settings that are not in force.

use crate::manager;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, counted};
use thalweg_graph::Control;

/// `clear configuration unresolved`
pub struct ClearConfigurationUnresolved;

/// The command.
pub static COMMAND: ClearConfigurationUnresolved = ClearConfigurationUnresolved;

impl Command<Control> for ClearConfigurationUnresolved {
    fn path(&self) -> &'static str {
        "clear configuration unresolved"
    }

    fn usage(&self) -> &'static str {
        "[<path>]"
    }

    fn help(&self) -> &'static str {
        "Forget settings that are not in force\n\
         All of them, or those at or below a path of the document. See\n\
         `show configuration unresolved'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let path = if args.is_empty() { None } else { Some(args.word("path")?) };
        args.end()?;
        let is_meant = |at: &str| {
            path.is_none_or(|path| {
                let rest = at.strip_prefix(path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
        };
        let (gone, stay): (Vec<_>, Vec<_>) =
            manager::unresolved(c).iter().cloned().partition(|part| is_meant(&part.path()));
        if let Some(path) = path.filter(|_| gone.is_empty()) {
            let text =
                format!("nothing is unresolved at `{path}'; see `show configuration unresolved'");
            return Err(CliError::with_code(text, -6));
        }
        manager::set_unresolved(c, stay);
        out.json(serde_json::json!({ "forgotten": gone.len() }));
        out.line(format_args!("forgotten: {}", counted(gone.len() as u64, "setting")));
        Ok(Outcome::Done)
    }
}
