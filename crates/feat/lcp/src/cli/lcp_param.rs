//! `lcp param`.

use crate::form::OnOff;
use crate::options;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_engine::setting::Form;
use thalweg_graph::Control;

/// `lcp param [del-static-on-link-down on|off] [del-dynamic-on-link-down on|off]`
pub struct LcpParam;

/// The command.
pub static COMMAND: LcpParam = LcpParam;

const WORDS: &[&str] = &["del-static-on-link-down", "del-dynamic-on-link-down"];

impl Command<Control> for LcpParam {
    fn path(&self) -> &'static str {
        "lcp param"
    }

    fn usage(&self) -> &'static str {
        "[del-static-on-link-down on|off] [del-dynamic-on-link-down on|off]"
    }

    fn help(&self) -> &'static str {
        "Set whether the kernel's routes by an interface go when its link goes down\n\
         static: those of the kernel and of users; dynamic: those of routing daemons."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut del_static, mut del_dynamic) = (None, None);
        while !args.is_empty() {
            let word = args.choice("option", WORDS)?;
            let on = Some(OnOff("state").take(args)?);
            if word == WORDS[0] { del_static = on } else { del_dynamic = on }
        }
        options::change(c, |options| {
            options.del_static = del_static.unwrap_or(options.del_static);
            options.del_dynamic = del_dynamic.unwrap_or(options.del_dynamic);
        });
        Ok(Outcome::Done)
    }
}
