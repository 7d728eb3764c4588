//! `classify session`: adds to what a classifier table hits.

use crate::classify::{Classifier, ClassifyError, Session, VECTOR, words};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `classify session table-index <n> match ... [opaque-index <n>] [del]`
pub struct ClassifySession;

/// The command.
pub static COMMAND: ClassifySession = ClassifySession;

impl Command<Control> for ClassifySession {
    fn path(&self) -> &'static str {
        "classify session"
    }

    /// `cl run' goes on to mean `clear runtime'.
    fn listed(&self) -> bool {
        false
    }

    fn usage(&self) -> &'static str {
        "table-index <n> match <values> [hit-next <n>] [opaque-index <n>] [advance <n>] [del]"
    }

    fn help(&self) -> &'static str {
        "Add to what a classifier table hits, or remove it\n\
         The values are in the words of `classify filter'; bits that the table's mask does not have\n\
         do not count. `hit-next', `opaque-index' and `advance' are kept and shown: tables only\n\
         choose packets for traces and captures."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut index, mut value, mut del) = (None, None, false);
        let mut session = Session::default();
        while !args.is_empty() {
            if args.peek() == Some("match") {
                value = Some(words::values(args)?);
                continue;
            }
            let words = ["table-index", "match", "hit-next", "opaque-index", "advance", "del"];
            match args.choice("option", &words)? {
                "table-index" => index = Some(args.u32("table")?),
                "hit-next" => session.hit_next = args.u32("next")?,
                "opaque-index" => session.opaque = args.u32("number")?,
                "advance" => {
                    let bytes = args.i64("bytes")?;
                    let fits = i32::try_from(bytes).ok();
                    session.advance = fits.ok_or_else(|| args.bad_last("bytes", "32 bits"))?;
                }
                "del" => del = true,
                _ => return Err(args.bad("session", "`match' and the values of the fields")),
            }
        }
        args.end()?;
        let index = index.ok_or_else(|| args.bad("table", "`table-index' and a number"))?;
        let value = value.ok_or_else(|| args.bad("session", "`match' and the values"))?;
        let state = c.state::<Classifier>();
        let mut state = state.borrow_mut();
        let table = state.table(index).ok_or(ClassifyError::NoTable(index))?;
        let bytes = &value[..table.skip as usize * VECTOR + table.mask.len()];
        match del {
            true => state.remove_session(index, bytes)?,
            false => state.add_session(index, bytes, session)?,
        }
        out.json(serde_json::json!({ "table": index, "deleted": del }));
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        let words: &[&str] = match before {
            [] => &["table-index"],
            [_] => &[],
            [_, _] => &["match"],
            _ => &["l2", "l3", "l4", "ip4", "ip6", "src", "dst", "proto", "hex", "del"],
        };
        words.iter().map(|w| (*w).to_owned()).collect()
    }
}
