//! `test log`: writes a line into the log.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `test log <level> <class> <subclass> <text>`
pub struct TestLog;

/// The command.
pub static COMMAND: TestLog = TestLog;

const LEVELS: [&str; 10] =
    ["emerg", "alert", "crit", "err", "error", "warn", "warning", "notice", "info", "debug"];

impl Command<Control> for TestLog {
    fn path(&self) -> &'static str {
        "test log"
    }

    fn usage(&self) -> &'static str {
        "emerg|alert|crit|err|warn|notice|info|debug <class> <subclass> <text>"
    }

    fn help(&self) -> &'static str {
        "Write a line into the log\n\
         The log has four levels: what is graver than `err' is an error, `notice' is `info'. Class\n\
         and subclass come before the text."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let expected = "emerg, alert, crit, err, warn, notice, info or debug";
        let exact = |w: &str| LEVELS.iter().find(|l| **l == w).copied();
        let level = args.with("level", expected, exact)?;
        let (class, subclass) = (args.word("class")?, args.word("subclass")?);
        if args.is_empty() {
            return Err(args.bad("text", "the text of the line"));
        }
        let text = args.rest();
        match level {
            "warn" | "warning" => tracing::warn!("{class}/{subclass}: {text}"),
            "notice" | "info" => tracing::info!("{class}/{subclass}: {text}"),
            "debug" => tracing::debug!("{class}/{subclass}: {text}"),
            _ => tracing::error!("{class}/{subclass}: {text}"),
        }
        out.json(serde_json::json!({
            "level": level, "class": class, "subclass": subclass, "text": text,
        }));
        Ok(Outcome::Done)
    }
}
